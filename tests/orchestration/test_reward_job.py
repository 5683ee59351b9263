"""Retraining as Dagster's job: trained, checked, promoted, rolled back."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from quarter_world import (
    LANDED,
    QUARTER,
    SENTENCES,
    Life,
    checks,
    land,
    life_state,
    said,
    told,
    write_rows,
)

from memory_pipelines.errors import PermanentError
from memory_pipelines.pipeline import reward
from memory_pipelines.reward import labels
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.tables import IMPACTS, REWARD_EVENTS


def two_humps(*_: Any) -> Any:
    """Scores of a model that has gone wrong."""
    return np.array([0.0] * 100 + [1.0] * 100)


def test_a_quarter_trains_and_promotes(town: Life) -> None:
    platform, rules = town.platform, town.platform.lake.read(IMPACTS)
    result = town.run("reward_job", QUARTER)
    assert {name: check.passed for name, check in checks(result).items()} == {
        "behaviour_is_sound": True,
        "features_are_sound": True,
        "scores_well_distributed": True,
    }
    (row,) = platform.registry.rows(reward.KIND)
    rows = platform.lake.read(REWARD_EVENTS)
    assert told(result, "reward_training_rows")["dagster/row_count"] == rows.num_rows > 300
    shown = told(result, "reward_model")
    assert shown["dagster/row_count"] == row.rows < rows.num_rows
    assert (shown["data_from"], shown["data_to"]) == (row.data_from.isoformat(), row.data_to.isoformat())
    assert row.data_to == LANDED, "the logs end before the quarter"
    assert row.data_from < row.data_to - timedelta(days=100)
    assert len(row.data_hash) == 32
    assert shown["auc"] == row.metrics["auc"] > 0.5
    for picture in ("calibration", "impact_histogram", "feature_gain"):
        assert shown[picture].startswith("![")
    verdict = told(result, "reward_champion")
    assert (verdict["promoted"], verdict["reason"], verdict["champion"]) == (True, row.verdict, row.model_id)
    assert platform.ledger.touched_buckets() == [0, 1], "everybody is derived anew"
    town.derive()
    scored = platform.lake.read(IMPACTS)
    assert scored["exchange_id"] == rules["exchange_id"]
    assert scored["decision_impact"] != rules["decision_impact"]

    before = life_state(platform)
    again = told(town.run("reward_job", QUARTER), "reward_champion")
    assert (again["promoted"], again["champion"]) == (True, row.model_id)
    assert town.tick("touched_buckets") == []
    assert life_state(platform) == before


def test_a_skewed_challenger_is_not_promoted(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    before = life_state(life.platform)
    with monkeypatch.context() as patch:
        patch.setattr(reward, "recent_scores", two_humps)
        result = life.run("reward_job", QUARTER, check=False)
    assert not result.success
    check = checks(result)["scores_well_distributed"]
    assert not check.passed
    assert "0.5" in str(check.metadata["deviation"].value)
    assert result.asset_materializations_for_node("reward_model")
    assert not result.asset_materializations_for_node("reward_champion")
    assert life.platform.registry.champion(reward.KIND) is None
    after = life_state(life.platform)
    assert {name for name, value in after.items() if value != before[name]} == {"models", "reward_events"}
    assert told(life.run("reward_job", QUARTER), "reward_champion")["promoted"]
    with monkeypatch.context() as patch:
        patch.setattr(reward, "recent_scores", two_humps)
        assert not life.run("reward_job", QUARTER, check=False).success
    assert life.platform.registry.champion(reward.KIND) == life.platform.registry.rows(reward.KIND)[0]


def test_broken_features_train_nothing(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = labels.reward_events

    def broken(*arguments: Any) -> pa.Table:
        rows = whole(*arguments)
        column = rows.column_names.index("label")
        return rows.set_column(column, "label", pa.array([7.0] * rows.num_rows))

    monkeypatch.setattr(reward, "reward_events", broken)
    result = life.run("reward_job", QUARTER, check=False)
    assert not checks(result)["features_are_sound"].passed
    assert not result.asset_materializations_for_node("reward_model")
    assert life.platform.registry.rows(reward.KIND) == []


def test_one_person_is_too_little_to_train_on(nobody: Life, tmp_path: Path) -> None:
    at = datetime(2024, 5, 6, 9, tzinfo=UTC)
    land(nobody.platform, write_rows(tmp_path / "one.jsonl", said("one", at, *SENTENCES)))
    result = nobody.run("reward_job", QUARTER)
    assert result.success
    assert "event" in told(result, "reward_model")["nothing_to_do"]
    assert not told(result, "reward_champion")["promoted"]
    assert all(check.passed for check in checks(result).values())
    assert nobody.platform.registry.rows(reward.KIND) == []


def test_rolling_back_brings_the_former_champion_and_its_scores_back(life: Life) -> None:
    platform = life.platform
    with pytest.raises(PermanentError):
        reward.roll_back_reward(platform)
    life.run("reward_job", QUARTER)
    life.derive()
    first, scores = platform.registry.champion(reward.KIND), canonical_hash(IMPACTS, platform.lake.read(IMPACTS))
    assert first is not None
    second = reward.train_reward(platform, LANDED - timedelta(days=20)).row
    assert second is not None
    platform.registry.promote(reward.KIND, second.model_id, platform.clock.now(), "by hand")
    platform.ledger.touch_everybody()
    life.derive()
    assert canonical_hash(IMPACTS, platform.lake.read(IMPACTS)) != scores
    assert reward.roll_back_reward(platform) == first.model_id
    assert platform.registry.champion(reward.KIND) == first
    life.derive()
    assert canonical_hash(IMPACTS, platform.lake.read(IMPACTS)) == scores
