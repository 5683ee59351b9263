"""Visible memories for the tests of their life."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from memory_pipelines.model import Owner
from memory_pipelines.stores.authority import StoredMemory

NOW = datetime(2024, 6, 1, tzinfo=UTC)
OWNER = Owner("shop", "u:1")


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def memory(
    name: str,
    days: float,
    tier: str,
    *,
    kind: str = "episodic",
    permanence: str = "long",
    gate: float = 0.8,
    admitted: float | None = None,
    valid_to: datetime | None = None,
    expires_at: datetime | None = None,
    slices: Sequence[str] = (),
    turns: Sequence[str] = (),
    owner: Owner = OWNER,
    predicate: str = "",
) -> StoredMemory:
    """Occurred ``days`` before ``NOW``, admitted then or ``admitted`` days before."""
    return StoredMemory(
        memory_id=name, version="v", owner=owner, memory_type=kind, permanence=permanence, term="long", summary="s",
        text="", language="en", predicate=predicate, value="", structured="", confidence=1.0, trust=1.0, score=gate,
        decision_impact=0.5, intent="", entities=(), slice_ids=tuple(slices or [f"slice-{name}"]),
        source_turn_ids=tuple(turns or [f"turn-{name}"]), stores=("vector",), occurred_at=ago(days), valid_from=None,
        valid_to=valid_to, expires_at=expires_at, admitted_at=ago(days if admitted is None else admitted), tier=tier,
        path="rules", model_set="base-1",
    )  # fmt: skip
