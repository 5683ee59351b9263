"""Fusion of the legs into one score per memory.

Belongs here: weights, how scores of legs are made comparable and added, the bounded multipliers. Does not belong
here: thresholds, budget, any leg's own scores.

BM25 and cosine are standardised over the rows of each language, so that a question finds what was said in the other one
too, and added. What a leg says of a row also says a little of the rows beside it and of its session (``context``).
The other legs add a share of their relevance. ``docs/recall.md`` has the figures by which the weights were chosen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from memory_pipelines.model import micros
from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.context import Floats, Ints
from memory_pipelines.recall.legs import FLOOR, Leg, Scored
from memory_pipelines.recall.question import gathers
from memory_pipelines.recall.ripple import freshness
from memory_pipelines.recall.snapshot import Snapshot

RECENCY_SHARE = 0.1
TRUST_SHARE = 0.2
SAME = 1e-6
"""Scores whose deviation is less are equal: the rest is rounding of 32-bit cosines."""
CANDIDATES = 100
"""Rows that may be selected from."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each leg and each kind of context adds, in standard deviations of the fused score; 0 is off.

    ``dense``: share of the cosine against BM25. ``words_onward`` and ``dense_onward``: share of a row's score that
    the row after it gets, ``…_back`` the one before it. ``session``: share of a session's best score, but for
    questions that gather from many sessions. ``facts``,
    ``time``, ``ripple``: times the relevance in the leg of that name. ``speaker``: what the one person whom a question
    names has said."""

    dense: float = 0.6
    words_onward: float = 0.5
    words_back: float = 0.3
    dense_onward: float = 0.2
    dense_back: float = 0.1
    session: float = 0.8
    speaker: float = 1.0
    facts: float = 0.5
    time: float = 3.0
    ripple: float = 0.5


SHIPPED = Weights()


@dataclass(frozen=True, slots=True)
class Fused:
    """Per row of the snapshot: ``scores``, in standard deviations, and ``relevance`` in [0, 1]; what is not usable
    has the lowest score and no relevance."""

    scores: Floats
    relevance: Floats

    def candidates(self) -> list[int]:
        """Rows of at least the floor's relevance, best first, at most 100; ties by position."""
        rows = np.flatnonzero(self.relevance >= FLOOR)
        return [int(row) for row in rows[np.argsort(-self.scores[rows], kind="stable")][:CANDIDATES]]

    def above(self) -> Floats:
        """How far each score lies above the lowest one; > 0, so that multipliers act on it as they should."""
        above: Floats = self.scores - self.scores.min(initial=0.0) + 1e-3
        return above


def blend(
    words: tuple[Floats, Floats],
    dense: Scored,
    query: str,
    snapshot: Snapshot,
    usable: Mask,
    weights: Weights,
) -> Fused:
    """BM25 and dense, with context. ``words``: BM25 scores and coverage of all rows (0 where not usable), ``dense``:
    usable rows by z-score, each once.

    Of a language of which one of the two says nothing, the other has all the weight."""
    context, shape = snapshot.context, len(snapshot)
    close, meaning = np.zeros(shape), np.zeros(shape)
    known = np.zeros(shape, dtype=np.bool_)
    close[dense.rows], meaning[dense.rows], known[dense.rows] = dense.scores, dense.relevance, True
    for mask in snapshot.by_language.values():
        if (known & mask).any():
            close[mask & usable & ~known] = close[known & mask].min()
    lexical = context.spread(words[0], weights.words_onward, weights.words_back)
    semantic = context.spread(close, weights.dense_onward, weights.dense_back)
    total = np.zeros(shape)
    for mask in snapshot.by_language.values():
        rows = mask & usable
        share = weights.dense if words[0][rows].any() and known[rows].any() else float(known[rows].any())
        total[rows] = share * _standard(semantic[rows]) + (1 - share) * _standard(lexical[rows])
    named = context.spoken(query) if weights.speaker else None
    total[~usable] = total[usable].min(initial=0.0)
    if not gathers(query):
        total += weights.session * context.best_of_session(total)
    if named is not None:
        total[named] += weights.speaker
    total[~usable] = total[usable].min(initial=0.0)
    relevance = np.maximum(
        context.raised(words[1], weights.words_onward, weights.words_back),
        context.raised(meaning, weights.dense_onward, weights.dense_back),
    )
    return Fused(total, np.where(usable, relevance, 0.0))


def with_legs(fused: Fused, legs: Iterable[tuple[Leg, float]]) -> Fused:
    """The legs' relevance added, each times its weight; a leg without weight takes no part."""
    scores, relevance = fused.scores.copy(), fused.relevance.copy()
    for leg, weight in legs:
        if weight:
            for found in leg.found:
                scores[found.row] += weight * found.relevance
                relevance[found.row] = max(relevance[found.row], found.relevance)
    return Fused(scores, relevance)


def weighed(fused: Fused, snapshot: Snapshot, as_of: datetime) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """(scores, relevances) of the candidates by row, scores with recency and trust."""
    rows = fused.candidates()
    scores = fused.above()[rows] * recency(snapshot.occurred[rows], as_of) * trust(snapshot.trust[rows])
    return dict(zip(rows, scores.tolist(), strict=True)), dict(zip(rows, fused.relevance[rows].tolist(), strict=True))


def _standard(values: Floats) -> Floats:
    deviation = float(values.std()) if len(values) else 0.0
    standard: Floats = (values - values.mean()) / deviation if deviation > SAME else np.zeros(len(values))
    return standard


def recency(occurred: Ints, as_of: datetime) -> Floats:
    """In [.95, 1], of times in microseconds: age breaks near-ties, it does not bury what is old and true."""
    return 1 - RECENCY_SHARE * (1 - freshness(occurred, micros(as_of)))


def trust(said: Floats) -> Floats:
    """In [.8, 1] for a trust in [0, 1]."""
    return 1 - TRUST_SHARE * (1 - np.clip(said, 0.0, 1.0))
