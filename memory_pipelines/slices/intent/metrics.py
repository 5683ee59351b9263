"""How good an intent model is on rows it did not learn from.

Belongs here: metrics and the rule of promotion. Does not belong here: training (``fit``), pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.slices.intent.fit import Row
from memory_pipelines.slices.intent.model import HEADS, OUT_OF_SCOPE, IntentLabel, IntentModel

ECE_SLACK = 0.02
"""By so much a challenger's calibration error may exceed the champion's: less is noise of the hold-out."""
MOST_CONFUSED = 20


@dataclass(frozen=True)
class HeadMetrics:
    """One head on ``n`` rows; ``macro_f1`` is over the labels that are true or predicted; ``ece``: 10 equal bins.

    ``classes``: label → precision, recall, F1 and rows; ``confused``: (true, predicted, rows), the most first."""

    n: int
    accuracy: float
    macro_f1: float
    ece: float
    classes: dict[str, tuple[float, float, float, int]]
    confused: list[tuple[str, str, int]]

    def as_json(self) -> dict[str, Any]:
        return {"n": self.n, "accuracy": self.accuracy, "macro_f1": self.macro_f1, "ece": self.ece}


def evaluate(model: IntentModel, rows: Sequence[Row]) -> dict[str, HeadMetrics]:
    """Metrics by head, of the rows whose label of that head is known; heads without any are left out.

    Labels are those that users get: an unsure intent is out of scope."""
    given = model.classify([row.text for row in rows])
    return {
        head: head_metrics([row.labels[h] for row in rows], given, head)
        for h, head in enumerate(HEADS)
        if any(row.labels[h] is not None for row in rows)
    }


def head_metrics(truth: Sequence[str | None], given: Sequence[IntentLabel], head: str) -> HeadMetrics:
    """Metrics of one head; rows without a true label are left out, one at least must have one."""
    from sklearn.metrics import precision_recall_fscore_support

    known = [(name, label) for name, label in zip(truth, given, strict=True) if name is not None]
    true = [name for name, _ in known]
    predicted = [getattr(label, head) for _, label in known]
    sure = np.array([getattr(label, f"{head}_confidence") for _, label in known])
    right = np.array([a == b for a, b in zip(true, predicted, strict=True)])
    names = sorted({*true, *predicted})
    found = precision_recall_fscore_support(true, predicted, labels=names, zero_division=0)
    rows = zip(names, *(column.tolist() for column in found), strict=True)
    classes = {name: (round(p, 4), round(r, 4), round(f, 4), int(n)) for name, p, r, f, n in rows}
    counts: dict[tuple[str, str], int] = {}
    for pair in zip(true, predicted, strict=True):
        if pair[0] != pair[1]:
            counts[pair] = counts.get(pair, 0) + 1
    confused = sorted(((*pair, n) for pair, n in counts.items()), key=lambda x: (-x[2], x))
    return HeadMetrics(
        n=len(true),
        accuracy=round(float(right.mean()), 4),
        macro_f1=round(float(found[2].mean()), 4),
        ece=round(calibration_error(sure, right), 4),
        classes=classes,
        confused=confused[:MOST_CONFUSED],
    )


def scope_metrics(truth: Sequence[str], given: Sequence[IntentLabel]) -> dict[str, float]:
    """Accuracy within the scope, recall of what is outside, accuracy over both (Larson et al., EMNLP 2019)."""
    right = np.array([name == label.intent for name, label in zip(truth, given, strict=True)])
    outside = np.array([name == OUT_OF_SCOPE for name in truth])
    return {
        "in_scope_accuracy": float(right[~outside].mean()),
        "oos_recall": float(right[outside].mean()),
        "joint_accuracy": float(right.mean()),
    }


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error: mean gap of confidence and accuracy over equal bins, weighted by size."""
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(confidence[index == b].mean() - right[index == b].mean()) * (index == b).sum() for b in np.unique(index)
    ]
    return float(sum(gaps) / len(confidence))


def better(champion: HeadMetrics, challenger: HeadMetrics) -> tuple[bool, str]:
    """Whether the challenger's intents win, and why or why not; both are judged on the same rows.

    Better: macro-F1 is higher, accuracy not lower, confidence not clearly worse calibrated."""
    against = []
    if challenger.macro_f1 <= champion.macro_f1:
        against.append(f"macro-F1 {challenger.macro_f1} is not above the current model's {champion.macro_f1}")
    if challenger.accuracy < champion.accuracy:
        against.append(f"accuracy {challenger.accuracy} is below the current model's {champion.accuracy}")
    if challenger.ece > champion.ece + ECE_SLACK:
        against.append(f"calibration error {challenger.ece} is above the current model's {champion.ece}")
    won = f"macro-F1 {challenger.macro_f1} > {champion.macro_f1}, accuracy {challenger.accuracy}, n = {challenger.n}"
    return not against, "; ".join(against) or won
