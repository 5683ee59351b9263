"""Quarantined rows come back: read again with today's readers, mapping and rules, landed where they are good now.

Belongs here: the order of writes that makes it safe to kill and to repeat. Does not belong here: which files, and
where their mapping is (``pipeline.files``). Rows leave a chunk's quarantine in attempts: they are landed under the
attempt's own id, then noted in one transaction, then removed from quarantine; a row that is noted and still there is
removed by the next attempt. Lost versions of turns and events are no broken rows: their jobs keep them.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

import pyarrow as pa

from memory_pipelines.landing.land import Lander, chunk_key
from memory_pipelines.landing.mapping import Mapping
from memory_pipelines.landing.readers import parse_again
from memory_pipelines.stores.base import Lake, Replace
from memory_pipelines.stores.notes import ChunkCounts, LandingLedger, Readmitted
from memory_pipelines.tables import QUARANTINE


def readmit_file(
    file_id: str,
    chunks: Iterable[int],
    file_format: str,
    *,
    lake: Lake,
    ledger: LandingLedger,
    lander: Lander,
    mapping: Mapping | None,
    reasons: Collection[str] | None = None,
) -> ChunkCounts:
    """Land what is good now of the quarantined rows in landed ``chunks`` of a file: those with one of ``reasons``, or
    all of them.

    Returns what became of those that left; ``quarantined`` is how many left by reason."""
    done = [_readmit_chunk(file_id, chunk, file_format, lake, ledger, lander, mapping, reasons) for chunk in chunks]
    return ChunkCounts.total(done)


def _readmit_chunk(
    file_id: str,
    chunk: int,
    file_format: str,
    lake: Lake,
    ledger: LandingLedger,
    lander: Lander,
    mapping: Mapping | None,
    reasons: Collection[str] | None,
) -> ChunkCounts:
    chunk_id = chunk_key(file_id, chunk)
    attempts = ledger.readmissions(file_id, chunk)
    gone = frozenset[int]().union(*attempts)
    held = lake.read(QUARANTINE, where=[("file_id", "=", chunk_id)]).to_pylist()
    broken = sorted((row for row in held if row["position"] not in gone), key=lambda row: row["position"])
    tried = [row for row in broken if reasons is None or row["reason"] in reasons]
    by_kind, erased = lander.sort(
        parse_again(row["raw"], row["reason"], file_format, mapping, position=row["position"]) for row in tried
    )
    still = {row["position"] for row in by_kind["quarantine"]}
    left = [row for row in tried if row["position"] not in still]
    by_kind["quarantine"] = []
    attempt = len(attempts)
    written = lander.write(f"{chunk_id}.{attempt}", 0, by_kind, erased, resumed=True)
    counts = replace(written.counts, quarantined=_tally(row["reason"] for row in left))
    if left:
        positions = frozenset(row["position"] for row in left)
        ledger.readmitted(
            Readmitted(file_id, chunk, attempt, positions, counts, written.days, written.owners, written.turn_days)
        )
        gone |= positions
    if any(row["position"] in gone for row in held):
        stay = [row for row in held if row["position"] not in gone]
        kept = pa.Table.from_pylist(stay, schema=QUARANTINE.schema)
        lake.write(QUARANTINE, kept, [Replace("file_id", (chunk_id,))])
    return counts


def _tally(reasons: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return counts
