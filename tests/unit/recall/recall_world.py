"""A small world for recall: in-memory stores, an authority, an embedder of known concepts."""

import gzip
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.clock import FixedClock
from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.models.base import Kind, Unrelated
from memory_pipelines.recall import Recall
from memory_pipelines.stores.authority import Head, Person, StoredMemory
from memory_pipelines.stores.base import Graph, GraphEdge, GraphNode, VectorRow, cold_key
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.stores.quantise import rounded

NOW = datetime(2024, 6, 1, tzinfo=UTC)
ALICE = Owner("acme", "u:alice")

CONCEPTS = (
    ("快递", "物流", "包裹", "parcel", "delivery", "courier", "shipment"),
    ("过敏", "allergic", "allergy"),
    ("退款", "refund", "money back"),
    ("上海", "北京", "住", "live", "city"),
    ("猫", "狗", "cat", "dog", "pet"),
    ("优惠券", "coupon", "discount"),
)


class ConceptEmbedder:
    """One axis per concept, one for everything else: cosines that can be told by hand."""

    model_id = "concepts"
    dimension = len(CONCEPTS) + 1
    digest = "0" * 64
    unrelated = Unrelated(0.15, 0.11)

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> NDArray[np.float32]:
        rows = []
        for text in texts:
            axes = [float(any(word in text.lower() for word in words)) for words in CONCEPTS]
            rows.append([*axes, 0.1])
        array = np.array(rows, dtype=np.float32)
        return array / np.linalg.norm(array, axis=1, keepdims=True)


class Down:
    """A store whose every method says that the server does not answer."""

    def __init__(self, store: str) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        def refuse(*args: object, **kwargs: object) -> Any:
            raise StoreUnavailableError(self._store, "A_SETTING", "refused")

        return refuse


class TableAuthority:
    """An authority over lists; counts its reads."""

    def __init__(self) -> None:
        self.people: dict[Owner, Person] = {}
        self.rows: dict[Owner, list[StoredMemory]] = {}
        self.visible_reads = 0

    def head(self, owner: Owner, as_of: datetime) -> Head:
        return Head((self.person(owner),))

    def person(self, owner: Owner) -> Person:
        return self.people.get(owner, Person(owner, 0, None, frozenset()))

    def visible(self, owner: Owner) -> list[StoredMemory]:
        self.visible_reads += 1
        return list(self.rows.get(owner, []))


@dataclass
class Joined:
    """An authority that also knows links and a journal, as the relational store does; counts its heads."""

    authority: Any
    links: Any = None
    journal: Any = None
    heads: int = 0

    def head(self, owner: Owner, as_of: datetime) -> Head:
        self.heads += 1
        owners = (owner,) if self.links is None else self.links.linked(owner)
        marks = {} if self.journal is None else self.journal.marks(owners, as_of)
        return Head(tuple(self.authority.person(one) for one in owners), marks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.authority, name)


def make_memory(memory_id: str, summary: str, **changes: Any) -> StoredMemory:
    """An episodic Chinese or English memory of Alice, 10 days old, of middling impact."""
    values: dict[str, Any] = {
        "memory_id": memory_id,
        "version": "v1",
        "owner": ALICE,
        "memory_type": "episodic",
        "permanence": "long",
        "term": "long",
        "summary": summary,
        "text": "",
        "language": "en" if summary.isascii() else "zh",
        "predicate": "",
        "value": "",
        "structured": "{}",
        "confidence": 0.9,
        "trust": 1.0,
        "score": 0.8,
        "decision_impact": 0.4,
        "intent": "",
        "entities": (),
        "slice_ids": (),
        "source_turn_ids": (),
        "stores": ("vector", "graph"),
        "occurred_at": NOW - timedelta(days=10),
        "valid_from": None,
        "valid_to": None,
        "expires_at": None,
        "admitted_at": NOW - timedelta(days=9),
        "tier": "hot",
        "path": "rules",
        "model_set": "base-1",
    }
    return StoredMemory(**(values | changes))


def make_fact(memory_id: str, summary: str, predicate: str, value: str, **changes: Any) -> StoredMemory:
    fixed = {"memory_type": "semantic", "permanence": "permanent", "predicate": predicate, "value": value}
    return make_memory(memory_id, summary, **(fixed | changes))


@dataclass
class World:
    authority: Any = field(default_factory=TableAuthority)
    vectors: Any = field(default_factory=MemoryVectors)
    graph: Any = field(default_factory=MemoryGraph)
    hot: Any = field(default_factory=lambda: MemoryHot(FixedClock(NOW)))
    cold: Any = field(default_factory=MemoryCold)
    budget: int = 1500

    def publish(
        self,
        memories: Sequence[StoredMemory],
        edges: Sequence[GraphEdge] = (),
        suppressed: Collection[str] = (),
        owner: Owner = ALICE,
        embedder: Any = None,
    ) -> None:
        """What publishing does: a new epoch of the owner in every store."""
        epoch = self.authority.person(owner).epoch + 1
        stored = [replace(m, owner=owner) for m in memories]
        version = f"g{epoch}"
        embedder = embedder or ConceptEmbedder()
        self.vectors.ensure(embedder.dimension)
        hot_or_warm = [m for m in stored if m.tier != "cold"]
        if hot_or_warm:
            vectors = rounded(embedder.encode([f"{m.summary} {m.text}" for m in hot_or_warm]))
            self.vectors.upsert(
                [
                    VectorRow(m.entry_id, owner, v, m.language, m.occurred_at)
                    for m, v in zip(hot_or_warm, vectors, strict=True)
                ]
            )
        entities = {end for e in edges for end in (e.source, e.target) if end.startswith("entity:")}
        nodes = [GraphNode(m.memory_id, "slice", m.intent, m.decision_impact, m.occurred_at) for m in stored]
        nodes += [GraphNode(e, "entity", e, 0.0, None) for e in sorted(entities)]
        self.graph.write([Graph(owner, version, nodes, edges)])
        for m in memories:
            if m.tier == "cold":
                text = f"archived words of {m.memory_id}"
                self.cold.put(cold_key(owner, m.entry_id), gzip.compress(json.dumps({"text": text}).encode()))
        self.authority.rows[owner] = stored
        self.authority.people[owner] = Person(owner, epoch, version, frozenset(suppressed))

    def suppress(self, *memory_ids: str, owner: Owner = ALICE) -> None:
        """A suppression acts at once and makes no new epoch."""
        self.authority.people[owner] = replace(self.authority.people[owner], suppressed=frozenset(memory_ids))

    def recall(self) -> Recall:
        return Recall(
            self.authority,
            self.vectors,
            self.graph,
            self.hot,
            self.cold,
            ConceptEmbedder(),
            FixedClock(NOW),
            self.budget,
        )

    def ask(self, query: str, **options: Any) -> Any:
        return self.recall().recall(query, **({"tenant": ALICE.tenant, "subject": ALICE.subject} | options))
