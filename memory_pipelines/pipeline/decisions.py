"""The gate's decisions to look at: by SQL over all of them, or one by one with the memory that it made.

Belongs here: finding rows. Does not belong here: their words (``admission.explain``).
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from memory_pipelines.errors import InputError
from memory_pipelines.model import Owner, stable_hash
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.stores.lake import DeltaLake
from memory_pipelines.tables import DECISIONS, MEMORIES
from memory_pipelines.wiring import Platform

LEAST_DIGITS = 6


@dataclass(frozen=True)
class Decided:
    """A decision's row, the memory's if it was kept, and store → id of what of it is visible."""

    decision: dict[str, Any]
    memory: dict[str, Any] | None
    places: dict[str, str]


@uses_lake
def query_decisions(platform: Platform, statement: str) -> pa.Table:
    """Answer a SQL query over the table ``decisions`` (``tables.DECISIONS``): numbers and labels, no text.

    Raises InputError for what is no query or cannot be answered."""
    if statement.split(None, 1)[:1] not in (["SELECT"], ["select"], ["WITH"], ["with"]):
        raise InputError("give a query that begins with SELECT or WITH")
    if not isinstance(platform.lake, DeltaLake):
        raise InputError("only a Delta lake can be asked by SQL")
    return platform.lake.query(statement, DECISIONS)


@uses_lake
def find_decisions(platform: Platform, start: str) -> list[Decided]:
    """Decisions whose memory id begins with ``start``, of hexadecimal digits. Raises InputError for too few of them."""
    if len(start) < LEAST_DIGITS or not set(start) <= set("0123456789abcdef"):
        raise InputError(f"name a memory by its id, or the first {LEAST_DIGITS} digits of it or more")
    rows = platform.lake.read(DECISIONS, where=[("memory_id", ">=", start), ("memory_id", "<", start + "g")])
    return _decided(platform, rows)


@uses_lake
def sample_decisions(platform: Platform, number: int, seed: str = "") -> list[Decided]:
    """So many kept memories, drawn by a hash of their ids: the same ``seed`` draws the same ones."""
    kept = platform.lake.read(DECISIONS, columns=["memory_id"], where=[("outcome", "in", ["long", "short"])])
    drawn = sorted(kept["memory_id"].to_pylist(), key=lambda name: stable_hash("sample", seed, name))[:number]
    return _decided(platform, platform.lake.read(DECISIONS, where=[("memory_id", "in", drawn)]))


def _decided(platform: Platform, decisions: pa.Table) -> list[Decided]:
    rows = sorted(decisions.to_pylist(), key=lambda row: str(row["memory_id"]))
    where = [("owner", "in", sorted({row["owner"] for row in rows}))]
    kept = platform.lake.read(MEMORIES, where=[*where, ("memory_id", "in", [row["memory_id"] for row in rows])])
    memories = {row["memory_id"]: row for row in kept.to_pylist()}
    places = platform.authority.places({Owner(row["tenant"], row["subject"]).key for row in rows})
    return [
        Decided(row, memories.get(row["memory_id"]), places.get(row["owner"], {}).get(row["memory_id"], {}))
        for row in rows
    ]
