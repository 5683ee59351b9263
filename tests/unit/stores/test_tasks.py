"""Follow-ups: a week reflected anew replaces its open ones, what is done stays done."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memory_pipelines.stores import database
from memory_pipelines.stores.tasks import TaskList

WEEK = "2024-05-13"


def task(name: str, text: str = "call back", day: int = 20) -> dict[str, Any]:
    due = datetime(2024, 5, day, tzinfo=UTC)
    return {
        "task_id": name,
        "owner": "o",
        "week": WEEK,
        "kind": "follow_up",
        "text": text,
        "due_at": due,
        "done": False,
    }


@pytest.fixture
def tasks() -> TaskList:
    return TaskList(database.connect("sqlite://"))


def ids(tasks: TaskList) -> list[str]:
    return [row["task_id"] for row in tasks.open_tasks("o")]


def test_a_week_anew_replaces_its_open_tasks(tasks: TaskList) -> None:
    tasks.replace_week(WEEK, [task("a", day=22), task("b", day=21)])
    assert ids(tasks) == ["b", "a"]
    tasks.replace_week(WEEK, [task("a", "call at noon", day=22)])
    assert [(r["task_id"], r["text"]) for r in tasks.open_tasks("o")] == [("a", "call at noon")]
    tasks.replace_week(WEEK, [])
    assert ids(tasks) == []


def test_what_is_done_stays_done(tasks: TaskList) -> None:
    tasks.replace_week(WEEK, [task("a"), task("b")])
    tasks.finish("a")
    tasks.finish("unknown")
    tasks.replace_week(WEEK, [task("a"), task("b")])
    assert ids(tasks) == ["b"]


def test_another_week_is_left_alone(tasks: TaskList) -> None:
    tasks.replace_week(WEEK, [task("a")])
    tasks.replace_week("2024-05-20", [task("c") | {"week": "2024-05-20"}])
    tasks.replace_week("2024-05-20", [])
    assert ids(tasks) == ["a"]
    assert tasks.open_tasks("somebody else") == []
