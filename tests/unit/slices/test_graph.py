"""Edges of the slice graph: kinds, weights, bounds, independence of order and company."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from graph_world import Row, edges, event, pair, run
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner
from memory_pipelines.slices.graph.edges import memory_edges
from memory_pipelines.slices.graph.embedding import DIMENSIONS, embed, similar
from memory_pipelines.slices.graph.links import mention_weight
from memory_pipelines.slices.graph.similar import SHARING
from memory_pipelines.tables import EDGES, MEMORIES, SLICES


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
    assert found["long", "entity:carrier/sf", "mentions"] == mention_weight(2)


def test_a_mention_says_half_at_ten_and_ever_less() -> None:
    weights = [mention_weight(n) for n in (1, 2, 10, 100, 10_000_000)]
    assert weights == [0.995, 0.9806, 0.7071, 0.0995, 0.01]
    assert mention_weight(10) ** 2 == pytest.approx(0.5, abs=1e-4)


def test_an_entity_of_two_subjects_is_a_node_of_each() -> None:
    rows = run([pair("a", entities=["carrier/sf"]), pair("b", entities=["carrier/sf"], subject="u:bob")]).to_pylist()
    assert [(r["owner"], r["source"], r["target"]) for r in rows if r["kind"] == "mentions"] == sorted(
        (Owner("acme", subject).key, name, "entity:carrier/sf") for subject, name in (("u:ann", "a"), ("u:bob", "b"))
    )
    assert len(rows) == 2


def test_a_fact_points_at_the_episodes_it_is_read_from() -> None:
    fact = {"memory_type": "semantic", "stores": ["graph"], "confidence": 0.84}
    told, again, other = pair("a"), pair("b", days=1), pair("c", days=2)
    read, _ = pair("f", slice_ids=["evt_a", "evt_b", "evt_gone"], **fact)
    rows = [told, again, other, (read, told[1])]
    found = {key: weight for key, weight in edges(*rows).items() if key[2] == "evidence"}
    assert found == {("f", "a", "evidence"): 0.84, ("f", "b", "evidence"): 0.84}


def test_a_fact_said_often_keeps_its_latest_evidence() -> None:
    told = [pair(f"m{i}", days=i) for i in range(12)]
    read, _ = pair("f", memory_type="semantic", stores=["graph"], slice_ids=[f"evt_m{i}" for i in range(12)])
    found = sorted(target for _, target, kind in edges(*told, (read, told[0][1])) if kind == "evidence")
    assert found == sorted(f"m{i}" for i in range(4, 12))


def test_next_links_consecutive_episodes_of_one_session() -> None:
    first, second = pair("a", session="s"), pair("b", days=0.01, session="s")
    third = pair("c", days=0.02, session="s", term="short")
    fourth, other = pair("d", days=0.03, session="s"), pair("e", days=0.04, session="t")
    found = {
        k: w for k, w in edges(fourth, other, third, first, second, pair("n", days=0.05)).items() if k[2] == "next"
    }
    assert found == {("a", "b", "next"): 0.8, ("b", "d", "next"): 0.7}


def test_same_topic_takes_the_three_nearest_within_thirty_days() -> None:
    pairs = [pair(f"m{i}", days=i, entities=["x"]) for i in range(6)] + [pair("far", days=40, entities=["x"])]
    found = sorted(k[:2] for k in edges(*pairs) if k[2] == "same_topic")
    assert [s for s, t in found if t == "m5"] == ["m2", "m3", "m4"]
    assert not [s for s, t in found if t == "far"]


def test_what_everything_names_makes_no_topic() -> None:
    pairs = [pair(f"m{i:02}", days=i / 24, entities=["hub", f"e{i // 2}"]) for i in range(16)]
    found = sorted(k[:2] for k in edges(*pairs) if k[2] == "same_topic")
    assert found == [(f"m{i:02}", f"m{i + 1:02}") for i in range(0, 16, 2)]


def test_similar_joins_the_same_neighbourhood_without_a_direct_edge() -> None:
    found = edges(
        pair("a", entities=["x", "y"], intent="praise"),
        pair("b", days=60, entities=["x", "y"], intent="order_status"),
        pair("c", days=120, entities=["z"]),
    )
    kinds = {k: w for k, w in found.items() if k[2] == "similar"}
    assert kinds == {("a", "b", "similar"): SHARING}


def test_an_unknown_slice_is_refused() -> None:
    memory, _ = pair("a", entities=["x"])
    with pytest.raises(IntegrityError, match="memory a "):
        memory_edges(pa.Table.from_pylist([memory], schema=MEMORIES.schema), SLICES.schema.empty_table())


@st.composite
def deeds(draw: st.DrawFn) -> list[Row]:
    return [
        event(
            draw(st.sampled_from(["order", "cancel", "churn", "visit"])),
            f"b{i}",
            days=draw(st.integers(0, 12)),
            reference=draw(st.sampled_from([None, "SO1", "SO2"])),
            subject=draw(st.sampled_from(["u:a", "u:b"])),
        )
        for i in range(draw(st.integers(0, 8)))
    ]


@st.composite
def worlds(draw: st.DrawFn) -> list[tuple[Row, Row]]:
    return [
        pair(
            f"m{i:02}",
            days=draw(st.integers(0, 12)),
            intent=draw(st.sampled_from(["logistics_complaint", "cancel_order", "praise"])),
            entities=draw(st.lists(st.sampled_from(["x", "y", "order_number/SO1", "order_number/SO2"]), unique=True)),
            session=draw(st.sampled_from([None, "s", "t"])),
            subject=draw(st.sampled_from(["u:a", "u:b"])),
        )
        for i in range(draw(st.integers(0, 16)))
    ]


@settings(max_examples=60, deadline=None)
@given(world=worlds(), done=deeds(), seed=st.randoms(use_true_random=False))
def test_independent_of_order_and_company_and_well_formed(
    world: list[tuple[Row, Row]], done: list[Row], seed: Any
) -> None:
    whole = run(world, done)
    shuffled, later = list(world), list(done)
    seed.shuffle(shuffled)
    seed.shuffle(later)
    assert run(shuffled, later).equals(whole)
    parts = {
        Owner("acme", who).key: run(
            [p for p in world if p[0]["subject"] == who], [row for row in done if row["subject"] == who]
        )
        for who in ("u:a", "u:b")
    }
    assert pa.concat_tables(parts[owner] for owner in sorted(parts)).equals(whole)
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
            entities=["x", f"e{i // 10}"],
            intent=("logistics_complaint", "cancel_order")[i // 20 % 2],
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
    assert max(n for (_, kind), n in degree.items() if kind == "causes") <= 2
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
    found = similar(vectors, 0.99)
    assert {(2 * i, 2 * i + 1) for i in range(pairs)} <= set(found)
