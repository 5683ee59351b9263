"""The manifest of a backup: every file with its hash, every table with its content's. It is written last.

Belongs here: its form, and checking files against it. Does not belong here: what is in the files (``rows``).
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from memory_pipelines.errors import IntegrityError
from memory_pipelines.interchange.folder import Folder

FORMAT = 1
NAME = "manifest.json"
SUM = "manifest.sha256"


@dataclass(frozen=True)
class Part:
    """One file: SHA-256 of its bytes, rows in it, and for lake tables the canonical hash of the rows."""

    sha256: str
    rows: int = 0
    content: str = ""


@dataclass(frozen=True)
class BackupManifest:
    """What a backup holds. ``schema``: the relational revision; ``embedder``: setting and model of the live vectors,
    which are made anew; ``master_key``: the fingerprint of the key that opens the ring, which is not in the backup;
    ``missing_cold``: archived texts that were moved while they were copied, made again from the lake."""

    created_at: str
    schema: str
    buckets: int
    tables: dict[str, list[str]]
    lake: dict[str, list[str]]
    versions: dict[str, int]
    cold: list[str]
    embedder: list[str]
    master_key: str
    missing_cold: int
    files: dict[str, Part] = field(default_factory=dict)
    format: int = FORMAT


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write(folder: Folder, manifest: BackupManifest) -> str:
    """Write the manifest, then its own sum; returns that. Before, the backup is none."""
    content = json.dumps(asdict(manifest), indent=1, sort_keys=True, ensure_ascii=False).encode()
    folder.put(NAME, content)
    folder.put(SUM, sha256(content).encode())
    return sha256(content)


def read(folder: Folder) -> BackupManifest:
    """Raises InputError where there is no manifest, IntegrityError where it was changed or is of another format."""
    content = folder.get(NAME)
    if sha256(content) != folder.get(SUM).decode().strip():
        raise IntegrityError("the backup's manifest is not what was written")
    value: dict[str, Any] = json.loads(content)
    if value["format"] != FORMAT:
        raise IntegrityError(f"the backup has format {value['format']}, this version reads {FORMAT}")
    return BackupManifest(**value | {"files": {path: Part(**part) for path, part in value["files"].items()}})


def checked(folder: Folder, manifest: BackupManifest, path: str) -> bytes:
    """A file's bytes. Raises IntegrityError if they are not those that were written."""
    content = folder.get(path)
    if sha256(content) != manifest.files[path].sha256:
        raise IntegrityError(f"file {path} of the backup is not what was written")
    return content


def verify(folder: Folder) -> BackupManifest:
    """Read every file and compare it with the manifest. Raises as ``read`` and ``checked``."""
    manifest = read(folder)
    for path in sorted(manifest.files):
        checked(folder, manifest, path)
    return manifest
