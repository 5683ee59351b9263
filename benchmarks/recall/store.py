"""The stores that a recall of the benchmark reads: complete, in memory, exact.

Belongs here: an authority over lists, exact search over a matrix. Does not belong here: what is indexed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from memory_pipelines.clock import FixedClock
from memory_pipelines.model import Owner
from memory_pipelines.models.base import Embedder, Vectors
from memory_pipelines.recall import Recall
from memory_pipelines.recall.fusion import SHIPPED, Weights
from memory_pipelines.stores.authority import Head, Person, StoredMemory
from memory_pipelines.stores.base import Graph, GraphEdge, GraphNode, Hit, Vector
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors

VERSION = "v1"


class Exact(MemoryVectors):
    """Exact search over one matrix per owner."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[Owner, tuple[Sequence[StoredMemory], Vectors]] = {}

    def fill(self, owner: Owner, rows: Sequence[StoredMemory], vectors: Vectors) -> None:
        self._held[owner] = (rows, vectors)

    def search(self, owner: Owner, vector: Vector, limit: int, language: str | None = None) -> list[Hit]:
        rows, vectors = self._held.get(owner, ((), np.zeros((0, len(vector)), np.float32)))
        cosines = vectors @ vector
        order = np.argsort(-cosines, kind="stable")
        if language is not None:
            order = np.array([i for i in order if rows[i].language == language], dtype=np.int64)
        return [Hit(rows[i].entry_id, float(cosines[i])) for i in order[:limit]]


class Table:
    """An authority over lists."""

    def __init__(self) -> None:
        self.rows: dict[Owner, list[StoredMemory]] = {}

    def head(self, owner: Owner, as_of: datetime) -> Head:
        return Head((self.person(owner),))

    def person(self, owner: Owner) -> Person:
        return Person(owner, 1, VERSION, frozenset())

    def visible(self, owner: Owner) -> list[StoredMemory]:
        return self.rows.get(owner, [])


@dataclass
class Stores:
    """All stores of one history."""

    embedder: Embedder
    now: datetime
    table: Table = field(default_factory=Table)
    vectors: Exact = field(default_factory=Exact)
    graph: MemoryGraph = field(default_factory=MemoryGraph)

    def publish(
        self,
        owner: Owner,
        rows: list[StoredMemory],
        embedded: Sequence[StoredMemory],
        vectors: Vectors,
        nodes: Sequence[GraphNode] = (),
        edges: Sequence[GraphEdge] = (),
    ) -> None:
        """``embedded``: those of the rows that are in the vector store, each with its row of ``vectors``."""
        self.table.rows[owner] = rows
        self.vectors.fill(owner, embedded, vectors)
        self.graph.write([Graph(owner, VERSION, nodes, edges)])

    def recall(self, weights: Weights = SHIPPED, budget: int = 1_000_000) -> Recall:
        clock = FixedClock(self.now)
        return Recall(
            self.table, self.vectors, self.graph, MemoryHot(clock), MemoryCold(), self.embedder, clock, budget,
            weights=weights,
        )  # fmt: skip
