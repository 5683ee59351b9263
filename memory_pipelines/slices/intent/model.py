"""The intent model: three heads over n-grams and embeddings, their scores and calibrated probabilities.

Belongs here: inference and calibration. Does not belong here: training (``fit``), files (``files``), labels of
exchanges (``predict``). Weights, features and vectors are integers, so scores are exact and a text has the same labels
in every batch.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.slices.intent.features import Features, extract
from memory_pipelines.slices.intent.vectors import Landmarks
from memory_pipelines.slices.language import MAX_CHARS
from memory_pipelines.stores.vault import untagged

HEADS = ("intent", "action", "category")
OUT_OF_SCOPE = "out_of_scope"

_CHUNK_CHARS = 60_000
_CHUNK_TEXTS = 512
"""Of a model with landmarks: their similarities to this many texts are in memory at once."""
_STEP = 256  # probabilities read exp(-x) from a table of 1/256 steps, in 30-bit fixed point
_ONE = 1 << 30
_LOGIT = 1 << 16
"""A blended logit of 1.0."""


@dataclass(frozen=True, slots=True)
class IntentLabel:
    """Labels of one text; confidences are calibrated probabilities in [0, 1], 4 digits."""

    intent: str
    intent_confidence: float
    action: str
    action_confidence: float
    category: str
    category_confidence: float


@dataclass(frozen=True)
class IntentModel:
    """Three linear heads over hashed n-grams; an accurate model adds their scores to those of a kernel machine
    over embeddings.

    ``weights``: int16 (BUCKETS, labels of all heads side by side); ``squares``: int32 (BUCKETS), the squared
    importance of each bucket (none: 1 each); ``labels``: names by head; the n-grams' logit is
    ``integer score / (unit * temperature * sqrt(sum of squares))``; ``kernel`` is added times ``kernel_weights``;
    an intent less likely than ``threshold`` is out of scope."""

    weights: NDArray[np.int16]
    labels: dict[str, tuple[str, ...]]
    unit: float
    temperatures: dict[str, float]
    threshold: float
    fallback: dict[str, str]
    squares: NDArray[np.int32] | None = None
    kernel: Landmarks | None = None
    kernel_weights: dict[str, float] | None = None

    def classify(self, texts: Sequence[str]) -> list[IntentLabel]:
        """Labels of each text, in order; memory is bounded by chunks of texts."""
        return [label for chunk in self._chunks(texts) for label in self._classify_chunk(chunk)]

    def nearest(self, texts: Sequence[str]) -> list[IntentLabel]:
        """As ``classify``, but of each head the likeliest label, however unlikely: what a closed test measures."""
        return replace(self, threshold=0.0).classify(texts)

    def _chunks(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        return _chunks(texts, len(texts) if self.kernel is None else _CHUNK_TEXTS)

    def _classify_chunk(self, texts: Sequence[str]) -> list[IntentLabel]:
        texts = [untagged(text) for text in texts]  # whose a sensitive value was must not change a label
        features = extract(texts)
        scores = integer_scores(self.weights, features)
        norm = norms(features, self.squares)
        similar = None if self.kernel is None else self.kernel.scores(texts)
        columns: list[list[str] | list[float]] = []
        first = 0
        for head in HEADS:
            names = self.labels[head]
            span = slice(first, first + len(names))
            first += len(names)
            if not names:
                columns += [[self.fallback[head]] * len(texts), [0.0] * len(texts)]
                continue
            part, scale = scores[:, span], norm * (self.unit * self.temperatures[head])
            if similar is not None and self.kernel_weights is not None:
                blended = np.rint(part / scale[:, None] * _LOGIT)
                blended += np.rint(similar[:, span] * (self.kernel_weights[head] * _LOGIT))
                part, scale = blended.astype(np.int64), np.full(len(texts), float(_LOGIT))
            best = part.argmax(axis=1)
            chosen = [names[i] for i in best]
            confidences = probabilities(part, best, scale)
            if head == "intent":
                chosen = [
                    name if p >= self.threshold else OUT_OF_SCOPE for name, p in zip(chosen, confidences, strict=True)
                ]
            columns += [chosen, confidences]
        nothing = IntentLabel(
            self.fallback["intent"], 0.0, self.fallback["action"], 0.0, self.fallback["category"], 0.0
        )
        rows = zip(*columns, features.counts.tolist(), strict=True)
        return [IntentLabel(*row[:-1]) if row[-1] else nothing for row in rows]


def integer_scores(weights: NDArray[np.int16] | NDArray[np.int32], features: Features) -> NDArray[np.int64]:
    """Exact sums of the weights of each text's features: (texts, labels)."""
    scores = np.zeros((len(features.counts), weights.shape[1]), dtype=np.int64)
    filled = np.flatnonzero(features.counts)
    if len(filled):
        starts = np.cumsum(features.counts)[filled] - features.counts[filled]
        scores[filled] = np.add.reduceat(weights[features.buckets], starts, axis=0, dtype=np.int64)
    return scores


def norms(features: Features, squares: NDArray[np.int32] | None) -> NDArray[np.float64]:
    """Square root of the sum of each text's ``squares`` (of the number of features without them), at least 1."""
    total = features.counts if squares is None else integer_scores(squares[:, None], features)[:, 0]
    return np.sqrt(np.maximum(total, 1).astype(np.float64))


def probabilities(scores: NDArray[np.int64], best: NDArray[np.int64], scale: NDArray[np.float64]) -> list[float]:
    """Softmax probability of each row's ``best`` column at logits ``scores / scale``, 4 digits.

    Each operation is exact or correctly rounded, so no vector width can change a digit."""
    top = np.take_along_axis(scores, best[:, None], axis=1)
    steps = np.rint((top - scores) / scale[:, None] * _STEP)
    table = _exponentials()
    total = table[np.minimum(steps, len(table) - 1).astype(np.int64)].sum(axis=1)
    return [round(_ONE / int(s), 4) for s in total]


@cache
def _exponentials() -> NDArray[np.int64]:
    return np.array([round(_ONE * math.exp(-k / _STEP)) for k in range(21 * _STEP)] + [0], dtype=np.int64)


def _chunks(texts: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    first, size = 0, 0
    for i, text in enumerate(texts):
        length = min(len(text), MAX_CHARS)
        if size and (size + length > _CHUNK_CHARS or i - first >= most):
            yield texts[first:i]
            first, size = i, 0
        size += length + 2
    if first < len(texts):
        yield texts[first:]


def ontology_labels(ontology: dict[str, object]) -> dict[str, tuple[str, ...]]:
    """Names of each head's labels, in the order of the weight columns."""
    return {head: tuple(ontology[key]) for head, key in zip(HEADS, ("intents", "actions", "categories"), strict=True)}  # type: ignore[arg-type]
