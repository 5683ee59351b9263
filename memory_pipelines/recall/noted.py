"""What was just said, beside the memories: its own search over the session buffer.

Belongs here: which noted turns an answer tells, and what of the answer they may take. Does not belong here: reading the
buffer (``buffer``), or memories. Scores of the two cannot be compared (each is in standard deviations of its own rows),
so noted turns are chosen by relevance, first, and within a share of the answer.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np

from memory_pipelines.model import micros
from memory_pipelines.models.base import Embedder
from memory_pipelines.recall import dense, fusion, prompt, selection, text, times
from memory_pipelines.recall.answer import Item, LegScore, Reasons, leg_scores
from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.fusion import Weights
from memory_pipelines.recall.legs import Scored, ranked, ranked_rows
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.recall.why import why
from memory_pipelines.stores.base import Vector
from memory_pipelines.stores.vault import untagged

SHARE = 3
"""A third of an answer's items (one at least) and of its tokens may be what was just said."""
EMBEDDED_CHARACTERS = 400
REACH = timedelta(days=8)
"""So long before a turn an episode that holds it may have begun: a slice lasts a day, a promoted one gathers a week."""
MOST_VECTORS = 4_096
"""Embedded turns that one process holds."""


@dataclass(frozen=True, slots=True)
class Told:
    """Noted turns of an answer, newest first; ``tokens`` that they cost; ``legs``: each leg's ranking by id."""

    items: tuple[Item, ...] = ()
    tokens: float = 0.0
    legs: Mapping[str, tuple[tuple[str, LegScore], ...]] = field(default_factory=dict)


NOTHING = Told()


class Near:
    """The dense leg over noted turns: cosines to the query, each turn embedded once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[str, str], Vector] = OrderedDict()

    def __call__(self, embedder: Embedder, asked: Vector, buffer: Snapshot, usable: Mask) -> Scored:
        """Usable rows by z-score of their cosine to ``asked``, a vector of the embedder's.

        Raises StoreUnavailableError where the model is an endpoint that does not answer."""
        rows = np.flatnonzero(usable)
        said = [untagged(buffer.rows[row].summary)[:EMBEDDED_CHARACTERS] for row in rows.tolist()]
        cosines = np.array([float(asked @ vector) for vector in self._embedded(embedder, said)])
        spoken = [(name, mask[rows]) for name, mask in buffer.by_language.items()]
        return dense.normalised(rows, cosines, spoken, embedder.unrelated)

    def _embedded(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        keys = [(embedder.model_id, said) for said in texts]
        with self._lock:
            held = {key: self._vectors[key] for key in keys if key in self._vectors}
        wanted = [key for key in dict.fromkeys(keys) if key not in held]
        if wanted:
            held |= dict(zip(wanted, embedder.encode([said for _, said in wanted], "passage"), strict=True))
        with self._lock:
            for key in keys:
                self._vectors.pop(key, None)
                self._vectors[key] = held[key]
            while len(self._vectors) > MOST_VECTORS:
                self._vectors.popitem(last=False)
        return [held[key] for key in keys]


def find(
    query: str,
    buffer: Snapshot,
    near: Scored,
    *,
    as_of: datetime,
    language: str,
    weights: Weights,
    limit: int,
    budget: float,
) -> Told:
    """The noted turns that are strongly relevant to ``query``, at most a third of ``limit`` (one at least) and of
    ``budget`` (prompt tokens). ``near``: of the dense leg."""
    usable = buffer.usable(as_of, frozenset())
    lexical, named = buffer.words.score(text.tokens(query), usable), times.span(query, as_of)
    then = times.leg(named, named is not None and times.has_subject(query, named), buffer, usable)
    fused = fusion.with_legs(fusion.blend(lexical, near, query, buffer, usable, weights), ((then, weights.time),))
    scores, relevance = fusion.weighed(fused, buffer, as_of)
    strong = selection.strong_relevance(relevance)
    chosen = selection.select(
        {row: score for row, score in scores.items() if relevance[row] >= strong},
        relevance,
        {},
        buffer,
        limit=max(1, limit // SHARE),
        budget=budget / SHARE,
        cost=lambda row: prompt.cost(buffer.rows[row], as_of, language),
    )
    legs = [leg for leg in (ranked_rows("bm25", *lexical), ranked(dense.NAME, near), then) if leg.found]
    views = {leg.name: leg_scores(leg) for leg in legs}
    items = tuple(_item(row, buffer, views, scores[row], relevance[row], as_of, language) for row in chosen.chosen)
    named_views = {
        name: tuple((buffer.rows[row].memory_id, score) for row, score in view.items()) for name, view in views.items()
    }
    tokens = sum(prompt.cost(buffer.rows[row], as_of, language) for row in chosen.chosen)
    return Told(items, tokens, named_views)


def unheld(told: Told, snapshot: Snapshot) -> Told:
    """Without the turns that a memory holds already: a publish may have come between two reads."""
    said = {turn for item in told.items for turn in item.memory.source_turn_ids}
    if not said:
        return told
    since = min(item.memory.occurred_at for item in told.items) - REACH
    recent = np.flatnonzero(snapshot.occurred >= micros(since)).tolist()
    held = said & {turn for row in recent for turn in snapshot.rows[row].source_turn_ids}
    if not held:
        return told
    return replace(told, items=tuple(i for i in told.items if held.isdisjoint(i.memory.source_turn_ids)))


def _item(
    row: int,
    buffer: Snapshot,
    views: Mapping[str, Mapping[int, LegScore]],
    score: float,
    relevance: float,
    as_of: datetime,
    language: str,
) -> Item:
    memory = buffer.rows[row]
    reasons = Reasons(
        legs=tuple(view[row] for view in views.values() if row in view),
        relevance=relevance,
        recency=float(fusion.recency(buffer.occurred[[row]], as_of)[0]),
        trust=float(fusion.trust(buffer.trust[[row]])[0]),
        paths=(),
        validity="current",
        superseded_by=None,
        tier=memory.tier,
    )
    return Item(memory, score, reasons, why(memory, reasons, buffer, language), consolidated=False)
