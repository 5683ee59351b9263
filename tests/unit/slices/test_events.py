"""Which exchanges are one event, and what followed it."""

import random
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from event_world import BASE, FAR, OWNER, Row, after, behaviour, deed, entity, labelled, rows_of, talk
from hypothesis import given
from hypothesis import strategies as st
from line_count import lines_run

from memory_pipelines.model import Owner, own_event_id
from memory_pipelines.slices import events
from memory_pipelines.slices.events import (
    FEEDBACK,
    events_of_persons,
    feedback_after,
    group_events,
    histories,
    labelled_exchanges,
    next_change,
    settled_events,
    words_of,
)
from memory_pipelines.tables import BEHAVIOUR, EMOTIONS, ENTITIES, EXCHANGES, INTENTS

SECOND = 1 / 3600


def groups(rows: list[Row]) -> list[list[str]]:
    return [[x.exchange_id for x in event] for event in group_events(labelled(rows).get(OWNER.key, []))]


def feedback(rows: list[Row], deeds: list[Row], as_of: datetime = FAR) -> str:
    """What followed the first event."""
    items = labelled(rows, as_of)[OWNER.key]
    return feedback_after(group_events(items)[0], words_of(items), behaviour(deeds, as_of).get(OWNER.key), as_of)


# ---- exchanges with labels


def test_an_exchange_is_there_with_all_labels_or_not_at_all() -> None:
    rows = [talk("a"), talk("b", 1), talk("c", 2)]
    made = labelled_exchanges(
        rows_of(EXCHANGES, rows), rows_of(INTENTS, rows[:2]), rows_of(EMOTIONS, rows[1:]), rows_of(ENTITIES, rows), FAR
    )
    assert [x.exchange_id for x in made[OWNER.key]] == ["b"]


def test_what_starts_at_as_of_is_not_known_yet() -> None:
    rows = [talk("a"), talk("b", 1), talk("c", 2)]
    assert [x.exchange_id for x in labelled(rows, after(1))[OWNER.key]] == ["a"]
    assert labelled(rows, BASE) == {}


def test_owners_are_apart_and_in_order() -> None:
    bob = Owner("acme", "u:bob")
    rows = [talk("z", 1), talk("y", 1), talk("x", 0), talk("b", 0, owner=bob)]
    made = labelled(rows)
    assert list(made) == sorted([OWNER.key, bob.key])
    assert [x.exchange_id for x in made[OWNER.key]] == ["x", "y", "z"]


def test_entities_are_names_without_repeats() -> None:
    rows = [
        talk("a", entities=[entity("顺丰", "carrier/sf"), entity("SF", "carrier/sf"), entity("北京", kind="place")])
    ]
    assert labelled(rows)[OWNER.key][0].entities == ("carrier/sf", "place/北京")


# ---- one event


def test_less_than_two_hours_after_the_one_before() -> None:
    assert groups([talk("a"), talk("b", 2 - SECOND), talk("c", 4 - 2 * SECOND)]) == [["a", "b", "c"]]
    assert groups([talk("a"), talk("b", 2)]) == [["a"], ["b"]]


def test_twenty_four_hours_in_all() -> None:
    rows = [talk(f"t{i:02}", 1.5 * i) for i in range(18)]
    assert [len(event) for event in groups(rows)] == [17, 1]  # 16 · 1.5 h = 24 h


@pytest.mark.parametrize(
    "other", [{"intent": "praise"}, {"action": "thank"}, {"entities": [entity("顺丰")]}, {"owner": Owner("b", "u:ann")}]
)
def test_another_intent_action_entity_or_owner_is_another_event(other: Row) -> None:
    assert groups([talk("a"), talk("b", 1, **other)])[0] == ["a"]


def test_entities_are_compared_as_a_set_of_names() -> None:
    one, two = entity("顺丰", "carrier/sf"), entity("北京", kind="place")
    assert groups([talk("a", entities=[one, two]), talk("b", 1, entities=[two, entity("SF", "carrier/sf")])]) == [
        ["a", "b"]
    ]


def test_exchanges_of_other_kinds_in_between_do_not_end_an_event() -> None:
    rows = [talk("a"), talk("x", 0.5, "praise"), talk("b", 1), talk("y", 2.4, "praise"), talk("c", 2.9)]
    assert groups(rows) == [["a", "b", "c"], ["x", "y"]]


def test_an_event_goes_on_over_sessions() -> None:
    assert groups([talk("a"), talk("b", 1, session_id="s2")]) == [["a", "b"]]


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from([0, 0.5, 1, 1.99, 2, 3])), max_size=40))
def test_every_exchange_is_in_one_event_within_its_limits(steps: list[tuple[str, float]]) -> None:
    hours, rows = 0.0, []
    for kind, step in steps:
        hours += step
        rows.append(talk(f"t{len(rows):02}", hours, kind))
    events = group_events(labelled(rows).get(OWNER.key, []))
    assert sorted(x.exchange_id for event in events for x in event) == [row["exchange_id"] for row in rows]
    for event in events:
        assert event[-1].started_at - event[0].started_at <= timedelta(hours=24)
        for before, item in pairwise(event):
            assert item.intent == before.intent
            assert item.started_at - before.started_at < timedelta(hours=2)


# ---- what followed


def test_feedback_strongest_first() -> None:
    rows = [talk("a"), talk("b", 24), talk("c", 30, "praise")]
    deeds = [deed("order", 1), deed("cancel", 2), deed("refund", 3), deed("churn", 4)]
    assert [feedback(rows, deeds[:n]) for n in (4, 3, 2)] == ["churned", "refunded", "canceled_order"]
    assert feedback([rows[0]], [deed("unsubscribe", 1)]) == "churned"
    assert feedback(rows, deeds[:1]) == "complained_again"
    assert feedback([rows[0], rows[2]], deeds[:1]) == "bought_again"
    assert feedback([rows[0], rows[2]], []) == "thanked"
    assert feedback([rows[0]], [deed("visit", 1), deed("coupon", 2)]) == "none"
    assert FEEDBACK == (
        "churned", "refunded", "canceled_order", "complained_again", "bought_again", "thanked", "none",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("hours", "found"),
    [(-1, "none"), (0, "none"), (SECOND, "refunded"), (7 * 24 - SECOND, "refunded"), (7 * 24, "none")],
)
def test_the_window_of_behaviour(hours: float, found: str) -> None:
    assert feedback([talk("a")], [deed("refund", hours)]) == found


@pytest.mark.parametrize(("hours", "found"), [(7 * 24 - SECOND, "complained_again"), (7 * 24, "none")])
def test_the_window_of_words(hours: float, found: str) -> None:
    assert feedback([talk("a"), talk("b", hours)], []) == found


def test_the_window_counts_from_the_first_exchange_of_an_event() -> None:
    rows = [talk("a"), talk("b", 1.5)]
    assert groups(rows) == [["a", "b"]]
    assert feedback(rows, [deed("refund", 7 * 24 + 1)]) == "none"


def test_words_count_from_the_last_exchange_and_not_the_event_s_own() -> None:
    rows = [talk("a"), talk("x", 0.5, "payment_issue"), talk("b", 1)]
    assert feedback(rows, []) == "none"
    assert feedback([*rows, talk("y", 1.1, "payment_issue")], []) == "complained_again"


def test_a_complaint_after_something_else_is_not_again() -> None:
    assert feedback([talk("a", intent="praise"), talk("b", 1)], []) == "none"
    assert feedback([talk("a", intent="praise"), talk("b", 1, "thanks")], []) == "thanked"


def test_nothing_after_as_of_is_known() -> None:
    rows, deeds = [talk("a"), talk("b", 30)], [deed("refund", 48)]
    assert feedback(rows, deeds, after(24)) == "none"
    assert feedback(rows, deeds, after(30)) == "none"
    assert feedback(rows, deeds, after(31)) == "complained_again"
    assert feedback(rows, deeds, after(48)) == "complained_again"
    assert feedback(rows, deeds, after(49)) == "refunded"


_STEPS = st.sampled_from([0.0, 1.0, 30.0, 7 * 24 - 1, 7 * 24, 7 * 24 + 1])


@given(st.lists(st.tuples(st.sampled_from(["order", "refund", "cancel"]), _STEPS), max_size=5), _STEPS, _STEPS)
def test_a_closed_window_never_changes(deeds: list[tuple[str, float]], first: float, later: float) -> None:
    rows, done = [talk("a"), talk("b", 100)], [deed(kind, hours) for kind, hours in deeds]
    closed = after(7 * 24 + first)
    assert feedback(rows, done, closed) == feedback(rows, done, closed + timedelta(hours=later))


# ---- behaviour


def test_one_event_counts_once_its_smallest_hash() -> None:
    deeds = [
        deed("order", 1, event="e", content_hash="b"),
        deed("refund", 2, event="e", content_hash="a"),
        deed("refund", 2, event="e", content_hash="a", file_id="f2"),
        deed("order", 3),
    ]
    for seed in range(4):
        random.Random(seed).shuffle(deeds)
        history = behaviour(deeds)[OWNER.key]
        assert history.times == {"refund": [after(2)], "order": [after(3)]}
        assert history.first_seen == after(2)


PHONE, LAPTOP = Owner("acme", "d:phone"), Owner("acme", "d:laptop")


def of_persons(rows: list[Row], *persons: tuple[Owner, ...]) -> dict[str, dict[str, list[float]]]:
    """Subject → kind → hours after ``BASE`` of what counts for it."""
    others = {owner.key: {o.key for o in person if o != owner} for person in persons for owner in person}
    found = histories(events_of_persons(settled_events(rows_of(BEHAVIOUR, rows)), others), FAR)
    owners = {owner.key: owner.subject for owner in (OWNER, PHONE, LAPTOP)}
    return {
        owners[key]: {kind: [(at - BASE) / timedelta(hours=1) for at in times] for kind, times in history.times.items()}
        for key, history in found.items()
    }


def by(owner: Owner, row: Row) -> Row:
    """The same row of somebody else; one whose id the log did not give has another one there."""
    content = row["content_hash"] + owner.key
    made = row["event_id"] == own_event_id(row["content_hash"])
    named = {"tenant": owner.tenant, "subject": owner.subject, "owner": owner.key, "bucket": owner.bucket(8)}
    return row | named | {"content_hash": content, "event_id": own_event_id(content) if made else row["event_id"]}


def test_what_one_subject_did_counts_for_all_of_the_person() -> None:
    rows = [deed("order", 1), by(PHONE, deed("order", 3)), by(PHONE, deed("visit", 2)), by(LAPTOP, deed("refund", 4))]
    apart = {"u:ann": {"order": [1]}, "d:phone": {"order": [3], "visit": [2]}, "d:laptop": {"refund": [4]}}
    assert of_persons(rows) == apart
    joint = {"order": [1, 3], "visit": [2]}
    for seed in range(4):
        random.Random(seed).shuffle(rows)
        assert of_persons(rows, (OWNER, PHONE)) == apart | {"u:ann": joint, "d:phone": joint}
    assert of_persons(rows, (OWNER, PHONE, LAPTOP)) == dict.fromkeys(apart, joint | {"refund": [4]})


def test_an_event_that_two_subjects_tell_alike_is_one() -> None:
    """With ids by id and content, without ids by content; the same id with another content is another event."""
    told = [deed("order", 1, event="7", value=9.0), deed("visit", 2), deed("order", 3, event="8")]
    told[1] |= {"event_id": own_event_id(told[1]["content_hash"])}
    again = [by(PHONE, row) for row in told]
    again[2] |= {"occurred_at": after(4)}
    assert of_persons([*told, *again], (OWNER, PHONE))["u:ann"] == {"order": [1, 3, 4], "visit": [2]}
    other = [by(PHONE, deed("order", 1, event="9", value=9.0)), by(LAPTOP, told[0])]
    assert of_persons([*told, *other], (OWNER, PHONE, LAPTOP))["u:ann"] == {"order": [1, 1, 3], "visit": [2]}
    assert of_persons([*told, *other], (PHONE, LAPTOP))["d:phone"] == {"order": [1, 1]}


def test_of_each_subject_the_version_that_counts_is_passed_on() -> None:
    rows = [by(PHONE, deed("order", 1, event="e")), by(PHONE, deed("refund", 2, event="e"))]
    rows[0] |= {"content_hash": "b"}
    rows[1] |= {"content_hash": "a"}
    assert of_persons(rows, (OWNER, PHONE))["u:ann"] == {"refund": [2]}


def test_histories_end_before_as_of() -> None:
    assert behaviour([deed("order", 1)], after(1)) == {}
    assert behaviour([]) == {}
    history = behaviour([deed("order", h) for h in (1, 2, 3)])[OWNER.key]
    assert [history.count("order", after(1), after(x)) for x in (2, 2.5, 3, 4)] == [0, 1, 1, 2]
    assert history.count("order", after(3), after(3)) == history.count("visit", BASE, FAR) == 0
    assert [history.before("order", after(x)) for x in (1, 2, 9)] == [0, 1, 3]


def test_when_time_alone_changes_something() -> None:
    week, tick = timedelta(days=7), timedelta(microseconds=1)
    assert next_change([], [BASE], BASE) is None
    assert next_change([BASE], [], BASE) == BASE + week
    assert next_change([after(5), BASE], [], BASE) == BASE + week
    assert next_change([after(5), BASE], [], BASE + week) == after(5) + week
    assert next_change([BASE], [], BASE + week) is None
    assert next_change([BASE], [after(1), after(2)], after(1)) == after(1) + tick
    assert next_change([BASE], [after(1)], after(2)) == BASE + week
    assert next_change([BASE], [BASE + week], after(2)) == BASE + week


@given(st.lists(_STEPS, max_size=4), st.lists(_STEPS, max_size=4), _STEPS, _STEPS)
def test_nothing_changes_before_the_next_change(
    talks: list[float], deeds: list[float], hours: float, more: float
) -> None:
    rows, done = [talk("a"), *(talk(f"t{i}", h) for i, h in enumerate(talks))], [deed("refund", 2 * h) for h in deeds]
    as_of = after(hours + 7 * 24 + 2)  # all exchanges have begun
    change = next_change([row["started_at"] for row in rows], [row["occurred_at"] for row in done], as_of)
    later = as_of + timedelta(hours=more)
    if change is not None:
        later = min(later, change - timedelta(microseconds=1))
    items = labelled(rows)[OWNER.key]
    for event in group_events(items):
        found = [feedback_after(event, words_of(items), behaviour(done, x).get(OWNER.key), x) for x in (as_of, later)]
        assert found[0] == found[1]


def test_four_times_the_complaints_of_a_week_are_four_times_the_work() -> None:
    def settle(count: int) -> None:
        items = labelled([talk(f"x{i}", 160 * i / count, intent="logistics_complaint") for i in range(count)])[
            OWNER.key
        ]
        words = words_of(items)
        for event in group_events(items):
            feedback_after(event, words, None, FAR)

    small, large = (lines_run(events, lambda n=n: settle(n)) for n in (200, 800))  # type: ignore[misc]
    assert large <= 4.5 * small
