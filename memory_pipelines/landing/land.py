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
from memory_pipelines.landing.readers import RawRow, detect_format, read_rows
from memory_pipelines.model import touched_days
from memory_pipelines.stores.base import ChunkCounts, Lake, LandedChunk, LandingLedger, Replace
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS, TableSpec

CHUNK_ROWS = 50_000

Clean = Callable[[pa.Table], tuple[pa.Table, dict[str, int]]]
Rows = dict[str, list[dict[str, Any]]]
Forget = Callable[[Rows], tuple[Rows, int]]
ERASED = "erased"
"""The rule under which rows of erased persons are counted."""


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
    forget: Forget | None = None,
) -> ChunkCounts | None:
    """Land one file; None if its content was landed before. Returns the counts of the chunks landed now.

    ``forget`` takes rows out of a chunk that may not be landed, and counts them.
    Raises InputError if the file cannot be read; chunks already landed stay, and the next call goes on.
    """
    file_format = detect_format(path)
    file_id = file_hash(path)
    whole, done = ledger.begin_file(file_id, path.name, path.stat().st_size)
    if whole:
        return None
    normalise = Normaliser(file_id, default_tenant, buckets, landed_at)
    total: list[ChunkCounts] = []
    for number, rows in enumerate(_chunks(read_rows(path, file_format), chunk_rows)):
        by_kind = _normalised(normalise, rows)  # also of landed chunks: ordinals go on counting
        by_kind, erased = (by_kind, 0) if forget is None else forget(by_kind)
        if number < done:
            continue
        chunk_id, resumed = f"{file_id}:{number:06d}", number == done
        chunk = _write_chunk(lake, clean, chunk_id, len(rows), by_kind, erased, resumed=resumed)
        ledger.chunk_landed(LandedChunk(file_id, number, *chunk))
        total.append(chunk[0])
    ledger.end_file(file_id)
    return ChunkCounts.total(total)


def _chunks(rows: Iterator[RawRow], size: int) -> Iterator[list[RawRow]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _normalised(normalise: Normaliser, rows: Iterable[RawRow]) -> Rows:
    by_kind: Rows = {"turn": [], "behaviour": [], "quarantine": []}
    for raw in rows:
        kind, row = normalise(raw)
        by_kind[kind].append(row)
    return by_kind


def _write_chunk(
    lake: Lake, clean: Clean, chunk_id: str, rows: int, by_kind: Rows, erased: int, *, resumed: bool
) -> tuple[ChunkCounts, frozenset[str], frozenset[tuple[str, str, int]], tuple[tuple[str, str, str], ...]]:
    turns, filtered = clean(_table(TURNS, by_kind["turn"], chunk_id))
    if erased:
        filtered = filtered | {ERASED: erased}
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
    days = touched_days(turns["day"].unique().to_pylist())
    owners = frozenset((r["tenant"], r["owner"], r["bucket"]) for r in by_kind["behaviour"])
    ids = zip(*(turns[name].to_pylist() for name in ("tenant", "turn_id", "day")), strict=True)
    return counts, days, owners, tuple(ids)


def _left_over(lake: Lake, spec: TableSpec, chunk_id: str) -> bool:
    """Whether a killed attempt left rows: one that came too early found future times, say."""
    return bool(lake.read(spec, columns=["file_id"], where=[("file_id", "=", chunk_id)]).num_rows)


def _table(spec: TableSpec, rows: list[dict[str, Any]], chunk_id: str) -> pa.Table:
    for row in rows:
        row["file_id"] = chunk_id
    return pa.Table.from_pylist(rows, schema=spec.schema)
