"""Decision impact: values by hand, the two stages, and what may change a score."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from event_world import BASE, FAR, OWNER, Row, after, behaviour, deed, labelled, talk
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.slices.events import FEEDBACK
from memory_pipelines.slices.impact import habit_change, load_weights, score_impacts
from memory_pipelines.tables import IMPACTS


def scored(rows: list[Row], deeds: list[Row], as_of: datetime = FAR) -> dict[str, dict[str, Any]]:
    made = score_impacts(labelled(rows, as_of), behaviour(deeds, as_of), as_of=as_of, model_set="base-1")
    assert made.schema == IMPACTS.schema
    return {row["exchange_id"]: row for row in made.to_pylist()}


def test_a_row_of_every_column() -> None:
    assert scored([talk("a", emotion=-0.8)], [])["a"] == {
        "tenant": "acme",
        "subject": "u:ann",
        "exchange_id": "a",
        "occurred_at": BASE,
        "decision_impact": 0.32,  # 1 · (1 − (1 − .4 · .8))
        "impact_final": True,
        "provisional_impact": 0.32,
        "scored_by": "rules",
        "feedback": "none",
        "model_set": "base-1",
        "owner": OWNER.key,
        "bucket": OWNER.bucket(8),
    }


def test_the_weights_are_whole() -> None:
    weights = load_weights()
    assert set(weights.feedback) == set(FEEDBACK)
    assert weights.feedback["none"] == 0
    values = [*weights.relevance.values(), *weights.feedback.values(), weights.habit, weights.emotion]
    assert all(0 <= value <= 1 for value in [*values, weights.otherwise])


def test_signs_join_by_noisy_or() -> None:
    # a churn and nothing else known of the person: first seen within the window, so half an order was expected
    habit = 0.5 / 1.5
    expected = 1 - (1 - 0.9) * (1 - 0.6 * habit) * (1 - 0.4 * 0.5)
    assert scored([talk("a", emotion=0.5)], [deed("churn", 1)])["a"]["decision_impact"] == pytest.approx(
        expected, abs=5e-5
    )


def test_relevance_weighs_the_whole() -> None:
    deeds = [deed("churn", 1)]
    complaint = scored([talk("a")], deeds)["a"]["decision_impact"]
    assert scored([talk("a", intent="order_status")], deeds)["a"]["decision_impact"] == round(0.4 * complaint, 4)
    assert scored([talk("a", intent="never heard of")], deeds)["a"]["decision_impact"] == round(0.2 * complaint, 4)
    assert scored([talk("a", intent="greeting")], deeds)["a"]["decision_impact"] == 0


def test_a_model_scores_all_but_talk_without_consequence() -> None:
    rows = [talk("a"), talk("b", intent="greeting")]
    stages = {"a": (0.77, 0.55), "b": (0.66, 0.44)}
    made = score_impacts(
        labelled(rows, FAR), {}, as_of=FAR, model_set="base-1", predicted=stages, scored_by="m1"
    ).to_pylist()
    assert {row["exchange_id"]: (row["decision_impact"], row["provisional_impact"]) for row in made} == {
        "a": (0.77, 0.55),
        "b": (0.0, 0.0),
    }
    assert {row["scored_by"] for row in made} == {"m1"}


def test_provisional_until_seven_days_have_closed() -> None:
    rows, deeds = [talk("a", emotion=-1.0)], [deed("refund", 1), deed("order", 2)]
    open_ = scored(rows, deeds, after(days=7) - timedelta(microseconds=1))["a"]
    assert (open_["impact_final"], open_["decision_impact"], open_["feedback"]) == (False, 0.4, "refunded")
    closed = scored(rows, deeds, after(days=7))["a"]
    assert closed["impact_final"] is True
    assert closed["decision_impact"] > 0.8
    assert closed["provisional_impact"] == open_["provisional_impact"] == 0.4, "both versions are kept"


def test_each_exchange_of_an_event_has_its_own_stage() -> None:
    made = scored([talk("a"), talk("b", 1.5)], [deed("refund", 2)], after(days=7))
    assert [made[x]["impact_final"] for x in "ab"] == [True, False]
    assert made["b"]["decision_impact"] == 0
    assert {row["feedback"] for row in made.values()} == {"refunded"}


def test_habit() -> None:
    # 10 weeks seen, 8 orders before: (8 + 4 · .5) / (10 + 4) a week expected, none seen
    deeds = [deed("order", days=-7.0 * i) for i in (10, 9, 8, 7, 6, 5, 4, 3)]
    expected = 10 / 14
    assert habit_change(behaviour(deeds)[OWNER.key], BASE) == pytest.approx(expected / (expected + 1))
    two = [*deeds, deed("order", 1), deed("order", 2)]
    assert habit_change(behaviour(two)[OWNER.key], BASE) == pytest.approx((2 - expected) / (expected + 3))
    assert habit_change(None, BASE) == 0


@pytest.mark.parametrize("days", [7.0, 8.0, 300.0])
def test_what_begins_after_the_window_changes_no_final_score(days: float) -> None:
    rows = [talk("a", emotion=0.3)]
    assert scored(rows, [])["a"] == scored(rows, [deed("visit", days=days), deed("order", days=days + 1)])["a"]


_DEEDS = st.lists(
    st.tuples(st.sampled_from(["order", "refund", "cancel", "churn", "visit"]), st.integers(-30 * 24, 40 * 24)),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(_DEEDS, st.floats(-1, 1), st.sampled_from(["logistics_complaint", "praise", "order_status", "?"]))
def test_scores_are_rounded_and_in_range(deeds: list[tuple[str, int]], emotion: float, intent: str) -> None:
    made = scored([talk("a", intent=intent, emotion=emotion)], [deed(k, h) for k, h in deeds])["a"]["decision_impact"]
    assert 0 <= made <= 1
    assert made == round(made, 4)


@settings(max_examples=60, deadline=None)
@given(_DEEDS, st.integers(0, 60 * 24), st.integers(0, 20 * 24))
def test_a_later_as_of_changes_only_what_its_window_closes(deeds: list[tuple[str, int]], hours: int, more: int) -> None:
    rows = [talk("a"), talk("b", 30, emotion=-0.4), talk("c", 200, "praise"), talk("d", 500)]
    done = [deed(k, h) for k, h in deeds]
    before, later = scored(rows, done, after(hours)), scored(rows, done, after(hours + more))
    for name, row in before.items():
        if row["impact_final"] or not later[name]["impact_final"]:
            assert later[name]["decision_impact"] == row["decision_impact"]
        if row["impact_final"]:
            assert later[name] == row


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(6)), st.permutations(range(4)))
def test_order_changes_nothing(rows: list[int], deeds: list[int]) -> None:
    talks = [talk(f"t{i}", 1.7 * i, "praise" if i % 2 else "payment_issue", emotion=i / 10) for i in range(6)]
    done = [deed(kind, 20 * i) for i, kind in enumerate(["order", "cancel", "visit", "order"])]
    made = scored([talks[i] for i in rows], [done[i] for i in deeds])
    assert list(made.items()) == list(scored(talks, done).items())
