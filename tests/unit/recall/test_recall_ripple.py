"""Activation: numbers by hand, and against every simple path."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.model import micros
from memory_pipelines.recall import ripple as module
from memory_pipelines.recall.adjacency import Adjacency, Links
from memory_pipelines.recall.ripple import Field, Ripple
from memory_pipelines.stores.base import GraphEdge

NOW = datetime(2024, 6, 1, tzinfo=UTC)
MEMORIES = [f"m{i}" for i in range(6)]


@dataclass(frozen=True)
class Node:
    """A memory that may take part."""

    impact: float
    occurred_at: datetime
    windows: int = 0
    last: datetime | None = None


def spread(anchors: dict[str, float], edges: Sequence[GraphEdge], known: dict[str, Node]) -> Ripple:
    """Rows in the order of ids, and one that may not take part though edges name it."""
    ids = sorted({*known, *MEMORIES})
    rows = [known.get(name, Node(0.5, NOW)) for name in ids]
    position = {name: i for i, name in enumerate(ids)}
    web = Adjacency.of(edges, position).among(np.array([name in known for name in ids]))
    since = np.array([micros(row.last or row.occurred_at) for row in rows])
    impact, windows = np.array([row.impact for row in rows]), np.array([row.windows for row in rows])
    return Ripple(anchors, Field(ids, position, impact, since, windows, web), NOW)


def base_weight(impact: float, windows: int = 0) -> float:
    return float(module.base_weight(np.array([impact]), np.array([windows]))[0])


def freshness(since: datetime, as_of: datetime) -> float:
    return float(module.freshness(np.array([micros(since)]), micros(as_of))[0])


def rate(impact: float) -> float:
    return float(module.rate(np.array([impact]))[0])


def edge(a: str, b: str, weight: float = 1.0, kind: str = "next") -> GraphEdge:
    return GraphEdge(a, b, "mentions" if "entity:" in a + b else kind, weight)


def nodes(**impacts: float) -> dict[str, Node]:
    return {name: Node(impact, NOW) for name, impact in impacts.items()}


def activation(anchors: dict[str, float], edges: list[GraphEdge], known: dict[str, Node]) -> dict[str, float]:
    return spread(anchors, edges, known).activation


def test_parts() -> None:
    assert (rate(0.9), rate(0.7), rate(0.3), rate(0.29), rate(math.nan)) == (0.3, 0.5, 0.5, 0.7, 0.5)
    assert base_weight(0.4) == 0.4
    assert base_weight(0.4, 2) == pytest.approx(0.6)
    assert base_weight(0.4, 7) == pytest.approx(0.6)
    assert base_weight(0.95, 1) == 1
    assert base_weight(math.nan) == 0.5
    assert freshness(NOW - timedelta(days=10), NOW) == pytest.approx(0.98**10)
    assert freshness(NOW - timedelta(days=4000), NOW) == 0.5
    assert freshness(NOW + timedelta(days=3), NOW) == 1


def test_chain_of_three_hops_and_no_fourth() -> None:
    known = nodes(a=0.5, b=0.8, c=0.2, d=0.9, e=0.9)
    chain = [edge("a", "b", 0.8), edge("b", "c", 0.5), edge("c", "d", 0.6), edge("d", "e")]
    found = activation({"a": 0.9}, chain, known)
    assert found["a"] == pytest.approx(0.9 * 0.5)
    assert found["b"] == pytest.approx(0.9 * 0.8 * 0.8 * math.exp(-0.3))
    # b lies between and has two neighbours
    assert found["c"] == pytest.approx(0.9 * 0.8 / math.sqrt(2) * 0.5 * 0.2 * math.exp(-2 * 0.7))
    assert found["d"] == pytest.approx(0.9 * 0.8 * 0.5 * 0.6 / math.sqrt(2) / math.sqrt(2) * 0.9 * math.exp(-3 * 0.3))
    assert "e" not in found


def test_edges_are_undirected_and_parallel_ones_count_once() -> None:
    known = nodes(a=0.5, b=0.5)
    twice = [edge("b", "a", 0.3), edge("a", "b", 0.7, kind="topic")]
    assert activation({"a": 1}, twice, known)["b"] == pytest.approx(0.7 * 0.5 * math.exp(-0.5))
    between = [*twice, edge("b", "c")]
    assert activation({"a": 1}, between, nodes(a=0.5, b=0.5, c=0.5))["c"] == pytest.approx(
        0.7 / math.sqrt(2) * 0.5 * math.exp(-1)
    )


def test_the_better_of_two_paths_counts_alone() -> None:
    known = nodes(a=0.5, b=0.5, c=0.5, t=0.5)
    edges = [edge("a", "b", 0.9), edge("b", "t", 0.9), edge("a", "c", 0.5), edge("c", "t", 0.5), edge("a", "t", 0.1)]
    found = activation({"a": 1}, edges, known)
    two_hops = 0.9 * 0.9 / math.sqrt(2) * math.exp(-1)
    assert found["t"] == pytest.approx(0.5 * max(two_hops, 0.1 * math.exp(-0.5)))


def test_the_targets_rate_decides_between_a_short_and_a_long_path() -> None:
    edges = [edge("a", "b"), edge("b", "t"), edge("a", "t", 0.45)]
    high = spread({"a": 1}, edges, nodes(a=0.5, b=0.5, t=0.9))
    low = spread({"a": 1}, edges, nodes(a=0.5, b=0.5, t=0.2))
    assert [len(r.paths("t")[0].hops) for r in (high, low)] == [2, 1]
    assert high.activation["t"] == pytest.approx(0.9 / math.sqrt(2) * math.exp(-0.6))
    assert low.activation["t"] == pytest.approx(0.2 * 0.45 * math.exp(-0.7))


def test_a_hub_damps_by_the_root_of_its_degree() -> None:
    leaves = {f"l{i}": 0.5 for i in range(7)}
    known = nodes(a=0.5, hub=0.5, t=0.9, **leaves)
    edges = [edge("a", "hub"), edge("hub", "t"), *(edge("hub", leaf) for leaf in leaves)]
    assert activation({"a": 1}, edges, known)["t"] == pytest.approx(1 / 3 * 0.9 * math.exp(-0.6))


def test_slice_entity_slice_is_one_hop_damped_by_the_entity() -> None:
    known = nodes(a=0.5, t=0.9, u=0.2, v=0.2)
    edges = [edge("a", "entity:sf", 0.8), edge("t", "entity:sf", 0.5), *(edge(m, "entity:sf", 0.1) for m in "uv")]
    ripple = spread({"a": 1}, edges, known)
    assert ripple.activation["t"] == pytest.approx(0.8 * 0.5 / 2 * 0.9 * math.exp(-0.3))
    (hop,) = ripple.paths("t")[0].hops
    assert (hop.source, hop.via, hop.target, hop.carried) == ("a", "entity:sf", "t", pytest.approx(0.2))


def test_an_entity_counts_in_the_degree_of_a_slice_between_unless_it_leads_nowhere() -> None:
    known = nodes(a=0.5, b=0.5, t=0.9, x=0.2)
    base = [edge("a", "b"), edge("b", "t")]
    dangling = [*base, edge("b", "entity:alone")]
    shared = [*dangling, edge("b", "entity:e"), edge("x", "entity:e")]
    assert activation({"a": 1}, dangling, known)["t"] == activation({"a": 1}, base, known)["t"]
    assert activation({"a": 1}, shared, known)["t"] == pytest.approx(0.9 / math.sqrt(3) * math.exp(-0.6))


@pytest.mark.parametrize("gone", ["a", "b", "t"])
def test_what_may_not_take_part_is_no_source_no_path_and_no_target(gone: str) -> None:
    known = nodes(a=0.5, b=0.5, t=0.9)
    del known[gone]
    assert "t" not in activation({"a": 1}, [edge("a", "b"), edge("b", "t")], known)


def test_what_may_not_take_part_counts_in_no_degree() -> None:
    known = nodes(a=0.5, b=0.5, t=0.9)
    edges = [edge("a", "b"), edge("b", "t"), edge("b", "suppressed"), edge("suppressed", "entity:e")]
    assert activation({"a": 1}, edges, known)["t"] == pytest.approx(0.9 / math.sqrt(2) * math.exp(-0.6))


def test_anchors_combine_as_independent_chances() -> None:
    known = nodes(a=0.5, b=0.5, t=0.9)
    edges = [edge("a", "t", 0.8), edge("b", "t", 0.5)]
    one, other = (m * w * 0.9 * math.exp(-0.3) for m, w in ((0.7, 0.8), (0.4, 0.5)))
    ripple = spread({"a": 0.7, "b": 0.4}, edges, known)
    assert ripple.activation["t"] == pytest.approx(1 - (1 - one) * (1 - other))
    assert [p.anchor for p in ripple.paths("t")] == ["a", "b"]
    assert [p.activation for p in ripple.paths("t")] == [pytest.approx(one), pytest.approx(other)]


def test_age_and_access_enter_once_at_the_target() -> None:
    known = {
        "a": Node(0.5, NOW - timedelta(days=300)),
        "b": Node(0.5, NOW - timedelta(days=300)),
        "t": Node(0.5, NOW - timedelta(days=300), windows=2, last=NOW - timedelta(days=5)),
    }
    found = activation({"a": 1}, [edge("a", "b"), edge("b", "t")], known)
    assert found["t"] == pytest.approx(1 / math.sqrt(2) * 0.7 * 0.98**5 * math.exp(-1))
    assert found["b"] == pytest.approx(0.5 * 0.5 * math.exp(-0.5))


def test_only_the_five_best_anchors_spread() -> None:
    names = [f"a{i}" for i in range(6)]
    known = nodes(**dict.fromkeys(names, 0.5))
    ripple = spread({name: (i + 1) / 10 for i, name in enumerate(names)}, [], known)
    assert [a for a, _ in ripple.anchors] == ["a5", "a4", "a3", "a2", "a1"]
    assert "a0" not in ripple.activation


def test_no_anchor_no_activation() -> None:
    assert spread({}, [edge("a", "b")], nodes(a=0.5, b=0.5)).activation == {}
    assert spread({"gone": 1.0}, [], {}).paths("gone") == ()


ENTITIES = ["entity:x", "entity:y"]
WEIGHTS = st.floats(0.01, 1)
EDGES = st.lists(st.builds(edge, st.sampled_from(MEMORIES), st.sampled_from(MEMORIES + ENTITIES), WEIGHTS), max_size=14)


def brute_force(anchor: str, match: float, edges: list[GraphEdge], known: dict[str, Node]) -> dict[str, float]:
    """A(anchor, ·) over all simple paths of at most 3 hops, straight from the formula."""
    weights: dict[frozenset[str], float] = {}
    for e in edges:
        ends = frozenset((e.source, e.target))
        if len(ends) == 2 and all(n in known or n in ENTITIES for n in ends):
            weights[ends] = max(e.weight, weights.get(ends, 0))
    for entity in ENTITIES:
        mine = [ends for ends in weights if entity in ends]
        if len(mine) == 1:
            del weights[mine[0]]
    neighbours = {n: {m for ends in weights if n in ends for m in ends - {n}} for n in [*known, *ENTITIES]}
    best: dict[str, float] = {}

    def walk(path: list[str], product: float, hops: int) -> None:
        at = path[-1]
        if at in known:
            node = known[at]
            value = match * product * base_weight(node.impact) * freshness(node.occurred_at, NOW)
            best[at] = max(best.get(at, 0), value * math.exp(-hops * rate(node.impact)))
        for step in neighbours[at] - set(path):
            further = hops + (step in known)
            if further <= 3 and not (step in ENTITIES and hops == 3):
                damping = 1 if len(path) == 1 else 1 / math.sqrt(len(neighbours[at]))
                walk([*path, step], product * damping * weights[frozenset((at, step))], further)

    if anchor in known:
        walk([anchor], 1.0, 0)
    return best


@settings(max_examples=150, deadline=None)
@given(
    edges=EDGES,
    impacts=st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
    gone=st.sets(st.sampled_from(MEMORIES), max_size=2),
    matches=st.dictionaries(st.sampled_from(MEMORIES), st.floats(0.01, 1), max_size=3),
    seed=st.randoms(use_true_random=False),
)
def test_equals_every_simple_path_and_ignores_the_order_of_edges(
    edges: list[GraphEdge], impacts: list[float], gone: set[str], matches: dict[str, float], seed: object
) -> None:
    known = {
        m: Node(impact, NOW - timedelta(days=7 * i))
        for i, (m, impact) in enumerate(zip(MEMORIES, impacts, strict=True))
        if m not in gone
    }
    ripple = spread(matches, edges, known)
    rest = dict.fromkeys(known, 1.0)
    for anchor, match in matches.items():
        for memory, value in brute_force(anchor, match, edges, known).items():
            rest[memory] *= 1 - value
    expected = {m: 1 - r for m, r in rest.items() if r < 1}
    assert ripple.activation == pytest.approx(expected)
    for memory in ripple.activation:
        left = math.prod(1 - path.activation for path in ripple.paths(memory))
        assert 1 - left == pytest.approx(ripple.activation[memory])
        for path in ripple.paths(memory):
            steps = [path.anchor, *(hop.target for hop in path.hops)]
            assert steps[-1] == memory
            assert len(set(steps)) == len(steps) <= 4
    shuffled = list(edges)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    again = spread(matches, shuffled, known)
    assert again.activation == ripple.activation
    assert [again.paths(m) for m in MEMORIES] == [ripple.paths(m) for m in MEMORIES]


@given(
    links=st.dictionaries(st.tuples(st.integers(0, 8), st.integers(0, 5)), st.floats(0.01, 1), max_size=20),
    values=st.lists(st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.0]), min_size=9, max_size=9), max_size=3),
)
def test_the_best_over_the_sources_is_their_largest_product_however_few_are_reached(
    links: dict[tuple[int, int], float], values: list[list[float]]
) -> None:
    made = Links.of([a for a, _ in links], [b for _, b in links], list(links.values()))
    found = made.relax(np.array(values).reshape(-1, 9), 6)
    expected = [
        [
            max((spread[a] * weight for (a, b), weight in links.items() if b == target), default=0.0)
            for target in range(6)
        ]
        for spread in values
    ]
    assert found.tolist() == expected
