"""Sensitive fields while a file is landed: ids stay, a killed landing is repeated, no tombstone is undermined."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from suites import erasure_world
from suites.erasure_world import ANN, BOB, BUCKETS, LANDED_AT, World, said

from memory_pipelines.landing.land import land_file
from memory_pipelines.model import Owner
from memory_pipelines.pipeline.files import clean
from memory_pipelines.settings import Settings
from memory_pipelines.stores import schema
from memory_pipelines.stores.keyring import KeyRing
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.masterkey import MasterKeySource
from memory_pipelines.stores.vault import tokens
from memory_pipelines.tables import TURNS
from memory_pipelines.wiring import Platform

PHONE = "13812345678"


class Killed(BaseException):
    """The process died here."""


@pytest.fixture
def world() -> World:
    return erasure_world.in_memory()


def land(world: World, path: Path, home: Path, wrap: Callable[[Any], Any] = lambda made: made) -> KeyRing:
    ring = KeyRing(world.engine, MasterKeySource(Settings(home=str(home))))
    hide = wrap(partial(Platform.clean, SimpleNamespace(keyring=ring)))  # type: ignore[arg-type]
    land_file(
        path, lake=world.lake, ledger=Ledger(world.engine), clean=hide, default_tenant="acme", buckets=BUCKETS,
        landed_at=LANDED_AT, chunk_rows=2,
    )  # fmt: skip
    return ring


def talk(path: Path) -> Path:
    rows = [
        said("", ANN, f"my number is {PHONE}", 0),
        said("", None, f"we call {PHONE}", 1, "agent"),
        said("", ANN, f"or {PHONE} at night", 2),
        said("", BOB, f"mine is {PHONE} as well", 3),
    ]
    for row in rows:
        del row["turn_id"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def texts(world: World) -> dict[str, str]:
    return {row["turn_id"]: row["text"] for row in world.rows(TURNS)}


def kept(engine: sa.Engine) -> int:
    with engine.begin() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(schema.sensitive_values)).scalar_one()


def test_the_lake_holds_tokens_and_ids_of_the_text_as_read(world: World, tmp_path: Path) -> None:
    path = talk(tmp_path / "talk.jsonl")
    ring = land(world, path, tmp_path)
    plain = erasure_world.in_memory()
    land(plain, path, tmp_path, lambda made: clean)
    columns = ["turn_id", "content_hash", "position"]
    assert world.lake.read(TURNS, columns=columns) == plain.lake.read(TURNS, columns=columns)
    found = texts(world)
    assert PHONE not in repr(found)
    assert "we call [phone]" in found.values()
    owned: dict[Owner, set[str]] = {}
    for row in world.rows(TURNS):
        if row["subject"]:
            owned.setdefault(Owner("acme", row["subject"]), set()).update(tokens(row["text"]))
    assert {owner: len(names) for owner, names in owned.items()} == {ANN: 1, BOB: 1}
    assert len(owned[ANN] | owned[BOB]) == 2
    assert [set(values.values()) for values in ring.reveal(owned).values()] == [{PHONE}, {PHONE}]


def test_killed_between_the_values_and_the_lake(world: World, tmp_path: Path) -> None:
    path, before = talk(tmp_path / "talk.jsonl"), []

    def dying(made: Any) -> Any:
        def clean_and_die(turns: Any) -> Any:
            before.append(made(turns)[0]["text"].to_pylist())
            raise Killed

        return clean_and_die

    with pytest.raises(Killed):
        land(world, path, tmp_path, dying)
    assert (texts(world), kept(world.engine)) == ({}, 1)
    land(world, path, tmp_path)
    assert set(before[0]) <= set(texts(world).values())
    assert kept(world.engine) == 2


def test_who_comes_back_after_an_erasure_gets_a_fresh_key(world: World, tmp_path: Path) -> None:
    path = talk(tmp_path / "talk.jsonl")
    land(world, path, tmp_path)
    old = set().union(*map(tokens, texts(world).values()))
    certificate = world.erase(ANN)
    assert certificate.body["key"] == "destroyed"
    assert kept(world.engine) == 1
    [bobs] = [text for text in texts(world).values() if text.endswith("as well")]
    later = said("", ANN, f"me again, {PHONE}", 24 * 60)
    del later["turn_id"]
    (tmp_path / "later.jsonl").write_text(json.dumps(later))
    land(world, tmp_path / "later.jsonl", tmp_path)
    [fresh] = set().union(*map(tokens, texts(world).values())) - tokens(bobs)
    assert fresh not in old


def test_who_had_no_sensitive_field_has_no_key_to_destroy(world: World, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(json.dumps(said("a-1", ANN, "hello there", 0)))
    land(world, tmp_path / "talk.jsonl", tmp_path)
    assert not (tmp_path / "master.key").exists()
    assert world.erase(ANN).body["key"] == "none was made"
