"""What runs by itself, jobs that find nothing to do, and health."""

from datetime import datetime, timedelta
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from quarter_world import (
    LANDED,
    QUARTER,
    Life,
    checks,
    clock,
    life_state,
    told,
)

from memory_pipelines.definitions import build_defs
from memory_pipelines.model import Owner, Tier
from memory_pipelines.stores.authority import AccessKind
from memory_pipelines.tables import IMPACTS


def test_nothing_runs_by_itself() -> None:
    repository = build_defs().get_repository_def()
    schedules = {schedule.name: schedule for schedule in repository.schedule_defs}
    expected = {"daily", "nightly_tiers", "weekly_reflections", "quarterly_retraining", "daily_health", "weekly_sweep"}
    expected |= {"daily_landing", "nightly_upkeep", "nightly_store_check"}
    assert set(schedules) == expected
    sensors = {sensor.name for sensor in repository.sensor_defs}
    assert sensors >= {"inbox", "touched_days", "touched_buckets", "approved_erasures"}
    assert {s.default_status for s in schedules.values()} == {dg.DefaultScheduleStatus.STOPPED}
    assert {s.default_status for s in repository.sensor_defs} == {dg.DefaultSensorStatus.STOPPED}


@pytest.mark.parametrize(
    ("schedule", "at", "key"),
    [
        ("nightly_tiers", "2024-07-09T02:00:00+00:00", "2024-07-08"),
        ("weekly_reflections", "2024-07-08T03:00:00+00:00", "2024-07-01"),
        ("quarterly_retraining", "2024-10-01T00:00:00+00:00", "2024-07-01"),
    ],
)
def test_schedules_ask_for_what_has_ended(schedule: str, at: str, key: str) -> None:
    repository = build_defs().get_repository_def()
    with dg.build_schedule_context(
        scheduled_execution_time=datetime.fromisoformat(at), repository_def=repository
    ) as context:
        (request,) = repository.get_schedule_def(schedule).evaluate_tick(context).run_requests or []
    assert request.partition_key == key


def test_nothing_to_do_is_a_success(nobody: Life) -> None:
    before = life_state(nobody.platform)
    found = told(nobody.run("reward_job", QUARTER), "reward_champion")
    assert (found["promoted"], found["reason"], found["champion"]) == (False, "there is no challenger", "rules")
    assert told(nobody.run("tier_job", "2024-07-08", "2024-07-10"), "memory_tiers") == {"moved": 0, "deleted": 0}
    assert told(nobody.run("reflection_job", "2024-07-01"), "weekly_reflection")["persons"] == 0
    assert told(nobody.run("erasure_job"), "erasure_certificates") == {"erased": 0, "survivors": 0}
    assert checks(nobody.run("sweep_job"))["nothing_is_left"].passed
    assert told(nobody.run("upkeep_job"), "lake_files")["compacted_tables"] == 0
    found_checks = checks(nobody.run("health_job"))
    assert all(check.passed and "value" not in check.metadata for check in found_checks.values())
    after = life_state(nobody.platform)
    assert {k: v for k, v in after.items() if k != "reward_events"} == {
        k: v for k, v in before.items() if k != "reward_events"
    }


def value(check: dg.AssetCheckEvaluation) -> Any:
    return check.metadata["value"].value


def test_health_has_four_values_and_an_alarm_for_each(life: Life) -> None:
    platform = life.platform
    clock(platform, LANDED)
    someone = max(life.memories().values(), key=lambda m: (m.tier == Tier.HOT, m.memory_type, m.memory_id))
    near = [m for m in life.memories().values() if m.owner == someone.owner]
    before = LANDED - timedelta(hours=2)
    device, user = Owner("default", "d:phone"), Owner("default", "u:somebody")
    for memory in near:
        platform.accesses.record(memory.owner.key, memory.source_turn_ids, AccessKind.PRESENTED, before)
        platform.accesses.record(memory.owner.key, memory.source_turn_ids, AccessKind.ACTIVATED, before)
    platform.links.link(device, user, before)
    platform.links.seen(device, user, before + timedelta(seconds=1))
    found = checks(life.run("health_job"))
    names = ["impact_skew", "ripple_activation_rate", "slice_freshness_rate", "sync_latency"]
    assert sorted(found) == names
    assert {name: check.passed for name, check in found.items()} == dict.fromkeys(names, True)
    values = {name: value(check) for name, check in found.items()}
    assert values["slice_freshness_rate"] > 0.15
    assert 0.05 < values["impact_skew"] < 0.45
    assert (values["ripple_activation_rate"], values["sync_latency"]) == (1.0, 1.0)
    assert found["impact_skew"].severity == dg.AssetCheckSeverity.WARN


def test_stale_slices_are_an_alarm(life: Life) -> None:
    found = checks(life.run("health_job"))["slice_freshness_rate"]
    assert (found.passed, value(found)) == (False, 0.0)


def test_an_idle_graph_is_an_alarm(life: Life) -> None:
    clock(life.platform, LANDED)
    for memory in life.memories().values():
        life.platform.accesses.record(
            memory.owner.key, memory.source_turn_ids, AccessKind.PRESENTED, LANDED - timedelta(days=1)
        )
    found = checks(life.run("health_job"))["ripple_activation_rate"]
    assert (found.passed, value(found)) == (False, 0.0)


def test_two_humps_are_an_alarm(life: Life) -> None:
    platform = life.platform
    clock(platform, LANDED)
    for bucket in range(platform.settings.buckets):
        rows = platform.lake.read(IMPACTS, where=[("bucket", "=", bucket)])
        humps = pa.array([float(n % 2) for n in range(rows.num_rows)])
        place = rows.column_names.index("decision_impact")
        platform.lake.write(IMPACTS, rows.set_column(place, "decision_impact", humps), [], {"bucket": bucket})
    found = checks(life.run("health_job"))["impact_skew"]
    assert not found.passed
    assert value(found) == pytest.approx(0.5, abs=0.01)
    assert "deviation" in found.metadata


def test_a_slow_link_is_an_alarm(life: Life) -> None:
    platform, login = life.platform, LANDED - timedelta(hours=2)
    clock(platform, LANDED)
    device, user = Owner("default", "d:phone"), Owner("default", "u:somebody")
    platform.links.link(device, user, login)
    platform.links.seen(device, user, login + timedelta(seconds=10))
    found = checks(life.run("health_job"))["sync_latency"]
    assert (found.passed, value(found)) == (False, 10.0)
