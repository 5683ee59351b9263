"""What follows from impacts: checks that fire and ask for a retraining, explanations, and labels by humans."""

import csv
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest
from quarter_world import LANDED, QUARTER, Life, checks, clock, told

from memory_pipelines import cli, wiring
from memory_pipelines.definitions import build_defs
from memory_pipelines.errors import InputError
from memory_pipelines.pipeline import annotations, reward
from memory_pipelines.pipeline.impacts import explain_impacts
from memory_pipelines.tables import ANNOTATIONS, IMPACTS, REWARD_EVENTS, SLICES

SKEWED: dict[str, list[float]] = {
    "deviation": [0.0, 1.0],
    "collapse": [0.5],
    "two_humps": [0.1, 0.15, 0.2, 0.25, 0.3, 0.2, 0.15, 0.25, 0.95],
    "low_share": [0.5, 0.72, 0.6, 0.8],
    "high_share": [0.8, 0.9, 0.2],
}
"""Values that step 5 would have to give in turns for each fault."""


def plant(life: Life, values: list[float]) -> None:
    """Give the exchanges these impacts, in turns, as if they were final and of the rules."""
    platform = life.platform
    for bucket in range(platform.settings.buckets):
        rows = platform.lake.read(IMPACTS, where=[("bucket", "=", bucket)])
        turns = pa.array([values[number % len(values)] for number in range(rows.num_rows)])
        place = rows.column_names.index("decision_impact")
        platform.lake.write(IMPACTS, rows.set_column(place, "decision_impact", turns), [], {"bucket": bucket})


def evaluated(life: Life) -> dg.AssetCheckEvaluation:
    """The check of the live impacts, in a run of its own."""
    selection = dg.AssetSelection.checks(dg.AssetCheckKey(dg.AssetKey("decision_impact"), "impact_distribution"))
    job = dg.define_asset_job("look", selection).resolve(asset_graph=build_defs().resolve_asset_graph())
    return checks(job.execute_in_process(instance=life.instance, resources=_resources()))["impact_distribution"]


def landed(life: Life) -> datetime:
    manifest = life.platform.ledger.manifest()
    assert manifest is not None
    return manifest.landed_through


def _resources() -> dict[str, Any]:
    from resources.platform import PlatformResource

    return {"memory": PlatformResource(home="", now="")}


def asked(life: Life, cursor: str | None = None) -> tuple[list[str | None], str | None]:
    """The partitions that the sensor asks a retraining for, and its cursor."""
    defs = build_defs()
    with dg.build_sensor_context(instance=life.instance, cursor=cursor, definitions=defs) as context:
        tick = defs.get_repository_def().get_sensor_def("skewed_impacts").evaluate_tick(context)
    return [request.partition_key for request in tick.run_requests or []], tick.cursor


def test_good_impacts_pass_and_ask_for_nothing(life: Life) -> None:
    clock(life.platform, LANDED)
    found = evaluated(life)
    assert found.passed, found.metadata
    assert 0.05 < found.metadata["deviation"].value < 0.45
    assert [row.data["found"] for row in found.metadata["expectations"].value.records][:3] == ["holds"] * 3
    assert asked(life) == ([], None)


@pytest.mark.parametrize("fault", SKEWED)
def test_each_fault_of_the_distribution_fires(life: Life, fault: str) -> None:
    clock(life.platform, LANDED)
    plant(life, SKEWED[fault])
    found = evaluated(life)
    assert not found.passed
    assert fault in found.metadata


def test_a_drift_from_the_champions_training_range_fires(town: Life) -> None:
    platform = town.platform
    clock(platform, LANDED)
    assert told(town.run("reward_job", QUARTER), "reward_champion")["promoted"]
    assert evaluated(town).passed, "impacts of the rules are no drift of the model's"
    town.derive()
    found = evaluated(town)
    assert "psi" not in found.metadata, found.metadata
    (scored,) = set(platform.lake.read(IMPACTS)["scored_by"].to_pylist())
    assert scored == platform.registry.champion(reward.KIND).model_id  # type: ignore[union-attr]
    plant(town, [i / 40 for i in range(40)])
    assert "psi" in evaluated(town).metadata


def test_a_failed_check_asks_for_one_retraining_on_what_has_landed(life: Life) -> None:
    clock(life.platform, LANDED)
    plant(life, SKEWED["deviation"])
    assert not evaluated(life).passed
    (quarter,), cursor = asked(life)
    assert quarter is not None
    assert asked(life, cursor)[0] == [], "that failure was answered"
    assert not evaluated(life).passed
    assert asked(life, cursor)[0] == [quarter], "it fails again, and nobody has retrained"
    result = life.run("reward_job", quarter)
    assert told(result, "reward_model")["data_to"] == landed(life).isoformat()
    assert asked(life, cursor)[0] == [], "once a week is enough"


def test_a_skewed_challenger_is_not_promoted_by_another_run(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    def humps(*_: Any) -> Any:
        return np.array([0.0] * 100 + [1.0] * 100)

    monkeypatch.setattr(reward, "recent_scores", humps)
    result = life.run("reward_job", QUARTER, check=False)
    assert not checks(result)["scores_well_distributed"].passed
    verdict = reward.decide_reward(life.platform, landed(life))
    assert not verdict.promote
    assert "standard deviation 0.5000 > 0.45" in verdict.reason
    assert life.platform.registry.champion(reward.KIND) is None


def test_scores_are_explained_by_rules_and_by_a_model(town: Life) -> None:
    platform = town.platform
    ((slice_id, impact),) = [
        (row["slice_id"], row["decision_impact"])
        for row in sorted(
            platform.lake.read(SLICES).to_pylist(), key=lambda row: (-row["decision_impact"], row["slice_id"])
        )[:1]
    ]
    by_rules = explain_impacts(platform, slice_id)
    assert any(f"decision impact {impact:.2f} by rules" in item.lines[0] for item in by_rules)
    exchange = by_rules[0].exchange_id
    town.run("reward_job", QUARTER)
    town.derive()
    (item,) = explain_impacts(platform, exchange[:12])
    (row,) = platform.lake.read(IMPACTS, where=[("exchange_id", "=", exchange)]).to_pylist()
    assert item.lines[0].startswith(f"decision impact {row['decision_impact']:.2f}")
    assert item.lines[-1] == f"before its 7 days had closed it was {row['provisional_impact']:.2f}"
    assert item.stage == f"final; scored by {row['scored_by']}"
    for wrong in ("abc", "evt_20240101_0", "xyzxyzxyz", "0" * 32):
        with pytest.raises(InputError):
            explain_impacts(platform, wrong)


def test_uncertain_events_go_out_and_labels_come_back(life: Life, tmp_path: Path) -> None:
    platform, file = life.platform, tmp_path / "ask.csv"
    with pytest.raises(InputError, match="run reward_job first"):
        annotations.export_uncertain(platform, file, 5)
    reward.collect_reward_events(platform, LANDED)
    assert annotations.export_uncertain(platform, file, 5) == 5
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert all(row["text"] and 0 <= float(row["score"]) <= 1 for row in rows)
    answers = [row | {"impact": answer} for row, answer in zip(rows, ("high", "0.2", "", "wrong", "low"), strict=True)]
    answers[4]["exchange_id"] = "f" * 32
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(answers)
    found = annotations.import_annotations(platform, file)
    assert (found.rows, [number for number, _ in found.faults]) == (2, [4, 0])
    assert annotations.import_annotations(platform, file).rows == platform.lake.read(ANNOTATIONS).num_rows == 2
    known = reward.collect_reward_events(platform, LANDED + timedelta(days=1))
    labels = {r["exchange_id"]: r["label"] for r in known.to_pylist() if r["annotated"]}
    assert labels == {rows[0]["exchange_id"]: 0.85, rows[1]["exchange_id"]: 0.2}
    assert platform.lake.read(REWARD_EVENTS).num_rows == known.num_rows
    again = tmp_path / "again.csv"
    annotations.export_uncertain(platform, again, 5)
    with again.open(encoding="utf-8-sig", newline="") as lines:
        assert labels.keys().isdisjoint(row["exchange_id"] for row in csv.DictReader(lines))


def test_the_command_line_does_the_same(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wiring, "connect", lambda: nullcontext(life.platform))
    file = tmp_path / "ask.csv"
    assert cli.main(["labels", "export", str(file)]) == 1
    assert "run reward_job first" in capsys.readouterr().err
    reward.collect_reward_events(life.platform, LANDED)
    assert cli.main(["labels", "export", str(file), "--rows", "3"]) == 0
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(row | {"impact": "medium"} for row in rows)
    assert cli.main(["labels", "import", str(file)]) == 0
    assert "3 decision impacts are in" in capsys.readouterr().out
    assert cli.main(["explain", "--impact", rows[0]["exchange_id"]]) == 0
    told = capsys.readouterr().out
    assert rows[0]["exchange_id"] in told
    assert "by rules" in told
    assert cli.main(["explain", "--impact", "ab", "--sample", "1"]) == 1
