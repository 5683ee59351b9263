"""Which candidates are told: thresholds, the limit, the token budget.

Belongs here: choosing from scored candidates. Does not belong here: scoring, wording.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from memory_pipelines.model import HIGH_ABOVE
from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.snapshot import Snapshot

MAX_ITEMS = 15
SESSION_START = 3
IMPACT = 0.5
STRONG = 0.25
SHARE_OF_BEST = 0.5
"""Of the largest relevance."""
SHARE_OF_SCORE = 0.3
"""Of the best score: at .5 the reader told .842 of MemDaily's evidence, at .3 .883 (10 items, 348 questions)."""
LEAST = 0.1


@dataclass(frozen=True, slots=True)
class Selection:
    """``chosen``: row positions, newest first; ``passed_over``: (row, reason)."""

    chosen: tuple[int, ...]
    passed_over: tuple[tuple[int, str], ...]


def select(
    scores: Mapping[int, float],
    relevance: Mapping[int, float],
    successors: Mapping[int, int],
    snapshot: Snapshot,
    *,
    limit: int,
    budget: float,
    cost: Callable[[int], float],
) -> Selection:
    """The best by score (ties: newest, then id) of impact > .5, strong relevance or .3 of the best score, while
    they fit.

    At most ``limit`` and 15. One that does not fit is passed over, a shorter one behind it may fit.
    A memory that says what a better one has said is told once. A superseded fact is told only after
    its successor (``successors``: row to row)."""
    strong, high = strong_relevance(relevance), SHARE_OF_SCORE * max(scores.values(), default=0.0)
    related = (
        row for row in scores if snapshot.impact[row] > IMPACT or relevance[row] >= strong or scores[row] >= high
    )
    wanted = sorted(related, key=lambda row: (-scores[row], row))
    chosen = _fill(wanted, successors, snapshot, min(limit, MAX_ITEMS), budget, cost)
    unrelated = sorted((row, "unrelated") for row in scores.keys() - set(wanted))
    return Selection(chosen.chosen, (*chosen.passed_over, *unrelated))


def strong_relevance(relevance: Mapping[int, float]) -> float:
    """The relevance in [0, 1] from which a memory is told whatever its impact: .25, or half of the best
    where even the best is weak (a short question shares little with anything), never below .1."""
    return min(STRONG, max(LEAST, SHARE_OF_BEST * max(relevance.values(), default=0.0)))


def session_start(usable: Mask, snapshot: Snapshot, *, budget: float, cost: Callable[[int], float]) -> Selection:
    """The 3 most recent slices of high impact."""
    rows = np.flatnonzero(usable & snapshot.episodic & (snapshot.impact > HIGH_ABOVE)).tolist()
    return _fill(rows, {}, snapshot, SESSION_START, budget, cost)


def _fill(
    rows: Iterable[int],
    successors: Mapping[int, int],
    snapshot: Snapshot,
    limit: int,
    budget: float,
    cost: Callable[[int], float],
) -> Selection:
    chosen: list[int] = []
    passed_over: list[tuple[int, str]] = []
    told: set[str] = set()
    for row in rows:
        if len(chosen) >= limit:
            passed_over.append((row, "limit"))
            continue
        said = snapshot.sentence(row)
        if said in told:
            passed_over.append((row, "duplicate"))
        elif successors.get(row, row) not in (row, *chosen):
            passed_over.append((row, "superseded"))
        elif (price := cost(row)) > budget:
            passed_over.append((row, "budget"))
        else:
            budget -= price
            told.add(said)
            chosen.append(row)
    return Selection(tuple(sorted(chosen)), tuple(passed_over))
