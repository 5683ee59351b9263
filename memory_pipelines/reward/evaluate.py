"""How good a reward model is on events that came after those it learned from.

Belongs here: the time split and the metrics. Does not belong here: what follows from them (``promote``), pictures.

A single event says little: somebody who orders every other week mostly orders nothing within 7 days. So events count
by their expected orders, and calibration compares sums: seen impact of a bin = 1 − Σ observed / Σ expected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.model import WINDOW
from memory_pipelines.reward.fit import FALL, InsufficientDataError, RewardModel, feature_rows, provisional, telling
from memory_pipelines.reward.timeline import Floats, floats
from memory_pipelines.tables import TIME

BINS = 10
MIN_SLICE = 30
"""Intents with fewer events have no slice of their own."""
TRAIN_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Bin:
    """Events with scores in [low, high): their mean score and the impact that was seen, by expected orders.

    ``seen`` is negative where people ordered more than expected."""

    low: float
    high: float
    rows: int
    expected: float
    score: float
    seen: float


@dataclass(frozen=True, slots=True)
class IntentSlice:
    """One intent: mean score and seen impact as in ``Bin``; ``auc`` is None where all labels are of one class."""

    rows: int
    auc: float | None
    brier: float
    score: float
    seen: float


@dataclass(frozen=True)
class Metrics:
    """Of final scores, unless it says provisional; 4 digits.

    ``auc``: label > .4 against the rest. ``brier``: of the share E / (E + O) that a score implies, against that of
    the best constant score (``brier_base``). ``calibration_error``: mean distance of score and seen impact over bins; a
    rise is an impact of 0, as in the labels.
    """

    rows: int
    auc: float
    auc_provisional: float
    brier: float
    brier_base: float
    calibration_error: float
    calibration: tuple[Bin, ...]
    intents: dict[str, IntentSlice]
    gain: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Plain values for a registry row."""
        return asdict(self)


def default_cut(events: pa.Table) -> datetime:
    """The instant that leaves ``TRAIN_SHARE`` of the closed events before it. Raises InsufficientDataError on none."""
    closed = events.filter(events.column("window_closed")).column("occurred_at").cast(pa.int64())
    if not len(closed):
        raise InsufficientDataError("no event has a closed window")
    at = pc.quantile(closed, TRAIN_SHARE, interpolation="lower")
    instant: datetime = at.cast(TIME)[0].as_py()
    return instant


def time_split(events: pa.Table, cut: datetime) -> tuple[pa.Table, pa.Table]:
    """Events whose window had closed by ``cut``, and closed events from ``cut`` on; those between are in neither."""
    closed, at = pc.field("window_closed"), pc.field("occurred_at")
    train = events.filter(closed & (at <= pa.scalar(cut - WINDOW, TIME)))
    return train, events.filter(closed & (at >= pa.scalar(cut, TIME)))


def evaluate(model: RewardModel, events: pa.Table) -> Metrics:
    """Judge a model on the ``fit.telling`` rows of ``tables.REWARD_EVENTS`` that have expected orders.

    Raises InsufficientDataError where nothing is left, or all labels are of one class.
    """
    rows = telling(events.filter(pc.field("expected").is_valid()))
    features = feature_rows(rows)
    return _judge(rows, model.predict(features), model.predict(provisional(features)), model.gain())


def evaluate_scores(scores: Mapping[str, float], events: pa.Table) -> Metrics:
    """Judge scores that are known by exchange id, such as those of the rules, on the same rows as a model.

    Events without a score are left out. Raises as ``evaluate`` does."""
    rows = telling(events.filter(pc.field("expected").is_valid()))
    known = pa.array([name in scores for name in rows["exchange_id"].to_pylist()], pa.bool_())
    rows = rows.filter(known)
    score = np.array([scores[name] for name in rows["exchange_id"].to_pylist()], dtype=np.float64)
    return _judge(rows, score, score, {})


def _judge(rows: pa.Table, score: Floats, early: Floats, gain: dict[str, float]) -> Metrics:
    expected, observed = floats(rows.column("expected")), floats(rows.column("observed"))
    fell = floats(rows.column("label")) > FALL
    if not rows.num_rows or fell.all() or not fell.any() or not expected.sum() > 0:
        raise InsufficientDataError(f"{rows.num_rows} held-out events with expected orders, or all of one class")
    calibration = _calibration(score, expected, observed)
    intents: dict[str, IntentSlice] = {}
    names = rows.column("intent").to_numpy()
    for name in sorted(set(names.tolist())):
        own = names == name
        if own.sum() >= MIN_SLICE and expected[own].sum() > 0:
            auc = weighted_auc(score[own], fell[own], expected[own])
            intents[name] = IntentSlice(
                rows=int(own.sum()),
                auc=None if auc is None else round(auc, 4),
                brier=_brier(score[own], expected[own], observed[own]),
                score=round(float(np.average(score[own], weights=expected[own])), 4),
                seen=_seen(expected[own], observed[own]),
            )
    return Metrics(
        rows=rows.num_rows,
        auc=round(weighted_auc(score, fell, expected) or 0.0, 4),
        auc_provisional=round(weighted_auc(early, fell, expected) or 0.0, 4),
        brier=_brier(score, expected, observed),
        brier_base=_brier(np.full(len(score), max(0.0, _seen(expected, observed))), expected, observed),
        calibration_error=calibration_error(calibration),
        calibration=calibration,
        intents=intents,
        gain=gain,
    )


def weighted_auc(score: Floats, positive: NDArray[np.bool_], weight: Floats) -> float | None:
    """Share of (positive, negative) pairs in the right order, ties half, each by its weights; None on one class."""
    values, place = np.unique(score, return_inverse=True)
    up = np.bincount(place, weight * positive, len(values))
    down = np.bincount(place, weight * ~positive, len(values))
    pairs = up.sum() * down.sum()
    if not pairs > 0:
        return None
    below = np.cumsum(down) - down
    return float((up * (below + down / 2)).sum() / pairs)


def _calibration(score: Floats, expected: Floats, observed: Floats) -> tuple[Bin, ...]:
    place = np.minimum((score * BINS).astype(int), BINS - 1)
    bins = []
    for number in range(BINS):
        own = place == number
        if expected[own].sum() > 0:
            bins.append(
                Bin(
                    low=number / BINS,
                    high=(number + 1) / BINS,
                    rows=int(own.sum()),
                    expected=round(float(expected[own].sum()), 4),
                    score=round(float(np.average(score[own], weights=expected[own])), 4),
                    seen=_seen(expected[own], observed[own]),
                )
            )
    return tuple(bins)


def calibration_error(calibration: Sequence[Bin]) -> float:
    """Mean distance of score and seen impact, by expected orders, 4 digits; a rise counts as an impact of 0."""
    weight = sum(item.expected for item in calibration)
    return round(sum(b.expected * abs(b.score - max(0.0, b.seen)) for b in calibration) / weight, 4)


def _seen(expected: Floats, observed: Floats) -> float:
    return round(float(1 - observed.sum() / expected.sum()), 4)


def _brier(score: Floats, expected: Floats, observed: Floats) -> float:
    share = 1 / (2 - score)
    loss = (expected * (1 - share) ** 2 + observed * share**2).sum()
    return round(float(loss / (expected + observed).sum()), 4)
