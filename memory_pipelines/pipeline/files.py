"""Landing over the stores: files of a folder, each once.

Belongs here: which files, and what became of them. Does not belong here: formats and rows (``landing``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from memory_pipelines.erasure.tombstones import Forgotten, load_tombstones
from memory_pipelines.errors import InputError
from memory_pipelines.landing.land import file_hash, land_file
from memory_pipelines.landing.readers import SUFFIXES, detect_format
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.stores.base import ChunkCounts
from memory_pipelines.wiring import Platform


@dataclass(frozen=True)
class LandedFile:
    """``status``: landed, known (its content was landed before) or unreadable (see ``error``)."""

    name: str
    status: str
    counts: ChunkCounts = field(default_factory=ChunkCounts)
    error: str = ""


def log_files(folder: Path) -> list[Path]:
    """The log files below a folder, in order of their paths: those that some reader is for.

    Hidden ones are none, nor is what lies in a ``truth`` folder, where the simulator keeps its answers."""
    if not folder.is_dir():
        return []
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix.lower() in SUFFIXES)
    return [p for p in files if not any(x.startswith(".") or x == "truth" for x in p.relative_to(folder).parts)]


@uses_lake
def land(platform: Platform, paths: Sequence[Path], progress: Callable[[str], None] | None = None) -> list[LandedFile]:
    """Land files one after the other. An unreadable file is reported and does not stop the others.

    Rows of erased persons from before their erasure are not landed again."""
    tombstones = load_tombstones(platform.engine)
    results = []
    for path in paths:
        try:
            counts = land_file(
                path,
                lake=platform.lake,
                ledger=platform.ledger,
                clean=_clean,
                default_tenant=platform.settings.tenant,
                buckets=platform.settings.buckets,
                landed_at=platform.clock.now(),
                forget=Forgotten(tombstones) if tombstones else None,
            )
            status = "known" if counts is None else "landed"
            results.append(LandedFile(path.name, status, counts or ChunkCounts()))
        except InputError as error:
            results.append(LandedFile(path.name, "unreadable", error=str(error)))
        if progress is not None:
            progress(f"{path.name}: {results[-1].status}, {results[-1].counts.rows} rows")
    return results


def unlanded(platform: Platform, paths: Sequence[Path]) -> list[Path]:
    """The files whose content is not landed whole, and which some reader can read."""
    complete = {f["file_id"] for f in platform.ledger.files() if f["complete"]}
    return [path for path in paths if _readable(path) and file_hash(path) not in complete]


def _readable(path: Path) -> bool:
    try:
        detect_format(path)
    except InputError:
        return False
    return True


def _clean(turns: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    cleaned = clean_turns(turns)
    return cleaned.turns, cleaned.filtered
