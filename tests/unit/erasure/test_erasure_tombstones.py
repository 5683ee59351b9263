"""Who was erased does not come back with an old file, and may come back with a new event."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from suites.erasure_world import ANN, BOB, DAY, ERASED_AT, TWIN, World, is_anns, log, said, write

from memory_pipelines import erasure
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.statements import upsert
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS

BEFORE = datetime(2024, 5, 20, tzinfo=UTC)
LATER = ERASED_AT + timedelta(days=3)


def turn(
    who: Owner | None, at: datetime, session: str | None = "s", role: str = "user", talk: str = "c"
) -> dict[str, Any]:
    subject = None if who is None else who.subject
    row = {"tenant": "acme" if who is None else who.tenant, "subject": subject, "role": role, "occurred_at": at}
    return row | {"conversation_id": talk, "session_id": session}


def broken(raw: object, day: str | None, tenant: str = "acme") -> dict[str, Any]:
    return {"tenant": tenant, "day": day, "raw": raw if isinstance(raw, str) else json.dumps(raw)}


def kept(forgotten: erasure.Forgotten, **rows: list[dict[str, Any]]) -> tuple[dict[str, list[dict[str, Any]]], int]:
    return forgotten({"turn": [], "behaviour": [], "quarantine": []} | rows)


@pytest.fixture
def forgotten() -> erasure.Forgotten:
    return erasure.Forgotten({ANN.key: BEFORE})


def test_the_instant_itself_is_allowed(forgotten: erasure.Forgotten) -> None:
    old, new = turn(ANN, BEFORE - timedelta(microseconds=1)), turn(ANN, BEFORE)
    assert kept(forgotten, turn=[old, new], behaviour=[old, new]) == (
        {"turn": [new], "behaviour": [new], "quarantine": []},
        2,
    )


def test_others_and_other_tenants_are_not_touched(forgotten: erasure.Forgotten) -> None:
    rows = [turn(BOB, DAY), turn(TWIN, DAY), turn(None, DAY)]
    assert kept(forgotten, turn=rows, behaviour=rows[:2])[1] == 0
    assert kept(erasure.Forgotten({}), turn=[*rows, turn(ANN, DAY)])[1] == 0


def test_answers_to_the_person_alone_go_too(forgotten: erasure.Forgotten) -> None:
    own, answer, late = turn(ANN, DAY), turn(None, DAY, role="agent"), turn(None, BEFORE, role="agent")
    elsewhere = turn(None, DAY, "other session", "agent")
    assert kept(forgotten, turn=[own, answer, late, elsewhere])[0]["turn"] == [late, elsewhere]
    # the answer may come in a later chunk
    assert kept(forgotten, turn=[answer])[1] == 1


def test_a_talk_without_sessions_is_split_at_silence(forgotten: erasure.Forgotten) -> None:
    own, answer = turn(ANN, DAY, None), turn(None, DAY + timedelta(hours=5), None, "agent")
    later = turn(BOB, DAY + timedelta(hours=12), None)
    bobs = turn(None, DAY + timedelta(hours=13), None, "agent")
    assert kept(forgotten, turn=[bobs, later, answer, own])[0]["turn"] == [bobs, later]


def test_broken_rows_of_the_persons_own_conversations(forgotten: erasure.Forgotten) -> None:
    lost, shared = broken({"session_id": "s"}, "2024-05-17"), broken({"session_id": "both"}, "2024-05-17")
    talk = [turn(ANN, DAY), turn(ANN, DAY, "both"), turn(BOB, DAY, "both")]
    assert kept(forgotten, turn=talk, quarantine=[lost, shared])[0]["quarantine"] == [shared]


def test_answers_in_a_talk_with_others_stay(forgotten: erasure.Forgotten) -> None:
    answer = turn(None, DAY, role="agent")
    assert kept(forgotten, turn=[turn(ANN, DAY), turn(BOB, DAY), answer])[0]["turn"] == [turn(BOB, DAY), answer]


@pytest.mark.parametrize(
    "raw",
    [
        {"user_id": "ann-7f3", "role": "robot"},
        {"device_id": "x", "user": "ann-7f3"},
        ["2024-05-17", "ann-7f3", "text"],
        '{"user_id": "ann-7f3", "text": ',
        "ann-7f3: hello",
        {"text": "a message of ann-7f3 without an id"},
    ],
)
def test_broken_rows_that_name_the_person(forgotten: erasure.Forgotten, raw: object) -> None:
    assert kept(forgotten, quarantine=[broken(raw, "2024-05-19"), broken(raw, None)])[1] == 2
    assert kept(forgotten, quarantine=[broken(raw, "2024-05-21")])[1] == 0
    assert kept(forgotten, quarantine=[broken(raw, "2024-05-19", "globex")])[1] == 0


@pytest.mark.parametrize(
    "raw",
    [
        {"user_id": "bob-2c1", "text": "greet ann-7f3"},
        {"user_id": "ann-7f", "role": "robot"},
        {"tenant": "globex", "user_id": "ann-7f3"},
        ["2024-05-17", "ann-7f33", "ann-7f3 said"],
        "ann-7f33: hello",
        "",
        "null",
    ],
)
def test_broken_rows_of_others(forgotten: erasure.Forgotten, raw: object) -> None:
    assert kept(forgotten, quarantine=[broken(raw, "2024-05-19")])[1] == 0


def test_an_old_file_brings_nothing_back(world: World, tmp_path: Path) -> None:
    world.erase(ANN)
    before = {spec: world.rows(spec) for spec in (TURNS, BEHAVIOUR, QUARANTINE)}
    rows = log()
    counts = world.land(write(tmp_path / "again.jsonl", rows), forget=True, chunk_rows=5, landed_at=LATER)
    assert counts.rows == len(rows)
    assert counts.filtered == {"erased": 17}
    assert counts.rows == counts.turns + counts.behaviour + sum(counts.filtered.values()) + sum(
        counts.quarantined.values()
    )
    for spec, known in before.items():
        landed = world.rows(spec)
        assert not any(map(is_anns, landed))
        assert {_content(row) for row in landed} == {_content(row) for row in known}
    found = erasure.sweep(world.stores)
    assert (found.persons, found.returned, found.survivors) == (1, 0, {})


def _content(row: dict[str, Any]) -> str:
    return repr({k: v for k, v in row.items() if k not in ("file_id", "position")})


def test_a_file_that_was_half_landed_goes_on_without_the_person(world: World, tmp_path: Path) -> None:
    rows = [said(f"a-{i}", ANN if i % 2 else None, f"SECRET number {i}", 100 + i, session_id="s7") for i in range(12)]
    path = write(tmp_path / "half.jsonl", rows)
    ledger = Ledger(world.engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "chunk_landed", _dying(ledger.chunk_landed, 1))
        with pytest.raises(KeyboardInterrupt):
            world.land(path, chunk_rows=4)
    world.erase(ANN)
    counts = world.land(path, chunk_rows=4, forget=True, landed_at=LATER)
    assert counts.filtered == {"erased": 8}
    assert not any(map(is_anns, world.rows(TURNS)))


def _dying(note: Any, chunk: int) -> Any:
    def chunk_landed(self: Ledger, landed: Any, watermark: Any = None) -> None:
        if landed.chunk == chunk:
            raise KeyboardInterrupt
        note(landed)

    return chunk_landed


def test_a_new_event_is_allowed_and_the_sweep_knows_the_difference(world: World, tmp_path: Path) -> None:
    world.erase(ANN)
    new = said("n-1", ANN, "hello again", 0) | {"occurred_at": LATER.isoformat()}
    world.land(write(tmp_path / "new.jsonl", [new]), forget=True, landed_at=LATER)
    assert [row["text"] for row in world.rows(TURNS) if row["subject"] == ANN.subject and row["tenant"] == "acme"] == [
        "hello again"
    ]
    found = erasure.sweep(world.stores)
    assert (found.persons, found.returned, found.survivors, found.owners) == (1, 1, {}, ())
    # an old row that came in by another way is a survivor, the new one is not
    old = said("n-2", ANN, "an old word", 0)
    world.land(write(tmp_path / "old.jsonl", [old]), landed_at=LATER)
    found = erasure.sweep(world.stores)
    assert (found.survivors, found.owners) == ({"lake.turns": 1}, (ANN.key,))


def test_the_sweep_knows_nobodys_name_and_finds_everything(world: World) -> None:
    """Somebody with a tombstone whose rows all came back, by a restore say."""
    request = world.erase(ANN).body["request_id"]
    assert erasure.sweep(world.stores).survivors == {}
    twin = erasure.dry_run(world.stores, TWIN).counts
    with world.engine.begin() as connection:
        upsert(connection, schema.tombstones, [{"owner": TWIN.key, "before": ERASED_AT, "epoch": 0}])
        row = {"owner": TWIN.key, "tenant": TWIN.tenant, "state": "erased", "requested_at": ERASED_AT, "progress": {}}
        upsert(connection, schema.erasures, [row | {"request_id": "restored"}])
    found = erasure.sweep(world.stores)
    by_turns = {"postgres.turn_days", "postgres.turn_conflicts"}
    unnamed = twin | {"lake.turns": twin["lake.turns"] - 1}  # the answers were told by the conversation
    assert found.survivors == {k: n for k, n in unnamed.items() if n and k not in by_turns}
    assert found.owners == (TWIN.key,)
    assert found.persons == 2
    assert world.table(schema.erasures)[0]["request_id"] == request


def test_an_erasure_under_way_is_not_swept(world: World) -> None:
    world.erase(ANN)
    erasure.request(world.engine, ANN, "desk", ERASED_AT)
    assert erasure.sweep(world.stores).persons == 0
