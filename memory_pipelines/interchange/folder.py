"""Where a backup lies: a folder, or a prefix in a bucket. Files are written whole or not at all, and never changed.

Belongs here: bytes by path. Does not belong here: what the bytes are (``backup``).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from memory_pipelines.errors import InputError, PermanentError
from memory_pipelines.stores.base import ColdStore


class Folder(Protocol):
    """Files by relative path, with ``/`` between steps."""

    def put(self, path: str, content: bytes) -> None: ...
    def get(self, path: str) -> bytes:
        """Raises InputError where there is no such file."""
        ...

    def paths(self) -> Iterator[str]: ...


class DiskFolder:
    """A folder on disk. Raises PermanentError where it cannot be written: full, read-only, not a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, path: str, content: bytes) -> None:
        target = self._root / path
        fresh = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(target)
        except OSError as error:
            raise PermanentError(f"the backup's folder cannot be written: {error.strerror}") from None

    def get(self, path: str) -> bytes:
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise InputError(f"the backup has no readable file {path}: {error.strerror}") from None

    def paths(self) -> Iterator[str]:
        for found in sorted(self._root.rglob("*")):
            if found.is_file():
                yield found.relative_to(self._root).as_posix()


class BucketFolder:
    """A prefix of a bucket, through the cold store's adapter."""

    def __init__(self, bucket: ColdStore, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""

    def put(self, path: str, content: bytes) -> None:
        self._bucket.put(self._prefix + path, content)

    def get(self, path: str) -> bytes:
        content = self._bucket.get(self._prefix + path)
        if content is None:
            raise InputError(f"the backup has no file {path}")
        return content

    def paths(self) -> Iterator[str]:
        yield from sorted(key.removeprefix(self._prefix) for key in self._bucket.keys(self._prefix))
