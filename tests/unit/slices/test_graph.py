"""Edges of the slice graph: kinds, weights, bounds, independence of order and company."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import IntegrityError
from memory_pipelines.slices.embedding import DIMENSIONS, embed, similar
from memory_pipelines.slices.graph import cause_weight, memory_edges, mention_weight
from memory_pipelines.tables import EDGES, MEMORIES, SLICES

Row = dict[str, Any]
BASE = datetime(2024, 5, 17, 8, tzinfo=UTC)


def pair(
    name: str,
    *,
    days: float = 0.0,
    intent: str = "order_status",
    entities: Iterable[str] = (),
    session: str | None = None,
    feedback: str = "none",
    subject: str = "u:ann",
    **memory: Any,
) -> tuple[Row, Row]:
    """A long-term episode ``name`` and its slice."""
    at = BASE + timedelta(days=days)
    common: Row = {"tenant": "acme", "subject": subject, "occurred_at": at, "intent": intent, "bucket": 3}
    row = {f.name: None for f in SLICES.schema} | common
    row |= {"slice_id": f"evt_{name}", "session_id": session, "feedback": feedback}
    kept = {f.name: None for f in MEMORIES.schema} | common
    kept |= {"memory_id": name, "memory_type": "episodic", "term": "long", "slice_ids": [f"evt_{name}"]}
    kept |= {"entities": list(entities), "stores": ["vector"]}
    return kept | memory, row


def edges(*pairs: tuple[Row, Row]) -> dict[tuple[str, str, str], float]:
    table = run(pairs)
    return {(r["source"], r["target"], r["kind"]): r["weight"] for r in table.to_pylist()}


def run(pairs: Iterable[tuple[Row, Row]]) -> pa.Table:
    pairs = list(pairs)
    memories = pa.Table.from_pylist([m for m, _ in pairs], schema=MEMORIES.schema)
    return memory_edges(memories, pa.Table.from_pylist([s for _, s in pairs], schema=SLICES.schema))


def test_empty() -> None:
    table = run([])
    assert table.num_rows == 0
    assert table.schema == EDGES.schema


def test_only_graph_memories_and_long_episodes_are_nodes() -> None:
    found = edges(
        pair("long", entities=["carrier/sf"]),
        pair("short", entities=["carrier/sf"], term="short"),
        pair("routed", entities=["carrier/sf"], term="short", stores=["graph"]),
        pair("fact", entities=["carrier/sf"], memory_type="semantic"),
    )
    assert {source for source, _, kind in found if kind == "mentions"} == {"long", "routed"}
    assert found["long", "entity:carrier/sf", "mentions"] == 0.7071


def test_mentions_fall_with_frequency_down_to_a_floor() -> None:
    assert [mention_weight(n) for n in (1, 4, 100, 10_000)] == [1.0, 0.5, 0.1, 0.1]


def test_complaint_causes_cancellation_by_entity_session_or_feedback() -> None:
    complaint = {"intent": "logistics_complaint"}
    cancel = {"intent": "cancel_order", "days": 2}
    assert edges(pair("a", entities=["x"], **complaint), pair("b", entities=["x"], **cancel))[
        "a", "b", "causes"
    ] == round(0.95 * (1 - 0.3 * 2 / 7), 4)
    assert edges(pair("a", session="s", **complaint), pair("b", session="s", **cancel))[
        "a", "b", "causes"
    ] == cause_weight(False, True, False, timedelta(days=2))
    fed = edges(pair("a", feedback="canceled_order", **complaint), pair("b", **cancel))
    assert fed["a", "b", "causes"] == cause_weight(False, False, True, timedelta(days=2))
    assert edges(pair("a", **complaint), pair("b", **cancel)) == {}


def test_no_cause_backwards_in_time_or_after_a_week() -> None:
    assert not [
        k
        for k in edges(
            pair("a", intent="cancel_order", session="s"), pair("b", days=1, intent="complaint", session="s")
        )
        if k[2] == "causes"
    ]
    late = edges(pair("a", intent="complaint", session="s"), pair("b", days=7.1, intent="refund_request", session="s"))
    assert ("a", "b", "causes") not in late


def test_next_links_consecutive_episodes_of_one_session() -> None:
    first, second = pair("a", session="s"), pair("b", days=0.01, session="s")
    third = pair("c", days=0.02, session="s", term="short")
    fourth, other = pair("d", days=0.03, session="s"), pair("e", days=0.04, session="t")
    found = {
        k: w for k, w in edges(fourth, other, third, first, second, pair("n", days=0.05)).items() if k[2] == "next"
    }
    assert found == {("a", "b", "next"): 0.6, ("b", "d", "next"): 0.3}


def test_same_topic_takes_the_three_nearest_within_thirty_days() -> None:
    pairs = [pair(f"m{i}", days=i, entities=["x"]) for i in range(6)] + [pair("far", days=40, entities=["x"])]
    found = sorted(k[:2] for k in edges(*pairs) if k[2] == "same_topic")
    assert [s for s, t in found if t == "m5"] == ["m2", "m3", "m4"]
    assert not [s for s, t in found if t == "far"]
    partly = edges(pair("a", entities=["x", "y"]), pair("b", days=1, entities=["x", "z"]))
    assert partly["a", "b", "same_topic"] == round(0.4 + 0.4 / 3, 4)


def test_similar_joins_the_same_neighbourhood_without_a_direct_edge() -> None:
    found = edges(
        pair("a", entities=["x", "y"], intent="praise"),
        pair("b", days=60, entities=["x", "y"], intent="order_status"),
        pair("c", days=120, entities=["z"]),
    )
    kinds = {k: w for k, w in found.items() if k[2] == "similar"}
    assert kinds == {("a", "b", "similar"): 1.0}


def test_an_unknown_slice_is_refused() -> None:
    memory, _ = pair("a", entities=["x"])
    with pytest.raises(IntegrityError, match="memory a "):
        memory_edges(pa.Table.from_pylist([memory], schema=MEMORIES.schema), SLICES.schema.empty_table())


@st.composite
def worlds(draw: st.DrawFn) -> list[tuple[Row, Row]]:
    return [
        pair(
            f"m{i:02}",
            days=draw(st.integers(0, 12)),
            intent=draw(st.sampled_from(["logistics_complaint", "cancel_order", "praise"])),
            entities=draw(st.lists(st.sampled_from("xyz"), unique=True)),
            session=draw(st.sampled_from([None, "s", "t"])),
            feedback=draw(st.sampled_from(["none", "canceled_order"])),
            subject=draw(st.sampled_from(["u:a", "u:b"])),
        )
        for i in range(draw(st.integers(0, 16)))
    ]


@settings(max_examples=60, deadline=None)
@given(world=worlds(), seed=st.randoms(use_true_random=False))
def test_independent_of_order_and_company_and_well_formed(world: list[tuple[Row, Row]], seed: Any) -> None:
    whole = run(world)
    shuffled = list(world)
    seed.shuffle(shuffled)
    assert run(shuffled).equals(whole)
    parts = [run(p for p in world if p[0]["subject"] == who) for who in ("u:a", "u:b")]
    assert pa.concat_tables(parts).equals(whole)
    rows = whole.to_pylist()
    assert all(0 < r["weight"] <= 1 and r["weight"] == round(r["weight"], 4) for r in rows)
    assert all(r["source"] != r["target"] for r in rows)
    keys = [(r["subject"], *sorted((r["source"], r["target"])), r["kind"]) for r in rows]
    assert len(keys) == len(set(keys))


def test_a_subject_with_many_memories_has_bounded_degrees() -> None:
    pairs = [
        pair(
            f"m{i:05}",
            days=i / 24,
            entities=["x", f"e{i % 7}"],
            intent=("logistics_complaint", "cancel_order")[i % 2],
            session="s",
        )
        for i in range(3000)
    ]
    degree: dict[tuple[str, str], int] = {}
    for source, target, kind in edges(*pairs):
        if kind != "mentions":
            degree[target, kind] = degree.get((target, kind), 0) + 1
        if kind == "similar":
            degree[source, kind] = degree.get((source, kind), 0) + 1
    assert max(n for (_, kind), n in degree.items() if kind == "same_topic") == 3
    assert max(n for (_, kind), n in degree.items() if kind == "causes") == 8
    assert max((n for (_, kind), n in degree.items() if kind == "similar"), default=0) <= 3


def test_embedding_is_exact_and_independent_of_numbering() -> None:
    nodes = ["a", "b", "c", "d"]
    vectors = embed(nodes, {(0, 1): 1.0, (1, 2): 0.5})
    assert vectors.dtype == np.int64
    assert vectors.shape == (4, DIMENSIONS)
    assert not vectors[3].any()
    back = embed(nodes[::-1], {(2, 3): 1.0, (1, 2): 0.5})
    assert (back[::-1] == vectors).all()
    assert embed([], {}).shape == (0, DIMENSIONS)


def test_similar_finds_twins_in_a_large_graph() -> None:
    pairs = 100
    nodes = [f"n{i:03}" for i in range(2 * pairs)] + [f"hub{i}" for i in range(pairs)]
    edge_map = {(i, 2 * pairs + i // 2): 1.0 for i in range(2 * pairs)}
    vectors = embed(nodes, edge_map)[: 2 * pairs]
    found = similar(vectors, nodes[: 2 * pairs], 0.99)
    assert {(2 * i, 2 * i + 1) for i in range(pairs)} <= set(found)
