"""The journal is landed like a log: each turn once, wherever a run was killed, also beside the same row in a file."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from suites import erasure_world
from suites.erasure_world import ANN, BOB, BUCKETS, DAY, ERASED_AT, LANDED_AT, Killed, World

from memory_pipelines import erasure
from memory_pipelines.landing import journal as landing
from memory_pipelines.landing.land import Lander
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.model import Owner
from memory_pipelines.slices.exchanges import cut_exchanges
from memory_pipelines.stores.journal import TurnJournal
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.notes import ChunkCounts
from memory_pipelines.tables import TURNS

MINUTE = timedelta(minutes=1)


@pytest.fixture
def world() -> Iterator[World]:
    world = erasure_world.in_memory()
    yield world
    world.engine.dispose()


def row(number: int, text: str = "hello", role: str = "user", **more: Any) -> dict[str, Any]:
    at = (DAY + number * MINUTE).isoformat()
    return {"session_id": "s", "role": role, "text": f"{text} {number}", "occurred_at": at, "origin": "app"} | more


def note(world: World, *rows: dict[str, Any], owner: Owner = ANN) -> int:
    prepared = landing.prepare(rows, owner, LANDED_AT, erasure_world._clean)
    return TurnJournal(world.engine).append(prepared.turns, LANDED_AT)


def land(world: World, ledger: Any = None, chunk_rows: int = 3) -> ChunkCounts:
    tombstones = erasure.load_tombstones(world.engine)
    lander = Lander(
        world.lake,
        erasure_world._clean,
        Normaliser("unused", "acme", BUCKETS, LANDED_AT),
        erasure.Forgotten(tombstones) if tombstones else None,
    )
    ledger = ledger or Ledger(world.engine)
    return landing.land_journal(
        TurnJournal(world.engine), DAY + timedelta(days=1), ledger=ledger, lander=lander, chunk_rows=chunk_rows
    )  # fmt: skip


def landed(world: World) -> list[str]:
    return sorted(turn["text"] for turn in world.rows(TURNS))


def test_what_was_noted_is_landed_once_and_the_days_wait(world: World) -> None:
    note(world, *(row(n) for n in range(7)))
    counts = land(world)
    assert (counts.rows, counts.turns) == (7, 7)
    assert "2024-05-17" in Ledger(world.engine).touched_days()
    assert land(world) == ChunkCounts()
    note(world, row(7), row(3))
    assert land(world).rows == 1
    assert landed(world) == [f"hello {n}" for n in range(8)]
    (file,) = Ledger(world.engine).files()
    assert (file["name"], file["complete"], file["rows"]) == ("journal", True, 8)


def test_a_landed_turn_is_the_row_that_a_log_gives(world: World, tmp_path: Path) -> None:
    """Ids, hashes, texts: all but how it arrived. So the same row in a file is a duplicate, and no other version."""
    rows = [
        row(0, "Hi<br>&amp;lt; there"),
        row(1, role="agent"),
        row(2, turn_id="given"),
        row(3, vector_clock={"a": 2}),
    ]
    note(world, *rows)
    land(world)
    (noted, other) = (world.rows(TURNS), erasure_world.in_memory())
    lines = [r | ({"user_id": ANN.subject[2:]} if r["role"] == "user" else {}) for r in rows]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    other.land(path)
    arrival = ("file_id", "position")
    assert _without(noted, arrival) == _without(other.rows(TURNS), arrival)
    world.land(path)
    cut = cut_exchanges(world.lake.read(TURNS), ["2024-05-17"], BUCKETS)
    counts = cut.counts["2024-05-17"]
    assert (counts.landed, counts.duplicates, counts.conflicts, counts.in_exchanges) == (8, 4, 0, 4)


def _without(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[Any]:
    return sorted(({k: v for k, v in r.items() if k not in names} for r in rows), key=repr)


class _Mortal:
    """A ledger in whose ``number``-th change the process dies, before it or after it."""

    def __init__(self, ledger: Ledger, number: int, *, after: bool) -> None:
        self._ledger, self._left, self._after = ledger, number, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._ledger, name)
        if name not in ("begin_file", "reopen", "chunk_landed", "end_file"):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Killed
            result = found(*arguments, **named)
            if self._left == 0:
                raise Killed
            return result

        return counted


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 7))
def test_killed_anywhere_each_turn_is_landed_once(world: World, number: int, after: bool) -> None:
    note(world, *(row(n) for n in range(7)))
    with pytest.raises(Killed):
        land(world, _Mortal(Ledger(world.engine), number, after=after))
    note(world, row(7))
    land(world)
    land(world)
    assert landed(world) == [f"hello {n}" for n in range(8)]
    assert Ledger(world.engine).landed().rows == 8


def test_a_tombstone_keeps_what_was_noted_before_out(world: World) -> None:
    note(world, row(0), row(1, role="agent"))
    note(world, row(0), owner=BOB)
    kept = TurnJournal(world.engine).latest(ANN, 9, LANDED_AT).turns
    world.erase(ANN)
    assert TurnJournal(world.engine).latest(ANN, 9, LANDED_AT).turns == []
    assert TurnJournal(world.engine).append(kept, ERASED_AT) == 0, "a late copy of the call brings nothing back"
    assert note(world, row(5)) == 0
    after = {"occurred_at": (ERASED_AT + MINUTE).isoformat()}
    prepared = landing.prepare([row(9) | after], ANN, ERASED_AT + MINUTE, erasure_world._clean)
    assert TurnJournal(world.engine).append(prepared.turns, ERASED_AT) == 1
    land(world)
    assert landed(world) == ["hello 0", "hello 9"]


def test_who_was_erased_and_talks_again_is_no_survivor(world: World) -> None:
    note(world, row(0))
    world.erase(ANN)
    assert erasure.sweep(world.stores).survivors == {}
    after = {"occurred_at": (ERASED_AT + MINUTE).isoformat()}
    prepared = landing.prepare([row(9) | after], ANN, ERASED_AT + MINUTE, erasure_world._clean)
    TurnJournal(world.engine).append(prepared.turns, ERASED_AT)
    found = erasure.sweep(world.stores)
    assert (found.persons, found.returned, found.survivors) == (1, 1, {})


def test_landed_rows_leave_the_journal_when_no_buffer_shows_them(world: World) -> None:
    note(world, row(0), row(1, occurred_at=(DAY - timedelta(days=11)).isoformat()))
    land(world)
    assert [t.text for t in TurnJournal(world.engine).latest(ANN, 9, LANDED_AT).turns] == ["hello 0"]
    assert len(landed(world)) == 2


def test_a_turn_without_talk_or_session_belongs_to_the_person_it_was_said_to(world: World) -> None:
    rows = [row(0), row(1, role="agent")]
    for one in rows:
        del one["session_id"]
    note(world, *rows)
    land(world)
    cut = cut_exchanges(world.lake.read(TURNS), ["2024-05-17"], BUCKETS)
    (exchange,) = cut.exchanges.to_pylist()
    assert (exchange["subject"], exchange["other_text"]) == (ANN.subject, "hello 1")
