"""Derived rows as publishing drafts: what each store is to hold of an owner.

What use changes is in test_projection_life.
"""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from memory_pipelines.errors import SettingError
from memory_pipelines.model import Owner, Tier
from memory_pipelines.projection import EMBEDDED_CHARACTERS, owner_states
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import GraphEdge, GraphNode
from memory_pipelines.stores.publish import OwnerState
from memory_pipelines.tables import EDGES, MEMORIES, SLICES

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ANN, BEN, CHI = Owner("t", "u:ann"), Owner("t", "u:ben"), Owner("t", "u:chi")


def base(owner: Owner) -> dict[str, Any]:
    return {"tenant": owner.tenant, "subject": owner.subject, "owner": owner.key, "bucket": 0}


def memory(owner: Owner, name: str, days: float = 1, **fields: Any) -> dict[str, Any]:
    row = dict.fromkeys(MEMORIES.schema.names) | base(owner)
    row |= {"memory_id": name, "memory_type": "episodic", "permanence": "long", "term": "long", "path": "rules"}
    row |= {"summary": f"about {name}", "text": f"verbatim {name}", "language": "en", "intent": "order"}
    row |= {"confidence": 1.0, "trust": 0.5, "score": 0.9, "decision_impact": 0.25, "model_set": "base-1"}
    row |= {"slice_ids": [f"s-{name}"], "own_turn_ids": [f"t-{name}"], "source_turn_ids": [f"t-{name}", "reply"]}
    row |= {"entities": ["carrier/sf"], "occurred_at": NOW - timedelta(days=days), "stores": ["vector", "graph"]}
    return row | fields


def fact(owner: Owner, name: str, **fields: Any) -> dict[str, Any]:
    return memory(owner, name, memory_type="semantic", predicate="likes", value="茶", **fields)


def edge(owner: Owner, source: str, target: str, kind: str = "mentions", weight: float = 0.5) -> dict[str, Any]:
    return base(owner) | {"source": source, "target": target, "kind": kind, "weight": weight}


def event(owner: Owner, name: str, *turns: str) -> dict[str, Any]:
    return dict.fromkeys(SLICES.schema.names) | base(owner) | {"slice_id": name, "own_turn_ids": list(turns)}


def states(
    *owners: Owner,
    memories: list[dict[str, Any]] | None = None,
    edges: list[dict[str, Any]] | None = None,
    slices: list[dict[str, Any]] | None = None,
    known: tuple[Owner, ...] = (),
    profile: str = "assistant",
) -> list[OwnerState]:
    return owner_states(
        [o.key for o in owners],
        memories=pa.Table.from_pylist(memories or [], schema=MEMORIES.schema),
        edges=pa.Table.from_pylist(edges or [], schema=EDGES.schema),
        slices=pa.Table.from_pylist(slices or [], schema=SLICES.schema),
        known={o.key: o for o in known},
        as_of=NOW,
        profile=profile,
    )


def test_no_owners_no_states() -> None:
    assert states(memories=[memory(ANN, "a")]) == []


def test_an_owner_without_rows_is_emptied_if_it_was_published() -> None:
    assert states(ANN, BEN, known=(ANN,)) == [OwnerState(ANN, [], [], [], [])]


def test_an_owner_with_slices_only_is_named_by_them() -> None:
    (found,) = states(ANN, slices=[event(ANN, "s2", "2"), event(ANN, "s1", "3", "1")])
    assert (found.owner, found.memories, found.nodes) == (ANN, [], [])
    assert found.slices == [("s1", "1"), ("s1", "3"), ("s2", "2")]


def test_a_draft_has_every_column_of_the_authority_and_no_nulls_where_it_has_none() -> None:
    bare = memory(ANN, "a", text=None, language=None, intent=None, decision_impact=None)
    (found,) = states(ANN, memories=[bare])
    (draft,) = found.memories
    columns = {c.name: c for c in schema.memory_versions.columns if c.name not in ("version", "places")}
    assert set(draft.payload) == set(columns)
    assert [n for n, c in columns.items() if not c.nullable and draft.payload[n] is None] == []
    assert (draft.payload["text"], draft.payload["decision_impact"]) == ("", 0.0)
    assert draft.embedded_text == "about a\n"


def test_what_a_vector_stands_for_is_summary_and_text_cut_short() -> None:
    rows = [memory(ANN, "a"), memory(ANN, "b", text="长😀" * 10_000), memory(ANN, "c", stores=["graph", "relational"])]
    (found,) = states(ANN, memories=rows)
    texts = [d.embedded_text for d in found.memories]
    assert texts[0] == "about a\nverbatim a"
    assert texts[1] == ("about b\n" + "长😀" * 10_000)[:EMBEDDED_CHARACTERS]
    assert texts[2] is None
    assert found.memories[1].payload["text"] == "长😀" * 10_000


def test_the_graph_holds_slices_facts_and_their_entities() -> None:
    rows = [memory(ANN, "a"), fact(ANN, "f"), memory(ANN, "v", stores=["vector"])]
    links = [
        edge(ANN, "a", "entity:carrier/sf"),
        edge(ANN, "f", "entity:carrier/sf"),
        edge(ANN, "a", "f", "next", 0.25),
        edge(ANN, "v", "entity:place/sz"),
        edge(ANN, "a", "v", "same_topic"),
    ]
    (found,) = states(ANN, memories=rows, edges=links)
    at = NOW - timedelta(days=1)
    assert found.nodes == [
        GraphNode("a", "slice", "order", 0.25, at),
        GraphNode("f", "fact", "likes", 0.25, at),
        GraphNode("entity:carrier/sf", "entity", "carrier/sf", 0.0, None),
    ]
    assert found.edges == [
        GraphEdge("a", "entity:carrier/sf", "mentions", 0.5),
        GraphEdge("f", "entity:carrier/sf", "mentions", 0.5),
        GraphEdge("a", "f", "next", 0.25),
    ]


def test_a_cold_memory_is_in_neither_vectors_nor_graph() -> None:
    rows = [memory(ANN, "a"), memory(ANN, "old", 91)]
    (found,) = states(ANN, memories=rows, edges=[edge(ANN, "a", "old", "next"), edge(ANN, "old", "entity:x")])
    assert [(d.tier, d.embedded_text is None) for d in found.memories] == [(Tier.HOT, False), (Tier.COLD, True)]
    assert found.memories[1].payload["text"] == "verbatim old"  # the publisher moves it
    assert [n.node_id for n in found.nodes] == ["a"]
    assert found.edges == []


@pytest.mark.parametrize(
    ("days", "profile", "tier"),
    [
        (30, "assistant", Tier.HOT),
        (30.01, "assistant", Tier.WARM),
        (90, "assistant", Tier.WARM),
        (90.01, "assistant", Tier.COLD),
        (7.01, "commerce", Tier.WARM),
        (30.01, "commerce", Tier.COLD),
    ],
)
def test_tiers_by_age(days: float, profile: str, tier: Tier) -> None:
    (found,) = states(ANN, memories=[memory(ANN, "a", days)], profile=profile)
    assert [d.tier for d in found.memories] == [tier]


def test_current_facts_what_they_cite_and_permanent_memories_stay_warm() -> None:
    rows = [
        fact(ANN, "current", days=500, slice_ids=["s-cited"]),
        fact(ANN, "closed", days=500, valid_to=NOW - timedelta(days=1), slice_ids=["s-other"]),
        fact(ANN, "closes later", days=500, valid_to=NOW + timedelta(days=1), slice_ids=["s-more"]),
        memory(ANN, "cited", 500),
        memory(ANN, "other", 500),
        memory(ANN, "permanent", 500, permanence="permanent"),
    ]
    (found,) = states(ANN, memories=rows)
    warm = {d.payload["memory_id"] for d in found.memories if d.tier == Tier.WARM}
    assert warm == {"current", "closes later", "cited", "permanent"}
    assert len(found.memories) == 6


def test_an_expired_memory_is_not_shown() -> None:
    rows = [memory(ANN, "gone", expires_at=NOW), memory(ANN, "stays", expires_at=NOW + timedelta(microseconds=1))]
    (found,) = states(ANN, memories=rows, edges=[edge(ANN, "gone", "entity:x")])
    assert [d.payload["memory_id"] for d in found.memories] == ["stays"]
    assert [n.node_id for n in found.nodes] == ["stays"]


def test_a_short_term_memory_stays_in_the_relational_store() -> None:
    (found,) = states(ANN, memories=[memory(ANN, "a", term="short", expires_at=NOW + timedelta(days=9))])
    assert [(d.payload["stores"], d.embedded_text) for d in found.memories] == [(["relational"], None)]
    assert found.nodes == []


def test_owners_are_apart_and_in_order_of_their_keys() -> None:
    rows = [memory(o, f"{o.subject} {i}") for i in range(3) for o in (ANN, BEN)]
    found = states(BEN, CHI, ANN, memories=rows, known=(ANN, CHI))
    assert [s.owner for s in found] == sorted([ANN, BEN, CHI], key=lambda o: o.key)
    for state in found:
        assert {d.payload["subject"] for d in state.memories} <= {state.owner.subject}
    assert sorted(len(s.memories) for s in found) == [0, 3, 3]
    assert states(ANN, memories=rows)[0] in found


def test_the_order_of_rows_changes_nothing_that_is_published() -> None:
    rows = [memory(ANN, str(i), i * 9) for i in range(20)]
    links = [edge(ANN, str(i), f"entity:{i % 3}") for i in range(20)]
    events = [event(ANN, f"s{i % 4}", str(i)) for i in range(20)]
    (first,) = states(ANN, memories=rows, edges=links, slices=events)
    for seed in range(3):
        for table in (rows, links, events):
            random.Random(seed).shuffle(table)
        (again,) = states(ANN, memories=rows, edges=links, slices=events)
        assert (again.memories, again.nodes, again.slices) == (first.memories, first.nodes, first.slices)
        assert set(again.edges) == set(first.edges)


def test_an_unknown_profile_names_the_setting() -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_PROFILE"):
        states(ANN, known=(ANN,), profile="nobody's")
