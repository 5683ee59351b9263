"""Event slices: every column by hand, the fields of the export, order and as_of."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from event_world import BASE, FAR, OWNER, Row, after, behaviour, deed, entity, labelled, talk
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.model import Owner, slice_id
from memory_pipelines.slices.impact import score_impacts
from memory_pipelines.slices.merge import merge_slices
from memory_pipelines.tables import SLICES


def merged(rows: list[Row], deeds: list[Row] | None = None, as_of: datetime = FAR) -> list[dict[str, Any]]:
    items, done = labelled(rows, as_of), behaviour(deeds or [], as_of)
    impacts = score_impacts(items, done, as_of=as_of, model_set="base-1")
    made = merge_slices(items, impacts, done, as_of=as_of, model_set="base-1")
    assert made.schema == SLICES.schema
    return list(made.to_pylist())


def test_a_slice_of_every_column() -> None:
    sf, place = entity("顺丰", "carrier/sf"), entity("深圳仓", kind="warehouse")
    rows = [
        talk("z", -72, "greeting", "greet", minutes=12),
        talk("a", 0, entities=[sf, place], emotion=-0.4, label="frustration:low", text="三天了还没到",
             vector_clock='{"agent-7":41}'),
        talk("b", 1, entities=[place, sf], emotion=-0.82, label="frustration:high", text="Where is it?",
             vector_clock='{"agent-7":40,"agent-8":1}', other_text="", session_id="s2"),
    ]  # fmt: skip
    greeting, made = merged(rows, [deed("cancel", 30)])
    assert greeting["intent"] == "greeting"
    assert greeting["seconds_since_last"] is None
    habit = 0.5 / 1.5
    assert made == {
        "tenant": "acme",
        "subject": "u:ann",
        "slice_id": slice_id(BASE.date(), "a"),
        "session_id": "s1",
        "session_origin": "web_app",
        "occurred_at": BASE,
        "ended_at": after(1) + timedelta(minutes=5),
        "intent": "logistics_complaint",
        "action": "express_frustration",
        "category": "task",
        "feedback": "canceled_order",
        "reason": "logistics timeout",
        "text": "三天了还没到\nWhere is it?",
        "reply_text": "re a",
        "language": "zh",
        "exchange_ids": ["a", "b"],
        "own_turn_ids": ["a/1", "b/1"],
        "source_turn_ids": ["a/1", "a/2", "b/1", "b/2"],
        "seconds_since_last": 72 * 3600 - 12 * 60,
        "emotion_score": -0.82,
        "emotion": "frustration:high",
        "entities": [sf, place],
        "decision_impact": round(1 - (1 - 0.8) * (1 - 0.6 * habit) * (1 - 0.4 * 0.82), 4),
        "impact_label": "high",
        "impact_final": True,
        "vector_clock": '{"agent-7":41,"agent-8":1}',
        "model_set": "base-1",
        "owner": OWNER.key,
        "bucket": OWNER.bucket(8),
    }
    assert made["slice_id"].startswith("evt_20240517_")


def test_the_fields_of_an_exported_slice_are_there() -> None:
    """All fields of the export but ``base_weight``, which starts at the impact and is state from then on."""
    exported = {
        "slice_id", "tenant", "subject", "session_id", "session_origin", "occurred_at", "ended_at", "intent", "action",
        "feedback", "reason", "text", "exchange_ids", "source_turn_ids", "emotion_score", "emotion", "decision_impact",
        "impact_label", "impact_final", "vector_clock", "model_set",
    }  # fmt: skip
    renamed = {"time_since_last_interaction": "seconds_since_last", "key_entities": "entities"}
    (row,) = merged([talk("a", text="", other_text="")])
    assert exported | set(renamed.values()) <= set(row)
    assert (row["reason"], row["entities"], row["vector_clock"], row["seconds_since_last"]) == (None, [], None, None)


def test_the_highest_impact_counts_also_after_a_re_score() -> None:
    rows = [talk("a", emotion=0.1), talk("b", 1, emotion=-0.9)]
    (row,) = merged(rows)
    assert (row["decision_impact"], row["emotion_score"]) == (0.36, -0.9)
    (row,) = merged(rows, [deed("refund", 2)])
    assert row["decision_impact"] == round(1 - 0.25 * (1 - 0.6 / 3) * (1 - 0.4 * 0.9), 4)


@pytest.mark.parametrize(("hours", "final"), [(1.5, True), (1.5 - 1 / 3600, False)])
def test_final_when_the_last_window_has_closed(hours: float, final: bool) -> None:
    (row,) = merged([talk("a"), talk("b", 1.5)], as_of=after(hours, days=7))
    assert row["impact_final"] is final


def test_a_slice_that_started_before_the_last_one_ended_came_at_once() -> None:
    first, second = merged([talk("a", minutes=90), talk("b", 1, "praise")])
    assert (first["seconds_since_last"], second["seconds_since_last"]) == (None, 0)


def test_interleaved_events_know_the_exchange_before_their_first() -> None:
    rows = [talk("a"), talk("x", 0.5, "praise"), talk("b", 1)]
    made = {row["intent"]: row for row in merged(rows)}
    assert made["logistics_complaint"]["exchange_ids"] == ["a", "b"]
    assert made["praise"]["seconds_since_last"] == 25 * 60


@pytest.mark.parametrize(
    ("intent", "text", "reason"),
    [
        ("logistics_complaint", "Parcel is LATE", "logistics timeout"),
        ("logistics_complaint", "包裹丢了，还没到", "lost parcel"),
        ("product_complaint", "屏幕坏了", "defective product"),
        ("praise", "late", None),
        ("logistics_complaint", "嗯", None),
    ],
)
def test_reasons(intent: str, text: str, reason: str | None) -> None:
    (row,) = merged([talk("a", intent=intent, text=text)])
    assert row["reason"] == reason


def test_owners_stay_apart() -> None:
    other = Owner("acme", "u:bob")
    made = merged([talk("a"), talk("b", 0.5, owner=other), talk("c", 1)])
    assert {row["subject"]: row["exchange_ids"] for row in made} == {"u:ann": ["a", "c"], "u:bob": ["b"]}
    assert all(row["seconds_since_last"] is None for row in made)


def test_nothing() -> None:
    assert merged([]) == []


def _life() -> tuple[list[Row], list[Row]]:
    intents = ["logistics_complaint", "praise", "logistics_complaint", "order_status"]
    rows = [
        talk(
            f"t{i:02}", 1.3 * i + 60 * (i // 6), intents[i % 4], emotion=(i % 5 - 2) / 4, entities=[entity(str(i % 2))]
        )
        for i in range(18)
    ]
    return rows, [deed(kind, 25.0 * i) for i, kind in enumerate(["order", "cancel", "order", "visit", "refund"])]


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(18)), st.permutations(range(5)))
def test_order_changes_nothing(order: list[int], deeds: list[int]) -> None:
    rows, done = _life()
    assert merged([rows[i] for i in order], [done[i] for i in deeds]) == merged(rows, done)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 600), st.integers(0, 600))
def test_a_later_as_of_changes_only_what_is_new_or_closes(hours: int, more: int) -> None:
    rows, done = _life()
    before = {row["slice_id"]: row for row in merged(rows, done, after(hours))}
    later = {row["slice_id"]: row for row in merged(rows, done, after(hours + more))}
    assert set(before) <= set(later)
    for name, row in before.items():
        new = later[name]
        if row["exchange_ids"] == new["exchange_ids"]:
            changed = {key for key in row if row[key] != new[key]}
            assert changed <= {"feedback", "decision_impact", "impact_label", "impact_final"}
            assert not (row["impact_final"] and changed)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 600))
def test_every_exchange_is_in_one_slice(hours: int) -> None:
    rows, done = _life()
    known = [row["exchange_id"] for row in rows if row["started_at"] < after(hours)]
    made = merged(rows, done, after(hours))
    assert sorted(x for row in made for x in row["exchange_ids"]) == known
    assert len({row["slice_id"] for row in made}) == len(made)
