"""Land a file: chunk by chunk into the lake, each chunk once, resumable where it was killed.

Belongs here: the order of writes that makes landing safe to repeat. Does not belong here: formats
(``readers``), row types (``normalise``), the rules of step 1 (passed in as ``clean``). A chunk
replaces what a killed attempt left of it, then the ledger notes it together with the days and
subjects it touched, in one transaction.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from memory_pipelines.errors import InputError
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.readers import RawRow, read_rows
from memory_pipelines.model import shift_day
from memory_pipelines.stores.base import ChunkCounts, Lake, LandedChunk, LandingLedger, Replace
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS, TableSpec

CHUNK_ROWS = 50_000
TOUCHED_DAYS = range(-2, 4)
"""A landed turn can change the exchanges of the day before (a late reply), with them what becomes of turns
of the day before that (the opening); and exchanges of three days after: a late own turn moves the first own
turn of a run over midnight, whose exchange takes replies of the day after, and their rest opens the next."""

Clean = Callable[[pa.Table], tuple[pa.Table, dict[str, int]]]


def file_hash(path: Path) -> str:
    """Content hash of a file, its identity in the ledger. Raises InputError if it cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror}") from None
    return digest.hexdigest()


def land_file(
    path: Path,
    *,
    lake: Lake,
    ledger: LandingLedger,
    clean: Clean,
    default_tenant: str,
    buckets: int,
    landed_at: datetime,
    chunk_rows: int = CHUNK_ROWS,
) -> ChunkCounts | None:
    """Land one file; None if its content was landed before. Returns the counts of the chunks landed now.

    Raises InputError if the file cannot be read; chunks already landed stay, and the next call goes on.
    """
    file_id = file_hash(path)
    whole, done = ledger.begin_file(file_id, path.name, path.stat().st_size)
    if whole:
        return None
    normalise = Normaliser(file_id, default_tenant, buckets, landed_at)
    total: list[ChunkCounts] = []
    for number, rows in enumerate(_chunks(read_rows(path), chunk_rows)):
        by_kind = _normalised(normalise, rows)  # also of landed chunks: ordinals go on counting
        if number < done:
            continue
        chunk = _write_chunk(lake, clean, f"{file_id}:{number:06d}", len(rows), by_kind, resumed=number == done)
        ledger.chunk_landed(LandedChunk(file_id, number, *chunk))
        total.append(chunk[0])
    ledger.end_file(file_id)
    return ChunkCounts.total(total)


def _chunks(rows: Iterator[RawRow], size: int) -> Iterator[list[RawRow]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _normalised(normalise: Normaliser, rows: Iterable[RawRow]) -> dict[str, list[dict[str, Any]]]:
    by_kind: dict[str, list[dict[str, Any]]] = {"turn": [], "behaviour": [], "quarantine": []}
    for raw in rows:
        kind, row = normalise(raw)
        by_kind[kind].append(row)
    return by_kind


def _write_chunk(
    lake: Lake, clean: Clean, chunk_id: str, rows: int, by_kind: dict[str, list[dict[str, Any]]], *, resumed: bool
) -> tuple[ChunkCounts, frozenset[str], frozenset[tuple[str, str, int]], tuple[tuple[str, str, str], ...]]:
    turns, filtered = clean(_table(TURNS, by_kind["turn"], chunk_id))
    behaviour = _table(BEHAVIOUR, by_kind["behaviour"], chunk_id)
    broken = _table(QUARANTINE, by_kind["quarantine"], chunk_id)
    replace = [Replace("file_id", (chunk_id,))]
    for spec, table in ((TURNS, turns), (BEHAVIOUR, behaviour), (QUARANTINE, broken)):
        if table.num_rows or (resumed and _left_over(lake, spec, chunk_id)):
            lake.write(spec, table, replace)
    reasons: dict[str, int] = {}
    for row in by_kind["quarantine"]:
        reasons[row["reason"]] = reasons.get(row["reason"], 0) + 1
    counts = ChunkCounts(rows, turns.num_rows, behaviour.num_rows, filtered, reasons)
    own = set(turns["day"].to_pylist())
    days = frozenset(shift_day(day, shift) for day in own for shift in TOUCHED_DAYS)
    owners = frozenset((r["tenant"], r["owner"], r["bucket"]) for r in by_kind["behaviour"])
    ids = zip(*(turns[name].to_pylist() for name in ("tenant", "turn_id", "day")), strict=True)
    return counts, days, owners, tuple(ids)


def _left_over(lake: Lake, spec: TableSpec, chunk_id: str) -> bool:
    """Whether a killed attempt left rows: one that came too early found future times, say."""
    return lake.read(spec, columns=["file_id"], where=[("file_id", "=", chunk_id)]).num_rows > 0


def _table(spec: TableSpec, rows: list[dict[str, Any]], chunk_id: str) -> pa.Table:
    for row in rows:
        row["file_id"] = chunk_id
    return pa.Table.from_pylist(rows, schema=spec.schema)
