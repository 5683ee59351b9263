"""Trains the intent model from labelled rows: ``python -m memory_pipelines.slices.intent_training``.

Belongs here: examples, softmax regression, quantisation, calibration, evaluation. Does not belong
here: inference (``intent``). Deterministic: no random numbers; sums run in a fixed order.
"""

import argparse
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from memory_pipelines.slices.features import BUCKETS, Features, extract
from memory_pipelines.slices.intent import HEADS, integer_scores, ontology_labels
from memory_pipelines.slices.language import fold
from memory_pipelines.slices.resources import data_folder, read_yaml

EXAMPLES = "intent_examples.yaml"
HOLD_OUT = 5
"""Every fifth template of an intent and language is held out: to calibrate and to evaluate."""

CUES = "cues"
STEPS = 100
RATE = 30.0
DECAY = 1e-5
UNIT = 512.0
LIMIT = 8191  # 20,000 characters make at most some 80,000 features: their sums stay exact
TARGET_COVERAGE = 0.97

_SMALL_TALK = {"greeting", "farewell", "thanks", "acknowledgement"}
_ENDINGS = {"ask": ("？", "?"), "express_frustration": ("！", "!"), "complain_again": ("！", "!")}
_FRAMES = {"zh": (("你好，", ""), ("", "，谢谢")), "en": (("hi, ", ""), ("", ", thanks"))}


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled row ; a bare cue has no action. Rows of one ``template`` are all held out, or none is."""

    text: str
    labels: tuple[str, str | None, str]
    template: str
    held_out: bool


@dataclass(frozen=True)
class Trained:
    """``weights`` int16 (BUCKETS, labels) and the card that ships beside them."""

    weights: NDArray[np.int16]
    card: dict[str, Any]


def load_examples() -> list[Example]:
    """All labelled rows of the package data, slots filled and framed as people write them."""
    source, ontology = read_yaml(EXAMPLES), read_yaml("ontology.yaml")
    lines = list(_lines(source["intents"]))
    templates = {fold(line) for _, _, group, line in lines if group != CUES}
    numbers: Counter[tuple[str, str]] = Counter()
    rows = []
    for intent, language, group, line in lines:
        action, _, category = group.partition("+")
        category = category or ontology["intents"][intent]["category"]
        if group == CUES:
            if fold(line) not in templates:  # else it would tell what is held out
                rows.append(Example(line, (intent, None, category), line, False))
            continue
        numbers[intent, language] += 1
        number = numbers[intent, language]
        texts = _variants(line, intent, action, language, source["slots"][language], number)
        rows += [Example(text, (intent, action, category), line, number % HOLD_OUT == 0) for text in texts]
    return rows


def _lines(intents: dict[str, dict[str, dict[str, str]]]) -> Iterator[tuple[str, str, str, str]]:
    """``(intent, language, group, utterance)`` of every line, in file order."""
    for intent, languages in intents.items():
        for language, groups in languages.items():
            for group, block in groups.items():
                yield from ((intent, language, group, line) for line in block.split("\n") if line)


def _variants(
    template: str, intent: str, action: str, language: str, slots: dict[str, list[str]], number: int
) -> list[str]:
    ending = _ENDINGS.get(action, ("。", "."))[language == "en"]
    shapes = [("", ""), ("", ending)]
    if intent not in _SMALL_TALK:
        shapes.append(_FRAMES[language][number % 2])
    return [before + _fill(template, slots, number + 5 * turn) + after for turn, (before, after) in enumerate(shapes)]


def _fill(template: str, slots: dict[str, list[str]], seed: int) -> str:
    for i, name in enumerate(slots):
        mark = "{" + name + "}"
        while mark in template:
            template = template.replace(mark, slots[name][seed % len(slots[name])], 1)
            seed += i + 1
    return template


class _Data:
    """Rows as features, both by row and by bucket, with one-hot targets of the three heads."""

    def __init__(self, rows: Sequence[Example], labels: dict[str, tuple[str, ...]]) -> None:
        self.features: Features = extract([row.text for row in rows])
        self.width = sum(map(len, labels.values()))
        self.spans: list[slice] = []
        self.targets = np.zeros((len(rows), self.width), dtype=np.float32)
        self.importance = np.zeros((len(rows), self.width), dtype=np.float32)
        first = 0
        for h, head in enumerate(HEADS):
            known = [i for i, row in enumerate(rows) if row.labels[h] is not None]
            column = np.array([labels[head].index(rows[i].labels[h] or "") for i in known])
            share = np.bincount(column)[column] * len(labels[head]) / len(known)
            self.spans.append(slice(first, first + len(labels[head])))
            self.targets[known, first + column] = 1
            # the square root: rare labels count more, but not as much as frequent ones together
            self.importance[known, self.spans[-1]] = (share**-0.5)[:, None]
            first += len(labels[head])
        self.scale = np.sqrt(self.features.counts).astype(np.float32)[:, None]
        self.row_starts = np.cumsum(self.features.counts) - self.features.counts
        order = np.argsort(self.features.buckets, kind="stable")
        self.used, self.bucket_starts = np.unique(self.features.buckets[order], return_index=True)
        self.by_bucket = np.repeat(np.arange(len(rows)), self.features.counts)[order]
        self.compact = np.searchsorted(self.used, self.features.buckets)


def fit(rows: Sequence[Example], labels: dict[str, tuple[str, ...]]) -> NDArray[np.int16]:
    """Softmax regression with weight decay, rounded to int16 (``UNIT`` stands for 1.0).

    Full-batch gradient descent with Nesterov's momentum: with few rows its minimum-norm bias
    generalises better than a method with step sizes of its own for rare features."""
    data = _Data(rows, labels)
    weights: NDArray[Any] = np.zeros((len(data.used), data.width), dtype=np.float32)
    velocity = np.zeros_like(weights)
    for step in range(STEPS):
        ahead = weights + np.float32(step / (step + 3)) * velocity
        logits = np.add.reduceat(ahead[data.compact], data.row_starts, axis=0) / data.scale
        error = np.concatenate([_softmax(logits[:, span]) for span in data.spans], axis=1) - data.targets
        error *= data.importance / data.scale
        gradient = np.add.reduceat(error[data.by_bucket], data.bucket_starts, axis=0) / np.float32(len(rows))
        moved = ahead - np.float32(RATE) * (gradient + np.float32(DECAY) * ahead)
        weights, velocity = moved, moved - weights
    whole = np.zeros((BUCKETS, data.width), dtype=np.int16)
    whole[data.used] = np.clip(np.rint(weights * UNIT), -LIMIT, LIMIT).astype(np.int16)
    return whole


def _softmax(logits: NDArray[Any]) -> NDArray[Any]:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    share: NDArray[Any] = raised / raised.sum(axis=1, keepdims=True)
    return share


def calibrate(logits: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """The temperature of ``logits`` (rows, labels) with the least negative log-likelihood of ``truth``."""

    def loss(temperature: float) -> float:
        p = _softmax(logits / temperature)[np.arange(len(truth)), truth]
        return float(-np.log(np.maximum(p, 1e-12)).mean())

    return min((round(0.2 + 0.05 * i, 2) for i in range(97)), key=loss)


def train() -> Trained:
    """Split, fit, calibrate, evaluate; then fit on all rows and keep the split's temperatures."""
    ontology = read_yaml("ontology.yaml")
    labels = ontology_labels(ontology)
    rows = load_examples()
    held = [row for row in rows if row.held_out]
    split = fit([row for row in rows if not row.held_out], labels)
    features = extract([row.text for row in held])
    scores = integer_scores(split, features) / (UNIT * np.sqrt(features.counts)[:, None])
    temperatures, accuracy, errors = {}, {}, {}
    confident: NDArray[np.float64] = np.ones(0)
    first = 0
    for h, head in enumerate(HEADS):
        part = scores[:, first : first + len(labels[head])]
        first += len(labels[head])
        truth = np.array([labels[head].index(row.labels[h] or "") for row in held])
        temperatures[head] = calibrate(part, truth)
        top, right = _softmax(part / temperatures[head]).max(axis=1), part.argmax(axis=1) == truth
        accuracy[head] = round(float(right.mean()), 4)
        errors[head] = round(calibration_error(top, right), 4)
        if head == "intent":
            confident = np.sort(top[right & (truth != labels[head].index("out_of_scope"))])
    threshold = math.floor(100 * confident[int(len(confident) * (1 - TARGET_COVERAGE))]) / 100
    templates: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        templates["held_out" if row.held_out else "training"].add(row.template)
    card = {
        "unit": UNIT,
        "temperatures": temperatures,
        "threshold": threshold,
        "rows": {"training": len(rows) - len(held), "held_out": len(held)},
        "templates": {name: len(texts) for name, texts in sorted(templates.items())},
        "held_out_accuracy": accuracy,
        "held_out_calibration_error": errors,
        "examples_sha256": examples_hash(),
    }
    return Trained(fit(rows, labels), card)


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error: mean gap of confidence and accuracy over equal bins, weighted by size."""
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(confidence[index == b].mean() - right[index == b].mean()) * (index == b).sum() for b in np.unique(index)
    ]
    return float(sum(gaps) / len(confidence))


def examples_hash() -> str:
    """SHA-256 of the training data's files: what the shipped weights were made from."""
    digest = hashlib.sha256()
    for name in ("ontology.yaml", EXAMPLES):
        digest.update(data_folder().joinpath(name).read_bytes())
    return digest.hexdigest()


def save(trained: Trained, folder: Path) -> None:
    """Write ``intent_model.npz`` and its card ``intent_model.yaml`` to ``folder``."""
    np.savez_compressed(folder / "intent_model.npz", weights=trained.weights)
    header = "# Written by python -m memory_pipelines.slices.intent_training; do not edit.\n"
    card = yaml.safe_dump(trained.card, sort_keys=True, allow_unicode=True)
    (folder / "intent_model.yaml").write_text(header + card, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the intent model from the labelled rows of the package.")
    parser.add_argument("--output", type=Path, default=Path(str(data_folder())), help="folder of the model's two files")
    folder: Path = parser.parse_args(arguments).output
    trained = train()
    save(trained, folder)
    print(yaml.safe_dump(trained.card, sort_keys=True), end="")


if __name__ == "__main__":
    main()
