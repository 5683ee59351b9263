"""Labels of the reward model: how far behaviour after an event fell from what ordinary moments predict.

Belongs here: labels, and the table of reward events that joins them to features. Does not belong here: features
(``features``), what is expected (``controls``), learning (``fit``).

Humans decide where they have annotated an event. Else the counterfactual, with the expected orders of ``controls``:

    label = clip((expected − observed) / max(expected, 0.5), 0, 1)

Only falls count: a rise of the same size is within the noise of a few orders a week, and its sign would be lost.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memory_pipelines.model import INSTANT
from memory_pipelines.reward.controls import expected_orders
from memory_pipelines.reward.features import feature_matrix, rule_40
from memory_pipelines.reward.timeline import Floats
from memory_pipelines.reward.world import (
    WEEK,
    Moments,
    World,
    build_world,
    orders_after,
    unique_behaviour,
    unique_events,
)
from memory_pipelines.tables import REWARD_EVENTS

LEAST_EXPECTED = 0.5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reward_events(
    events: pa.Table,
    behaviour: pa.Table,
    as_of: datetime,
    annotations: Mapping[tuple[str, str], float] | None = None,
    others: Mapping[str, Collection[str]] | None = None,
) -> pa.Table:
    """``tables.REWARD_EVENTS`` rows of all events before ``as_of``, in order of (owner, time, id).

    ``events``: tenant, subject, exchange_id, occurred_at, intent, category, emotion_score, owner, bucket;
    ``behaviour``: rows of ``tables.BEHAVIOUR``. Like people are found among the people given, so give all of them.
    Nothing at or after ``as_of`` is read. Where there are too few controls, ``expected`` is null and the 40 % rule
    of thumb is the label. ``annotations``: (owner, exchange id) → impact by humans, which then is the label.
    ``others``: owner → the person's other subjects, whose behaviour is among the owner's rows (``events_of_persons``).
    """
    known, world, moments = _known(events, behaviour, as_of, others)
    now = (as_of - EPOCH) // INSTANT
    closed = moments.at + WEEK <= now
    expected = expected_orders(world, moments, now)
    observed = orders_after(world, moments)
    before = world.kinds["order"].total(moments.owners, moments.at - WEEK, moments.at)
    compensated = world.kinds["coupon"].total(moments.owners, moments.at, moments.at + WEEK - 1) > 0
    fall = np.clip((expected - observed) / np.maximum(expected, LEAST_EXPECTED), 0, 1)
    label = np.where(np.isnan(expected), rule_40(before, observed, compensated), fall)
    human = _annotated(known, annotations or {})
    label = np.where(np.isnan(human), label, human)
    columns = {
        "features": _lists(feature_matrix(world, moments, known, closed)),
        "window_closed": pa.array(closed),
        "expected": _nullable(expected, closed & ~np.isnan(expected)),
        "observed": _nullable(observed, closed),
        "label": _nullable(label, closed),
        "annotated": pa.array(closed & ~np.isnan(human)),
    }
    return pa.table(
        {
            field.name: columns[field.name] if field.name in columns else known.column(field.name).cast(field.type)
            for field in REWARD_EVENTS.schema
        },
        schema=REWARD_EVENTS.schema,
    )


def event_features(events: pa.Table, behaviour: pa.Table, as_of: datetime) -> tuple[pa.Table, Floats]:
    """The events of ``reward_events``, in the same order, and their features; of any part of the people."""
    known, world, moments = _known(events, behaviour, as_of)
    closed = moments.at + WEEK <= (as_of - EPOCH) // INSTANT
    return known, feature_matrix(world, moments, known, closed)


def _known(
    events: pa.Table, behaviour: pa.Table, as_of: datetime, others: Mapping[str, Collection[str]] | None = None
) -> tuple[pa.Table, World, Moments]:
    known = unique_events(events, as_of)
    world, moments = build_world(known, unique_behaviour(behaviour, as_of), others)
    return known, world, moments


def _annotated(events: pa.Table, annotations: Mapping[tuple[str, str], float]) -> Floats:
    if not annotations:
        return np.full(events.num_rows, np.nan)
    keys = zip(events["owner"].to_pylist(), events["exchange_id"].to_pylist(), strict=True)
    return np.array([annotations.get(key, np.nan) for key in keys], dtype=np.float64)


def _lists(matrix: Floats) -> pa.Array:
    offsets = pa.array(np.arange(len(matrix) + 1, dtype=np.int32) * matrix.shape[1])
    return pa.ListArray.from_arrays(offsets, pa.array(matrix.ravel()))


def _nullable(values: Floats, valid: NDArray[np.bool_]) -> pa.Array:
    return pa.array(np.round(values, 4), mask=~valid)
