"""Features: values by hand, windows and their borders, gaps, and nothing from the future."""

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reward_world import ANN, BASE, BOB, Row, behaviour_table, deed, event, events_table, rewarded

from memory_pipelines.reward.features import AFTER, BEFORE, MOMENT, NAMES, intent_code, rule_40
from memory_pipelines.reward.labels import reward_events
from memory_pipelines.reward.timeline import Timeline
from memory_pipelines.tables import REWARD_EVENTS

SECOND = 1 / 86_400


def features(events: list[Row], deeds: list[Row], as_of: datetime | None = None) -> dict[str, float]:
    made = rewarded(events, deeds, as_of) if as_of else rewarded(events, deeds)
    values: dict[str, float] = made["a"]["features"]
    return values


def test_names_are_each_in_one_group() -> None:
    assert (*BEFORE, *MOMENT, *AFTER) == NAMES
    assert len(set(NAMES)) == len(NAMES) == 49


def test_values_by_hand() -> None:
    deeds = [
        deed("order", -21, value=5.0),
        deed("order", -3, value=10.5),
        deed("visit", -2, dwell_seconds=100.0, bounce=False),
        deed("visit", -1, dwell_seconds=50.0, bounce=True),
        deed("visit", -0.5),
        deed("coupon", 0.1, value=10.0),
        deed("refund", 1, value=10.5),
        deed("cancel", 2),
        deed("order", 2.5, value=7.0),
        deed("visit", 3, dwell_seconds=20.0, bounce=True),
    ]
    events = [event("a"), event("b", 1), event("c", -1, "greeting"), event("d", 2, "praise")]
    found = features(events, deeds)
    rate, visits = (2 + 1) / (3 + 2), (3 + 1) / (3 + 2)
    assert found == pytest.approx(
        {
            "before_orders": 1,
            "before_spend": 10.5,
            "before_visits": 3,
            "before_dwell": 75,
            "before_bounce": 0.5,
            "before_coupons": 0,
            "before_refunds": 0,
            "before_cancels": 0,
            "before_contacts": 2,
            "before_repeats": 1,
            "weekly_rate": rate,
            "since_order_days": 3,
            "orders_so_far": 2,
            "orders_28": 2,
            "orders_91": 2,
            "gap_days": 18,
            "last_gap_days": 18,
            "gap_ratio": round(3 / 18, 4),
            "tenure_days": 21,
            "visits_28": 3,
            "since_visit_days": 0.5,
            "own_hours": 0.8,  # all at 8 in the morning but for the last visit, at 20
            "value_ratio": 1,
            "rate_change": round((1 - rate) / (2 + rate), 4),
            "emotion": -0.5,
            "intent": intent_code("logistics_complaint"),
            "hour": 8,
            "weekday": 4,
            "after_orders": 1,
            "after_spend": 7,
            "after_visits": 1,
            "after_dwell": 20,
            "after_bounce": 1,
            "after_coupons": 1,
            "after_refunds": 1,
            "after_cancels": 1,
            "after_contacts": 2,
            "after_repeats": 1,
            "churned": 0,
            "compensated": 1,
            "repurchase_days": 2.5,
            "habit_change": round((1 - rate) / (2 + rate), 4),
            "visit_change": round((1 - visits) / (2 + visits), 4),
            "dwell_change": round((20 - 75) / 95, 4),
            "bounce_change": 0.5,
            "rule_40": 0,
            "beside": 0,
            "soon_emotion": math.nan,
            "after_emotion": -0.5,
        },
        abs=1e-9,
        nan_ok=True,
    )


def test_an_event_without_any_behaviour_has_counts_of_0_and_unknown_means() -> None:
    found = features([event("a")], [])
    assert found["before_orders"] == found["after_orders"] == found["after_spend"] == found["churned"] == 0
    assert found["weekly_rate"] == 0.5  # the prior
    for name in ("before_dwell", "before_bounce", "after_dwell", "after_bounce", "since_order_days", "repurchase_days"):
        assert math.isnan(found[name]), name


def test_windows_end_at_the_moment_and_just_before_seven_days_after() -> None:
    borders = [deed("order", days, value=1.0) for days in (-7, -7 + SECOND, 0, SECOND, 7 - SECOND, 7)]
    found = features([event("a")], borders)
    assert (found["before_orders"], found["after_orders"]) == (2, 2)
    assert found["since_order_days"] == 0
    assert found["repurchase_days"] == round(SECOND, 4)


def test_nobody_who_buys_after_the_window_has_bought_again() -> None:
    assert math.isnan(features([event("a")], [deed("order", 7.5)])["repurchase_days"])


def test_who_unsubscribes_has_left_and_a_call_is_a_contact() -> None:
    found = features(
        [event("a")], [deed("unsubscribe", 1), deed("contact", -1), deed("contact", 2), deed("contact", 3)]
    )
    assert (found["churned"], found["before_contacts"], found["after_contacts"]) == (1, 2, 2)
    assert math.isnan(found["after_emotion"]), "nobody heard them"


def test_an_open_window_shows_nothing_of_it() -> None:
    deeds = [deed("order", -1), deed("order", 1), deed("churn", 2), deed("coupon", 0.1)]
    almost = BASE + timedelta(days=7) - timedelta(microseconds=1)
    found = features([event("a")], deeds, almost)
    assert all(math.isnan(found[name]) for name in AFTER)
    assert found["before_orders"] == 1
    closed = features([event("a")], deeds, BASE + timedelta(days=7))
    assert closed["after_orders"] == closed["churned"] == closed["compensated"] == 1


def test_the_forty_percent_rule() -> None:
    before, after = np.array([5.0, 5.0, 5.0, 0.0, 5.0, 5.0]), np.array([3.0, 4.0, 0.0, 0.0, 1.0, 0.0])
    compensated = np.array([False, False, False, False, True, True])
    assert rule_40(before, after, compensated).tolist() == [1, 0, 1, 0, 0, 1]


def test_idle_talk_beside_something_serious() -> None:
    events = [event("a", intent="greeting"), event("b", 0.01), event("c", 3, "farewell"), event("d", 20, "greeting")]
    made = rewarded(events, [])
    assert {name: row["features"]["beside"] for name, row in made.items()} == {"a": 1, "b": 0, "c": 1, "d": 0}


def test_people_and_tenants_do_not_mix() -> None:
    deeds = [deed("order", 1, owner=BOB), deed("order", -1, owner=BOB)]
    made = rewarded([event("a"), event("b", owner=BOB)], deeds)
    assert made["a"]["features"]["after_orders"] == 0
    assert made["b"]["features"]["after_orders"] == made["b"]["features"]["before_orders"] == 1
    assert made["b"]["subject"] == "u:李雷"


def test_a_repeated_behaviour_event_counts_once_with_the_smallest_hash() -> None:
    twice = [
        deed("order", 1, name="o1", value=10.0, content_hash="b"),
        deed("order", 1, name="o1", value=20.0, content_hash="a"),
        deed("order", 1, name="o1", value=20.0, content_hash="a", position=7),
        deed("order", 1, name="o1", owner=BOB, value=99.0),
    ]
    found = features([event("a")], twice)
    assert (found["after_orders"], found["after_spend"]) == (1, 20)


def test_an_exchange_that_comes_twice_is_one_row_of_each_owner() -> None:
    made = reward_events(
        events_table([event("a"), event("a"), event("a", owner=BOB)]), behaviour_table([]), BASE + timedelta(days=1)
    )
    assert sorted(made["owner"].to_pylist()) == sorted([ANN.key, BOB.key])


def test_no_events_and_no_behaviour_make_an_empty_table() -> None:
    made = reward_events(events_table([]), behaviour_table([]), BASE)
    assert made.num_rows == 0
    assert made.schema == REWARD_EVENTS.schema


def test_amounts_beyond_reason_do_not_break_the_sums_of_others() -> None:
    deeds = [deed("order", 1, value=1e300), deed("order", 1, owner=BOB, value=12.34)]
    assert rewarded([event("b", owner=BOB)], deeds)["b"]["features"]["after_spend"] == 12.34


PAST = st.lists(
    st.tuples(st.sampled_from(["order", "visit", "coupon", "refund", "cancel", "churn"]), st.floats(-20, 20)),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(PAST, PAST, st.floats(0.5, 20), st.randoms())
def test_the_future_changes_nothing_and_order_neither(
    deeds: list[tuple[str, float]], planted: list[tuple[str, float]], days: float, shuffle: object
) -> None:
    as_of = BASE + timedelta(days=days)
    known = [deed(kind, at, name=f"k{i}") for i, (kind, at) in enumerate(deeds)]
    leaks = [deed(kind, days + abs(at), name=f"p{i}") for i, (kind, at) in enumerate(planted)]
    events = [event("a"), event("b", 0.4, "greeting")]
    plain = reward_events(events_table(events), behaviour_table(known), as_of)
    later = [event("later", days + 0.1)]
    mixed = [*known, *leaks]
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    assert str(reward_events(events_table([*later, *events[::-1]]), behaviour_table(mixed), as_of).to_pylist()) == str(
        plain.to_pylist()
    )


@settings(max_examples=60, deadline=None)
@given(PAST)
def test_what_is_known_at_the_moment_does_not_change_when_the_window_closes(deeds: list[tuple[str, float]]) -> None:
    rows = [deed(kind, at, name=f"k{i}") for i, (kind, at) in enumerate(deeds)]
    early = features([event("a")], rows, BASE + timedelta(seconds=1))
    late = features([event("a")], rows)
    for name in (*BEFORE, *MOMENT):
        assert early[name] == late[name] or (math.isnan(early[name]) and math.isnan(late[name])), name


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(-5, 5)), max_size=30),
    st.integers(0, 3),
    st.integers(-2, 22),
    st.integers(0, 10),
)
def test_a_timeline_agrees_with_counting(rows: list[tuple[int, int, int]], owner: int, after: int, length: int) -> None:
    owners, times, values = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    line = Timeline(owners, times, 4, values.astype(np.float64))
    who, at = np.array([owner]), np.array([after])
    inside = [value for o, t, value in rows if o == owner and after < t <= after + length]
    own = sorted(t for o, t, _ in rows if o == owner)
    assert line.total(who, at, at + length)[0] == sum(inside)
    assert line.up_to(who, at)[0] == sum(t <= after for t in own)
    before, behind = [t for t in own if t <= after], [t for t in own if t > after]
    assert str(line.last(who, at)[0]) == str(float(after - before[-1]) if before else math.nan)
    assert str(line.next(who, at)[0]) == str(float(behind[0] - after) if behind else math.nan)
    assert line.first(who)[0] == (own[0] if own else np.iinfo(np.int64).max)


def test_codes_of_intents_are_stable() -> None:
    assert intent_code("logistics_complaint") == intent_code("logistics_complaint") < 2**32
    assert intent_code("退款") != intent_code("refund_request")
