"""A leg: one way to find memories, as a ranking of row positions.

Belongs here: the type and the two ways to make a ranking that all legs share. Does not belong here:
any leg's scores.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEPTH = 50
"""Candidates that one leg may propose."""

FLOOR = 0.1
"""Relevance below which a leg proposes nothing: most of what lies under it is chance."""


@dataclass(frozen=True, slots=True)
class Found:
    """A row by position in the snapshot; ``score`` in the leg's unit, ``relevance`` in [0, 1]."""

    row: int
    score: float
    relevance: float


@dataclass(frozen=True, slots=True)
class Scored:
    """Rows by position, each with a score in the leg's unit and a relevance in [0, 1]; arrays of one length."""

    rows: Ints
    scores: Floats
    relevance: Floats

    @classmethod
    def none(cls) -> "Scored":
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True)
class Leg:
    """``found`` best first; rank is the position from 1."""

    name: str
    found: tuple[Found, ...]


def ranked(name: str, found: Scored, floor: float = FLOOR) -> Leg:
    """The best :data:`DEPTH` by score among those of at least ``floor`` relevance; ties by row position."""
    good = np.flatnonzero(found.relevance >= floor)
    best = good[np.lexsort((found.rows[good], -found.scores[good]))[:DEPTH]]
    told = (found.rows[best].tolist(), found.scores[best].tolist(), found.relevance[best].tolist())
    return Leg(name, tuple(map(Found, *told)))


def ranked_rows(name: str, scores: Floats, relevance: Floats, floor: float = FLOOR) -> Leg:
    """The same of scores and relevances of all rows; a row without a score takes no part."""
    rows = np.flatnonzero(scores)
    return ranked(name, Scored(rows, scores[rows], relevance[rows]), floor)
