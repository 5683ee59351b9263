"""Is the distribution of decision impacts one that a sane reward model makes?

Belongs here: the checks over impacts in [0, 1], of live scores and of a challenger's alike. Does not belong here:
the model, or what an alert leads to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from memory_pipelines.model import ImpactLabel, impact_label

WINDOW = timedelta(days=90)
PSI_EDGES = np.linspace(0.0, 1.0, 11)
PSI_PRIOR = 0.5
"""Added to the count of every bin, so that an empty one has a finite logarithm."""

Impacts = NDArray[np.float64]
Histogram = tuple[int, ...]
"""Counts in the bins of ``PSI_EDGES``."""


@dataclass(frozen=True)
class Limits:
    """Where a distribution becomes a fault. Shares are of all values; a bound itself is no fault yet.

    ``fewest``: with fewer values nothing is judged. Two humps need all three signs at once.
    """

    fewest: int = 50
    deviation_most: float = 0.45
    deviation_least: float = 0.05
    low: tuple[float, float] = (0.05, 0.98)
    medium: tuple[float, float] = (0.0, 0.9)
    high: tuple[float, float] = (0.0, 0.6)
    hump_least: float = 0.5
    """Share in [.1, .3]."""
    tail_least: float = 0.01
    """Share above .9."""
    middle_most: float = 0.02
    """Share in [.4, .7]."""
    psi_most: float = 0.25


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Problem:
    """``value`` went past ``limit``; ``text`` says so in a sentence."""

    name: str
    value: float
    limit: float
    text: str


@dataclass(frozen=True)
class Summary:
    """Of ``n`` impacts: mean, standard deviation (of the population), share of each label. ``note`` if too few."""

    n: int
    mean: float
    deviation: float
    shares: dict[str, float]
    note: str


def final_impacts(rows: pa.Table, as_of: datetime) -> Impacts:
    """Final impacts of events in the 90 days before ``as_of``, of IMPACTS or SLICES rows."""
    columns = (rows[name].to_pylist() for name in ("occurred_at", "impact_final", "decision_impact"))
    found = zip(*columns, strict=True)
    return np.array([impact for at, final, impact in found if final and as_of - WINDOW <= at < as_of], float)


def summarise(values: ArrayLike, limits: Limits = DEFAULT_LIMITS) -> Summary:
    """What a report shows of the distribution, also where it is too small to judge."""
    impacts = np.sort(np.asarray(values, float))
    if not len(impacts):
        return Summary(0, 0.0, 0.0, {label.value: 0.0 for label in ImpactLabel}, _too_few(0, limits))
    labels = [impact_label(impact) for impact in impacts.tolist()]
    shares = {label.value: round(labels.count(label) / len(labels), 4) for label in ImpactLabel}
    mean, deviation = round(float(impacts.mean()), 4), round(float(impacts.std()), 4)
    return Summary(len(impacts), mean, deviation, shares, _too_few(len(impacts), limits))


def histogram(values: ArrayLike) -> Histogram:
    """How many values in [0, 1] lie in each tenth."""
    return tuple(np.histogram(np.asarray(values, float), PSI_EDGES)[0].tolist())


def check_impacts(
    values: ArrayLike, reference: Histogram | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[Problem]:
    """The faults of a distribution of impacts; none is good.

    ``reference``: impacts of the training range, for the population stability index; left out where either side has
    fewer than ``limits.fewest`` values. So few values are not judged at all (see ``summarise``), but for one
    that is no number in [0, 1], which always is a fault.
    """
    impacts = np.sort(np.asarray(values, float))
    outside = int(np.sum(~((impacts >= 0) & (impacts <= 1))))
    if outside:
        return [Problem("outside", outside, 0, f"{outside} of {len(impacts)} impacts are no numbers in [0, 1]")]
    if len(impacts) < limits.fewest:
        return []
    known = reference if reference is not None and sum(reference) >= limits.fewest else None
    return [
        *_deviation(impacts, limits),
        *_labels(summarise(impacts, limits), limits),
        *_two_humps(impacts, limits),
        *(() if known is None else _drift(histogram(impacts), known, limits)),
    ]


def stability_index(values: Histogram, reference: Histogram) -> float:
    """Population stability index of two samples in [0, 1], in ten bins of equal width.

    Σ (p − q) · ln(p / q), where p and q are the shares of a bin, with half a value more in each bin of each side.
    0: equal shares; above .25 is commonly held to be another population.
    """
    p, q = _smoothed(values), _smoothed(reference)
    return round(float(np.sum((p - q) * np.log(p / q))), 4)


def _smoothed(histogram: Histogram) -> Impacts:
    counts = np.array(histogram) + PSI_PRIOR
    shares: Impacts = counts / counts.sum()
    return shares


def _too_few(n: int, limits: Limits) -> str:
    return f"too few to judge: {n} of at least {limits.fewest}" if n < limits.fewest else ""


def _deviation(impacts: Impacts, limits: Limits) -> Sequence[Problem]:
    deviation = round(float(impacts.std()), 4)
    most, least = limits.deviation_most, limits.deviation_least
    if deviation > most:
        text = f"standard deviation {deviation:.4f} > {most}: impacts are almost all nothing or everything"
        return [Problem("deviation", deviation, most, text)]
    if deviation < least:
        text = f"standard deviation {deviation:.4f} < {least}: all events look alike"
        return [Problem("collapse", deviation, least, text)]
    return []


def _labels(summary: Summary, limits: Limits) -> list[Problem]:
    problems = []
    for label, (least, most) in (("low", limits.low), ("medium", limits.medium), ("high", limits.high)):
        share = summary.shares[label]
        if not least <= share <= most:
            text = f"{share:.1%} of the impacts are {label}, outside {least:.0%} to {most:.0%}"
            problems.append(Problem(f"{label}_share", share, least if share < least else most, text))
    return problems


def _two_humps(impacts: Impacts, limits: Limits) -> Sequence[Problem]:
    hump = float(np.mean((impacts >= 0.1) & (impacts <= 0.3)))
    tail = float(np.mean(impacts > 0.9))
    middle = round(float(np.mean((impacts >= 0.4) & (impacts <= 0.7))), 4)
    if hump < limits.hump_least or tail < limits.tail_least or middle > limits.middle_most:
        return []
    text = f"{hump:.1%} lie in .1 to .3 and {tail:.1%} above .9, but only {middle:.1%} between .4 and .7"
    return [Problem("two_humps", middle, limits.middle_most, text)]


def _drift(impacts: Histogram, reference: Histogram, limits: Limits) -> Sequence[Problem]:
    index = stability_index(impacts, reference)
    if index <= limits.psi_most:
        return []
    text = f"population stability index {index:.4f} > {limits.psi_most} against the training range"
    return [Problem("psi", index, limits.psi_most, text)]
