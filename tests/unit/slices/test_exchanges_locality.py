"""A day's cut needs the days around it, no others; a late turn changes the days that landing touches, no others."""

from collections.abc import Sequence
from datetime import timedelta

from exchange_world import NOON, Row, all_days, content, cut, cut_day, day_content, reply, turn
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_pipelines.model import TOUCHED_DAYS, shift_day
from memory_pipelines.tables import EXCHANGES, QUARANTINE

MINUTE = 1.0
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
MIDNIGHT = -12 * HOUR

# steps between turns: within a run, near the limits of 6 and 24 hours, days
_STEPS = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.5, HOUR, 6 * HOUR - 1, 6 * HOUR, 12 * HOUR, DAY - 1, DAY, DAY + 1]),
    st.floats(0, 30 * HOUR).map(lambda x: round(x, 2)),
)
_SPEAKERS = st.sampled_from(
    [
        ("user", "u:ann"),
        ("user", "u:ann"),
        ("user", "u:bob"),
        ("user", None),
        ("agent", None),
        ("agent", None),
        ("agent", "u:ann"),
        ("agent", "u:zoe"),
    ]
)


@st.composite
def _bursts(draw: st.DrawFn) -> list[tuple[float, tuple[str, str | None]]]:
    """(step, speaker) of a run of own turns or of replies, or of single turns."""
    kind = draw(st.sampled_from(["own", "replies", "single"]))
    if kind == "single":
        return [(draw(_STEPS), draw(_SPEAKERS))]
    speaker: tuple[str, str | None] = ("user", "u:ann") if kind == "own" else ("agent", None)
    step = draw(st.sampled_from([0.5, 1.5, 2.0]))
    return [(draw(_STEPS), speaker), *[(step, speaker)] * draw(st.integers(1, 24))]


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    """Turns of many days in one conversation, around midnights; duplicates and other versions among them."""
    session = draw(st.sampled_from(["s1", None]))
    at = MIDNIGHT + draw(st.sampled_from([0.0, -1.0, -20.0, HOUR]))
    rows: list[Row] = []
    for step, (role, subject) in (pair for burst in draw(st.lists(_bursts(), max_size=14)) for pair in burst):
        at += step
        rows.append(turn(f"t{len(rows):03}", at, role, subject, session=session, position=len(rows)))
    for index in draw(st.lists(st.integers(0, 400), max_size=4)):
        if index < len(rows):
            twin = rows[index]
            minutes = (twin["occurred_at"] - NOON) / timedelta(minutes=1)
            moved, edited = draw(st.sampled_from([0.0, 0.0, DAY, -3 * DAY])), draw(st.sampled_from([None, NOON]))
            text = draw(st.sampled_from([twin["text"], "edited"]))
            fields = {"session": session, "position": 1_000 + index, "file": "f2", "text": text, "edited": edited}
            rows.append(turn(twin["turn_id"], minutes + moved, twin["role"], twin["subject"], **fields))
    return rows


def _run_over_midnight() -> list[Row]:
    """A reply that fits the exchange only if its first own turn is that of the day it seems to begin on."""
    return [
        turn("p0", MIDNIGHT - 1),
        turn("p1", MIDNIGHT + 0.5),
        reply("r", MIDNIGHT + DAY + 0.25),
        turn("own", MIDNIGHT + 2 * DAY),
    ]


def _through_four_days() -> list[Row]:
    """Own turns two minutes apart through four days, from seven minutes before the first midnight."""
    return [turn(f"t{i:04}", MIDNIGHT - 7 + 2.0 * i) for i in range(4 * 720)]


def _assert_local(rows: Sequence[Row]) -> None:
    whole = cut(rows)
    for day in all_days(rows):
        assert day_content(cut_day(rows, day), day) == day_content(whole, day)


@settings(max_examples=120, deadline=None)
@given(streams())
@example(_run_over_midnight())
def test_the_cut_of_a_day_is_that_day_of_the_cut_of_all_days(rows: list[Row]) -> None:
    _assert_local(rows)


def test_the_cut_of_a_day_follows_a_run_of_own_turns_to_where_it_begins() -> None:
    rows = _through_four_days()
    fourth = shift_day(rows[0]["day"], 4)
    assert day_content(cut_day(rows, fourth), fourth) == day_content(cut(rows), fourth)
    assert cut_day(rows, fourth).counts[fourth].exchanges == 35  # at turns 2180, 2200, … 2860


@settings(max_examples=60, deadline=None)
@given(streams(), st.randoms(use_true_random=False))
def test_order_and_repeats_change_no_exchange_and_no_loser(rows: list[Row], chance: object) -> None:
    days = all_days(rows)
    before = cut(rows, days)
    again = [*rows, *rows[::3]]
    chance.shuffle(again)  # type: ignore[attr-defined]
    after = cut(again, days)
    assert content(EXCHANGES, before.exchanges) == content(EXCHANGES, after.exchanges)
    assert content(QUARANTINE, before.conflicts) == content(QUARANTINE, after.conflicts)


@settings(max_examples=100, deadline=None)
@given(streams())
def test_every_landed_row_is_counted_once(rows: list[Row]) -> None:
    made = cut(rows)
    for day, counts in made.counts.items():
        assert counts.landed == sum(row["day"] == day for row in rows)
        assert counts.landed == counts.in_exchanges + counts.nobody + counts.duplicates + counts.conflicts
    used = {t for row in made.exchanges.to_pylist() for t in row["turn_ids"]}
    assert len(used) == sum(c.in_exchanges for c in made.counts.values())
    assert made.conflicts.num_rows == sum(c.conflicts for c in made.counts.values())
    assert made.exchanges.num_rows == sum(c.exchanges for c in made.counts.values())


@settings(max_examples=100, deadline=None)
@given(streams())
def test_every_exchange_keeps_its_limits_and_no_own_turn_is_lost_or_doubled(rows: list[Row]) -> None:
    made = cut(rows).exchanges.to_pylist()
    times: dict[str, set[object]] = {}
    for row in rows:
        times.setdefault(row["turn_id"], set()).add(row["occurred_at"])
    for row in made:
        assert 1 <= len(row["own_turn_ids"]) <= len(row["turn_ids"]) <= 20
        assert len(set(row["turn_ids"])) == len(row["turn_ids"])
        assert row["ended_at"] - row["started_at"] <= timedelta(hours=24)
        assert row["context_turn_id"] not in row["turn_ids"]
    own = [t for row in made for t in row["own_turn_ids"]]
    speaking = {r["turn_id"] for r in rows if r["role"] == "user" and r["subject"] is not None}
    assert len(own) == len(set(own))
    assert set(own) == speaking


@settings(max_examples=120, deadline=None)
@given(streams(), st.data())
def test_a_late_turn_changes_only_the_days_that_landing_touches(rows: list[Row], data: st.DataObject) -> None:
    last = max((row["occurred_at"] for row in rows), default=NOON)
    first = min((row["occurred_at"] for row in rows), default=NOON)
    span = (last - first) / timedelta(minutes=1)
    start = (first - NOON) / timedelta(minutes=1)
    near = st.sampled_from([(r["occurred_at"] - NOON) / timedelta(minutes=1) for r in rows] or [0.0])
    at = data.draw(st.one_of(st.floats(start - HOUR, start + span + HOUR), near.map(lambda x: x - 1)))
    role, subject = data.draw(_SPEAKERS)
    session = rows[0]["session_id"] if rows else "s1"
    late = turn("late", round(at, 2), role, subject, session=session, position=5_000)
    _assert_untouched(rows, late)


def test_a_late_own_turn_before_a_run_over_midnight_reaches_three_days_on() -> None:
    late, *rows = _run_over_midnight()
    changed = _assert_untouched(rows, late)
    assert shift_day(late["day"], 3) in changed


def test_a_late_reply_takes_a_turn_two_days_back_out_of_an_opening() -> None:
    rows = [reply("r", 0), turn("own", 24 * HOUR - 1)]
    late = reply("late", 46 * HOUR)
    assert late["day"] == shift_day(rows[0]["day"], 2)
    changed = _assert_untouched(rows, late)
    assert rows[0]["day"] in changed


def _assert_untouched(rows: Sequence[Row], late: Row) -> set[str]:
    """Checks that all changed days are touched; returns them."""
    days = all_days([*rows, late])
    before, after = cut(rows, days) if rows else cut([], days), cut([*rows, late], days)
    changed = {day for day in days if day_content(before, day) != day_content(after, day)}
    assert changed <= {shift_day(late["day"], shift) for shift in TOUCHED_DAYS}
    return changed
