"""Nothing is known before it happened: a check that compares what was known then with what is known now, on the real
features and on ones in which a leak was planted."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from reward_world import BASE, FAR, Row, behaviour_table, deed, event, events_table

from memory_pipelines.reward import features, habits, labels
from memory_pipelines.reward.features import AFTER, BEFORE, MOMENT, NAMES
from memory_pipelines.reward.labels import event_features
from memory_pipelines.reward.timeline import Floats
from memory_pipelines.reward.world import DAY, Moments, World

DEEDS: list[Row] = [
    deed("order", -30, value=8.0),
    deed("visit", -2, dwell_seconds=60.0, bounce=True),
    deed("order", -1, value=9.0),
    *(
        deed(kind, days, value=5.0, dwell_seconds=9.0, bounce=False)
        for days in (0.01, 0.5, 3, 6.5, 8, 20)
        for kind in ("order", "visit", "coupon", "refund", "cancel")
    ),
    deed("churn", 6),
]
EVENTS = [event("a"), event("b", 0.02), event("c", 2, "praise", emotion=0.9), event("d", 9)]


def leaks() -> set[str]:
    """Features of event ``a`` that tell more than was known when it happened, or than its closed window holds."""
    moment, closed = BASE + timedelta(microseconds=1), BASE + timedelta(days=7)
    then, now, later = (_known(at) for at in (moment, closed, FAR))
    found = {name for name in (*BEFORE, *MOMENT) if _differ(then[name], later[name])}
    found |= {name for name in AFTER if not math.isnan(then[name])}
    return found | {name for name in NAMES if _differ(now[name], later[name])}


def _known(as_of: datetime) -> dict[str, float]:
    rows, matrix = event_features(events_table(EVENTS), behaviour_table(DEEDS), as_of)
    return dict(zip(NAMES, matrix[rows["exchange_id"].to_pylist().index("a")].tolist(), strict=True))


def _differ(one: float, other: float) -> bool:
    return one != other and not (math.isnan(one) and math.isnan(other))


def test_no_feature_reads_past_its_moment() -> None:
    assert leaks() == set()


def patched(change: Callable[[World, Moments, dict[str, Floats]], Mapping[str, Floats]]) -> Callable[..., Any]:
    whole = habits.habits

    def leaky(world: World, moments: Moments) -> dict[str, Floats]:
        found = whole(world, moments)
        return found | dict(change(world, moments, found))

    return leaky


@pytest.mark.parametrize(
    ("planted", "change"),
    [
        ("orders_28", lambda w, m, f: {"orders_28": w.kinds["order"].total(m.owners, m.at - 28 * DAY, m.at + DAY)}),
        (
            "orders_so_far",
            lambda w, m, f: {"orders_so_far": w.kinds["order"].up_to(m.owners, m.at + DAY).astype(float)},
        ),
        ("since_visit_days", lambda w, m, f: {"since_visit_days": w.kinds["visit"].next(m.owners, m.at) / DAY}),
        ("own_hours", lambda w, m, f: {"own_hours": w.anything.up_to(m.owners, m.at + 30 * DAY) / 100}),
    ],
)
def test_a_leak_in_the_habits_is_caught(planted: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "habits", patched(change))
    assert leaks() == {planted}


def test_a_window_that_is_read_before_it_has_closed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = features.feature_matrix

    def leaky(world: World, moments: Moments, events: pa.Table, closed: Any) -> Floats:
        return whole(world, moments, events, np.ones_like(closed))

    monkeypatch.setattr(labels, "feature_matrix", leaky)
    assert leaks() >= {"after_orders", "dwell_change", "churned", "compensated", "rule_40"}


def test_a_window_that_is_a_day_too_long_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "WEEK", features.WEEK + 2 * DAY)
    assert "after_orders" in leaks()
