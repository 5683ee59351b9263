"""Pictures of a reward model as PNG, for the metadata of a run.

Belongs here: three small plots and their Markdown. Does not belong here: the numbers in them (``evaluate``).
Figures are objects of their own: nothing touches matplotlib's global state or needs a display.
"""

import base64
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from memory_pipelines.reward.evaluate import Bin
from memory_pipelines.reward.timeline import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (4.8, 3.4)
"""Inches, at ``DPI``."""
DPI = 80
FILL, LINE = "#4c72b0", "#c44e52"
LABEL_BORDERS = (0.3, 0.7)
MOST_FEATURES = 12


def calibration_curve(bins: Sequence[Bin]) -> bytes:
    """Seen impact over score, one dot per bin, its area by expected orders; the diagonal is a perfect model."""
    figure, axes = _figure("calibration of final impact", "score", "seen: 1 − observed / expected")
    total = sum(item.expected for item in bins) or 1.0
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    axes.plot([b.score for b in bins], [b.seen for b in bins], color=FILL, linewidth=1)
    axes.scatter([b.score for b in bins], [b.seen for b in bins], [20 + 300 * b.expected / total for b in bins], FILL)
    axes.set_xlim(0, 1)
    axes.set_ylim(min([0.0, *(b.seen for b in bins)]) - 0.05, 1)
    return _png(figure)


def impact_histogram(scores: Floats) -> bytes:
    """Number of scores per twentieth of [0, 1], with the borders of low, medium and high."""
    figure, axes = _figure(f"decision impact of {len(scores)} events", "score", "events")
    axes.hist(scores, bins=np.linspace(0, 1, 21).tolist(), color=FILL)
    for border in LABEL_BORDERS:
        axes.axvline(border, color=LINE, linewidth=1, linestyle="--")
    axes.set_xlim(0, 1)
    return _png(figure)


def feature_gain(gain: Mapping[str, float]) -> bytes:
    """Share of the gain of the most used features, largest at the top."""
    figure, axes = _figure("feature gain", "share of the gain", "")
    most = sorted(gain.items(), key=lambda item: (-item[1], item[0]))[:MOST_FEATURES][::-1]
    axes.barh([name for name, _ in most], [share for _, share in most], color=FILL)
    return _png(figure)


def markdown(title: str, png: bytes) -> str:
    """The picture as Markdown that needs no file: a data URI."""
    return f"![{title}](data:image/png;base64,{base64.b64encode(png).decode()})"


def _figure(title: str, x: str, y: str) -> tuple["Figure", "Axes"]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def _png(figure: "Figure") -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})  # equal figures give equal bytes
    return buffer.getvalue()
