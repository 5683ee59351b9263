"""Retraining, tiers, reflections and health as Dagster's jobs, over a log of a spring."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest
from life_world import (
    QUARTER,
    SPRING,
    WEEKS_OF_JUNE,
    Life,
    checks,
    clock,
    copied,
    life_state,
    living,
    said,
    settings_of,
    told,
    write_rows,
)
from pipeline_world import cut, derive_all
from suites.llm_server import Answer, serving

from memory_pipelines.definitions import build_defs
from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import MemoryType, Owner, Permanence, Tier
from memory_pipelines.pipeline import files, reward
from memory_pipelines.pipeline import reflection as pipeline_reflection
from memory_pipelines.reflection import Reflection
from memory_pipelines.sample import write_sample
from memory_pipelines.stores.base import AccessKind, StoredMemory, cold_key
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.graph import Neo4jGraph
from memory_pipelines.stores.vectors import MilvusVectors
from memory_pipelines.tables import IMPACTS, REFLECTIONS, REWARD_EVENTS
from memory_pipelines.wiring import Platform

LANDED = datetime(2024, 7, 9, tzinfo=UTC)
"""How far the log has landed."""


def two_humps(*_: Any) -> Any:
    """Scores of a model that has gone wrong."""
    return np.array([0.0] * 100 + [1.0] * 100)


def test_nothing_runs_by_itself() -> None:
    repository = build_defs().get_repository_def()
    schedules = {schedule.name: schedule for schedule in repository.schedule_defs}
    expected = {"daily", "nightly_tiers", "weekly_reflections", "quarterly_retraining", "daily_health", "weekly_sweep"}
    assert set(schedules) == expected
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "inbox",
        "touched_days",
        "touched_buckets",
        "approved_erasures",
    }
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
    found_checks = checks(nobody.run("health_job"))
    assert all(check.passed and "value" not in check.metadata for check in found_checks.values())
    after = life_state(nobody.platform)
    assert {k: v for k, v in after.items() if k != "reward_events"} == {
        k: v for k, v in before.items() if k != "reward_events"
    }


# ---- retraining


def test_a_quarter_trains_and_promotes(life: Life) -> None:
    platform, rules = life.platform, life.platform.lake.read(IMPACTS)
    result = life.run("reward_job", QUARTER)
    assert {name: check.passed for name, check in checks(result).items()} == {
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
    life.derive()
    scored = platform.lake.read(IMPACTS)
    assert scored["exchange_id"] == rules["exchange_id"]
    assert scored["decision_impact"] != rules["decision_impact"]

    before = life_state(platform)
    again = told(life.run("reward_job", QUARTER), "reward_champion")
    assert (again["promoted"], again["champion"]) == (True, row.model_id)
    assert life.tick("touched_buckets") == []
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
    whole = reward.reward_events

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


# ---- tiers

SENTENCES = (
    "I am allergic to peanuts, please remember that.",
    "My name is Alice Harper.",
    "My order 88123 with SF Express has not arrived, I want to complain. This is the third time!",
)


def land(platform: Platform, *paths: Path) -> None:
    """Land and derive by the library: quicker than by Dagster."""
    files.land(platform, paths)
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)


def places(life: Life, memory: StoredMemory) -> tuple[bool, bool, bool]:
    """Whether its vector, its node and its archived text are there."""
    platform, owner = life.platform, memory.owner
    version = platform.authority.graphs().get(owner.key)
    nodes = platform.graph.neighbourhood(owner, version, [memory.memory_id])[0] if version else []
    return (
        memory.entry_id in platform.vectors.entry_ids(owner),
        memory.memory_id in {node.node_id for node in nodes},
        cold_key(owner, memory.entry_id) in {*platform.cold.keys()},
    )


def test_memories_grow_cold_and_come_back(life: Life) -> None:
    platform = life.platform
    start = {
        m.memory_id: m
        for m in life.memories().values()
        if m.tier == Tier.HOT and m.term == "long" and {"vector", "graph"} <= {*m.stores}
    }
    assert start
    assert {places(life, m) for m in start.values()} == {(True, True, False)}
    life.run("tier_job", "2024-07-09", "2024-08-20")
    warm = {name: m for name, m in life.memories().items() if name in start}
    assert {m.tier for m in warm.values()} == {Tier.WARM}
    assert {places(life, m) for m in warm.values()} == {(True, True, False)}
    found = told(life.run("tier_job", "2024-08-21", "2024-10-20"), "memory_tiers")
    assert found["moved"] >= len(start)
    ((source, target, reason),) = {
        (row.data["from"], row.data["to"], row.data["reason"]) for row in found["moves"].records
    }
    assert (source, target, reason) == ("warm", "cold", "age")
    cold = {name: m for name, m in life.memories().items() if name in start}
    assert {m.tier for m in cold.values()} == {Tier.COLD}
    assert {places(life, m) for m in cold.values()} == {(False, False, True)}
    assert {m.text for m in cold.values()} == {""}
    assert [m.summary for m in cold.values()] == [start[name].summary for name in cold]
    assert state_is_whole(life)

    one = next(iter(cold.values()))
    used = datetime(2024, 10, 21, 9, tzinfo=UTC)
    platform.accesses.record(one.owner.key, one.source_turn_ids, AccessKind.PRESENTED, used)
    assert told(life.run("tier_job", "2024-10-20"), "memory_tiers")["moved"] == 0, "not used by then"
    assert told(life.run("tier_job", "2024-10-21"), "memory_tiers")["moved"] >= 1
    back = life.memories()[one.memory_id]
    assert back.tier == Tier.HOT
    assert back.text == start[one.memory_id].text != ""
    assert places(life, back) == (True, True, False)
    assert cold_key(one.owner, one.entry_id) not in {*platform.cold.keys()}
    assert state_is_whole(life)


def state_is_whole(life: Life) -> bool:
    found = life_state(life.platform)
    return set(found["unfinished"]) == {0} and found["balance"] == 0


def test_the_same_nights_twice_change_nothing(life: Life) -> None:
    life.run("reflection_job", "2024-06-24", "2024-07-01")
    life.run("tier_job", "2024-07-08", "2024-09-30")
    found = life_state(life.platform)
    assert told(life.run("tier_job", "2024-09-30"), "memory_tiers") == {"moved": 0, "deleted": 0}
    assert life_state(life.platform) == found
    again = told(life.run("tier_job", "2024-07-08", "2024-09-30"), "memory_tiers")
    assert again["moved"] > 0, "the earlier nights are lived through again"
    assert life_state(life.platform) == found


def test_what_is_over_is_not_shown_after_the_night(life: Life) -> None:
    """Also where no log comes in any more that would have anybody derived."""
    life.run("reflection_job", "2024-07-01")
    night = datetime(2024, 9, 1, tzinfo=UTC)
    over = {name: m for name, m in life.memories().items() if m.expires_at and m.expires_at <= night}
    insights = {name for name, m in life.memories().items() if m.predicate.startswith("insight.")}
    assert over
    assert insights
    life.run("tier_job", "2024-08-31")
    assert not {*over, *insights} & life.memories().keys()
    assert state_is_whole(life)


def test_an_old_log_is_deleted_and_stays_deleted(life: Life, tmp_path: Path) -> None:
    platform, now = life.platform, life.platform.clock.now()
    landed, others = datetime(2020, 8, 1, tzinfo=UTC), {*platform.authority.owners()}
    write_sample(tmp_path, replace(SPRING, start=date(2020, 3, 1), seed=11))
    clock(platform, landed)
    land(platform, *files.log_files(tmp_path))
    clock(platform, now)

    def of_old() -> dict[str, StoredMemory]:
        return {name: m for name, m in life.memories().items() if m.owner not in others}

    before = of_old()
    assert {m.admitted_at for m in before.values()} == {landed}
    lasting = {name for name, m in before.items() if m.permanence == Permanence.PERMANENT}
    lasting |= {name for name, m in before.items() if m.memory_type == MemoryType.SEMANTIC and m.valid_to is None}
    assert lasting
    assert {m.tier for m in before.values()} == {Tier.WARM, Tier.COLD}, "known for long already when it is derived"
    planned = told(life.run("health_job"), "tier_plan")["would_delete"]
    assert before == of_old(), "a dry run"
    found = told(life.run("tier_job", "2024-07-08"), "memory_tiers")
    left = of_old().keys()
    deleted = {name: m for name, m in before.items() if name not in left}
    assert found["deleted"] == len(deleted) == planned > 0
    assert {m.tier for m in deleted.values()} == {Tier.COLD}
    assert MemoryType.EPISODIC in {m.memory_type for m in deleted.values()}
    assert lasting <= left, "current facts and permanent memories stay"
    for memory in deleted.values():
        markers = platform.accesses.markers([memory.owner.key])[memory.owner.key]
        assert {*memory.source_turn_ids} <= {turn for turn, _ in markers}
        assert places(life, memory) == (False, False, False)
    assert state_is_whole(life)

    platform.ledger.touch_everybody()
    life.derive()
    assert not deleted.keys() & life.memories().keys(), "what age has deleted is not derived again"
    assert told(life.run("tier_job", "2024-07-09"), "memory_tiers")["deleted"] == 0
    assert of_old().keys() == left


# ---- a store that is down


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def no_vectors() -> MilvusVectors:
    return MilvusVectors(f"http://127.0.0.1:{closed_port()}")


def no_graph() -> Neo4jGraph:
    return Neo4jGraph(f"bolt://127.0.0.1:{closed_port()}", "neo4j", "")


@pytest.mark.parametrize(
    ("part", "down", "setting"),
    [("vectors", no_vectors, "MEMORY_PIPELINES_MILVUS_URL"), ("graph", no_graph, "MEMORY_PIPELINES_NEO4J_URL")],
)
def test_a_store_that_is_down_is_named_and_the_next_run_heals(
    life: Life, part: str, down: Callable[[], Any], setting: str
) -> None:
    platform, night = life.platform, "2024-10-20"
    clean = copied(platform)
    before = shown(platform)
    with living(clean) as other:
        other.run("tier_job", night)
    after = shown(clean)
    assert all(before[bucket] != after[bucket] for bucket in before)
    whole = platform.__dict__[part]
    replace_part(platform, part, down())
    with pytest.raises(StoreUnavailableError) as raised:
        life.run("tier_job", night)
    assert setting in str(raised.value)
    found = shown(platform)
    assert all(found[bucket] in (before[bucket], after[bucket]) for bucket in found), "half a batch is never seen"
    assert platform.authority.open_batches()
    replace_part(platform, part, whole)
    life.run("tier_job", night)
    assert life_state(platform) == life_state(clean)
    assert state_is_whole(life)


def shown(platform: Platform) -> dict[int, set[tuple[str, str, str]]]:
    """Bucket → (memory, version, tier) of all that readers see."""
    result: dict[int, set[tuple[str, str, str]]] = {}
    for memory in platform.authority.everything_visible():
        bucket = memory.owner.bucket(platform.settings.buckets)
        result.setdefault(bucket, set()).add((memory.memory_id, memory.version, memory.tier))
    return result


def replace_part(platform: Platform, part: str, store: Any) -> None:
    platform.__dict__[part] = store
    platform.__dict__.pop("publisher", None)


# ---- reflections


def reflections(platform: Platform, week: str | None = None) -> list[dict[str, Any]]:
    where: list[tuple[str, str, object]] = [] if week is None else [("week", "=", week)]
    rows: list[dict[str, Any]] = platform.lake.read(REFLECTIONS, where=where).to_pylist()
    return rows


def test_weeks_are_reflected_on_with_citations(life: Life) -> None:
    platform, cited = life.platform, life.memories()
    found = told(life.run("reflection_job", "2024-04-01", "2024-07-01"), "weekly_reflection")
    rows = reflections(platform)
    assert found["dagster/row_count"] == len(rows) == sum(found["insights_by_kind"].values()) > 10
    assert found["persons"] == len({m.owner for m in cited.values()})
    assert (found["problems"], found["tokens"]) == ({}, 0)
    assert {row["path"] for row in rows} == {"statistics"}
    for row in rows:
        assert row["memory_ids"]
        sources = [cited[name] for name in row["memory_ids"]]
        assert {m.owner.key for m in sources} == {row["owner"]}
        assert {*row["own_turn_ids"]} <= {turn for m in sources for turn in m.source_turn_ids}
        assert row["valid_from"] < row["valid_to"]
    actions = [row for row in rows if row["kind"] == "action_item"]
    tasks = [task for owner in platform.authority.owners() for task in platform.tasks.open_tasks(owner.key)]
    proposed = {(row["owner"], row["text"], row["due_at"]) for row in actions}
    assert {(task["owner"], task["text"], task["due_at"]) for task in tasks} == proposed
    assert found["follow_ups"] == len(actions) >= len(tasks) == len(proposed) > 0


def test_insights_are_recalled_while_they_hold(life: Life) -> None:
    platform = life.platform
    life.run("reflection_job", "2024-07-01")
    made = {m.memory_id: m for m in life.memories().values() if m.predicate.startswith("insight.")}
    rows = reflections(platform)
    assert sorted(m.summary for m in made.values()) == sorted(row["text"] for row in rows)
    for memory in made.values():
        assert memory.valid_from is not None
        assert memory.valid_to is not None
        assert json.loads(memory.structured)["cites"]
        owner = memory.owner
        assert memory.entry_id in platform.vectors.entry_ids(owner)
        assert memory.memory_id in recalled(platform, memory, memory.valid_from + timedelta(hours=1))
    assert state_is_whole(life)
    over = max(m.valid_to for m in made.values() if m.valid_to is not None)
    life.run("tier_job", over.date().isoformat())
    for memory in made.values():
        assert memory.memory_id not in recalled(platform, memory, over + timedelta(days=1))
    assert state_is_whole(life)


def recalled(platform: Platform, about: StoredMemory, as_of: datetime) -> set[str]:
    """Ids of the memories that answer a question in a memory's words."""
    owner = about.owner
    answer = platform.recall.recall(about.summary, tenant=owner.tenant, subject=owner.subject, as_of=as_of, limit=5)
    return {item.memory.memory_id for item in answer.items}


def test_the_same_week_twice_is_the_same_rows(life: Life) -> None:
    life.run("reflection_job", *WEEKS_OF_JUNE)
    before = life_state(life.platform)
    assert before["reflection_tasks"][0] >= 0
    life.run("reflection_job", *WEEKS_OF_JUNE)
    life.run("reflection_job", WEEKS_OF_JUNE[0])
    assert life_state(life.platform) == before


def test_a_week_of_nobody_says_nothing(life: Life) -> None:
    before = life_state(life.platform)
    found = told(life.run("reflection_job", "2023-01-02"), "weekly_reflection")
    assert (found["dagster/row_count"], found["follow_ups"]) == (0, 0)
    assert life_state(life.platform) == before


def test_what_is_not_said_again_is_not_shown_again(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    before = life_state(life.platform)
    life.run("reflection_job", "2024-07-01")
    assert [m for m in life.memories().values() if m.predicate.startswith("insight.")]

    def says_nothing(memories: Any, week: date, *, owner: Owner, **_: Any) -> Reflection:
        return Reflection(owner, week, (), (), "statistics")

    monkeypatch.setattr(pipeline_reflection, "reflect", says_nothing)
    life.run("reflection_job", "2024-07-01")
    assert life_state(life.platform) == before


def test_a_language_model_writes_by_the_same_schema(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    at = datetime(2024, 5, 6, 9, tzinfo=UTC)
    land(platform, write_rows(tmp_path / "one.jsonl", said("one", at, *SENTENCES)))
    cited = sorted(nobody.memories())
    insights = [
        {"kind": "core_need", "text": "Alice wants her parcel.", "memory_ids": cited[:1], "confidence": 0.8},
        {"kind": "action_item", "text": "Call Alice back.", "memory_ids": cited[:2], "confidence": 0.7},
        {"kind": "core_need", "text": "Cites what is not there.", "memory_ids": ["0" * 32], "confidence": 0.9},
    ]
    for insight in insights:
        insight["due_date"] = "2024-05-20" if insight["kind"] == "action_item" else None
    with serving([Answer(json.dumps({"insights": insights}))]) as server:
        environment = {"MEMORY_PIPELINES_LLM_URL": server.url, "MEMORY_PIPELINES_LLM_MODEL": "scripted"}
        platform.settings = settings_of(environment, platform.settings)
        found = told(nobody.run("reflection_job", "2024-05-06"), "weekly_reflection")
        assert server.requests[0]["model"] == "scripted"
    rows = reflections(platform, "2024-05-06")
    assert {(row["kind"], row["text"], row["path"]) for row in rows} == {
        ("core_need", "Alice wants her parcel.", "llm"),
        ("action_item", "Call Alice back.", "llm"),
    }
    assert {name for row in rows for name in row["memory_ids"]} == {*cited[:2]}
    assert found["tokens"] > 0
    assert found["problems"], "one citation was refused"
    (task,) = platform.tasks.open_tasks(Owner("default", "u:one").key)
    assert (task["text"], task["due_at"]) == ("Call Alice back.", datetime(2024, 5, 20, tzinfo=UTC))
    assert {m.path for m in nobody.memories().values() if m.predicate.startswith("insight.")} == {"llm"}
    with serving([Answer(status=401)]) as server:
        environment["MEMORY_PIPELINES_LLM_URL"] = server.url
        platform.settings = settings_of(environment, platform.settings)
        before = life_state(platform)
        with pytest.raises(SettingError):
            nobody.run("reflection_job", "2024-05-06")
    assert life_state(platform) == before


# ---- health


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
