"""What is in quarantine, how it comes out again, and the versions of behaviour events that lose.

Belongs here: quarantine over the stores. Does not belong here: why a row is broken (``landing``), or the versions of
turns that lose, which the cut of their day finds (``daily``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.errors import InputError
from memory_pipelines.landing.land import chunk_key
from memory_pipelines.landing.readmit import readmit_file
from memory_pipelines.landing.sql import FORMAT as SQL
from memory_pipelines.pipeline.files import load_mapping_file, make_lander
from memory_pipelines.pipeline.lock import lands_alone, uses_lake
from memory_pipelines.slices.events import CONFLICTING_EVENT, conflict_rows, lost_events, repeats
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.notes import ChunkCounts
from memory_pipelines.tables import CONFLICTING_VERSION, QUARANTINE
from memory_pipelines.wiring import Platform

CONFLICTS = (CONFLICTING_VERSION, CONFLICTING_EVENT)
"""Reasons of rows that are whole, and lost to another version of theirs; they belong to no one file."""


@dataclass(frozen=True)
class Held:
    """Rows of one file in quarantine for one reason. ``share``: of the file's rows."""

    file_id: str
    name: str
    reason: str
    rows: int
    share: float


def held(platform: Platform, *, reason: str | None = None, file: str | None = None) -> list[Held]:
    """Counts by file and reason, most rows first. Raises InputError for an unknown file."""
    found = [
        Held(known["file_id"], known["name"], why, number, number / known["rows"])
        for known in _files(platform, file)
        for why, number in known["quarantined"].items()
    ]
    if file is None:
        conflicts = sum(day["conflicts"] for day in platform.ledger.day_counts().values())
        lost = zip(CONFLICTS, (conflicts, platform.ledger.repeated_events()[1]), strict=True)
        found += [Held("", "(lost to another version)", why, number, 0.0) for why, number in lost if number]
    chosen = [entry for entry in found if reason is None or entry.reason == reason]
    return sorted(chosen, key=lambda entry: (-entry.rows, entry.name, entry.reason))


@uses_lake
def rows(platform: Platform, limit: int, *, reason: str | None = None, file: str | None = None) -> list[dict[str, Any]]:
    """The first ``limit`` rows of the table ``quarantine``, by file and position; they hold personal data."""
    found: list[dict[str, Any]] = []
    for where in _places(platform, reason, file):
        if len(found) >= limit:
            break
        if reason is not None:
            where = [*where, ("reason", "=", reason)]
        found += sorted(platform.lake.read(QUARANTINE, where=where).to_pylist(), key=lambda row: row["position"])
    return found[:limit]


def _places(platform: Platform, reason: str | None, file: str | None) -> Iterator[list[tuple[str, str, object]]]:
    for known in _files(platform, file):
        for chunk in platform.ledger.quarantined_chunks(known["file_id"]):
            yield [("file_id", "=", chunk_key(known["file_id"], chunk))]
    if file is None:
        for why in CONFLICTS:
            if reason in (None, why):
                yield [("reason", "=", why)]


def _files(platform: Platform, file: str | None) -> list[dict[str, Any]]:
    chosen = [row for row in platform.ledger.files() if file is None or file in (row["file_id"], row["name"])]
    if file is not None and not chosen:
        raise InputError("no file of that name or id was landed")
    return chosen


# ---- the way out


@dataclass(frozen=True)
class Readmission:
    """What a re-admission did to one file. ``error``: why its rows were left where they are."""

    file_id: str
    name: str
    counts: ChunkCounts = field(default_factory=ChunkCounts)
    error: str = ""


@lands_alone
@uses_lake
def readmit(
    platform: Platform, *, reason: str | None = None, file: str | None = None, mapping: Path | None = None
) -> list[Readmission]:
    """Read quarantined rows again, and land those that are good now: of one reason or all, of one file (its id or
    its name) or all, with ``mapping`` or the one that was used, as it is today. Safe to kill and to repeat.

    Raises InputError for an unknown file, or a ``mapping`` that cannot be read."""
    explicit = load_mapping_file(mapping)
    places = set(pc.unique(platform.lake.read(QUARANTINE, columns=["file_id"])["file_id"]).to_pylist())
    results = []
    for row in _files(platform, file):
        known = platform.ledger.quarantined_chunks(row["file_id"])
        chunks = [chunk for chunk in known if chunk_key(row["file_id"], chunk) in places]
        if not chunks:
            continue
        try:
            used = explicit or load_mapping_file(None if row["mapping"] is None else Path(row["mapping"]))
        except InputError as error:
            results.append(Readmission(row["file_id"], row["name"], error=f"{row['name']}: {error}; give --mapping"))
            continue
        counts = readmit_file(
            row["file_id"],
            chunks,
            "jsonl" if row["format"] == SQL else row["format"],
            lake=platform.lake,
            ledger=platform.ledger,
            lander=make_lander(platform, row["file_id"]),
            mapping=None if used is None else used.mapping,
            reasons=None if reason is None else {reason},
        )
        results.append(Readmission(row["file_id"], row["name"], counts))
    return results


# ---- versions of behaviour events


def settle_events(platform: Platform, owners: Sequence[str], behaviour: pa.Table) -> dict[str, tuple[int, int]]:
    """Put the lost versions of the owners' behaviour events into quarantine, and take out those that are lost no more.

    ``behaviour``: all rows of theirs. Owner key → how many of its rows say an event again, the same and otherwise."""
    lost = lost_events(behaviour)
    before = platform.lake.read(QUARANTINE, columns=["file_id"], where=[("reason", "=", CONFLICTING_EVENT)])
    stale = {_place(owner) for owner in owners} & set(before["file_id"].to_pylist())
    replaced = stale | {_place(owner) for owner in pc.unique(lost["owner"]).to_pylist()}
    if replaced:
        platform.lake.write(QUARANTINE, conflict_rows(lost), [Replace("file_id", tuple(sorted(replaced)))])
    return repeats(behaviour)


def _place(owner: str) -> str:
    return f"owner:{owner}"
