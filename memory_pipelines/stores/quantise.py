"""Vectors of 8 bits: what a vector store and a pack both hold, so that both find the same.

Belongs here: the rounding. Does not belong here: searching, or where vectors lie.

A vector becomes whole numbers from -127 to 127 of its direction; its length does not matter to a cosine. A publish
rounds before it writes, so a store's 32-bit numbers are multiples of the pack's: cosines of the two are equal but for
the last bits. Rounding a rounded vector changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.stores.base import Vector

MOST = 127
STEPS = 2.0**30
"""A query's components are multiples of 1 / STEPS: sums of their products with whole numbers fit a 64-bit float, so
they are exact, and equal vectors have equal cosines wherever they stand."""
AT_ONCE = 128
"""Rows that are widened together: they stay in the processor's cache."""

Int8s = NDArray[np.int8]


@dataclass(frozen=True)
class Quantised:
    """``numbers`` of shape (n, dimension); ``scales`` of shape (n,): 1 / their Euclidean length, 0 of a zero vector."""

    numbers: Int8s
    scales: NDArray[np.float64]

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> "Quantised":
        """Of vectors in rows, shape (n, dimension)."""
        largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
        numbers = np.rint(vectors * (MOST / np.where(largest > 0, largest, 1.0))).astype(np.int8)
        return cls(numbers, _scales(numbers))

    @classmethod
    def held(cls, numbers: Int8s) -> "Quantised":
        """Of numbers that were made before."""
        return cls(numbers, _scales(numbers))

    def vectors(self) -> NDArray[np.float32]:
        """Unit vectors, shape (n, dimension)."""
        return (self.numbers * self.scales[:, None]).astype(np.float32)

    def cosines(self, query: Vector) -> NDArray[np.float64]:
        """Cosines of all rows to a unit vector, shape (n,)."""
        exact = np.rint(query.astype(np.float64) * STEPS) / STEPS
        found = np.empty(len(self.numbers))
        for start in range(0, len(found), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            np.dot(self.numbers[part].astype(np.float64), exact, out=found[part])
        return found * self.scales


def rounded(vectors: Sequence[Vector] | NDArray[np.float32]) -> list[Vector]:
    """The vectors as they are stored."""
    return list(Quantised.of(np.asarray(vectors, dtype=np.float32)).vectors()) if len(vectors) else []


def _scales(numbers: Int8s) -> NDArray[np.float64]:
    squares = np.einsum("ij,ij->i", numbers, numbers, dtype=np.int64)
    return np.where(squares > 0, 1 / np.sqrt(np.maximum(squares, 1)), 0.0)
