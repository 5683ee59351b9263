"""Bad input of the reward model: skewed clocks, negative amounts, other currencies, one person with everything."""

import time
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from reward_world import ANN, BASE, BOB, Row, Simulated, behaviour_table, deed, event, events_table, rewarded, simulated

from memory_pipelines.reward.fit import RewardModel, feature_rows, fit
from memory_pipelines.reward.labels import event_features, reward_events
from memory_pipelines.tables import BEHAVIOUR

SKEW = timedelta(hours=5)


@pytest.fixture(scope="module")
def people() -> Simulated:
    return simulated(seed=301, subjects=60)


@pytest.fixture(scope="module")
def model(people: Simulated) -> RewardModel:
    return fit(people.rewards)


def changed(people: Simulated, column: str, change: Any) -> Any:
    """The features of everybody after ``change`` of a column of the behaviour."""
    values = [change(value) for value in people.behaviour[column].to_pylist()]
    rows = people.behaviour.to_pylist()
    table = behaviour_table([row | {column: value} for row, value in zip(rows, values, strict=True)])
    assert table.schema == BEHAVIOUR.schema
    return event_features(people.events, table, people.as_of)[1]


def test_a_skewed_clock_harms_its_owner_alone() -> None:
    deeds = [
        deed(kind, day, owner=owner) for kind in ("order", "visit") for day in range(-20, 9, 3) for owner in (ANN, BOB)
    ]
    events = [event("a"), event("b", owner=BOB)]
    right = rewarded(events, deeds)
    skewed = [row | {"occurred_at": row["occurred_at"] + SKEW} if row["owner"] == ANN.key else row for row in deeds]
    wrong = rewarded(events, skewed)
    assert str(wrong["b"]) == str(right["b"])
    assert wrong["a"]["features"] != right["a"]["features"]
    assert 0 <= wrong["a"]["label"] <= 1
    assert not any(np.isinf(value) for value in wrong["a"]["features"].values())


def test_another_currency_changes_no_score(people: Simulated, model: RewardModel) -> None:
    yen = changed(people, "value", lambda value: None if value is None else round(160 * value, 2))
    assert model.predict(yen).tolist() == model.predict(feature_rows(people.rewards)).tolist()


def test_negative_and_missing_amounts_give_scores(people: Simulated, model: RewardModel) -> None:
    for change in (lambda value: None if value is None else -value, lambda value: None):
        scores = model.predict(changed(people, "value", change))
        assert ((scores >= 0) & (scores <= 1)).all()


def test_everything_twice_changes_nothing(people: Simulated) -> None:
    rows = people.behaviour.to_pylist()
    twice = behaviour_table([*rows, *({**row, "position": 99, "file_id": "again"} for row in rows)])
    assert str(reward_events(people.events, twice, people.as_of).to_pylist()[:50]) == str(
        people.rewards.to_pylist()[:50]
    )


def test_the_work_for_one_person_grows_as_their_events_do() -> None:
    def seconds(number: int) -> float:
        events: list[Row] = [event(f"e{i:06}", i / number * 300) for i in range(number)]
        deeds = [
            deed("order" if i % 3 else "visit", i / number * 300, name=f"b{i:06}", value=1.0) for i in range(number)
        ]
        tables = events_table(events), behaviour_table(deeds)
        begun = time.process_time()
        assert reward_events(*tables, BASE + timedelta(days=400)).num_rows == number
        return time.process_time() - begun

    seconds(500)
    small = seconds(2_000)
    assert seconds(20_000) < 40 * small, "ten times the events; a quadratic step would take a hundred times as long"
