"""Where exchanges begin and end, which version of a turn counts, and that every turn is counted once."""

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from exchange_world import DAY, NOON, cut, reply, shown, table, turn
from line_count import lines_run

from memory_pipelines.model import Owner, exchange_id, shift_day, stable_hash
from memory_pipelines.slices import exchanges
from memory_pipelines.slices.exchanges import cut_exchanges, merged_clock, needs_earlier
from memory_pipelines.tables import EXCHANGES, TURNS

US = timedelta(microseconds=1) / timedelta(minutes=1)


# ---- where an exchange begins and ends


def test_a_row_of_every_column() -> None:
    rows = [
        reply("hello", -1, text="您好"),
        turn("a", 0, text="包裹在哪", clock='{"x":3,"y":1}'),
        turn("b", 1, text="还没到", clock='{"x":2,"z":5}'),
        reply("r", 2, text="在查"),
    ]
    (row,) = cut(rows).exchanges.to_pylist()
    owner = Owner("acme", "u:ann")
    assert row == {
        "tenant": "acme",
        "subject": "u:ann",
        "exchange_id": exchange_id(owner, "a"),
        "conversation_id": "c1",
        "session_id": "s1",
        "origin": "web_app",
        "started_at": NOON,
        "ended_at": NOON + timedelta(minutes=2),
        "own_text": "包裹在哪\n还没到",
        "other_text": "您好\n在查",
        "own_turn_ids": ["a", "b"],
        "turn_ids": ["hello", "a", "b", "r"],
        "context_turn_id": None,
        "vector_clock": '{"x":3,"y":1,"z":5}',
        "text_hash": stable_hash("包裹在哪\n还没到"),
        "day": DAY,
        "month": "2024-05",
        "owner": owner.key,
        "bucket": owner.bucket(8),
    }


def test_own_turns_two_minutes_apart_are_one_exchange_and_later_ones_another() -> None:
    assert shown(cut([turn("a", 0), turn("b", 2), turn("c", 4)])) == [(["a", "b", "c"], ["a", "b", "c"])]
    assert shown(cut([turn("a", 0), turn("b", 2 + US)])) == [(["a"], ["a"]), (["b"], ["b"])]


def test_others_stay_until_the_next_own_turn_however_soon_it_comes() -> None:
    rows = [turn("a", 0), reply("r1", 1), reply("r2", 300), turn("b", 300.1), reply("r3", 301)]
    assert shown(cut(rows)) == [(["a"], ["a", "r1", "r2"]), (["b"], ["b", "r3"])]


def test_the_reply_before_is_the_context_but_not_one_of_the_opening() -> None:
    rows = [reply("r0", -1), turn("a", 0), reply("r1", 1), turn("b", 5), turn("c", 10)]
    made = {r["own_turn_ids"][0]: r for r in cut(rows).exchanges.to_pylist()}
    assert made["a"]["turn_ids"] == ["r0", "a", "r1"]
    assert made["a"]["context_turn_id"] is None
    assert made["b"]["context_turn_id"] == "r1"
    assert made["c"]["context_turn_id"] == "r1"


def test_a_context_is_a_day_old_at_most() -> None:
    rows = [turn("a", 0), reply("r", 1), turn("b", 1 + 24 * 60), turn("c", 2 + 24 * 60 + 3)]
    made = {r["own_turn_ids"][0]: r["context_turn_id"] for r in cut(rows).exchanges.to_pylist()}
    assert made == {"a": None, "b": "r", "c": None}


def test_twenty_turns_at_most_own_ones() -> None:
    rows = [turn(f"t{i:02}", i) for i in range(45)]
    assert [len(own) for own, _ in shown(cut(rows))] == [20, 20, 5]


def test_twenty_turns_at_most_with_replies_and_the_rest_opens_the_next() -> None:
    rows = [turn("a", 0), *(reply(f"r{i:02}", 1 + i) for i in range(25)), turn("b", 60), reply("z", 61)]
    first, second = shown(cut(rows))
    assert first == (["a"], ["a", *(f"r{i:02}" for i in range(19))])
    assert second == (["b"], [*(f"r{i:02}" for i in range(19, 25)), "b", "z"])


def test_an_opening_keeps_the_latest_turns_that_fit() -> None:
    rows = [*(reply(f"r{i:02}", i) for i in range(30)), turn("a", 40), turn("b", 41), reply("z", 42)]
    made = cut(rows)
    assert shown(made) == [(["a", "b"], [*(f"r{i:02}" for i in range(13, 30)), "a", "b", "z"])]
    assert (made.counts[DAY].in_exchanges, made.counts[DAY].nobody) == (20, 13)


def test_twenty_four_hours_at_most_to_the_minute() -> None:
    day = 24 * 60
    assert shown(cut([turn("a", 0), reply("r", day)])) == [(["a"], ["a", "r"])]
    made = cut([turn("a", 0), reply("r", day + US)])
    assert shown(made) == [(["a"], ["a"])]
    assert made.counts[shift_day(DAY, 1)].nobody == 1
    late = [turn("a", 0), reply("r", day + US), turn("b", day + 2)]
    assert shown(cut(late)) == [(["a"], ["a"]), (["b"], ["r", "b"])]


def test_an_opening_and_its_exchange_last_twenty_four_hours_together() -> None:
    day = 24 * 60
    rows = [reply("early", 0), reply("near", 10), turn("a", day), reply("z", day + 5)]
    assert shown(cut(rows)) == [(["a"], ["near", "a", "z"])]


def test_a_run_of_own_turns_ends_after_twenty_four_hours() -> None:
    rows = [turn(f"t{i:03}", 2.0 * i) for i in range(19)] + [turn("late", 2.0 * 18 + 24 * 60)]
    assert [len(own) for own, _ in shown(cut(rows))] == [19, 1]


def test_without_a_session_six_hours_of_silence_split() -> None:
    rows = [turn("a", 0, session=None), reply("r", 360 - US, session=None)]
    assert shown(cut(rows)) == [(["a"], ["a", "r"])]
    rows = [turn("a", 0, session=None), reply("r", 360, session=None), turn("b", 361, session=None)]
    assert shown(cut(rows)) == [(["a"], ["a"]), (["b"], ["r", "b"])]
    assert [r["context_turn_id"] for r in cut(rows).exchanges.to_pylist()] == [None, None]


def test_with_a_session_silence_does_not_split() -> None:
    rows = [turn("a", 0), reply("r", 600), turn("b", 601)]
    assert shown(cut(rows)) == [(["a"], ["a", "r"]), (["b"], ["b"])]


def test_sessions_conversations_and_tenants_do_not_mix() -> None:
    rows = [
        turn("a", 0),
        turn("b", 1, session="s2"),
        turn("c", 1, conversation="c2"),
        turn("d", 1, tenant="other"),
        reply("r", 1.5, session="s2"),
    ]
    by_first = {own[0]: ids for own, ids in shown(cut(rows))}
    assert by_first == {"a": ["a"], "b": ["b", "r"], "c": ["c"], "d": ["d"]}
    assert {r["tenant"] for r in cut(rows).exchanges.to_pylist()} == {"acme", "other"}


def test_in_a_dialogue_of_two_people_each_is_a_subject() -> None:
    rows = [turn("a1", 0), turn("b1", 1, subject="u:bob"), turn("a2", 2), turn("b2", 3, subject="u:bob")]
    made = cut(rows)
    by_subject: dict[str, list[Any]] = {}
    for row in made.exchanges.to_pylist():
        by_subject.setdefault(row["subject"], []).append((row["own_turn_ids"], row["turn_ids"]))
    assert sorted(by_subject["u:ann"]) == [(["a1"], ["a1", "b1"]), (["a2"], ["a2", "b2"])]
    assert sorted(by_subject["u:bob"]) == [(["b1"], ["a1", "b1", "a2"]), (["b2"], ["b2"])]
    assert made.counts[DAY].as_dict() == {
        "landed": 4, "in_exchanges": 4, "nobody": 0, "duplicates": 0, "conflicts": 0, "exchanges": 4,
    }  # fmt: skip


def test_a_device_that_logs_in_is_another_subject_of_the_same_conversation() -> None:
    rows = [turn("d1", 0, subject="d:f00"), reply("r1", 1), turn("u1", 5), reply("r2", 6)]
    made = {r["subject"]: r["turn_ids"] for r in cut(rows).exchanges.to_pylist()}
    assert made == {"d:f00": ["d1", "r1", "u1", "r2"], "u:ann": ["d1", "r1", "u1", "r2"]}


def test_a_reply_that_names_another_person_is_none_of_this_ones() -> None:
    rows = [turn("a", 0), turn("b", 1, subject="u:bob"), reply("ra", 2, "u:ann"), reply("rb", 3, "u:bob")]
    made = {r["subject"]: r["turn_ids"] for r in cut(rows).exchanges.to_pylist()}
    assert made == {"u:ann": ["a", "b", "ra"], "u:bob": ["a", "b", "rb"]}


def test_rows_of_nobody_are_counted() -> None:
    rows = [
        reply("r", 0, session="s2"),
        turn("x", 0, subject=None, session="s3"),
        reply("named", 0, "u:zoe"),
        turn("a", 1),
    ]
    made = cut(rows)
    assert shown(made) == [(["a"], ["a"])]
    assert (made.counts[DAY].in_exchanges, made.counts[DAY].nobody) == (1, 3)


def test_a_user_row_of_nobody_is_one_of_others() -> None:
    assert shown(cut([turn("a", 0), turn("x", 1, subject=None)])) == [(["a"], ["a", "x"])]


def test_the_day_is_that_of_the_first_own_turn() -> None:
    midnight = 12 * 60
    rows = [reply("o", midnight - 3), turn("a", midnight - 1), turn("b", midnight), reply("r", midnight + 1)]
    made = cut(rows)
    assert [r["day"] for r in made.exchanges.to_pylist()] == [DAY]
    assert (made.counts[DAY].landed, made.counts[DAY].in_exchanges, made.counts[DAY].exchanges) == (2, 2, 1)
    after = made.counts[shift_day(DAY, 1)]
    assert (after.landed, after.in_exchanges, after.exchanges) == (2, 2, 0)
    assert shown(cut([reply("o", midnight - 1), turn("a", midnight)], [DAY])) == []


def test_turns_of_one_instant_stand_in_source_order() -> None:
    rows = [turn("b", 0, position=1), turn("a", 0, position=2), reply("r", 0, position=3)]
    assert shown(cut(rows)) == [(["b", "a"], ["b", "a", "r"])]


def test_nothing_gives_nothing() -> None:
    made = cut_exchanges(TURNS.schema.empty_table(), [DAY], 8)
    assert made.exchanges.schema == EXCHANGES.schema
    assert made.exchanges.num_rows == made.conflicts.num_rows == 0
    assert set(made.counts[DAY].as_dict().values()) == {0}
    assert not needs_earlier(TURNS.schema.empty_table(), DAY)


# ---- versions


def test_equal_rows_count_once_in_any_order() -> None:
    rows = [turn("a", 0), turn("a", 0, file="f2"), turn("a", 0, file="f3", position=9), reply("r", 1)]
    for order in (rows, rows[::-1]):
        made = cut(order)
        assert shown(made) == [(["a"], ["a", "r"])]
        assert (made.counts[DAY].landed, made.counts[DAY].duplicates, made.counts[DAY].conflicts) == (4, 2, 0)
        assert made.conflicts.num_rows == 0


def test_the_latest_edit_wins_and_the_other_is_quarantined() -> None:
    old = turn("a", 0, text="old", edited=NOON)
    new = turn("a", 0, text="new", edited=NOON + timedelta(hours=1))
    plain = turn("a", 0, text="plain")
    for order in ([old, new, plain], [plain, new, old]):
        made = cut(order)
        assert [r["own_text"] for r in made.exchanges.to_pylist()] == ["new"]
        lost = made.conflicts.to_pylist()
        assert {(r["reason"], r["day"], r["tenant"], r["file_id"]) for r in lost} == {
            ("conflicting_version", DAY, "acme", f"day:{DAY}")
        }
        assert len(lost) == made.counts[DAY].conflicts == 2
        assert "old" in str(lost)
        assert "plain" in str(lost)


def test_without_edits_the_smaller_content_hash_wins() -> None:
    rows = [turn("a", 0, text=f"v{i}") for i in range(5)]
    best = min(rows, key=lambda r: r["content_hash"])
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        made = cut(rows)
        assert [r["own_text"] for r in made.exchanges.to_pylist()] == [best["text"]]
        assert made.counts[DAY].conflicts == 4


def test_versions_on_two_days_are_settled_the_same_way_on_both() -> None:
    rows = [turn("a", 0, text="x", edited=NOON), turn("a", 24 * 60, text="y")]
    made = cut(rows)
    assert [(r["own_text"], r["day"]) for r in made.exchanges.to_pylist()] == [("x", DAY)]
    after = made.counts[shift_day(DAY, 1)]
    assert (after.landed, after.conflicts, after.exchanges) == (1, 1, 0)


def test_one_id_in_two_tenants_is_two_turns() -> None:
    made = cut([turn("a", 0), turn("a", 0, tenant="other", text="else")])
    assert (made.counts[DAY].conflicts, made.exchanges.num_rows) == (0, 2)


# ---- runs of own turns


@pytest.mark.parametrize(("gap", "needed"), [(1.9, True), (2.0, True), (2.1, False)])
def test_a_run_through_a_whole_day_needs_the_day_before(gap: float, needed: bool) -> None:
    start = -12 * 60  # midnight
    rows = [turn(f"t{i}", start + gap * i) for i in range(1, int(24 * 60 / gap) + 1)]
    assert needs_earlier(table([r for r in rows if r["day"] == DAY]), DAY) is needed


def test_replies_make_no_run() -> None:
    rows = [reply(f"t{i}", -12 * 60 + i) for i in range(24 * 60)]
    assert not needs_earlier(table(rows), DAY)


# ---- size


def _lines_run(rows: pa.Table, days: list[str]) -> int:
    return lines_run(exchanges, lambda: cut_exchanges(rows, days, 8))


@pytest.mark.parametrize("shape", ["talk", "monologue", "broadcast", "silence"])
def test_four_times_the_turns_of_one_subject_are_four_times_the_work(shape: str) -> None:
    def rows(count: int) -> pa.Table:
        def one(i: int) -> dict[str, Any]:
            own = {"talk": i % 3 == 0, "monologue": True, "broadcast": i == 0, "silence": i == count - 1}[shape]
            return turn(f"t{i}", 0.3 * i) if own else reply(f"t{i}", 0.3 * i)

        return table([one(i) for i in range(count)])

    days = [shift_day(DAY, i) for i in range(3)]
    small, large = _lines_run(rows(1_000), days), _lines_run(rows(4_000), days)
    assert large <= 4.5 * small


@pytest.mark.parametrize("answers", [False, True], ids=["to all", "naming one"])
def test_four_times_the_persons_of_one_group_are_four_times_the_work(answers: bool) -> None:
    def rows(persons: int) -> pa.Table:
        group = []
        for i in range(4 * persons):
            subject = f"u:{i * 7 % persons}"
            named = subject if answers else None
            group.append(turn(f"t{i}", 0.3 * i, subject=subject) if i % 2 else reply(f"t{i}", 0.3 * i, named))
        return table(group)

    days = [shift_day(DAY, i) for i in range(3)]
    small, large = _lines_run(rows(200), days), _lines_run(rows(800), days)
    assert large <= 4.5 * small


def _walked(stream: list[dict[str, Any]], subject: str) -> list[tuple[list[str], list[str], list[str]]]:
    """The specification, turn by turn: opening, own and others' turn ids of each of the subject's exchanges."""
    found: list[tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]] = []
    waiting: list[dict[str, Any]] = []
    for row in stream:
        own = row["role"] == "user" and row["subject"] == subject
        if not own and row["role"] != "user" and row["subject"] not in (None, subject):
            continue
        fits = bool(found) and len(found[-1][1]) + len(found[-1][2]) < 20
        fits = fits and row["occurred_at"] - found[-1][1][0]["occurred_at"] <= timedelta(hours=24)
        if not own:
            (found[-1][2] if fits and not waiting else waiting).append(row)
            continue
        near = bool(found) and row["occurred_at"] - found[-1][1][-1]["occurred_at"] <= timedelta(minutes=2)
        if fits and near and not waiting and not found[-1][2]:
            found[-1][1].append(row)
        else:
            found.append((waiting, [row], []))
            waiting = []
    result = []
    for opening, mine, others in found:
        room, end = 20 - len(mine) - len(others), (others or mine)[-1]["occurred_at"]
        kept = [r for r in opening if end - r["occurred_at"] <= timedelta(hours=24)]
        kept = kept[max(0, len(kept) - room) :]
        result.append(tuple([r["turn_id"] for r in part] for part in (kept, mine, others)))
    return result  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_several_persons_are_cut_as_one_would_by_walking_through_them(seed: int) -> None:
    rng = random.Random(seed)
    minutes, rows = 0.0, []
    for i in range(rng.randint(1, 150)):
        minutes += rng.choice([0, 0.5, 2, 2 + US, 10, 60, 300, 700])
        subject = rng.choice([None, "u:ann", "u:bob", "u:cai"])
        rows.append(turn(f"t{i}", minutes, rng.choice(["user", "agent"]), subject, position=i))
    made = cut(rows).exchanges.to_pylist()
    for subject in ("u:ann", "u:bob", "u:cai"):
        expected = [(opening + own + others, own) for opening, own, others in _walked(rows, subject)]
        mine = [row for row in made if row["subject"] == subject]
        assert sorted((row["turn_ids"], row["own_turn_ids"]) for row in mine) == sorted(expected)


def test_a_hundred_thousand_turns_of_one_subject() -> None:
    rows = [turn(f"t{i}", 0.5 * i) if i % 4 == 0 else reply(f"t{i}", 0.5 * i) for i in range(100_000)]
    days = sorted({r["day"] for r in rows})
    made = cut_exchanges(table(rows), days, 8)
    assert made.exchanges.num_rows == 25_000
    assert sum(c.in_exchanges for c in made.counts.values()) == 100_000


def test_clocks_join() -> None:
    assert merged_clock([None, '{"b":2,"a":1}', '{"b":1,"c":7}']) == '{"a":1,"b":2,"c":7}'
    assert merged_clock([None]) is None
    assert merged_clock([]) is None
