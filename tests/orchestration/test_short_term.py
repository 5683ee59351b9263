"""Short-term memory lived through day by day: shown, gone at the publish of its last day, or promoted."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pipeline_world import cut, derive_all, in_memory
from quarter_world import clock, said, write_rows

from memory_pipelines.model import Owner, day_of, day_start, shift_day
from memory_pipelines.pipeline import files, reflection
from memory_pipelines.projection import INSIGHT
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.tables import DECISIONS, MEMORIES
from memory_pipelines.wiring import Platform

START = datetime(2024, 5, 13, 9, tzinfo=UTC)
"""A Monday."""
ANN = Owner("default", "u:ann")
QUESTION = "Where is my parcel?"
PASSING = "I am waiting for the SF Express courier today."


@pytest.fixture
def platform() -> Platform:
    return in_memory()


def live(platform: Platform, folder: Path, day: int, *texts: str, user: str = "ann") -> None:
    """Day ``day``: what was said lands at its end, and is derived; with nothing of Ann's, somebody else talks."""
    at = START + timedelta(days=day)
    rows = said(user, at, *texts) if texts else said("bob", at, "I live in Leeds.")
    path = write_rows(folder / f"{day}.jsonl", rows)
    clock(platform, day_start(shift_day(day_of(at), 1)))
    files.land(platform, [path])
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)


def shown(platform: Platform) -> dict[str, StoredMemory]:
    return {m.memory_id: m for m in platform.authority.visible(ANN)}


def recalled(platform: Platform) -> set[str]:
    answer = platform.recall.recall("SF Express courier", tenant=ANN.tenant, subject=ANN.subject)
    return {item.memory.memory_id for item in answer.items}


def terms(platform: Platform) -> set[tuple[str, str]]:
    rows = platform.lake.read(DECISIONS, where=[("owner", "=", ANN.key)]).to_pylist()
    return {(row["rule"], row["outcome"]) for row in rows}


def test_what_expires_is_gone_from_stores_and_recall_with_that_days_publish(platform: Platform, tmp_path: Path) -> None:
    """What is short-term by its score ends nine days after its session, to the day."""
    live(platform, tmp_path, 0, PASSING)
    (memory,) = shown(platform).values()
    assert memory.term == "short"
    assert memory.expires_at is not None
    session_end = START + timedelta(seconds=20)
    assert memory.expires_at == session_end + timedelta(days=9)
    assert memory.stores == ("relational",)
    assert platform.authority.places([ANN.key])[ANN.key][memory.memory_id].keys() == {"relational"}
    seen = []
    for day in range(1, 12):
        live(platform, tmp_path, day)
        seen.append((memory.memory_id in shown(platform), memory.memory_id in recalled(platform)))
        assert platform.lake.read(MEMORIES, where=[("owner", "=", ANN.key)]).num_rows == 1, "the decision stands"
    assert seen == [(True, True)] * 8 + [(False, False)] * 3
    assert platform.authority.places([ANN.key]) == {}


def test_the_third_mention_within_a_week_makes_it_last(platform: Platform, tmp_path: Path) -> None:
    live(platform, tmp_path, 0, PASSING)
    live(platform, tmp_path, 3, PASSING)
    assert {m.term for m in shown(platform).values()} == {"short"}
    live(platform, tmp_path, 6, PASSING)
    assert ("promoted", "long") in terms(platform)
    (lasting,) = [m for m in shown(platform).values() if m.term == "long"]
    assert (len(lasting.slice_ids), lasting.expires_at) == (3, None)
    for day in range(7, 25):
        live(platform, tmp_path, day)
    assert shown(platform).keys() == {lasting.memory_id}
    assert recalled(platform) == {lasting.memory_id}


def test_three_mentions_in_more_than_a_week_are_too_few(platform: Platform, tmp_path: Path) -> None:
    for day in (0, 5, 10):
        live(platform, tmp_path, day, PASSING)
    assert "promoted" not in {rule for rule, _ in terms(platform)}


def test_the_weekly_aggregation_keeps_what_recurred(platform: Platform, tmp_path: Path) -> None:
    """Questions that name nothing are never promoted one by one; that they recur is remembered by the reflection."""
    for day in (0, 2, 4):
        live(platform, tmp_path, day, QUESTION)
    live(platform, tmp_path, 7)
    asked = shown(platform)
    assert {m.term for m in asked.values()} == {"short"}
    reflection.reflect_week(platform, START.date())
    insights = [m for m in shown(platform).values() if m.predicate.startswith(INSIGHT)]
    assert insights
    assert {m.term for m in insights} == {"long"}
    for day in range(8, 20):
        live(platform, tmp_path, day)
    left = shown(platform)
    assert not asked.keys() & left.keys()
    assert {m.memory_id for m in insights} <= left.keys()
