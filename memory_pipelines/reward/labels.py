"""Labels of the reward model: how far behaviour after an event fell from what ordinary moments predict.

Belongs here: control moments, expected orders, labels, and the table of reward events that joins them to features.
Does not belong here: features (``features``), learning (``fit``).

The counterfactual. *Control moments* are ordinary visits and orders of the same people, one per person and day at
most, chosen by hash, with nothing but idle talk in the 7 days before, so that no event is at work. They are
conditioned on the past alone: what follows a control may be anything, as after an event. Being visits and orders,
they come as often to busy people as events do. Like people are people with a like rate of orders; the season is the
ratio of seen to usual orders of all controls of the week:

    expected = mean orders after controls of the rate class · season
    label    = clip((expected − observed) / max(expected, 0.5), 0, 1)

Only falls count: a rise of the same size is within the noise of a few orders a week, and its sign would be lost.
"""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.model import INSTANT, stable_hash
from memory_pipelines.reward.features import (
    DAY,
    WEEK,
    Moments,
    World,
    build_world,
    feature_matrix,
    orders_after,
    own_rate,
    rule_40,
    unique_behaviour,
    unique_events,
)
from memory_pipelines.reward.timeline import Floats, Ints
from memory_pipelines.tables import REWARD_EVENTS

RATE_EDGES = (0.25, 0.375, 0.5, 0.625, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Borders of the classes of own orders a week."""
MIN_CONTROLS = 30
"""A rate class with fewer controls tells nothing."""
SEASON_PRIOR = 50.0
"""A week's season is shrunk towards 1 as if by this many expected orders."""
LEAST_EXPECTED = 0.5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reward_events(events: pa.Table, behaviour: pa.Table, as_of: datetime) -> pa.Table:
    """``tables.REWARD_EVENTS`` rows of all events before ``as_of``, in order of (owner, time, id).

    ``events``: tenant, subject, exchange_id, occurred_at, intent, category, emotion_score, owner, bucket;
    ``behaviour``: rows of ``tables.BEHAVIOUR``. Like people are found among the people given, so give all of them.
    Nothing at or after ``as_of`` is read. Where a rate class has too few controls, ``expected`` is null and the
    40 % rule of thumb is the label.
    """
    known = unique_events(events, as_of)
    world, moments = build_world(known, unique_behaviour(behaviour, as_of))
    now = (as_of - EPOCH) // INSTANT
    closed = moments.at + WEEK <= now
    matrix = feature_matrix(world, moments, known, closed)
    expected = expected_orders(world, moments, now)
    observed = orders_after(world, moments)
    before = world.kinds["order"].total(moments.owners, moments.at - WEEK, moments.at)
    compensated = world.kinds["coupon"].total(moments.owners, moments.at, moments.at + WEEK - 1) > 0
    fall = np.clip((expected - observed) / np.maximum(expected, LEAST_EXPECTED), 0, 1)
    label = np.where(np.isnan(expected), rule_40(before, observed, compensated), fall)
    flat = pa.array(matrix.ravel())
    offsets = pa.array(np.arange(len(moments) + 1, dtype=np.int32) * matrix.shape[1])
    columns = {
        "features": pa.ListArray.from_arrays(offsets, flat),
        "window_closed": pa.array(closed),
        "expected": _nullable(expected, closed & ~np.isnan(expected)),
        "observed": _nullable(observed, closed),
        "label": _nullable(label, closed),
    }
    return pa.table(
        {
            field.name: columns[field.name] if field.name in columns else known.column(field.name).cast(field.type)
            for field in REWARD_EVENTS.schema
        },
        schema=REWARD_EVENTS.schema,
    )


def _nullable(values: Floats, valid: NDArray[np.bool_]) -> pa.Array:
    return pa.array(np.round(values, 4), mask=~valid)


def control_moments(world: World) -> Moments:
    """Ordinary visits and orders: of one person and day the one with the smallest hash of its id."""
    rows = world.behaviour
    rows = rows.filter(pc.is_in(rows.column("kind"), value_set=pa.array(["order", "visit"])))
    owners = np.asarray(rows.column("code").to_numpy(), dtype=np.int64)
    at = np.asarray(rows.column("at").to_numpy(), dtype=np.int64)
    quiet = world.serious.total(owners, at - WEEK, at) == 0
    quiet &= world.kinds["churn"].up_to(owners, at) == 0
    owners, at = owners[quiet], at[quiet]
    ids = rows.filter(pa.array(quiet)).column("event_id").to_pylist()
    draw = np.array([int(stable_hash("control", name)[:15], 16) for name in ids], dtype=np.int64)
    day = at // DAY
    order = np.lexsort((at, draw, day, owners))
    owners, at, day = owners[order], at[order], day[order]
    first = np.ones(len(at), dtype=bool)
    first[1:] = (owners[1:] != owners[:-1]) | (day[1:] != day[:-1])
    return Moments(owners[first], at[first])


def expected_orders(world: World, moments: Moments, now: int) -> Floats:
    """Orders that like people make in the 7 days after an ordinary moment of the same week; NaN: too few controls."""
    controls = control_moments(world)
    past = controls.at + WEEK <= now
    controls = Moments(controls.owners[past], controls.at[past])
    seen = orders_after(world, controls)
    cell = np.searchsorted(RATE_EDGES, own_rate(world, controls))
    size = len(RATE_EDGES) + 1
    number = np.bincount(cell, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(number >= MIN_CONTROLS, np.bincount(cell, seen, size) / number, np.nan)
    expected: Floats = mean[np.searchsorted(RATE_EDGES, own_rate(world, moments))]
    return expected * _season(controls, seen, mean[cell], moments.at)


def _season(controls: Moments, seen: Floats, usual: Floats, at: Ints) -> Floats:
    """Seen over usual orders after the controls of each moment's calendar week, shrunk towards 1."""
    if not len(at) or not len(controls):
        return np.ones(len(at))
    known = ~np.isnan(usual)
    week, asked = controls.at // WEEK, at // WEEK
    first = min(int(week.min()), int(asked.min()))
    size = max(int(week.max()), int(asked.max())) - first + 1
    numerator = np.bincount(week[known] - first, seen[known], size) + SEASON_PRIOR
    denominator = np.bincount(week[known] - first, usual[known], size) + SEASON_PRIOR
    season: Floats = (numerator / denominator)[asked - first]
    return season
