"""Upkeep of the lake: many small files become few sorted ones, and what no version needs goes.

Belongs here: which tables may be written anew now. Does not belong here: how (``stores.lake``), or the purge
after an erasure (``pipeline.forget``), which nobody may work beside.
"""

from dataclasses import dataclass
from datetime import timedelta

from memory_pipelines.pipeline.daily import BASE_TABLES
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.stores.base import Compacted
from memory_pipelines.tables import ALL
from memory_pipelines.wiring import Platform

MOST_FILES = 8
"""Files that a partition may have before it is compacted."""
KEPT = timedelta(days=7)
"""How long a version can still be read after a newer one is there: longer than any run takes."""


@dataclass(frozen=True)
class Upkeep:
    """``compacted``: table → what was done; ``waiting``: tables with days that no manifest pins yet; ``vacuumed``:
    table → files removed."""

    compacted: dict[str, Compacted]
    waiting: list[str]
    vacuumed: dict[str, int]


@uses_lake
def keep_up(platform: Platform, most_files: int = MOST_FILES, kept: timedelta = KEPT) -> Upkeep:
    """Compact and vacuum every table. Base tables wait while the manifest pins an older version of them."""
    done = Upkeep({}, [], {})
    for spec in ALL:
        if spec in BASE_TABLES:
            manifest = platform.ledger.manifest()
            pinned = -1 if manifest is None else manifest.versions.get(spec.name, -1)
            if pinned != platform.lake.version(spec):
                done.waiting.append(spec.name)
                continue
        compacted = platform.lake.compact(spec, most_files)
        if compacted is not None:
            done.compacted[spec.name] = compacted
            if compacted.after == compacted.before + 1:  # else somebody wrote meanwhile, and pins what he wrote
                platform.ledger.repin(spec.name, compacted.before, compacted.after)
        removed = platform.lake.vacuum(spec, kept)
        if removed:
            done.vacuumed[spec.name] = removed
    return done
