"""Reflections as Dagster's job: cited, shown, repeated, by statistics and by a language model."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from quarter_world import (
    SENTENCES,
    WEEKS_OF_JUNE,
    Life,
    land,
    life_state,
    said,
    settings_of,
    state_is_whole,
    told,
    write_rows,
)
from suites.llm_server import Answer, serving

from memory_pipelines.errors import SettingError
from memory_pipelines.model import Owner
from memory_pipelines.pipeline import reflection as pipeline_reflection
from memory_pipelines.reflection import Reflection
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.tables import REFLECTIONS
from memory_pipelines.wiring import Platform


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
