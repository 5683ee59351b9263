"""Fitting, evaluation and the verdict, on the simulator's people and on bad input."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from reward_world import BASE, Simulated, behaviour_table, deed, event, events_table, simulated

from memory_pipelines.errors import IntegrityError, PermanentError
from memory_pipelines.model import WINDOW, canonical_json, stable_hash
from memory_pipelines.reward.evaluate import (
    Bin,
    Metrics,
    calibration_error,
    default_cut,
    evaluate,
    evaluate_scores,
    time_split,
    weighted_auc,
)
from memory_pipelines.reward.explain import explain
from memory_pipelines.reward.features import NAMES, intent_code
from memory_pipelines.reward.fit import (
    PARAMETERS,
    InsufficientDataError,
    RewardModel,
    feature_rows,
    fit,
    provisional,
    telling,
)
from memory_pipelines.reward.labels import reward_events
from memory_pipelines.reward.promote import CALIBRATION_SLACK, SLICE_SLACK, decide
from memory_pipelines.reward.timeline import Floats


@pytest.fixture(scope="module")
def people() -> Simulated:
    return simulated(seed=301, subjects=150)


@pytest.fixture(scope="module")
def others() -> Simulated:
    return simulated(seed=401, subjects=150)


@pytest.fixture(scope="module")
def model(people: Simulated) -> RewardModel:
    return fit(people.rewards)


@pytest.fixture(scope="module")
def metrics(model: RewardModel, others: Simulated) -> Metrics:
    return evaluate(model, others.rewards)


def correlation(scores: Floats, world: Simulated) -> float:
    return float(np.corrcoef(scores[world.known], world.effect[world.known])[0, 1])


def test_it_finds_the_true_effects_of_other_people_better_than_rules(model: RewardModel, others: Simulated) -> None:
    features = feature_rows(others.rewards)
    assert others.known.sum() > 300
    rules = {
        "impact rule": correlation(others.rule, others),
        "40 % rule": correlation(features[:, NAMES.index("rule_40")], others),
    }
    final = correlation(model.predict(features), others)
    early = correlation(model.predict(provisional(features)), others)
    assert final > max(rules.values()) + 0.1, (final, rules)
    assert early > correlation(others.rule_provisional, others) + 0.05
    assert final > early


def test_scores_are_in_range_and_rounded(model: RewardModel, others: Simulated) -> None:
    scores = model.predict(feature_rows(others.rewards))
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (scores == np.round(scores, 4)).all()
    assert scores.max() > 0.3 > np.median(scores)  # most talk changes nothing, some does


def test_a_score_does_not_depend_on_the_batch(model: RewardModel, others: Simulated) -> None:
    features = feature_rows(others.rewards)[:200]
    whole = model.predict(features)
    assert model.predict(features[::-1]).tolist() == whole[::-1].tolist()
    assert [float(model.predict(row[None, :])[0]) for row in features[:20]] == whole[:20].tolist()
    assert model.predict(features[:0]).tolist() == []


def test_the_same_rows_in_any_order_give_the_same_text(model: RewardModel, people: Simulated) -> None:
    mixed = people.rewards.take(np.random.default_rng(5).permutation(people.rewards.num_rows))
    again = fit(mixed)
    assert again.body == model.body
    assert again.model_id == model.model_id == stable_hash(model.body)


def test_the_text_is_the_whole_model(model: RewardModel, others: Simulated) -> None:
    features = feature_rows(others.rewards)
    assert RewardModel(model.body).predict(features).tolist() == model.predict(features).tolist()
    assert model.booster is model.booster
    assert sum(model.gain().values()) == pytest.approx(1, abs=0.01)


def test_an_unknown_intent_is_scored(model: RewardModel, others: Simulated) -> None:
    row = feature_rows(others.rewards)[:1].copy()
    row[0, NAMES.index("intent")] = intent_code("一个新的意图 🙂")
    assert 0 <= model.predict(row)[0] <= 1


@pytest.mark.parametrize("body", ["", "{}", "[1]", "null", '{"format":1,"used":["x"],"intents":[],"booster":""}'])
def test_another_text_is_refused(body: str) -> None:
    with pytest.raises(IntegrityError, match="no reward model"):
        RewardModel(body).predict(np.zeros((1, len(NAMES))))


def test_a_model_of_other_features_goes_on_scoring(people: Simulated, others: Simulated) -> None:
    """A champion of an earlier release: its text names what it sees."""
    former = {"intent": 0, "emotion": -1, "after_dwell": -1, "after_bounce": 1, "after_coupons": -1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memory_pipelines.reward.fit.USED", former)
        patch.setitem(PARAMETERS, "monotone_constraints", list(former.values()))
        model = fit(people.rewards)
    assert model.used == list(former)
    features = feature_rows(others.rewards)
    assert correlation(model.predict(features), others) > 0.4
    told = explain(model, features, others.rewards["intent"].to_pylist())
    assert any("after dwell: " in reason.text for found in told for reason in found.reasons)


def test_a_broken_booster_is_refused(model: RewardModel) -> None:
    broken = canonical_json(json.loads(model.body) | {"booster": "nonsense"})
    with pytest.raises(IntegrityError, match="no reward model"):
        RewardModel(broken).predict(np.zeros((1, len(NAMES))))


def test_rows_of_another_width_are_refused(model: RewardModel, people: Simulated) -> None:
    with pytest.raises(IntegrityError, match="features"):
        model.predict(np.zeros((2, 3)))
    place = people.rewards.schema.get_field_index("features")
    short = pa.array([[1.0]] * people.rewards.num_rows, people.rewards.schema.field("features").type)
    with pytest.raises(IntegrityError, match="build them anew"):
        feature_rows(people.rewards.set_column(place, "features", short))


def test_idle_talk_beside_something_serious_and_open_windows_teach_nothing(people: Simulated) -> None:
    rows = telling(people.rewards)
    assert all(rows["window_closed"].to_pylist())
    beside = feature_rows(rows)[:, NAMES.index("beside")]
    idle = np.isin(rows["category"].to_pylist(), ["chit_chat", "inquiry"])
    assert not beside[idle].any()
    assert beside[~idle].any()


# ---- nothing to learn


def test_no_behaviour_is_one_class() -> None:
    rows = reward_events(
        events_table([event(f"e{i}", i / 50) for i in range(200)]), behaviour_table([]), BASE + timedelta(days=30)
    )
    assert set(rows["label"].to_pylist()) == {0.0}
    with pytest.raises(InsufficientDataError, match="on one side"):
        fit(rows)
    assert issubclass(InsufficientDataError, PermanentError)


def test_one_person_is_too_little_for_controls_but_not_for_labels() -> None:
    rows = reward_events(
        events_table([event(f"e{i}", 8 * i) for i in range(12)]),
        behaviour_table([deed("order", 16 * i - 1) for i in range(6)]),
        BASE + timedelta(days=120),
    )
    assert rows["expected"].null_count == 12
    assert set(rows["label"].to_pylist()) == {0.0, 1.0}
    with pytest.raises(InsufficientDataError, match="12 events"):
        fit(rows)


def test_labels_of_the_fall_back_alone_can_be_learned_but_not_judged() -> None:
    events = [event(f"e{i}", 8 * i, "logistics_complaint" if i % 2 else "praise") for i in range(120)]
    orders = [deed("order", 8 * i - 1) for i in range(1, 120, 2)]
    rows = reward_events(events_table(events), behaviour_table(orders), BASE + timedelta(days=2000))
    rows = rows.set_column(rows.schema.get_field_index("expected"), "expected", pa.nulls(120, pa.float64()))
    made = fit(rows)
    scores = made.predict(feature_rows(rows))
    assert scores[1::2].mean() > scores[::2].mean()
    with pytest.raises(InsufficientDataError, match="0 held-out events"):
        evaluate(made, rows)


def test_nothing_at_all() -> None:
    nothing = reward_events(events_table([]), behaviour_table([]), BASE)
    with pytest.raises(InsufficientDataError, match="0 events"):
        fit(nothing)
    with pytest.raises(InsufficientDataError, match="no event"):
        default_cut(nothing)


# ---- evaluation


def test_the_split_keeps_windows_apart(people: Simulated) -> None:
    cut = default_cut(people.rewards)
    train, holdout = time_split(people.rewards, cut)
    closed = sum(people.rewards["window_closed"].to_pylist())
    assert max(train["occurred_at"].to_pylist()) + WINDOW <= cut <= min(holdout["occurred_at"].to_pylist())
    assert all(train["window_closed"].to_pylist())
    assert all(holdout["window_closed"].to_pylist())
    assert holdout.num_rows == pytest.approx(closed / 4, abs=closed / 50)
    assert train.num_rows > holdout.num_rows


def test_metrics_on_other_people(metrics: Metrics, others: Simulated) -> None:
    assert metrics.rows <= telling(others.rewards).num_rows
    assert 0.52 < metrics.auc < 0.8  # chance decides most single weeks: the true effects reach .55
    assert 0.52 < metrics.auc_provisional < 0.8
    assert metrics.brier < metrics.brier_base <= 0.25
    assert sum(b.rows for b in metrics.calibration) == metrics.rows
    assert all(b.low <= b.score <= b.high for b in metrics.calibration)
    assert metrics.calibration_error < 0.2
    complaints = metrics.intents["logistics_complaint"]
    assert complaints.seen > 0.2 > metrics.intents["product_inquiry"].seen
    assert metrics.as_json()["intents"]["logistics_complaint"]["rows"] == complaints.rows
    assert list(metrics.gain.values()) == sorted(metrics.gain.values(), reverse=True)


def test_metrics_do_not_depend_on_row_order(model: RewardModel, metrics: Metrics, others: Simulated) -> None:
    mixed = others.rewards.take(np.random.default_rng(5).permutation(others.rewards.num_rows))
    assert evaluate(model, mixed) == metrics


def test_known_scores_are_judged_as_a_model_is(model: RewardModel, metrics: Metrics, others: Simulated) -> None:
    names = others.rewards["exchange_id"].to_pylist()
    known = dict(zip(names, model.predict(feature_rows(others.rewards)).tolist(), strict=True))
    judged = evaluate_scores(known, others.rewards)
    assert (judged.rows, judged.auc, judged.brier) == (metrics.rows, metrics.auc, metrics.brier)
    assert judged.calibration == metrics.calibration
    assert judged.gain == {}
    half = {name: known[name] for name in names[: len(names) // 2]}
    assert 0 < evaluate_scores(half, others.rewards).rows < metrics.rows
    with pytest.raises(InsufficientDataError):
        evaluate_scores({}, others.rewards)


def test_one_class_cannot_be_judged(model: RewardModel, others: Simulated) -> None:
    high = others.rewards.filter(pa.compute.greater(others.rewards["label"], 0.4))
    with pytest.raises(InsufficientDataError):
        evaluate(model, high)


def test_auc_by_hand() -> None:
    score, positive = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True])
    assert weighted_auc(score, positive, np.ones(4)) == (2 + 1.5) / 4
    # the tied negative weighs three times
    assert weighted_auc(score, positive, np.array([1.0, 1.0, 3.0, 1.0])) == (1 + 1.5 + 4) / 8
    assert weighted_auc(score, np.ones(4, dtype=bool), np.ones(4)) is None
    assert weighted_auc(score, positive, np.zeros(4)) is None


def test_a_score_of_nought_is_right_where_people_bought_more() -> None:
    rise = Bin(low=0.0, high=0.1, rows=9, expected=30.0, score=0.02, seen=-0.5)
    fall = Bin(low=0.4, high=0.5, rows=3, expected=10.0, score=0.45, seen=0.55)
    assert calibration_error([rise, fall]) == pytest.approx((30 * 0.02 + 10 * 0.1) / 40)


# ---- verdict


def test_a_first_champion_has_to_beat_the_base_rate(metrics: Metrics) -> None:
    verdict = decide(None, metrics, [])
    assert verdict.promote
    assert "first champion" in verdict.reason
    assert not decide(None, replace(metrics, brier=metrics.brier_base), []).promote
    assert not decide(None, replace(metrics, auc=0.5), []).promote


def test_a_challenger_has_to_be_better_and_as_well_calibrated(metrics: Metrics) -> None:
    better = replace(metrics, auc=metrics.auc + 0.01)
    assert decide(metrics, better, []).promote
    assert not decide(metrics, metrics, []).promote
    near = replace(better, calibration_error=metrics.calibration_error + CALIBRATION_SLACK / 2)
    worse = replace(better, calibration_error=metrics.calibration_error + CALIBRATION_SLACK * 2)
    assert decide(metrics, near, []).promote
    assert "calibration" in decide(metrics, worse, []).reason
    assert not decide(metrics, worse, []).promote


def test_an_intent_that_gets_worse_blocks(metrics: Metrics) -> None:
    name = "logistics_complaint"
    spoilt = replace(metrics.intents[name], brier=metrics.intents[name].brier + 2 * SLICE_SLACK)
    challenger = replace(metrics, auc=metrics.auc + 0.01, intents=metrics.intents | {name: spoilt})
    verdict = decide(metrics, challenger, [])
    assert not verdict.promote
    assert verdict.reason.startswith(name)


@pytest.mark.parametrize("first", [True, False])
def test_any_problem_of_the_distribution_blocks(metrics: Metrics, first: bool) -> None:
    verdict = decide(None if first else replace(metrics, auc=0.1), metrics, ["deviation .46 > .45", "two humps"])
    assert not verdict.promote
    assert verdict.reason == "deviation .46 > .45; two humps"


def test_a_default_cut_is_an_instant(people: Simulated) -> None:
    cut = default_cut(people.rewards)
    assert isinstance(cut, datetime)
    assert cut.utcoffset() == timedelta(0)
