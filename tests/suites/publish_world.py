"""A small world for publishing: owners with memories of every kind, stores that can be killed, and a reader."""

import gzip
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from memory_pipelines.model import MemoryType, Owner, Tier, memory_id
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.base import (
    ColdStore,
    GraphEdge,
    GraphNode,
    GraphStore,
    HotStore,
    Vector,
    VectorStore,
    cold_key,
)
from memory_pipelines.stores.publish import Draft, OwnerState, Published, Publisher
from memory_pipelines.stores.relational import PostgresAuthority

DIMENSION = 8
AT = datetime(2026, 3, 1, 4, 5, 6, tzinfo=UTC)
LATER = AT + timedelta(days=1)
_numbers = itertools.count(1)

MUTATING = {
    "authority": ("prepare", "commit", "finish", "roll_back"),
    "vectors": ("upsert", "delete"),
    "graph": ("write", "drop"),
    "hot": ("put", "delete"),
    "cold": ("put", "archive", "delete"),
}


class Killed(BaseException):
    """The process died here: no handler may see it."""


def embed(texts: Sequence[str]) -> list[Vector]:
    """A unit vector per text, far from that of any other text."""
    seeds = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest()) for t in texts]
    rows = [np.random.default_rng(seed).standard_normal(DIMENSION) for seed in seeds]
    return [(row / np.linalg.norm(row)).astype(np.float32) for row in rows]


def draft(
    owner: Owner,
    number: int,
    words: str = "first words",
    tier: Tier = Tier.HOT,
    stores: Sequence[str] = ("vector", "graph"),
    **payload: Any,
) -> Draft:
    """Memory ``number`` of an owner; with other ``words`` it is the same memory with another content."""
    summary = f"{number}: {words}, 摘要 😀"
    row = {
        "memory_id": memory_id(owner, MemoryType.EPISODIC, f"turn-{number}"),
        "owner": owner.key,
        "tenant": owner.tenant,
        "subject": owner.subject,
        "memory_type": "episodic",
        "permanence": "long",
        "term": "long",
        "summary": summary,
        "text": f"verbatim {number} {words} 原文",
        "language": "mixed",
        "predicate": "",
        "value": "",
        "structured": "{}",
        "confidence": 0.5,
        "trust": 0.5,
        "score": 0.75,
        "decision_impact": 0.25,
        "intent": "order",
        "entities": ["carrier/sf_express"],
        "slice_ids": [f"slice-{number}"],
        "source_turn_ids": [f"turn-{number}"],
        "stores": list(stores),
        "occurred_at": AT - timedelta(days=number),
        "valid_from": None,
        "valid_to": None,
        "expires_at": None,
        "path": "rules",
        "model_set": "base-1",
    } | payload
    return Draft(row, tier, summary if "vector" in stores and tier != Tier.COLD else None)


def state(owner: Owner, drafts: Sequence[Draft], slices: Mapping[str, Sequence[str]] | None = None) -> OwnerState:
    """The whole state of an owner; its graph joins all that is routed there through one entity."""
    ids = [d.payload["memory_id"] for d in drafts if "graph" in d.payload["stores"] and d.tier != Tier.COLD]
    by_id = {d.payload["memory_id"]: d.payload for d in drafts}
    nodes = [GraphNode(i, "slice", by_id[i]["intent"], 0.5, by_id[i]["occurred_at"]) for i in ids]
    edges = [GraphEdge(i, "entity:carrier/sf_express", "mentions", 0.5) for i in ids]
    if ids:
        nodes.append(GraphNode("entity:carrier/sf_express", "entity", "carrier/sf_express", 0.0, None))
    if slices is None:
        slices = {d.payload["slice_ids"][0]: d.payload["source_turn_ids"] for d in drafts}
    return OwnerState(owner, drafts, nodes, edges, sorted((s, t) for s, turns in slices.items() for t in turns))


@dataclass
class Faults:
    """Counts mutating calls over all stores; dies at number ``at``, ``before``, in the middle of (``torn``) or
    ``after`` it. ``refuse`` names calls that raise instead; ``meanwhile`` and ``ended`` do something else just before
    and just after calls."""

    at: int = 0
    when: str = "before"
    refuse: Mapping[str, Callable[[], BaseException]] = field(default_factory=dict)
    meanwhile: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    ended: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def wrap(self, role: str, store: Any) -> Any:
        return _Faulty(self, role, store)

    def call(self, name: str, method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        self.calls.append(name)
        if name in self.meanwhile:
            self.meanwhile[name]()
        if name in self.refuse:
            raise self.refuse[name]()
        here = len(self.calls) == self.at
        if here and self.when == "before":
            raise Killed
        if here and self.when == "torn":
            method(*_half(name, arguments))
            raise Killed
        result = method(*arguments)
        if name in self.ended:
            self.ended[name]()
        if here:
            raise Killed
        return result


class _Faulty:
    def __init__(self, faults: Faults, role: str, store: Any) -> None:
        self._faults, self._role, self._store = faults, role, store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in MUTATING[self._role]:
            return found
        return lambda *arguments: self._faults.call(f"{self._role}.{name}", found, arguments)


def _half(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call that a server has done half of; a call that is atomic has been done whole."""
    if name == "graph.write":
        [graphs] = arguments
        return ([replace(one, nodes=one.nodes[: len(one.nodes) // 2], edges=[]) for one in graphs],)
    if name == "cold.archive":
        objects = list(arguments[0].items())
        return (dict(objects[: len(objects) // 2]),)
    if name in ("vectors.upsert", "vectors.delete", "cold.delete"):
        items = sorted(arguments[0]) if name != "vectors.upsert" else list(arguments[0])
        return (items[: len(items) // 2],)
    return arguments


@dataclass(frozen=True)
class View:
    """What a reader sees of one owner."""

    memories: Mapping[str, tuple[str, str, str]]
    """Memory id → (tier, summary, text, also from the cold store)."""
    vectors: frozenset[str]
    """Memory ids that the right vector leads to."""
    nodes: frozenset[GraphNode]
    edges: frozenset[GraphEdge]
    slices: frozenset[tuple[str, str]]


def expected(state: OwnerState) -> View:
    payloads = [(d, d.payload) for d in state.memories]
    return View(
        {p["memory_id"]: (d.tier.value, p["summary"], p["text"]) for d, p in payloads},
        frozenset(p["memory_id"] for d, p in payloads if d.embedded_text is not None),
        frozenset(state.nodes),
        frozenset(state.edges),
        frozenset(state.slices),
    )


@dataclass
class Stores:
    """All five stores, as they are."""

    engine: sa.Engine
    authority: PostgresAuthority
    vectors: VectorStore
    graph: GraphStore
    hot: HotStore
    cold: ColdStore

    def publisher(self, faults: Faults | None = None) -> Publisher:
        faults = faults or Faults()
        wrapped = [faults.wrap(role, getattr(self, role)) for role in MUTATING]
        return Publisher(*wrapped, embed=embed)

    def publish(
        self, bucket: int, states: Sequence[OwnerState], at: datetime = AT, faults: Faults | None = None
    ) -> Published:
        return self.publisher(faults).publish(bucket, states, at)

    def lose(self, bucket: int) -> None:
        """Break the session by which a publisher holds the bucket."""
        if self.engine.dialect.name == "postgresql":
            held = "FROM pg_locks WHERE locktype = 'advisory' AND classid = 7272 AND objid = :bucket"
            with self.engine.begin() as connection:
                connection.execute(sa.text(f"SELECT pg_terminate_backend(pid) {held}"), {"bucket": bucket})

    def read(self, owner: Owner) -> View:
        """As a recall reads: the authority's pointers decide what counts of the other stores' answers."""
        person = self.authority.person(owner)
        rows = self.authority.visible(owner)
        found = set()
        for row in rows:
            hits = self.vectors.search(owner, embed([row.summary])[0], 100)
            found |= {row.memory_id for hit in hits if hit.entry_id == row.entry_id and hit.score > 0.999}
        nodes: Iterable[GraphNode] = ()
        edges: Iterable[GraphEdge] = ()
        if person.graph_version is not None:
            nodes = self.graph.nodes(owner, person.graph_version)
            edges = self.graph.edges(owner, person.graph_version)
        return View(
            {r.memory_id: (r.tier, r.summary, self._text(r)) for r in rows},
            frozenset(found),
            frozenset(nodes),
            frozenset(edges),
            frozenset(self.authority.current_slices([owner.key]).get(owner.key, set())),
        )

    def _text(self, row: StoredMemory) -> str:
        if row.tier != Tier.COLD:
            return row.text
        assert row.text == ""
        raw = self.cold.get(cold_key(row.owner, row.entry_id))
        return "missing in the cold store" if raw is None else str(json.loads(gzip.decompress(raw))["text"])

    def held(self, owner: Owner) -> dict[str, set[str]]:
        """Ids of everything that any store holds of an owner."""
        with self.engine.begin() as connection:
            table = schema.memory_versions
            rows = connection.execute(sa.select(table.c.memory_id, table.c.version).where(table.c.owner == owner.key))
            versions = {f"{row.memory_id}.{row.version}" for row in rows}
        return {
            "versions": versions,
            "vectors": self.vectors.entry_ids(owner),
            "graphs": self.graph.versions(owner),
            "cold": self.cold.keys(cold_key(owner, "").removesuffix(".json.gz")),
        }

    def assert_clean(self, bucket: int, owners: Iterable[Owner]) -> None:
        """Every store holds what the authority shows and nothing else; no batch is open."""
        assert self.authority.open_batches(bucket) == []
        for owner in owners:
            rows = self.authority.visible(owner)
            version = self.authority.person(owner).graph_version
            assert self.held(owner) == {
                "versions": {r.entry_id for r in rows},
                "vectors": {r.entry_id for r in rows if "vector" in r.stores and r.tier != Tier.COLD},
                "graphs": set() if version is None else {version},
                "cold": {cold_key(owner, r.entry_id) for r in rows if r.tier == Tier.COLD},
            }
            places = self.authority.places([owner.key]).get(owner.key, {})
            assert {
                name: {p[name] for p in places.values() if name in p} for name in ("relational", "vector", "cold")
            } == {
                "relational": self.held(owner)["versions"],
                "vector": self.held(owner)["vectors"],
                "cold": self.held(owner)["cold"],
            }

    def dump(self, owners: Sequence[Owner]) -> dict[str, Any]:
        """The content of the authority's tables, by owner number instead of id, to compare two runs."""
        number = {owner.key: i for i, owner in enumerate(owners)}
        result: dict[str, Any] = {}
        with self.engine.begin() as connection:
            for table in (schema.people, schema.memories, schema.memory_versions, schema.slice_turns):
                rows = connection.execute(sa.select(table).where(table.c.owner.in_(sorted(number)))).mappings()
                result[table.name] = sorted(
                    repr({k: number[v] if k == "owner" else v for k, v in row.items() if k not in _IDS}) for row in rows
                )
        return result


_IDS = {"tenant", "memory_id", "version", "graph_version", "places"}
"""Depend on the tenant, of which each run has its own."""


@dataclass(frozen=True)
class World:
    """A tenant and a bucket that no other test of this session uses, with an old and a new state.

    From old to new: a changed, a gone and a new memory; tier moves within the vector store, into the cold one,
    out of it and within it with another text; one that no vector stands for; an owner that changes nothing, one
    that is emptied, one that is new, one of which only the slices are grouped anew.
    """

    tenant: str
    bucket: int
    owners: tuple[Owner, ...]
    old: list[OwnerState]
    new: list[OwnerState]


def world(number: int | None = None) -> World:
    number = next(_numbers) if number is None else number
    owners = tuple(Owner(f"published {number}", f"u:{i}") for i in range(6))
    rich, same, gone, fresh, grouped, moved = owners
    old = [
        state(
            rich,
            [
                draft(rich, 1),
                draft(rich, 2),
                draft(rich, 3),
                draft(rich, 4, tier=Tier.COLD),
                draft(rich, 5, tier=Tier.COLD),
                draft(rich, 6, stores=["relational"]),
            ],
        ),
        state(same, [draft(same, 1), draft(same, 2, tier=Tier.COLD)]),
        state(gone, [draft(gone, 1), draft(gone, 2, tier=Tier.COLD)]),
        state(grouped, [draft(grouped, 1)], {"a": ["1", "2"], "b": ["3"]}),
        state(moved, [draft(moved, 1), draft(moved, 2)]),
    ]
    new = [
        state(
            rich,
            [
                draft(rich, 1, "other words"),
                draft(rich, 3, tier=Tier.COLD),
                draft(rich, 4),
                draft(rich, 5, "other words", tier=Tier.COLD),
                draft(rich, 6, "other words", stores=["relational"]),
                draft(rich, 7),
            ],
        ),
        old[1],
        state(gone, []),
        state(fresh, [draft(fresh, 1), draft(fresh, 2, tier=Tier.COLD)]),
        replace(old[3], slices=[("a", "1"), ("c", "2"), ("c", "3")]),
        state(moved, [draft(moved, 1, tier=Tier.WARM), draft(moved, 2)]),
    ]
    return World(f"published {number}", number, owners, old, new)
