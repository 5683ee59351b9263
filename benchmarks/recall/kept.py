"""Through the product's own pipeline: exchanges, labelled slices, what the gate keeps, edges; then recall is asked.

Belongs here: the way of a history through the steps, and how an item counts. Does not belong here: the steps.

Each speaker of a history is a subject (what nobody in particular says is one subject's). A question is asked of the
speaker whom it names; of all of them if it names none or several, and their items are taken together by score. A
memory covers the own turns and the replies that it cites (``source_turn_ids``). Evidence that no admitted memory covers
cannot be found: it stays in the denominator, and its share is told as *lost at the gate*. Items cover several
turns, so k items are more than k turns: the mean is told.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from benchmarks.admission import path
from benchmarks.recall.figures import Judged, judge
from benchmarks.recall.sets import History, Question, Turn
from benchmarks.recall.store import Stores
from memory_pipelines import projection
from memory_pipelines.model import Owner, user_subject
from memory_pipelines.models.base import Embedder
from memory_pipelines.recall.fusion import SHIPPED, Weights
from memory_pipelines.recall.selection import MAX_ITEMS
from memory_pipelines.slices.graph.edges import memory_edges
from memory_pipelines.stores.authority import StoredMemory

SCENARIO = "assistant"
AGENT = "assistant"
"""The speaker of what no person has said."""
WEIGHTS: Mapping[str, Weights] = {
    "as shipped": SHIPPED,
    "without the ripple": replace(SHIPPED, ripple=0),
    "ripple 1": replace(SHIPPED, ripple=1.0),
    "without the facts leg": replace(SHIPPED, facts=0),
    "facts 1": replace(SHIPPED, facts=1.0),
    "without neighbours and session": replace(
        SHIPPED, words_onward=0, words_back=0, dense_onward=0, dense_back=0, session=0
    ),
}


@dataclass(frozen=True)
class Kept:
    """What the gate kept of a history, published. ``covered``: turns that some memory cites."""

    history: History
    stores: Stores
    owners: Mapping[str, Owner]
    covered: frozenset[str]
    memories: int

    @classmethod
    def of(cls, history: History, embedder: Embedder) -> "Kept":
        as_of = max(turn.at for turn in history.turns) + timedelta(days=1)
        turns = [
            path.Turn(turn.turn_id, turn.conversation, _person(turn), _role(turn), turn.at, turn.text, turn.session)
            for turn in history.turns
        ]
        slices = path.labelled(turns).slices(as_of)
        memories = path.admitted(slices, SCENARIO, as_of).memories
        edges = memory_edges(memories, slices)
        rows: dict[Owner, list[dict[str, Any]]] = defaultdict(list)
        for row in memories.to_pylist():
            if row["expires_at"] is None or row["expires_at"] > as_of:
                rows[Owner(row["tenant"], row["subject"])].append(row)
        links: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for edge in edges.to_pylist():
            links[edge["owner"]].append(edge)
        stores = Stores(embedder, as_of)
        for owner, found in rows.items():
            nodes, joined = projection.graph_of((r for r in found if "graph" in r["stores"]), links[owner.key])
            stored = [_stored(owner, row) for row in found]
            embedded = [memory for memory in stored if "vector" in memory.stores]
            vectors = embedder.encode([projection.embedded_text(m.summary, m.text) for m in embedded])
            stores.publish(owner, stored, embedded, vectors, nodes, joined)
        covered = frozenset(turn for found in rows.values() for row in found for turn in row["source_turn_ids"])
        names = dict.fromkeys(_person(turn) for turn in history.turns)
        owners = {name: Owner(path.TENANT, user_subject(name)) for name in names}
        return cls(history, stores, owners, covered, sum(map(len, rows.values())))

    def judged(self, weights: Weights = SHIPPED, budget: int = 1_000_000) -> list[Judged]:
        recall = self.stores.recall(weights, budget)
        sessions = {turn.turn_id: turn.session for turn in self.history.turns}
        judged = []
        for question in self.history.questions:
            items = [
                item
                for owner in self._asked(question)
                for item in recall.recall(
                    question.text, tenant=owner.tenant, subject=owner.subject, as_of=question.at, limit=MAX_ITEMS
                ).items
            ]
            best = sorted(items, key=lambda item: -item.score)
            ranked = [frozenset(item.memory.source_turn_ids) for item in best]
            judged.append(judge(question.category, ranked, question.gold, sessions))
        return judged

    def _asked(self, question: Question) -> list[Owner]:
        named = [owner for name, owner in self.owners.items() if name in question.text]
        return named if len(named) == 1 else list(self.owners.values())


def _role(turn: Turn) -> str:
    return "agent" if turn.speaker == AGENT else "user"


def _person(turn: Turn) -> str:
    return turn.speaker if turn.speaker not in ("", AGENT) else "one"


def lost(kept: Sequence[Kept], unanswerable: str) -> tuple[float, int]:
    """Share of the evidence turns that no memory covers, and of how many; unanswerable questions left out."""
    gold = [t in k.covered for k in kept for q in k.history.questions if q.category != unanswerable for t in q.gold]
    return 1 - float(np.mean(gold)), len(gold)


def breadth(kept: Sequence[Kept]) -> float:
    """Turns that a memory cites, on average."""
    return float(np.mean([len(m.source_turn_ids) for k in kept for rows in k.stores.table.rows.values() for m in rows]))


def _stored(owner: Owner, row: Mapping[str, Any]) -> StoredMemory:
    names = set(StoredMemory.__dataclass_fields__) & set(row) - {"owner"}
    values: dict[str, Any] = {name: tuple(row[name]) if isinstance(row[name], list) else row[name] for name in names}
    return StoredMemory(**values, owner=owner, version="v1", admitted_at=row["occurred_at"], tier="hot")
