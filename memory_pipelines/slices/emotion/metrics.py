"""How good emotion scores are on rows that no scorer learned from, and a picture of it.

Belongs here: metrics, the rule of promotion, drawing. Does not belong here: scoring (``score``), training.
"""

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

DPI = 80


@dataclass(frozen=True)
class EmotionMetrics:
    """Of ``n`` scores in [-1, 1]: Pearson's r (0 where one side is constant), mean absolute error, and the share of
    scores with the right sign among rows whose true score is not 0 (None: there is none)."""

    n: int
    pearson: float
    mean_absolute_error: float
    sign_accuracy: float | None

    def as_json(self) -> dict[str, float | int | None]:
        return asdict(self)


def evaluate(truth: Sequence[float], given: Sequence[float]) -> EmotionMetrics:
    """Metrics of one or more scores, 4 digits."""
    true, found = np.array(truth, dtype=np.float64), np.array(given, dtype=np.float64)
    varied = len(true) > 1 and true.std() > 0 and found.std() > 0
    felt = true != 0
    right = np.sign(true[felt]) == np.sign(found[felt])
    return EmotionMetrics(
        n=len(true),
        pearson=round(float(np.corrcoef(true, found)[0, 1]), 4) if varied else 0.0,
        mean_absolute_error=round(float(np.abs(true - found).mean()), 4),
        sign_accuracy=round(float(right.mean()), 4) if len(right) else None,
    )


def better(champion: EmotionMetrics, challenger: EmotionMetrics) -> tuple[bool, str]:
    """Whether the challenger wins, and why or why not; both are judged on the same rows.

    Better: Pearson's r is higher, and the mean absolute error is not."""
    against = []
    if challenger.pearson <= champion.pearson:
        against.append(f"Pearson's r {challenger.pearson} is not above the current scorer's {champion.pearson}")
    if challenger.mean_absolute_error > champion.mean_absolute_error:
        against.append(
            f"mean absolute error {challenger.mean_absolute_error} is above the current scorer's "
            f"{champion.mean_absolute_error}"
        )
    won = (
        f"Pearson's r {challenger.pearson} > {champion.pearson}, mean absolute error "
        f"{challenger.mean_absolute_error}, n = {challenger.n}"
    )
    return not against, "; ".join(against) or won


def scatter(truth: Sequence[float], given: Sequence[float]) -> bytes:
    """PNG of given scores over true ones; on the diagonal they are equal."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 4.0), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot([-1, 1], [-1, 1], color="grey", linewidth=1, linestyle="--")
    axes.scatter(truth, given, s=12, alpha=0.5)
    axes.set_xlim(-1.05, 1.05)
    axes.set_ylim(-1.05, 1.05)
    axes.set_xlabel("true score")
    axes.set_ylabel("given score")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})  # equal figures give equal bytes
    return buffer.getvalue()
