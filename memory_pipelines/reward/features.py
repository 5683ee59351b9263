"""Features of the reward model: what a person did in the 7 days before and after an event.

Belongs here: which features there are and how each is read from behaviour. Does not belong here: what is learned
from them (``fit``) or the outcome that they shall explain (``labels``).

The window before an event at t is (t − 7 d, t], the one after is (t, t + 7 d). Until the latter has closed, every
feature of it is NaN, so a provisional row is exactly what was known at t and no row changes once it is final.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.model import stable_hash
from memory_pipelines.reward.habits import HABITS, habits, own_rate
from memory_pipelines.reward.timeline import Floats, Ints, Timeline, floats
from memory_pipelines.reward.world import DAY, HOUR, IDLE, NEAR, WEEK, Moments, World

AROUND = ("orders", "spend", "visits", "dwell", "bounce", "coupons", "refunds", "cancels", "contacts", "repeats")
"""Of either window: numbers of events, sum of order values, mean dwell seconds and share of bounces among visits (NaN
without visits), exchanges, and exchanges of the same intent; the event itself is one of those before."""
BEFORE = tuple(f"before_{name}" for name in AROUND)
ONLY_AFTER = (
    "churned",
    "compensated",
    "repurchase_days",
    "habit_change",
    "visit_change",
    "dwell_change",
    "bounce_change",
    "rule_40",
    "beside",
    "soon_emotion",
    "after_emotion",
)
AFTER = (*(f"after_{name}" for name in AROUND), *ONLY_AFTER)
MOMENT = (*HABITS, "rate_change", "emotion", "intent", "hour", "weekday")
NAMES = (*BEFORE, *MOMENT, *AFTER)
"""The order of ``reward_events.features``. ``repurchase_days`` is NaN where nobody bought again within the window
(censored); changes compare with the person's own rate, mean dwell and share of bounces so far, and are 0 where there is
nothing to compare; ``beside`` counts other exchanges but idle ones from 7
days before to ``NEAR`` after; ``soon_emotion`` and ``after_emotion``: mean emotion of exchanges up to ``NEAR`` and 7
days after; ``intent`` is ``intent_code``; ``hour`` and ``weekday`` (Monday 0) are in UTC."""

FALL = 0.4
"""A rule of thumb: orders that fall by 40 % mean a high impact, unless compensated and resumed."""


def intent_code(intent: str) -> int:
    """A stable code below 2^32 of any intent: the list of intents may grow without a change of old codes."""
    return int(stable_hash("intent", intent)[:8], 16)


def _mean_emotion(world: World, moments: Moments, until: Ints) -> Floats:
    """Of the exchanges after each moment; NaN without any."""
    number = world.spoken.total(moments.owners, moments.at, until)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = world.felt.total(moments.owners, moments.at, until) / number
    return mean


def _change(seen: Floats, usual: Floats) -> Floats:
    """Of a week's count against the usual one, in (-1, 1)."""
    change: Floats = (seen - usual) / (seen + usual + 1)
    return change


def rule_40(before: Floats, after: Floats, compensated: NDArray[np.bool_]) -> Floats:
    """The rule of thumb: 1 where orders fell by 40 % or more, unless compensated and bought again; else 0."""
    fell = (before > 0) & (after <= (1 - FALL) * before)
    return np.where(fell & ~(compensated & (after > 0)), 1.0, 0.0)


def feature_matrix(world: World, moments: Moments, events: pa.Table, closed: NDArray[np.bool_]) -> Floats:
    """One row per event, columns as ``NAMES``, 4 digits; NaN: not known, or not known yet."""
    owners, at = moments.owners, moments.at
    intents = events.column("intent").combine_chunks().dictionary_encode()
    intent_index = np.asarray(intents.indices.to_numpy(), dtype=np.int64)
    names = intents.dictionary.to_pylist()
    pair = owners * max(1, len(names)) + intent_index
    same = Timeline(pair, at, world.owners * max(1, len(names)))
    found: dict[str, Floats] = {}
    for prefix, first, last in (("before", at - WEEK, at), ("after", at, at + WEEK - 1)):
        visits = world.kinds["visit"].total(owners, first, last)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean_dwell = world.dwell.total(owners, first, last) / world.dwelt.total(owners, first, last)
            bounces = world.bounce.total(owners, first, last) / world.bounced.total(owners, first, last)
        values = {
            "orders": world.kinds["order"].total(owners, first, last),
            "spend": world.spend.total(owners, first, last),
            "visits": visits,
            "dwell": mean_dwell,
            "bounce": bounces,
            "coupons": world.kinds["coupon"].total(owners, first, last),
            "refunds": world.kinds["refund"].total(owners, first, last),
            "cancels": world.kinds["cancel"].total(owners, first, last),
            "contacts": world.contacts.total(owners, first, last),
            "repeats": same.total(pair, first, last),
        }
        found |= {f"{prefix}_{name}": column for name, column in values.items()}
    serious = (~pc.is_in(events.column("category"), value_set=pa.array(IDLE)).to_numpy()).astype(np.float64)
    found |= habits(world, moments)
    rate, before, after = found["weekly_rate"], found["before_orders"], found["after_orders"]
    repurchase = world.kinds["order"].next(owners, at) / DAY
    compensated = found["after_coupons"] > 0
    dwell, bounce = found["after_dwell"], found["after_bounce"]
    always = np.full(len(at), -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        usual_dwell = world.dwell.total(owners, always, at) / world.dwelt.total(owners, always, at)
        usual_bounce = world.bounce.total(owners, always, at) / world.bounced.total(owners, always, at)
        dwell_change = (dwell - usual_dwell) / np.maximum(dwell + usual_dwell, 1.0)
    found |= {
        "rate_change": _change(before, rate),
        "emotion": floats(events.column("emotion_score")),
        "intent": np.array([intent_code(name) for name in names], dtype=np.float64)[intent_index],
        "hour": (at // HOUR % 24).astype(np.float64),
        "weekday": ((at // DAY + 3) % 7).astype(np.float64),  # 1970-01-01 was a Thursday
        "churned": world.kinds["churn"].total(owners, at, at + WEEK - 1),
        "compensated": compensated.astype(np.float64),
        "repurchase_days": np.where(repurchase < WEEK / DAY, repurchase, np.nan),
        "habit_change": _change(after, rate),
        "visit_change": _change(found["after_visits"], own_rate(world, moments, "visit")),
        "dwell_change": np.nan_to_num(dwell_change),
        "bounce_change": np.nan_to_num(bounce - usual_bounce),
        "rule_40": rule_40(before, after, compensated),
        "beside": world.serious.total(owners, at - WEEK, at + NEAR) - serious,
        "soon_emotion": _mean_emotion(world, moments, at + NEAR),
        "after_emotion": _mean_emotion(world, moments, at + WEEK - 1),
    }
    matrix = np.column_stack([found[name] for name in NAMES])
    matrix[np.ix_(~closed, np.isin(NAMES, AFTER))] = np.nan
    return np.round(matrix, 4)
