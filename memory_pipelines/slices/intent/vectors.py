"""The part of an intent model that reads embeddings: a kernel machine over landmarks, in exact integer arithmetic.

Belongs here: vectors as small integers, similarities, scores. Does not belong here: how the coefficients were found
(``fit``) or an embedder (``models.embeddings``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError
from memory_pipelines.models.base import Vectors

UNIT = 512
"""A vector's 1.0. Sums of products stay below 2^24, so that float32 adds them exactly in any order."""
COARSE = 6
"""Bits of a product of two vectors that its similarity does not read: 1/4096 of a cosine is left."""
SIMILAR = 1 << 14
"""A similarity of 1.0."""


@dataclass(frozen=True)
class Part:
    """One embedder's share: the mean of its training vectors, float32 (d), and the landmarks, int8 (n, d).

    ``embedder``: a local name such as ``e5``; ``model_id``: what the landmarks were made with."""

    embedder: str
    model_id: str
    mean: NDArray[np.float32]
    rows: NDArray[np.int8]


@dataclass(frozen=True)
class Landmarks:
    """``coefficients``: int16 (n + 1, labels), the last row a constant; ``unit`` stands for 1.0 of them.

    score = sum over landmarks of coefficient * mean over parts of exp(cosine - 1), plus the constant."""

    parts: tuple[Part, ...]
    coefficients: NDArray[np.int16]
    unit: float

    def scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(texts, labels). Raises SettingError where an embedder's package is missing, IntegrityError where it holds
        another model than the landmarks were made with."""
        total = np.zeros((len(texts), len(self.coefficients) - 1))
        for part in self.parts:
            total += similarities(quantised(encoded(part.embedder, texts, part.model_id), part.mean), part.rows)
        # integers below 2^53 throughout: exact in any order
        weighted = total @ self.coefficients[:-1].astype(np.float64)
        weighted += self.coefficients[-1].astype(np.float64) * (SIMILAR * len(self.parts))
        scores: NDArray[np.float64] = weighted / (SIMILAR * len(self.parts) * self.unit)
        return scores


def encoded(embedder: str, texts: Sequence[str], model_id: str = "") -> Vectors:
    """Vectors of a local embedder; raises IntegrityError if it is not ``model_id``."""
    from memory_pipelines.models.embeddings import local_embedder

    model = local_embedder(embedder)
    if model_id and model.model_id != model_id:
        raise IntegrityError(f"the intent model was trained with {model_id}, not with {model.model_id}: retrain it")
    return model.encode(texts, "query")  # e5 wants its query prefix where vectors are features


def quantised(vectors: Vectors, mean: NDArray[np.float32]) -> NDArray[np.int8]:
    """Unit vectors without their mean, as int8: ``UNIT`` stands for 1.0, a larger share than 127 is cut."""
    centred = vectors - mean
    # row by row in float64: a sum over an axis may be added in another order when there are more rows
    lengths = np.array([math.sqrt(math.fsum(row * row)) or 1.0 for row in centred.astype(np.float64)])
    return np.clip(np.rint(centred * (UNIT / lengths)[:, None]), -127, 127).astype(np.int8)


def similarities(vectors: NDArray[np.int8], landmarks: NDArray[np.int8]) -> NDArray[np.float64]:
    """exp(cosine - 1) of each vector with each landmark, in units of ``SIMILAR``: (vectors, landmarks)."""
    products = vectors.astype(np.float32) @ landmarks.astype(np.float32).T
    table = _exponentials()
    middle = len(table) // 2
    steps = (products.astype(np.int32) >> COARSE) + middle
    similar: NDArray[np.float64] = table[np.clip(steps, 0, len(table) - 1)]
    return similar


@cache
def _exponentials() -> NDArray[np.float64]:
    one = UNIT * UNIT >> COARSE
    return np.array([round(SIMILAR * math.exp(k / one - 1)) for k in range(-2 * one, 2 * one)], dtype=np.float64)
