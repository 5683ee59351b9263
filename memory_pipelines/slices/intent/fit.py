"""Fits an intent model to labelled rows: n-grams, embeddings if wanted, the blend of both, calibration, threshold.

Belongs here: numerics of training; deterministic, no random numbers. Does not belong here: where rows come from
(``examples``, the lake), metrics (``metrics``), inference (``predict``).

The n-grams learn by softmax regression on hashed tf-idf, full-batch with Nesterov's momentum. The embeddings learn by
kernel ridge regression on one-hot targets with a Gaussian kernel of unit vectors, exp(cosine - 1), in closed form.
Both are judged on rows that neither saw, which gives each head the weights of its two logits (their size is the
calibration) and the threshold of the out-of-scope class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import InputError
from memory_pipelines.model import stable_hash
from memory_pipelines.models.base import Vectors
from memory_pipelines.slices.intent.features import BUCKETS, Features, extract
from memory_pipelines.slices.intent.model import HEADS, OUT_OF_SCOPE, IntentModel, integer_scores, norms
from memory_pipelines.slices.intent.vectors import SIMILAR, Landmarks, Part, encoded, quantised, similarities

FOLDS = 5
FEW = 4_000
"""Rows up to which every fold is held out in turn; of more, one fold tells enough."""
MOST_LANDMARKS = 16_000
"""Rows that the kernel machine learns from; the n-grams learn from all."""
STEPS, RATE, DECAY = 100, 100.0, 1e-5
RIDGE = 0.1
LIMIT = 8191  # 20,000 characters make at most some 80,000 features: their sums stay exact
IMPORTANCE = 16
"""An inverse document frequency of 1.0."""
COVERAGE = 0.99
"""Share of right answers that the threshold keeps, where no row is out of scope."""
SCOPE_COST = 0.01
"""Accuracy within the scope that may be paid for recognising what is outside."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text; a label may be unknown. Rows of one ``group`` are all held out, or none is.

    ``typical``: like a message; other rows (bare words) teach, but say nothing about how sure a model may be."""

    text: str
    labels: tuple[str | None, str | None, str | None]
    group: str
    typical: bool = True


@dataclass
class _Data:
    """Rows as matrices. ``targets`` and ``importance``: (rows, labels of all heads)."""

    features: Features
    vectors: list[tuple[str, str, Vectors]]
    spans: list[slice]
    targets: NDArray[np.float32]
    importance: NDArray[np.float32]


@dataclass
class _Parts:
    """What one fit found: n-gram weights with ``squares``, and landmarks."""

    weights: NDArray[np.int16]
    unit: float
    squares: NDArray[np.int32]
    kernel: Landmarks | None


def labels_of(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """The labels that occur, sorted: the ontology that the rows imply."""
    return {head: tuple(sorted({name for row in rows if (name := row.labels[h])})) for h, head in enumerate(HEADS)}


def fit_model(
    rows: Sequence[Row],
    labels: dict[str, tuple[str, ...]],
    fallback: dict[str, str],
    embedders: Sequence[str] = (),
) -> IntentModel:
    """A calibrated model of ``rows``. ``embedders``: local names; none for the fast kind, n-grams only.

    Raises InputError for fewer than two intents, SettingError where an embedder's package is missing."""
    if len({row.labels[0] for row in rows} - {None}) < 2:
        raise InputError("labelled rows must show two intents or more")
    data = _data(rows, labels, embedders)
    rehearsed = list(_rehearse(rows, data))
    held = np.concatenate([index for index, _, _ in rehearsed])
    ngrams = np.concatenate([scores for _, scores, _ in rehearsed])
    similar = np.concatenate([scores for _, _, scores in rehearsed])
    temperatures, kernel_weights = {}, {}
    threshold = 0.0
    for head, span in zip(HEADS, data.spans, strict=True):
        known = data.targets[held, span].any(axis=1) if span.stop > span.start else np.zeros(len(held), np.bool_)
        truth = data.targets[held, span][known].argmax(axis=1) if known.any() else np.zeros(0, np.int64)
        first, second = ngrams[:, span][known], similar[:, span][known]
        size, share = blend(first, second if embedders else None, truth)
        temperatures[head], kernel_weights[head] = round(1 / size, 4), round(share, 4)
        if head == "intent":
            outside = labels[head].index(OUT_OF_SCOPE) if OUT_OF_SCOPE in labels[head] else None
            threshold = scope_threshold(first * size + second * share, truth, outside)
    parts = _fit(data, np.arange(len(rows)))
    return IntentModel(
        weights=parts.weights,
        labels=labels,
        unit=parts.unit,
        temperatures=temperatures,
        threshold=threshold,
        fallback=fallback,
        squares=parts.squares,
        kernel=parts.kernel,
        kernel_weights=kernel_weights if parts.kernel is not None else None,
    )


def _data(rows: Sequence[Row], labels: dict[str, tuple[str, ...]], embedders: Sequence[str]) -> _Data:
    texts = [row.text for row in rows]
    width = sum(map(len, labels.values()))
    targets = np.zeros((len(rows), width), dtype=np.float32)
    importance = np.zeros_like(targets)
    spans: list[slice] = []
    first = 0
    for h, head in enumerate(HEADS):
        names = {name: i for i, name in enumerate(labels[head])}
        span = slice(first, first + len(names))
        first = span.stop
        spans.append(span)
        known = np.array([i for i, row in enumerate(rows) if row.labels[h] is not None], dtype=np.int64)
        if not len(known):
            continue
        column = np.array([names[rows[i].labels[h] or ""] for i in known])
        share = np.bincount(column, minlength=len(names))[column] * len(np.unique(column)) / len(known)
        targets[known, span.start + column] = 1
        # the square root: rare labels count more, but not as much as frequent ones together
        importance[known, span] = (share**-0.5)[:, None]
    from memory_pipelines.models.embeddings import local_embedder

    vectors = [(name, local_embedder(name).model_id, encoded(name, texts)) for name in embedders]
    return _Data(extract(texts), vectors, spans, targets, importance)


def _rehearse(rows: Sequence[Row], data: _Data) -> Iterator[tuple[NDArray[np.int64], Floats, Floats]]:
    """Per fold: rows that were held out, and their logits by n-grams and by landmarks."""
    fold = np.array([int(stable_hash("fold", row.group)[:8], 16) % FOLDS if row.typical else FOLDS for row in rows])
    for number in range(FOLDS if len(rows) <= FEW else 1):
        held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        if not len(held) or not len(rest):
            continue
        parts = _fit(data, rest)
        some = _some(data.features, held)
        ngrams = integer_scores(parts.weights, some) / (parts.unit * norms(some, parts.squares))[:, None]
        yield held, ngrams, _similar(data, parts.kernel, held)


def _some(features: Features, rows: NDArray[np.int64]) -> Features:
    starts = np.cumsum(features.counts) - features.counts
    chosen = [features.buckets[starts[i] : starts[i] + features.counts[i]] for i in rows]
    return Features(np.concatenate(chosen), features.counts[rows])


def _similar(data: _Data, kernel: Landmarks | None, rows: NDArray[np.int64]) -> Floats:
    if kernel is None:
        return np.zeros((len(rows), data.targets.shape[1]))
    total = sum(
        similarities(quantised(vectors[rows], part.mean), part.rows)
        for part, (_, _, vectors) in zip(kernel.parts, data.vectors, strict=True)
    ) / (SIMILAR * len(kernel.parts))
    found: Floats = (total @ kernel.coefficients[:-1].astype(np.float64) + kernel.coefficients[-1]) / kernel.unit
    return found


def _fit(data: _Data, rows: NDArray[np.int64]) -> _Parts:
    weights, unit, squares = _fit_ngrams(data, rows)
    return _Parts(weights, unit, squares, _fit_landmarks(data, rows) if data.vectors else None)


def _fit_ngrams(data: _Data, rows: NDArray[np.int64]) -> tuple[NDArray[np.int16], float, NDArray[np.int32]]:
    """Softmax regression with weight decay, rounded to int16 (the second result stands for 1.0).

    Full-batch descent: with few rows its minimum-norm bias generalises better than a method with step sizes of its
    own for rare features. The weights hold the importance of their bucket already."""
    from scipy import sparse

    some = _some(data.features, rows)
    pointers = np.concatenate([[0], np.cumsum(some.counts)])
    counts: Any = sparse.csr_matrix(
        (np.ones(len(some.buckets), dtype=np.float32), some.buckets, pointers), shape=(len(rows), BUCKETS)
    )
    counts.sum_duplicates()
    seen = np.bincount(counts.indices, minlength=BUCKETS)
    idf = np.rint(IMPORTANCE * (np.log((1 + len(rows)) / (1 + seen)) + 1))
    squares = (idf * idf).astype(np.int32)
    used = np.flatnonzero(seen)
    matrix = sparse.diags(IMPORTANCE / norms(some, squares)) @ counts[:, used] @ sparse.diags(idf[used] / IMPORTANCE)
    matrix = matrix.tocsr().astype(np.float32)
    turned = matrix.T.tocsr()
    targets, importance = data.targets[rows], data.importance[rows]
    weights: NDArray[Any] = np.zeros((len(used), targets.shape[1]), dtype=np.float32)
    velocity = np.zeros_like(weights)
    for step in range(STEPS):
        ahead = weights + np.float32(step / (step + 3)) * velocity
        logits = matrix @ ahead
        error = np.concatenate([softmax(logits[:, span]) for span in data.spans], axis=1) - targets
        error *= importance
        moved = ahead - np.float32(RATE) * ((turned @ error) / np.float32(len(rows)) + np.float32(DECAY) * ahead)
        weights, velocity = moved, moved - weights
    whole = np.zeros((BUCKETS, targets.shape[1]), dtype=np.int16)
    weighted = weights * idf[used, None]
    unit = round(LIMIT / max(1.0, float(np.abs(weighted).max())), 4)
    whole[used] = np.rint(weighted * unit).astype(np.int16)
    return whole, unit, squares


def _fit_landmarks(data: _Data, rows: NDArray[np.int64]) -> Landmarks:
    """Kernel ridge regression of the targets less their mean; an unknown label is at the mean."""
    from scipy import linalg

    rows = rows[:: -(-len(rows) // MOST_LANDMARKS)]
    parts = []
    kernel = np.zeros((len(rows), len(rows)), dtype=np.float32)
    for embedder, model_id, vectors in data.vectors:
        mean = vectors[rows].mean(axis=0, dtype=np.float64).astype(np.float32)
        small = quantised(vectors[rows], mean)
        parts.append(Part(embedder, model_id, mean, small))
        for first in range(0, len(rows), 1024):
            kernel[first : first + 1024] += similarities(small[first : first + 1024], small)
    kernel /= SIMILAR * len(parts)
    targets, constant = data.targets[rows].astype(np.float32), np.zeros(data.targets.shape[1], dtype=np.float32)
    for span in data.spans:
        known = np.asarray(targets[:, span].any(axis=1))
        if known.any():
            constant[span] = targets[known, span].mean(axis=0)
            targets[:, span] -= known[:, None] * constant[span]
    weight = np.maximum(data.importance[rows, 0], 0.1) if data.spans[0].stop else np.ones(len(rows))
    kernel[np.diag_indices(len(rows))] += (RIDGE / weight).astype(np.float32)
    found = linalg.solve(kernel, targets, assume_a="pos", overwrite_a=True, overwrite_b=True, check_finite=False)
    found = np.vstack([found, constant])
    unit = float(32767 // max(1e-6, float(np.abs(found).max())))
    return Landmarks(tuple(parts), np.rint(found * unit).astype(np.int16), unit)


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Row-wise; of no columns: nothing."""
    if not logits.shape[1]:
        return logits
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    share: NDArray[Any] = raised / raised.sum(axis=1, keepdims=True)
    return share


def blend(first: Floats, second: Floats | None, truth: NDArray[np.int64]) -> tuple[float, float]:
    """The weights of two logits (rows, labels) with the least negative log-likelihood of ``truth``.

    Without a second one: its weight is 0, and the first one's is the inverse of a temperature."""
    from scipy import optimize

    if not len(truth) or not first.shape[1]:
        return 1.0, 1.0
    row = np.arange(len(truth))

    def loss(powers: Floats) -> float:
        weights = np.exp(np.clip(powers, -5, 6))
        logits = weights[0] * first if second is None else weights[0] * first + weights[1] * second
        top = logits.max(axis=1)
        return float((np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top - logits[row, truth]).mean())

    start = np.array([0.0] if second is None else [0.0, 2.0])
    best = optimize.minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-7})
    found = np.exp(np.clip(best.x, -5, 6))
    return float(found[0]), 0.0 if second is None else float(found[1])


def scope_threshold(logits: Floats, truth: NDArray[np.int64], outside: int | None) -> float:
    """The probability below which an intent is out of scope, in [0, .95], 2 digits.

    With rows ``outside``: the mean of the accuracy within the scope and the recall of what is outside is highest, at
    a cost of at most ``SCOPE_COST`` within. Without: ``COVERAGE`` of the right answers stay."""
    share = softmax(logits)
    best, sure = share.argmax(axis=1), share.max(axis=1)
    right = best == truth
    out = np.zeros(len(truth), np.bool_) if outside is None else truth == outside
    if not len(truth) or not right[~out].any():
        return 0.0
    if not out.any():
        kept = np.sort(sure[right])
        return float(np.floor(100 * kept[int(len(kept) * (1 - COVERAGE))]) / 100)
    grid = [round(0.01 * i, 2) for i in range(96)]
    within = [float((right & (sure >= t))[~out].mean()) for t in grid]
    found = [float(((best == outside) | (sure < t))[out].mean()) for t in grid]
    allowed = [i for i in range(len(grid)) if within[i] >= within[0] - SCOPE_COST]
    return grid[max(allowed, key=lambda i: (within[i] + found[i], -i))]
