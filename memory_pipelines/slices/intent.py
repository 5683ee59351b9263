"""Step 2: intent, action and category of each exchange, by one small linear model with three heads, and one rule.

Belongs here: inference and calibration. Does not belong here: training (``intent_training``) or
what a label leads to. Weights are int16 and features are counts, so scores are exact integers and
a text has the same labels in every batch, on every machine.
"""

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memory_pipelines import tables
from memory_pipelines.errors import IntegrityError
from memory_pipelines.slices import emotion
from memory_pipelines.slices.events import COMPLAINTS
from memory_pipelines.slices.features import BUCKETS, Features, extract
from memory_pipelines.slices.labels import label_table, own_texts
from memory_pipelines.slices.language import MAX_CHARS
from memory_pipelines.slices.resources import data_folder, label_files, read_yaml

HEADS = ("intent", "action", "category")
OUT_OF_SCOPE = "out_of_scope"
FRUSTRATED, SATISFIED = "express_frustration", "express_satisfaction"

_CHUNK_CHARS = 60_000
_STEP = 256  # probabilities read exp(-x) from a table of 1/256 steps, in 30-bit fixed point
_ONE = 1 << 30


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
    """Three linear heads over hashed n-grams.

    ``weights``: int16 (BUCKETS, labels of all heads side by side); ``labels``: names by head;
    a logit is ``integer score / (unit * temperature * sqrt(number of features))``;
    an intent less likely than ``threshold`` is out of scope."""

    weights: NDArray[np.int16]
    labels: dict[str, tuple[str, ...]]
    unit: float
    temperatures: dict[str, float]
    threshold: float
    fallback: dict[str, str]

    def classify(self, texts: Sequence[str]) -> list[IntentLabel]:
        """Labels of each text, in order; memory is bounded by chunks of texts."""
        return [label for chunk in _chunks(texts) for label in self._classify_chunk(chunk)]

    def _classify_chunk(self, texts: Sequence[str]) -> list[IntentLabel]:
        features = extract(texts)
        scores = integer_scores(self.weights, features)
        root = np.sqrt(np.maximum(features.counts, 1).astype(np.float64))
        columns: list[list[str] | list[float]] = []
        first = 0
        for head in HEADS:
            names = self.labels[head]
            part = scores[:, first : first + len(names)]
            first += len(names)
            best = part.argmax(axis=1)
            chosen = [names[i] for i in best]
            confidences = probabilities(part, best, root * (self.unit * self.temperatures[head]))
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


def integer_scores(weights: NDArray[np.int16], features: Features) -> NDArray[np.int64]:
    """Exact sums of the weights of each text's features: (texts, labels)."""
    scores = np.zeros((len(features.counts), weights.shape[1]), dtype=np.int64)
    filled = np.flatnonzero(features.counts)
    if len(filled):
        starts = np.cumsum(features.counts)[filled] - features.counts[filled]
        scores[filled] = np.add.reduceat(weights[features.buckets], starts, axis=0, dtype=np.int64)
    return scores


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


def _chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    first, size = 0, 0
    for i, text in enumerate(texts):
        length = min(len(text), MAX_CHARS)
        if size and size + length > _CHUNK_CHARS:
            yield texts[first:i]
            first, size = i, 0
        size += length + 2
    if first < len(texts):
        yield texts[first:]


@cache
def load_model(model_set: str) -> IntentModel:
    """The model set's intent model. Raises SettingError (no such set), IntegrityError (files disagree)."""
    files = label_files(model_set, "intent")
    ontology, card = read_yaml(files["ontology"]), read_yaml(files["card"])
    labels = ontology_labels(ontology)
    with np.load(io.BytesIO(data_folder().joinpath(files["weights"]).read_bytes()), allow_pickle=False) as stored:
        weights = stored["weights"]
    if weights.shape != (BUCKETS, sum(map(len, labels.values()))) or weights.dtype != np.int16:
        raise IntegrityError(f"the intent weights of model set {model_set} do not fit its ontology: retrain")
    return IntentModel(
        weights=weights,
        labels=labels,
        unit=float(card["unit"]),
        temperatures={head: float(card["temperatures"][head]) for head in HEADS},
        threshold=float(card["threshold"]),
        fallback=ontology["fallback"],
    )


def ontology_labels(ontology: dict[str, object]) -> dict[str, tuple[str, ...]]:
    """Names of each head's labels, in the order of the weight columns."""
    return {head: tuple(ontology[key]) for head, key in zip(HEADS, ("intents", "actions", "categories"), strict=True)}  # type: ignore[arg-type]


def classify_all(texts: Sequence[str], model_set: str = "base-1") -> list[IntentLabel]:
    """Labels of each text, in order: the model's, corrected by the rule."""
    labels = load_model(model_set).classify(texts)
    return [_without_glad_complaint(text, label, model_set) for text, label in zip(texts, labels, strict=True)]


def classify(text: str, model_set: str = "base-1") -> IntentLabel:
    """Labels of one text; equal to what ``label_intents`` gives it."""
    return classify_all([text], model_set)[0]


def label_intents(exchanges: pa.Table, model_set: str) -> pa.Table:
    """EXCHANGES -> INTENTS, one row per exchange in the same order, from ``own_text`` alone."""
    rows = classify_all(own_texts(exchanges), model_set)
    names = [name for head in HEADS for name in (head, f"{head}_confidence")]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    return label_table(exchanges, tables.INTENTS, model_set, columns)


def _without_glad_complaint(text: str, label: IntentLabel, model_set: str) -> IntentLabel:
    """A text full of joy is no complaint: the model takes warm words between friends, which it never saw, for one."""
    doubtful = label.intent in COMPLAINTS or label.action == FRUSTRATED
    if not doubtful or emotion.score(text, model_set).label != "joy:high":
        return label
    return replace(
        label,
        intent=OUT_OF_SCOPE if label.intent in COMPLAINTS else label.intent,
        action=SATISFIED if label.action == FRUSTRATED else label.action,
    )
