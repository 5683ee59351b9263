"""What use, horizons and markers change in what the stores shall show of an owner."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.model import Owner
from memory_pipelines.projection import next_views, owner_states
from memory_pipelines.stores.authority import NEVER, Use
from memory_pipelines.stores.publish import OwnerState
from memory_pipelines.tables import EDGES, MEMORIES, SLICES

NOW = datetime(2024, 6, 1, tzinfo=UTC)
OWNER = Owner("shop", "u:1")
KEY = OWNER.key


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def memory(name: str, days: float, **fields: Any) -> dict[str, Any]:
    row = dict.fromkeys(MEMORIES.schema.names) | {
        "tenant": OWNER.tenant, "subject": OWNER.subject, "memory_id": name, "memory_type": "episodic",
        "permanence": "long", "term": "long", "summary": "s", "confidence": 1.0, "trust": 1.0, "score": 0.8,
        "slice_ids": [f"slice-{name}"], "own_turn_ids": [f"turn-{name}"], "source_turn_ids": [f"turn-{name}"],
        "entities": [], "occurred_at": ago(days), "stores": ["vector", "graph"], "path": "rules",
        "model_set": "base-1", "owner": KEY, "bucket": 0,
    }  # fmt: skip
    return row | fields


def state(*rows: dict[str, Any], edges: list[tuple[str, str]] | None = None, **past: Any) -> OwnerState:
    links = [{"source": a, "target": b, "kind": "next", "weight": 1.0, "owner": KEY} for a, b in edges or []]
    (found,) = owner_states(
        [KEY],
        memories=pa.Table.from_pylist(list(rows), schema=MEMORIES.schema),
        edges=pa.Table.from_pylist(links, schema=EDGES.schema),
        slices=SLICES.schema.empty_table(),
        known={KEY: OWNER},
        as_of=NOW,
        profile="assistant",
        **past,
    )
    return found


def tiers(found: OwnerState) -> dict[str, str]:
    return {draft.payload["memory_id"]: draft.tier.value for draft in found.memories}


def test_without_a_past_age_alone_decides() -> None:
    rows = [memory("a", 1), memory("b", 60), memory("c", 100), memory("d", 60, score=0.1)]
    assert tiers(state(*rows)) == {"a": "hot", "b": "warm", "c": "cold", "d": "cold"}


def test_an_accessed_memory_is_hot_again_and_back_in_vectors_and_graph() -> None:
    rows = [memory("a", 500), memory("b", 1)]
    cold = state(*rows, edges=[("a", "b")])
    assert [d.embedded_text is None for d in cold.memories] == [True, False]
    assert [n.node_id for n in cold.nodes] == ["b"]
    assert cold.edges == []
    woken = state(*rows, edges=[("a", "b")], accesses={"a": [ago(3)]})
    assert tiers(woken) == {"a": "hot", "b": "hot"}
    assert all(d.embedded_text for d in woken.memories)
    assert [n.node_id for n in woken.nodes] == ["a", "b"]
    assert [(e.source, e.target) for e in woken.edges] == [("a", "b")]


def test_its_use_is_told_beside_a_memory_and_makes_no_new_version() -> None:
    times = [ago(days) for days in (6, 5, 4, 3, 2)]
    (used,) = state(memory("a", 1), accesses={"a": times}, presented={"a": times}).memories
    (plain,) = state(memory("a", 1)).memories
    assert (used.use, plain.use) == (Use(ago(2), 1), NEVER)
    assert used.payload == plain.payload


def test_relations_admission_and_horizon_move_tiers() -> None:
    weak = memory("a", 60, score=0.2)
    assert tiers(state(weak)) == {"a": "cold"}
    assert tiers(state(weak, related={"a": 3})) == {"a": "warm"}  # .35, admitted now
    assert tiers(state(weak, related={"a": 3}, admitted={"a": ago(100)})) == {"a": "cold"}  # .35 · .95^3.3 = .2957
    assert tiers(state(memory("a", 100), horizons={KEY: timedelta(days=365)})) == {"a": "warm"}


def test_a_cited_slice_stays_warm_but_a_superseded_fact_of_it_does_not() -> None:
    rows = [
        memory("a", 500, slice_ids=["s"]),
        memory("b", 500, memory_type="semantic", predicate="home_city", slice_ids=["s"]),
        memory("c", 500, memory_type="semantic", predicate="home_city", slice_ids=["s"], valid_to=ago(400)),
    ]
    assert tiers(state(*rows)) == {"a": "warm", "b": "warm", "c": "cold"}


def test_what_age_deleted_is_not_shown_again_under_any_id() -> None:
    rows = [
        memory("regrouped", 900, own_turn_ids=["t0", "t1"]),
        memory("another", 1, own_turn_ids=["t2"]),
        memory("claim", 900, own_turn_ids=["t1"], memory_type="semantic", predicate="plan", valid_to=ago(800)),
    ]
    found = state(*rows, edges=[("regrouped", "another")], markers={KEY: {("t1", "episodic:")}})
    assert tiers(found) == {"another": "hot", "claim": "cold"}
    assert [n.node_id for n in found.nodes] == ["another"]
    assert found.edges == []
    assert tiers(state(*rows, markers={KEY: {("t1", "semantic:plan")}})) == {"another": "hot", "regrouped": "cold"}
    assert set(tiers(state(*rows, markers={"another owner": {("t1", "episodic:")}}))) == {
        "another",
        "claim",
        "regrouped",
    }


def test_a_marker_does_not_hide_what_age_cannot_delete() -> None:
    rows = [
        memory("current", 900, own_turn_ids=["t1"], memory_type="semantic", predicate="home_city"),
        memory("permanent", 900, own_turn_ids=["t1"], memory_type="semantic", predicate="allergy", valid_to=ago(1),
               permanence="permanent"),
    ]  # fmt: skip
    marked = {KEY: {("t1", "semantic:home_city"), ("t1", "semantic:allergy")}}
    assert tiers(state(*rows, markers=marked)) == {"current": "warm", "permanent": "warm"}


def test_the_next_change_by_time_counts_from_the_last_access() -> None:
    table = pa.Table.from_pylist([memory("a", 500)], schema=MEMORIES.schema)
    tick = timedelta(microseconds=1)
    assert next_views(table, NOW, "assistant") == {}
    assert next_views(table, NOW, "assistant", {"a": [ago(10), ago(400)]}) == {KEY: ago(10) + timedelta(days=30) + tick}
    assert next_views(table, NOW, "assistant", {"a": [NOW + tick]}) == {}
