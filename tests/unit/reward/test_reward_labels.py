"""Labels: controls, expected orders, the season, and the fall-back."""

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from reward_world import ANN, BASE, BOB, NAMES, Row, behaviour_table, deed, event, events_table, rewarded

from memory_pipelines.model import Owner
from memory_pipelines.reward.controls import MIN_CONTROLS, control_moments
from memory_pipelines.reward.labels import event_features, reward_events
from memory_pipelines.reward.world import build_world, unique_behaviour, unique_events
from memory_pipelines.slices.events import events_of_persons

FAR = BASE + timedelta(days=30)
RHYTHM = range(-80, 41, 5)
"""Days of orders: 1.4 a week, so one or two in any 7 days."""


def crowd(count: int, *, stop: int = 99) -> list[Row]:
    """People who visit and order every fifth day; from ``stop`` on they only visit."""
    owners = [Owner("acme", f"u:{number}") for number in range(count)]
    orders = [deed("order", day, owner=o, value=9.0) for o in owners for day in RHYTHM if day < stop]
    return orders + [deed("visit", day - 1, owner=o) for o in owners for day in RHYTHM]


def controls(events: list[Row], deeds: list[Row]) -> set[tuple[int, float]]:
    """(owner code, days since BASE) of the control moments."""
    world, _ = build_world(unique_events(events_table(events), FAR), unique_behaviour(behaviour_table(deeds), FAR))
    found = control_moments(world)
    base = BASE.timestamp() * 1e6
    return {(int(o), round((int(at) - base) / 86_400e6, 4)) for o, at in zip(found.owners, found.at, strict=True)}


def test_ordinary_moments_are_visits_and_orders_with_nothing_serious_in_the_week_before() -> None:
    deeds = [
        deed(kind, day) for kind, day in (("visit", -1), ("order", 1), ("visit", 6.9), ("order", 8), ("coupon", 9))
    ]
    assert {at for _, at in controls([event("a")], deeds)} == {-1, 8}
    assert {at for _, at in controls([event("a", intent="product_inquiry")], deeds)} == {-1, 1, 6.9, 8}


def test_who_has_churned_has_no_ordinary_moments_any_more() -> None:
    assert {at for _, at in controls([], [deed("visit", 0), deed("churn", 1), deed("visit", 2)])} == {0}


def test_one_control_a_day_and_person_always_the_same_one() -> None:
    deeds = [deed("visit", hour / 24, name=f"v{hour}") for hour in range(12)]
    assert len(controls([], deeds)) == 1
    assert controls([], deeds) == controls([], deeds[::-1]) == controls([], [*deeds, *deeds])


def joined(deeds: list[Row], *person: Owner) -> tuple[pa.Table, dict[str, set[str]]]:
    """Behaviour of whom identity links join, and who they are."""
    others = {owner.key: {o.key for o in person if o != owner} for owner in person}
    return events_of_persons(behaviour_table(deeds), others), others


def test_a_person_of_several_subjects_has_ordinary_moments_once() -> None:
    phone = Owner("acme", "d:phone")
    behaviour, others = joined([deed("visit", 1), deed("visit", 12, owner=phone), deed("order", 20)], ANN, phone)
    talk = unique_events(events_table([event("a", owner=phone), event("b", 18, "greeting")]), FAR)
    found = control_moments(build_world(talk, unique_behaviour(behaviour, FAR), others)[0])
    days = [round((int(at) / 1e6 - BASE.timestamp()) / 86_400, 4) for at in found.at]
    assert (len(set(found.owners)), days) == (1, [12, 20]), "the first visit comes after a complaint on the phone"


def test_no_subject_of_a_person_decides_what_is_expected_of_another() -> None:
    devices = [Owner("acme", f"d:{number}") for number in range(6)]
    busy = [deed("order", day / 2, owner=ANN) for day in range(-160, 81)]
    quiet = crowd(60)
    behaviour, others = joined([*quiet, *busy], ANN, *devices)
    said = [event(f"on {owner.subject}", 0.5, owner=owner) for owner in (ANN, *devices)]
    rows = reward_events(events_table(said), behaviour, FAR, None, others).to_pylist()
    assert {row["expected"] for row in rows} == {rows[0]["expected"]}
    assert {row["observed"] for row in rows} == {13}


def test_scoring_a_part_of_the_people_reads_the_features_of_training() -> None:
    phone = Owner("acme", "d:phone")
    deeds = [*crowd(MIN_CONTROLS), deed("order", -1), deed("refund", 2, owner=phone)]
    said = [event("a", owner=ANN), event("p", 0.5, owner=phone), event("b", owner=BOB)]
    behaviour, others = joined(deeds, ANN, phone)
    rows = {row["owner"]: row for row in reward_events(events_table(said), behaviour, FAR, None, others).to_pylist()}
    alone, _ = joined([row for row in deeds if row["owner"] in (ANN.key, phone.key)], ANN, phone)
    assert str(rows[phone.key]["features"]) == str(event_features(events_table(said[1:2]), alone, FAR)[1][0].tolist())
    assert rows[ANN.key]["features"][NAMES.index("after_refunds")] == 1


def test_expected_orders_are_those_of_like_people() -> None:
    ann = [deed("order", day) for day in RHYTHM if day <= 0]  # stops after the event
    row = rewarded([event("a", 0.5)], [*crowd(MIN_CONTROLS), *ann], FAR)["a"]
    # after an order there is one more within 7 days, a day before it there are two: 1.5; on that day all have ordered
    assert 1 < row["expected"] < 1.4
    assert row["observed"] == 0
    assert row["label"] == 1.0
    went_on = [deed("order", day) for day in RHYTHM]
    row = rewarded([event("a", 0.5)], [*crowd(MIN_CONTROLS), *went_on], FAR)["a"]
    assert row["observed"] == 1
    assert row["label"] == pytest.approx(1 - 1 / row["expected"], abs=1e-3)


def test_with_many_controls_the_rhythm_of_like_people_is_expected() -> None:
    people = [Owner("acme", f"u:{number}") for number in range(100)]
    shifted = [deed("order", day + n % 5, owner=o) for n, o in enumerate(people) for day in RHYTHM]
    shifted += [deed("visit", day + n % 5 - 1, owner=o) for n, o in enumerate(people) for day in RHYTHM]
    ann = [deed(kind, day - (kind == "visit")) for kind in ("order", "visit") for day in RHYTHM if day <= 0]
    after = rewarded([event("a", 0.01)], [*shifted, *ann], FAR)["a"]["expected"]
    before = rewarded([event("a", -0.99)], [*shifted, *ann], FAR)["a"]["expected"]
    assert after == pytest.approx(1, abs=0.15)
    assert before == pytest.approx(2, abs=0.2)


def test_a_persons_own_controls_do_not_decide_what_is_expected_of_them() -> None:
    usual = [deed("order", day) for day in RHYTHM if day <= 0]
    later = [deed("order", day) for day in (1, 2, 3, 4)]
    found = [rewarded([event("a", 0.5)], [*crowd(40), *usual, *more], FAR)["a"] for more in ([], later)]
    assert found[0]["expected"] == pytest.approx(found[1]["expected"], rel=0.05), "but for the season"
    assert [row["observed"] for row in found] == [0, 4]


def test_more_orders_than_expected_are_no_fall() -> None:
    more = [deed("order", day) for day in (*RHYTHM, 1, 2, 3)]
    assert rewarded([event("a", 0.5)], [*crowd(MIN_CONTROLS), *more], FAR)["a"]["label"] == 0


def test_a_week_in_which_everybody_orders_less_expects_less() -> None:
    ann = [deed("order", day) for day in RHYTHM if day <= 0]
    usual = rewarded([event("a", 0.5)], [*crowd(200), *ann], FAR)["a"]["expected"]
    pause = rewarded([event("a", 0.5)], [*crowd(200, stop=1), *ann], FAR)["a"]["expected"]
    assert pause < 0.6 * usual


def test_without_controls_the_forty_percent_rule_is_the_label() -> None:
    fell = rewarded([event("a")], [deed("order", -1)])["a"]
    assert (fell["expected"], fell["observed"], fell["label"]) == (None, 0, 1)
    bought = rewarded([event("a")], [deed("order", -1), deed("order", 2)])["a"]
    assert (bought["expected"], bought["observed"], bought["label"]) == (None, 1, 0)
    nothing = rewarded([event("a")], [])["a"]
    assert (nothing["expected"], nothing["label"]) == (None, 0)


def test_an_open_window_has_no_label() -> None:
    deeds = [*crowd(MIN_CONTROLS), deed("order", -1)]
    row = rewarded([event("a")], deeds, BASE + timedelta(days=6))["a"]
    assert not row["window_closed"]
    assert row["expected"] is row["observed"] is row["label"] is None


def test_a_label_does_not_depend_on_the_order_of_rows() -> None:
    events = [event("a", 0.5), event("b", 9, "praise")]
    deeds = [*crowd(MIN_CONTROLS), deed("order", -1)]
    mixed = [deeds[i] for i in np.random.default_rng(1).permutation(len(deeds))]
    assert str(rewarded(events, deeds, FAR)) == str(rewarded(events[::-1], mixed, FAR))
