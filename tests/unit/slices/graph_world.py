"""A small world of the slice graph: memories with their slices, behaviour, and the edges between them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.model import Owner
from memory_pipelines.slices.graph.edges import memory_edges
from memory_pipelines.tables import BEHAVIOUR, MEMORIES, SLICES

Row = dict[str, Any]
BASE = datetime(2024, 5, 17, 8, tzinfo=UTC)


def pair(
    name: str,
    *,
    days: float = 0.0,
    intent: str = "order_status",
    entities: Iterable[str] = (),
    session: str | None = None,
    subject: str = "u:ann",
    **memory: Any,
) -> tuple[Row, Row]:
    """A long-term episode ``name`` and its slice."""
    at = BASE + timedelta(days=days)
    common: Row = {"tenant": "acme", "subject": subject, "occurred_at": at, "intent": intent, "bucket": 3}
    common |= {"owner": Owner("acme", subject).key, "confidence": 0.9}
    row = {f.name: None for f in SLICES.schema} | {k: v for k, v in common.items() if k != "confidence"}
    row |= {"slice_id": f"evt_{name}", "session_id": session}
    kept = {f.name: None for f in MEMORIES.schema} | common
    kept |= {"memory_id": name, "memory_type": "episodic", "term": "long", "slice_ids": [f"evt_{name}"]}
    kept |= {"entities": list(entities), "stores": ["vector"]}
    return kept | memory, row


def event(kind: str, name: str, *, days: float, reference: str | None = None, subject: str = "u:ann") -> Row:
    """A row of the behaviour."""
    row: Row = {f.name: None for f in BEHAVIOUR.schema}
    row |= {"tenant": "acme", "subject": subject, "owner": Owner("acme", subject).key, "event_id": name}
    return row | {"kind": kind, "occurred_at": BASE + timedelta(days=days), "reference": reference}


def edges(*pairs: tuple[Row, Row], behaviour: Sequence[Row] = ()) -> dict[tuple[str, str, str], float]:
    table = run(pairs, behaviour)
    return {(r["source"], r["target"], r["kind"]): r["weight"] for r in table.to_pylist()}


def run(pairs: Iterable[tuple[Row, Row]], behaviour: Sequence[Row] = ()) -> pa.Table:
    pairs = list(pairs)
    memories = pa.Table.from_pylist([m for m, _ in pairs], schema=MEMORIES.schema)
    slices = pa.Table.from_pylist([s for _, s in pairs], schema=SLICES.schema)
    return memory_edges(memories, slices, pa.Table.from_pylist(list(behaviour), schema=BEHAVIOUR.schema))
