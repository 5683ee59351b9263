"""A leg: one way to find memories, as a ranking of row positions.

Belongs here: the type and the two ways to make a ranking that all legs share. Does not belong here:
any leg's scores.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

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
class Leg:
    """``found`` best first; rank is the position from 1."""

    name: str
    found: tuple[Found, ...]


def ranked(name: str, found: Iterable[Found], floor: float = FLOOR) -> Leg:
    """The best :data:`DEPTH` by score among those of at least ``floor`` relevance; ties by row position."""
    good = sorted((f for f in found if f.relevance >= floor), key=lambda f: (-f.score, f.row))
    return Leg(name, tuple(good[:DEPTH]))


def ranked_rows(name: str, scores: Floats, relevance: Floats, floor: float = FLOOR) -> Leg:
    """The same of scores and relevances of all rows; a row without a score takes no part."""
    rows = np.flatnonzero((scores != 0) & (relevance >= floor))
    best = rows[np.argsort(-scores[rows], kind="stable")[:DEPTH]]
    return Leg(name, tuple(map(Found, best.tolist(), scores[best].tolist(), relevance[best].tolist())))
