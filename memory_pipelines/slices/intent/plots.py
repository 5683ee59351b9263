"""The confusion of an intent model as a picture and as a table, for the metadata of a run.

Belongs here: drawing. Does not belong here: the numbers (``metrics``). Labels and counts only, no text.
"""

import io
from collections.abc import Sequence

import numpy as np

from memory_pipelines.slices.intent.metrics import HeadMetrics

DPI = 80
MOST_LABELS = 30
MOST_CLASSES = 200


def confusion(truth: Sequence[str], given: Sequence[str]) -> bytes:
    """PNG of true labels (rows) by predicted ones; beyond ``MOST_LABELS`` only those that are confused the most."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wrong = dict.fromkeys(sorted({*truth, *given}), 0)
    for true, predicted in zip(truth, given, strict=True):
        if true != predicted:
            wrong[true] += 1
            wrong[predicted] += 1
    names = sorted(sorted(wrong, key=lambda name: (-wrong[name], name))[:MOST_LABELS])
    at = {name: i for i, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)))
    for true, predicted in zip(truth, given, strict=True):
        if true in at and predicted in at:
            counts[at[true], at[predicted]] += 1
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = 2.2 + 0.24 * len(names)
    figure = Figure(figsize=(side, side), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    for i, j in zip(*np.nonzero(counts), strict=True):
        color = "white" if shares[i, j] > 0.5 else "black"
        axes.text(j, i, str(int(counts[i, j])), ha="center", va="center", fontsize=6, color=color)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})  # equal figures give equal bytes
    return buffer.getvalue()


def class_table(metrics: HeadMetrics) -> str:
    """Markdown: precision, recall, F1 and rows by class, the worst F1 first."""
    worst = sorted(metrics.classes.items(), key=lambda item: (item[1][2], item[0]))[:MOST_CLASSES]
    lines = [f"| {name} | {p:.2f} | {r:.2f} | {f:.2f} | {n} |" for name, (p, r, f, n) in worst]
    return "\n".join(["| intent | precision | recall | F1 | rows |", "| --- | --: | --: | --: | --: |", *lines])
