"""Fits the part of an emotion head that learns from many rows: kernel ridge regression, in closed form.

Belongs here: the kernel, the choice of the penalty. Does not belong here: rows and files (``training``), inference
(``head``). Deterministic: no random numbers.

The kernel of two texts is the sum over embedders of exp(cosine - 1), plus the product of their n-grams, plus
LEXICAL_SHARE of the product of their lexical features. The last two are linear, so that their share of the answer is a
weight per feature; the first needs the rows themselves, as landmarks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.models.base import Vectors
from memory_pipelines.slices.intent.vectors import SIMILAR, Landmarks, Part, quantised, similarities

LEXICAL_SHARE = 0.1
PENALTIES = (0.25, 0.5, 1.0, 2.0)
FOLDS = 5
FEW = 1_000
"""Rows up to which every fold is held out in turn to choose the penalty; of more, one fold tells enough."""
MOST_LANDMARKS = 8_000
"""Rows that are learnt from: of more, evenly spaced ones. Their matrix of float32 takes 256 MB."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """``landmarks``: of all targets; ``lexical`` (features, targets); ``ngrams`` (buckets,), of the first target."""

    landmarks: Landmarks
    lexical: Floats
    ngrams: Floats


def fit(embedded: Sequence[tuple[str, str, Vectors]], values: Floats, grams: Any, targets: Floats) -> Fitted:
    """``embedded``: name, model id and vectors of each embedder; ``values``: lexical features (rows, features);
    ``grams``: sparse (rows, buckets); ``targets``: (rows, targets), the first of which is learnt from n-grams too.

    Cubic in the rows: a few seconds of one core for 3,000, a minute for 8,000."""
    step = -(-len(targets) // MOST_LANDMARKS)
    values, grams, targets = values[::step], grams[::step].tocsr(), targets[::step]
    parts, meaning = _parts([(name, model_id, vectors[::step]) for name, model_id, vectors in embedded])
    rest = meaning + (LEXICAL_SHARE * values @ values.T).astype(np.float32)
    full = rest + (grams @ grams.T).toarray().astype(np.float32)
    penalty = _penalty(full, targets[:, 0])
    constant = targets.mean(axis=0)
    moved = targets - constant
    weights = np.zeros_like(targets)
    weights[:, :1] = _solved(full, moved[:, :1], penalty)
    if targets.shape[1] > 1:
        weights[:, 1:] = _solved(rest, moved[:, 1:], penalty)
    # the machine averages its embedders' similarities, the kernel adds them
    coefficients = np.vstack([weights * len(parts), constant])
    unit = float(32767 // max(1e-6, float(np.abs(coefficients).max())))
    whole = np.rint(coefficients * unit).astype(np.int16)
    return Fitted(Landmarks(parts, whole, unit), LEXICAL_SHARE * values.T @ weights, grams.T @ weights[:, 0])


def _parts(embedded: Sequence[tuple[str, str, Vectors]]) -> tuple[tuple[Part, ...], NDArray[np.float32]]:
    """Landmarks of each embedder, and the sum of their similarities (rows, rows)."""
    size = len(embedded[0][2])
    parts, kernel = [], np.zeros((size, size), dtype=np.float32)
    for name, model_id, vectors in embedded:
        mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        small = quantised(vectors, mean)
        parts.append(Part(name, model_id, mean, small))
        for first in range(0, size, 1024):
            kernel[first : first + 1024] += similarities(small[first : first + 1024], small)
    kernel /= SIMILAR
    return tuple(parts), kernel


def _solved(kernel: NDArray[np.float32], targets: Floats, penalty: float) -> Floats:
    from scipy import linalg

    matrix = kernel.copy()
    matrix[np.diag_indices(len(matrix))] += np.float32(penalty)
    wanted = targets.astype(np.float32)
    found = linalg.solve(matrix, wanted, assume_a="pos", overwrite_a=True, overwrite_b=True, check_finite=False)
    solved: Floats = found.astype(np.float64)
    return solved


def _penalty(kernel: NDArray[np.float32], target: Floats) -> float:
    """The penalty whose predictions of held-out rows (every FOLDS-th) are nearest, by mean square."""
    fold = np.arange(len(target)) % FOLDS
    wrong = np.zeros(len(PENALTIES))
    for number in range(FOLDS if len(target) <= FEW else 1):
        held, kept = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        mean = target[kept].mean()
        inside, across = kernel[np.ix_(kept, kept)], kernel[np.ix_(held, kept)]
        for i, penalty in enumerate(PENALTIES):
            weights = _solved(inside, (target[kept] - mean)[:, None], penalty)[:, 0]
            wrong[i] += float(((across @ weights + mean - target[held]) ** 2).sum())
    return PENALTIES[int(wrong.argmin())]
