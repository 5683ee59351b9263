"""The contract of ``GraphStore``."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import IntegrityError, PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner, micros
from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.ripple import Field, Ripple
from memory_pipelines.stores.authority import NEVER, Use
from memory_pipelines.stores.base import Graph, GraphEdge, GraphNode, GraphStore
from memory_pipelines.stores.fakes import MemoryGraph
from memory_pipelines.stores.graph import Neo4jGraph

AT = datetime(2024, 5, 17, 8, 12, 30, 123456, tzinfo=UTC)
HOSTILE = ['a"b', "a'b", "a\\", "'}) DETACH DELETE n //", "`x`", "新 😀", "a\nb", "$uid", "{label}"]


def memory(node_id: str) -> GraphNode:
    return GraphNode(node_id, "slice", "logistics_complaint", 0.9123, AT)


def entity(name: str) -> GraphNode:
    return GraphNode(f"entity:{name}", "entity", name, 0, None)


CHAIN = [memory(f"m{i}") for i in range(6)]
NEXT = [GraphEdge(f"m{i}", f"m{i + 1}", "next", 0.5) for i in range(5)]


def ids(store: GraphStore, owner: Owner, version: str) -> list[str]:
    return [node.node_id for node in store.nodes(owner, version)]


def test_nodes_and_edges_come_back_as_they_were(graph_store: GraphStore, owner: Owner) -> None:
    nodes = [memory("m1"), GraphNode("m2", "fact", "喜欢 😀", 0.0, None), entity("carrier/sf_express")]
    edges = [
        GraphEdge("m1", "entity:carrier/sf_express", "mentions", 1.0),
        GraphEdge("m2", "m1", "causes", 0.25),
        GraphEdge("m1", "m2", "similar", 0.1),
        GraphEdge("m1", "m2", "same_topic", 0.2),
        GraphEdge("m1", "m2", "next", 0.3),
    ]
    graph_store.write([Graph(owner, "v1", nodes, edges)])
    assert graph_store.nodes(owner, "v1") == sorted(nodes, key=lambda node: node.node_id)
    assert graph_store.edges(owner, "v1") == sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind))


def test_a_version_is_read_whole(graph_store: GraphStore, owner: Owner) -> None:
    """Both ways round of a mention, nodes that nothing joins, and parts that no path joins."""
    nodes = [*CHAIN, entity("a"), entity("b"), memory("z alone"), entity("alone")]
    mentions = [GraphEdge("m5", "entity:a", "mentions", 1.0), GraphEdge("entity:b", "m0", "mentions", 0.5)]
    edges = [NEXT[0], NEXT[3], *mentions]
    graph_store.write([Graph(owner, "v1", nodes, edges)])
    assert ids(graph_store, owner, "v1") == sorted(node.node_id for node in nodes)
    assert graph_store.edges(owner, "v1") == sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind))


def test_an_unknown_version_is_empty(graph_store: GraphStore, owner: Owner) -> None:
    graph_store.write([Graph(owner, "v1", CHAIN, NEXT)])
    assert (graph_store.nodes(owner, "v2"), graph_store.edges(owner, "v2")) == ([], [])


def test_a_write_may_be_repeated_and_the_last_values_stay(graph_store: GraphStore, owner: Owner) -> None:
    before = graph_store.count()
    for _ in range(2):
        graph_store.write([Graph(owner, "v1", CHAIN, NEXT)])
    changed = GraphEdge("m0", "m1", "next", 0.75)
    graph_store.write([Graph(owner, "v1", CHAIN[:2], [changed])])
    nodes, edges = graph_store.count()
    assert (nodes - before[0], edges - before[1]) == (6, 5)
    assert graph_store.edges(owner, "v1") == [changed, *NEXT[1:]]


def test_versions_stand_beside_each_other_and_drop_alone(graph_store: GraphStore, owner: Owner) -> None:
    before = graph_store.count()
    graph_store.write([Graph(owner, "v1", CHAIN, NEXT)])
    graph_store.write([Graph(owner, "v10", CHAIN[:2], [GraphEdge("m0", "m1", "causes", 1.0)])])
    assert graph_store.all_versions() >= {(owner.key, "v1"), (owner.key, "v10")}
    assert graph_store.versions(owner) == {"v1", "v10"}
    assert [edge.kind for edge in graph_store.edges(owner, "v10")] == ["causes"]
    for _ in range(2):
        graph_store.drop(owner, "v1")
    assert graph_store.versions(owner) == {"v10"}
    assert (graph_store.nodes(owner, "v1"), graph_store.edges(owner, "v1")) == ([], [])
    assert ids(graph_store, owner, "v10") == ["m0", "m1"]
    graph_store.drop(owner, "v10")
    assert graph_store.count() == before


def test_graphs_of_several_owners_share_batches_and_stay_apart(graph_store: GraphStore, tenant: str) -> None:
    owners = [Owner(tenant, f"u:{i}") for i in range(60)]
    before = graph_store.count()
    graph_store.write([Graph(owner, f"v{i}", CHAIN[: 1 + i % 4], NEXT[: i % 4]) for i, owner in enumerate(owners)])
    for i, owner in enumerate(owners):
        assert graph_store.versions(owner) == {f"v{i}"}
        assert graph_store.nodes(owner, f"v{i}") == CHAIN[: 1 + i % 4]
        assert graph_store.edges(owner, f"v{i}") == NEXT[: i % 4]
        graph_store.drop(owner, f"v{i}")
    assert graph_store.count() == before


def test_one_wrong_graph_refuses_them_all(graph_store: GraphStore, owner: Owner, tenant: str) -> None:
    good = Graph(Owner(tenant, "u:other"), "v1", CHAIN, NEXT)
    with pytest.raises(IntegrityError):
        graph_store.write([good, Graph(owner, "v1", CHAIN[:1], NEXT)])
    assert graph_store.versions(good.owner) == set()


def test_an_empty_write_and_an_unknown_drop_change_nothing(graph_store: GraphStore, owner: Owner) -> None:
    before = graph_store.count()
    graph_store.write([Graph(owner, "v1", [], [])])
    graph_store.drop(owner, "v9")
    assert graph_store.versions(owner) == set()
    assert graph_store.count() == before


def test_owners_and_tenants_never_meet(graph_store: GraphStore, tenant: str) -> None:
    owners = [Owner(tenant, "u:1"), Owner(tenant, "u:2"), Owner(f"{tenant}b", "u:1")]
    for i, owner in enumerate(owners):
        own = GraphNode("own", "slice", str(i), 0.5, AT)
        graph_store.write(
            [Graph(owner, "v1", [own, entity("shared")], [GraphEdge("own", "entity:shared", "mentions", 1.0)])]
        )
    graph_store.drop(owners[1], "v1")
    for i, owner in enumerate(owners):
        assert [node.label for node in graph_store.nodes(owner, "v1")] == ([] if i == 1 else ["shared", str(i)])
        assert len(graph_store.edges(owner, "v1")) == (0 if i == 1 else 1)
        assert graph_store.versions(owner) == (set() if i == 1 else {"v1"})


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_strings_are_values_and_nothing_else(graph_store: GraphStore, tenant: str, hostile: str) -> None:
    owner, other = Owner(tenant + hostile, f"u:{hostile}"), Owner(tenant, "u:1")
    graph_store.write([Graph(other, "v1", CHAIN, NEXT)])
    nodes = [GraphNode(f"e{hostile}", "fact", hostile, 0.5, AT), entity(hostile)]
    edges = [GraphEdge(nodes[0].node_id, nodes[1].node_id, "mentions", 1.0)]
    graph_store.write([Graph(owner, "v1", nodes, edges)])
    assert graph_store.nodes(owner, "v1") == sorted(nodes, key=lambda node: node.node_id)
    assert graph_store.edges(owner, "v1") == edges
    assert (graph_store.nodes(other, "v1"), graph_store.edges(other, "v1")) == (CHAIN, NEXT)
    graph_store.drop(owner, "v1")
    assert graph_store.versions(other) == {"v1"}


@pytest.mark.parametrize("version", ["", "a:b", "a'b", "v 1", "版", "v" * 65])
def test_a_hostile_version_is_refused(graph_store: GraphStore, owner: Owner, version: str) -> None:
    with pytest.raises(PermanentError):
        graph_store.write([Graph(owner, version, CHAIN, NEXT)])
    with pytest.raises(PermanentError):
        graph_store.drop(owner, version)
    with pytest.raises(PermanentError):
        graph_store.nodes(owner, version)
    with pytest.raises(PermanentError):
        graph_store.edges(owner, version)


@pytest.mark.parametrize(
    ("edge", "error"),
    [
        (GraphEdge("m0", "m1", "KNOWS]->() DETACH DELETE (n", 0.5), PermanentError),
        (GraphEdge("m0", "m1", "next", 0.0), PermanentError),
        (GraphEdge("m0", "m1", "next", 1.1), PermanentError),
        (GraphEdge("m0", "m1", "next", float("nan")), PermanentError),
        (GraphEdge("m0", "unknown", "next", 0.5), IntegrityError),
        (GraphEdge("m0", "m1", "mentions", 0.5), PermanentError),
        (GraphEdge("m0", "entity:a", "next", 0.5), PermanentError),
    ],
)
def test_a_wrong_edge_is_refused_before_anything_is_written(
    graph_store: GraphStore, owner: Owner, edge: GraphEdge, error: type[Exception]
) -> None:
    with pytest.raises(error):
        graph_store.write([Graph(owner, "v1", [*CHAIN, entity("a")], [*NEXT, edge])])
    assert graph_store.versions(owner) == set()


def test_batches_beyond_a_hundred_and_a_hub(graph_store: GraphStore, owner: Owner) -> None:
    nodes = [memory(f"m{i:04}") for i in range(1150)] + [entity("hub")]
    edges = [GraphEdge(n.node_id, "entity:hub", "mentions", 1.0) for n in nodes[:-1]]
    before = graph_store.count()
    graph_store.write([Graph(owner, "v1", nodes, edges)])
    assert (len(graph_store.nodes(owner, "v1")), len(graph_store.edges(owner, "v1"))) == (1151, 1150)
    graph_store.drop(owner, "v1")
    assert graph_store.count() == before


_numbers = itertools.count()
MEMORIES = st.sampled_from([f"m{i}" for i in range(7)])
EDGES = st.one_of(
    st.builds(
        GraphEdge,
        MEMORIES,
        MEMORIES,
        st.sampled_from(["causes", "next", "same_topic", "similar"]),
        st.sampled_from([0.25, 0.5, 1.0]),
    ),
    st.builds(GraphEdge, MEMORIES, st.sampled_from(["entity:a", "entity:b"]), st.just("mentions"), st.just(1.0)),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=st.lists(EDGES, max_size=14))
def test_the_server_finds_what_the_fake_finds(bolt: GraphStore, edges: list[GraphEdge]) -> None:
    owner = Owner("random graphs", f"u:{next(_numbers)}")
    nodes = [*(memory(f"m{i}") for i in range(7)), entity("a"), entity("b")]
    fake = MemoryGraph()
    for store in (fake, bolt):
        store.write([Graph(owner, "v1", nodes, edges)])
    assert bolt.nodes(owner, "v1") == fake.nodes(owner, "v1")
    assert bolt.edges(owner, "v1") == fake.edges(owner, "v1")
    bolt.drop(owner, "v1")


NOW = AT + timedelta(days=30)
IMPACTS = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
AGES = st.sampled_from([-1, 0, 1, 20, 400])
"""In days; one of -1 has not occurred yet."""
TIMES = st.sampled_from([None, *(NOW - timedelta(days=days) for days in (-1, 0, 3, 300))])
ENTITIES = ["entity:a", "entity:b", "entity:c"]
WEIGHTS = st.sampled_from([0.1, 0.25, 0.5, 1.0])
JOINED = st.one_of(
    st.builds(GraphEdge, MEMORIES, MEMORIES, st.sampled_from(["causes", "next", "same_topic", "similar"]), WEIGHTS),
    st.builds(GraphEdge, MEMORIES, st.sampled_from(ENTITIES), st.just("mentions"), WEIGHTS),
    st.builds(GraphEdge, st.sampled_from(ENTITIES), MEMORIES, st.just("mentions"), WEIGHTS),
)


def computed(
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    anchors: Mapping[str, float],
    hidden: Collection[str],
    uses: Mapping[str, Use],
) -> dict[str, float]:
    """What recall computes from the same nodes and edges."""
    rows = [node for node in nodes if node.occurred_at is not None]
    ids = [node.node_id for node in rows]
    at = np.array([micros(node.occurred_at) for node in rows if node.occurred_at is not None])
    usable = (at <= micros(NOW)) & ~np.isin(ids, sorted(hidden))
    position = {name: row for row, name in enumerate(ids)}
    web = Adjacency.of(edges, position).among(usable)
    impact, used = np.array([node.weight for node in rows]), [uses.get(name, NEVER) for name in ids]
    since = np.array([micros(use.accessed_at) if use.accessed_at else t for use, t in zip(used, at, strict=True)])
    windows = np.array([use.activations for use in used])
    return Ripple(anchors, Field(ids, position, impact, since, windows, web), NOW).activation


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    impacts=st.lists(IMPACTS, min_size=7, max_size=7),
    ages=st.lists(AGES, min_size=7, max_size=7),
    edges=st.lists(JOINED, min_size=4, max_size=24, unique_by=lambda edge: (edge.source, edge.target, edge.kind)),
    anchors=st.dictionaries(MEMORIES, st.sampled_from([0.0, 0.3, 0.8, 1.0]), min_size=1, max_size=7),
    hidden=st.sets(MEMORIES, max_size=3),
    uses=st.dictionaries(MEMORIES, st.builds(Use, TIMES, st.integers(0, 2)), max_size=4),
)
@example(  # a path over an entity, one beside it, an entity that leads nowhere, parallel edges, more than five anchors
    impacts=[0.9] * 7,
    ages=[1] * 7,
    edges=[
        GraphEdge("m0", "entity:a", "mentions", 0.5),
        GraphEdge("entity:a", "m0", "mentions", 1.0),
        GraphEdge("entity:a", "m1", "mentions", 0.5),
        GraphEdge("m1", "entity:b", "mentions", 1.0),
        GraphEdge("m2", "m1", "next", 0.25),
        GraphEdge("m1", "m2", "causes", 0.5),
        GraphEdge("m2", "m3", "next", 1.0),
        GraphEdge("m3", "m4", "next", 1.0),
        GraphEdge("m4", "m4", "similar", 1.0),
    ],
    anchors={"m0": 0.9, "m1": 0.3, "m2": 0.3, "m3": 0.3, "m5": 0.3, "m6": 0.8},
    hidden=set(),
    uses={"m1": Use(NOW, 2), "m3": Use(NOW - timedelta(days=9), 1), "m4": Use(NOW + timedelta(days=1), 0)},
)
def test_the_store_computes_the_activations_that_recall_computes(
    graph_store: GraphStore,
    impacts: list[float],
    ages: list[int],
    edges: list[GraphEdge],
    anchors: dict[str, float],
    hidden: set[str],
    uses: dict[str, Use],
) -> None:
    owner = Owner("random ripples", f"u:{next(_numbers)}")
    nodes = [
        GraphNode(f"m{i}", "slice", "praise", impact, NOW - timedelta(days=age, hours=age))
        for i, (impact, age) in enumerate(zip(impacts, ages, strict=True))
    ]
    nodes += [entity(name.removeprefix("entity:")) for name in ENTITIES]
    graph_store.write([Graph(owner, "v1", nodes, edges)])
    found = graph_store.activations(owner, "v1", anchors, NOW, hidden, uses)
    assert found == pytest.approx(computed(nodes, edges, anchors, hidden, uses), rel=1e-9, abs=1e-9)
    graph_store.drop(owner, "v1")


def test_activations_of_nothing_and_of_others_are_none(graph_store: GraphStore, owner: Owner, tenant: str) -> None:
    graph_store.write([Graph(owner, "v1", CHAIN, NEXT)])
    assert graph_store.activations(owner, "v1", {}, NOW) == {}
    assert graph_store.activations(owner, "v1", {"unknown": 1.0, "m0": 0.0}, NOW) == {}
    assert graph_store.activations(owner, "v2", {"m0": 1.0}, NOW) == {}
    assert graph_store.activations(Owner(tenant, "u:2"), "v1", {"m0": 1.0}, NOW) == {}
    assert graph_store.activations(owner, "v1", {"m0": 1.0}, AT - timedelta(days=1)) == {}
    assert graph_store.activations(owner, "v1", {"m0": 1.0}, NOW).keys() == {"m0", "m1", "m2", "m3"}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_anchor_or_hidden_id_is_a_value(graph_store: GraphStore, owner: Owner, hostile: str) -> None:
    nodes = [GraphNode(hostile, "slice", "x", 0.5, AT), *CHAIN[:2]]
    graph_store.write([Graph(owner, "v1", nodes, [GraphEdge(hostile, "m0", "next", 1.0), NEXT[0]])])
    found = graph_store.activations(owner, "v1", {hostile: 1.0}, NOW)
    assert found.keys() == {hostile, "m0", "m1"}
    assert graph_store.activations(owner, "v1", {"m0": 1.0}, NOW, {hostile}).keys() == {"m0", "m1"}


def test_an_unreachable_server_is_named_with_its_setting(owner: Owner) -> None:
    store = Neo4jGraph("bolt://127.0.0.1:1", "neo4j", "secret")
    with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_NEO4J_URL") as caught:
        store.edges(owner, "v1")
    assert caught.value.store == "graph"
    store.close()


@pytest.mark.parametrize("url", ["nonsense://x", "http://localhost:7474", ""])
def test_a_wrong_url_is_a_setting_error(url: str) -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_NEO4J_URL"):
        Neo4jGraph(url, "neo4j", "secret").count()
