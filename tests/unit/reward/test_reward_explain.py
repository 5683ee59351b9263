"""A score in plain words: the reasons multiply to the score, and every feature of a model can be told."""

import math

import numpy as np
import pytest
from reward_world import Simulated, simulated

from memory_pipelines.reward.explain import LEAST_SHARE, WORDS, Explanation, explain, in_words
from memory_pipelines.reward.features import NAMES
from memory_pipelines.reward.fit import USED, RewardModel, feature_rows, fit, provisional


@pytest.fixture(scope="module")
def people() -> Simulated:
    return simulated(seed=301, subjects=80)


@pytest.fixture(scope="module")
def model(people: Simulated) -> RewardModel:
    return fit(people.rewards)


@pytest.fixture(scope="module")
def told(people: Simulated, model: RewardModel) -> list[Explanation]:
    features = feature_rows(people.rewards)
    both = np.vstack([features, provisional(features)])
    return explain(model, both, people.rewards["intent"].to_pylist() * 2)


def test_contributions_add_up_to_the_score(people: Simulated, model: RewardModel) -> None:
    features = feature_rows(people.rewards)
    left = np.exp(model.contributions(features).sum(axis=1))
    assert np.clip(1 - left, 0, 1) == pytest.approx(model.predict(features), abs=1e-4)


def test_the_reasons_are_the_features_that_matter_strongest_first(told: list[Explanation]) -> None:
    assert len({e.impact for e in told}) > 20
    for found in told:
        strengths = [abs(math.log(reason.factor)) for reason in found.reasons]
        assert strengths == sorted(strengths, reverse=True)
        left = found.usual * math.prod(reason.factor for reason in found.reasons)
        assert min(1, max(0, 1 - left)) == pytest.approx(found.impact, abs=4 * LEAST_SHARE)


def test_every_feature_of_a_model_has_words() -> None:
    assert set(USED) - {"intent"} == set(WORDS)


def test_a_complaint_that_went_wrong_is_told(told: list[Explanation], people: Simulated) -> None:
    worst = max(told, key=lambda found: found.impact)
    first, *reasons = in_words(worst)
    assert first == (
        f"decision impact {worst.impact:.2f}: {worst.impact:.0%} of the usual orders are missing because of it"
    )
    assert reasons[0].startswith("−")
    assert any("what it is about: logistics_complaint" in line for line in reasons)
    none = next(found for found in told if not found.impact)
    assert in_words(none)[0].endswith("nothing speaks of fewer orders than usual")


def test_what_is_not_known_yet_is_said_so(told: list[Explanation]) -> None:
    early = told[len(told) // 2 :]
    unknown = {reason.feature for found in early for reason in found.reasons if math.isnan(reason.value)}
    assert unknown
    assert unknown.isdisjoint({"intent", "emotion", "before_repeats"})
    assert all("not known" in r.text for f in early for r in f.reasons if math.isnan(r.value))
    assert {r.feature for f in told for r in f.reasons} <= set(NAMES)
