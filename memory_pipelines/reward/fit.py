"""Fitting the reward model, and the model itself as one text.

Belongs here: training, prediction, the text form. Does not belong here: labels (``labels``), judging (``evaluate``).

What is learned. Of an event with features x, E expected and O observed orders, let m(x) be the rate ratio O / E that
x implies; decision impact is the fall 1 − m, in [0, 1]. m is estimated as a density ratio (Sugiyama, Suzuki & Kanamori
2012): a classifier that tells E expected orders from O observed ones has p = E / (E + O) = 1 / (1 + m). So LightGBM's
``cross_entropy`` is fitted on p with weight E + O, and impact = 2 − 1 / p. This has no bias from orders that chance
alone makes few, which a regression on the clipped label of a single event has.

Features that say how much a person buys anyway (own rate, orders before, ...) act through E alone: as splits they
would explain the errors of E. Features that are made of O itself (orders after, repurchase, the 40 % rule) are left
out too: they would give the label back, chance and all; so would contacts after, since most contacts follow an order.
Trees start from impact 0, and regularisation pulls them there; their splits are drawn at random (Geurts, Ernst &
Wehenkel 2006), which a target that is mostly chance asks for. Both stages of each event are learned from: with all
features (final) and with those of the window after it unknown (provisional).
"""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError, PermanentError
from memory_pipelines.model import canonical_json, stable_hash
from memory_pipelines.reward.features import AFTER, NAMES
from memory_pipelines.reward.labels import LEAST_EXPECTED
from memory_pipelines.reward.timeline import Floats, floats
from memory_pipelines.reward.world import IDLE

if TYPE_CHECKING:
    import lightgbm

FORMAT = 1
FALL = 0.4
"""An event whose label is above this has changed what the person then did."""
MIN_EVENTS = 100
ANNOTATED_WEIGHT = 4.0
"""A human's label counts like so many orders: more than the one or two of a week, less than certainty."""
USED = {
    "intent": 0,
    "emotion": -1,
    "before_repeats": 0,
    "visit_change": -1,
    "dwell_change": -1,
    "bounce_change": 1,
    "after_coupons": -1,
    "after_refunds": 0,
    "after_cancels": 1,
    "after_repeats": 1,
    "churned": 1,
    "compensated": -1,
    "soon_emotion": -1,
    "after_emotion": -1,
}
"""What the model sees, with the sign by which a feature may move impact (0: either way)."""
ROUNDS = 100
PARAMETERS: dict[str, Any] = {
    "objective": "cross_entropy",
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 30,
    "lambda_l2": 10.0,
    "extra_trees": True,
    "boost_from_average": False,
    "feature_fraction": 0.8,
    "min_data_per_group": 20,
    "monotone_constraints": list(USED.values()),
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 7,
    "verbose": -1,
}


class InsufficientDataError(PermanentError):
    """There is nothing to learn or to judge: too few events, or all of one class."""


@dataclass(frozen=True)
class RewardModel:
    """A fitted model. ``body`` is its whole text (JSON around LightGBM's text form)."""

    body: str

    @property
    def model_id(self) -> str:
        return stable_hash(self.body)

    @cached_property
    def _parts(self) -> dict[str, Any]:
        try:
            parts: dict[str, Any] = json.loads(self.body)
            if parts["format"] == FORMAT and set(parts["used"]) <= set(NAMES) and {"intents", "booster"} <= set(parts):
                return parts
        except (ValueError, KeyError, TypeError):
            pass
        raise IntegrityError("the text is no reward model of this version")

    @cached_property
    def booster(self) -> "lightgbm.Booster":
        """LightGBM's model; parsed once. Raises IntegrityError on a broken text."""
        import lightgbm

        try:
            return lightgbm.Booster(model_str=self._parts["booster"])
        except lightgbm.basic.LightGBMError:
            raise IntegrityError("the text is no reward model of this version") from None

    def predict(self, features: Floats) -> Floats:
        """Decision impact in [0, 1], 4 digits, of each row of features (columns as ``features.NAMES``).

        Rows are final where the features of the window after are known, provisional where they are NaN.
        """
        if not len(features):
            return np.zeros(0)
        columns = _columns(features, self._parts["intents"], self.used)
        share = np.asarray(self.booster.predict(columns, num_threads=1), dtype=np.float64)
        return np.asarray(np.round(np.clip(2 - 1 / np.maximum(share, 0.5), 0, 1), 4), dtype=np.float64)

    @property
    def used(self) -> list[str]:
        """The features that the model sees."""
        names: list[str] = self._parts["used"]
        return names

    def contributions(self, features: Floats) -> Floats:
        """Logarithms of the factors that each of ``used``, and last the start, give to the rate ratio m of each row:
        Shapley values of the trees. Their sum is log m, and impact = 1 − m where that lies in [0, 1]."""
        if not len(features):
            return np.zeros((0, len(self.used) + 1))
        columns = _columns(features, self._parts["intents"], self.used)
        odds = np.asarray(self.booster.predict(columns, pred_contrib=True, num_threads=1), dtype=np.float64)
        return -odds

    def gain(self) -> dict[str, float]:
        """Share of the total gain of each used feature, largest first."""
        gains = self.booster.feature_importance("gain")
        total = float(gains.sum()) or 1.0
        shares = {name: round(float(gain) / total, 4) for name, gain in zip(self.used, gains, strict=True)}
        return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def feature_rows(events: pa.Table) -> Floats:
    """The ``features`` of ``tables.REWARD_EVENTS`` rows as a matrix. Raises IntegrityError on another width."""
    flat = events.column("features").combine_chunks().flatten()
    if len(flat) != events.num_rows * len(NAMES):
        raise IntegrityError(f"reward events do not have {len(NAMES)} features each; build them anew")
    matrix: Floats = np.asarray(flat.to_numpy(zero_copy_only=False), dtype=np.float64).reshape(-1, len(NAMES))
    return matrix


def provisional(features: Floats) -> Floats:
    """The same rows as they were known at the moment of the event."""
    known = features.copy()
    known[:, [NAMES.index(name) for name in AFTER]] = np.nan
    return known


def telling(events: pa.Table) -> pa.Table:
    """``tables.REWARD_EVENTS`` rows whose outcome is known and their own.

    Left out: open windows, and idle talk (a greeting before a complaint) while something serious is at work.
    """
    rows = events.filter(events.column("window_closed"))
    idle = pc.is_in(rows.column("category"), value_set=pa.array(IDLE)).to_numpy()
    beside = feature_rows(rows)[:, NAMES.index("beside")] > 0
    return rows.filter(pa.array(~(idle & beside)))


def fit(events: pa.Table) -> RewardModel:
    """Learn from the ``telling`` rows of ``tables.REWARD_EVENTS``; row order does not matter.

    Raises InsufficientDataError: fewer than ``MIN_EVENTS`` of them, or all labels on one side of ``FALL``.
    """
    import lightgbm

    rows = telling(events).sort_by([(name, "ascending") for name in ("owner", "occurred_at", "exchange_id")])
    fell = floats(rows.column("label")) > FALL
    if rows.num_rows < MIN_EVENTS:
        raise InsufficientDataError(f"{rows.num_rows} events with a known outcome; {MIN_EVENTS} are needed")
    if fell.all() or not fell.any():
        raise InsufficientDataError(f"all of {rows.num_rows} events have labels on one side of {FALL}")
    features = feature_rows(rows)
    intents = sorted({int(code) for code in features[:, NAMES.index("intent")]})
    both = np.vstack([features, provisional(features)])
    share, weight = _targets(rows)
    data = lightgbm.Dataset(
        _columns(both, intents, list(USED)),
        np.tile(share, 2),
        weight=np.tile(weight, 2),
        feature_name=list(USED),
        categorical_feature=["intent"],
    )
    booster = lightgbm.train(PARAMETERS, data, ROUNDS)
    parts = {"format": FORMAT, "used": list(USED), "intents": intents, "booster": booster.model_to_string()}
    return RewardModel(canonical_json(parts))


def _targets(rows: pa.Table) -> tuple[Floats, Floats]:
    """Share E / (E + O) and weight E + O; a human's label stands for it with much weight, and where E is unknown the
    fall-back's with little."""
    expected, observed, label = (floats(rows.column(name)) for name in ("expected", "observed", "label"))
    known = ~np.isnan(expected) & (expected + observed > 0)
    human = pc.fill_null(rows.column("annotated"), False).to_numpy()
    known &= ~human
    weight = np.where(known, expected + observed, np.where(human, ANNOTATED_WEIGHT, LEAST_EXPECTED))
    share = np.where(known, expected, 1 / (2 - label)) / np.where(known, weight, 1.0)
    return share, weight


def _columns(features: Floats, intents: list[int], used: list[str]) -> NDArray[np.float64]:
    """The used columns; intents as positions in the list that was learned from, NaN for any other."""
    if features.shape[1] != len(NAMES):
        raise IntegrityError(f"a row has {features.shape[1]} features, not {len(NAMES)}")
    columns = features[:, [NAMES.index(name) for name in used]]
    at = used.index("intent")
    known = np.asarray(intents, dtype=np.float64)
    place = np.minimum(np.searchsorted(known, columns[:, at]), len(known) - 1)
    columns[:, at] = np.where(known[place] == columns[:, at], place, np.nan)
    return columns
