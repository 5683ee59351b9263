"""Killed at every step and run again, an erasure ends as one that was not."""

import copy
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy as sa
from suites import erasure_world
from suites.erasure_world import ANN, BOB, ERASED_AT, SECRET, Killed, World, is_anns

from memory_pipelines import erasure
from memory_pipelines.errors import StoreUnavailableError, TransientError
from memory_pipelines.stores import database

WRITES = {
    "lake": ("write", "purge"),
    "vectors": ("delete",),
    "graph": ("drop",),
    "hot": ("wipe", "delete"),
    "cold": ("delete",),
}
STEPS = 97


class Steps:
    """Counts everything that an erasure changes, and dies before number ``at``, which is after the one before."""

    def __init__(self, at: int = 0, error: Callable[[], BaseException] = Killed) -> None:
        self.at, self.error = at, error
        self.taken: list[str] = []

    def __call__(self, name: str) -> None:
        self.taken.append(name)
        if len(self.taken) == self.at:
            raise self.error()


class Watched:
    def __init__(self, steps: Steps, role: str, store: Any) -> None:
        self._steps, self._role, self._store = steps, role, store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in WRITES[self._role]:
            return found

        def counted(*arguments: Any) -> Any:
            self._steps(f"{self._role}.{name}")
            return found(*arguments)

        return counted


@cache
def _filled() -> tuple[World, bytes]:
    with TemporaryDirectory() as folder:
        world = erasure_world.fill(erasure_world.in_memory(), Path(folder))
    with world.engine.begin() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        return world, driver.serialize()


def filled() -> World:
    """A fresh copy of the filled world."""
    world, content = _filled()
    engine = database.connect("sqlite://")
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.deserialize(content)
    stores = (copy.deepcopy(s) for s in (world.lake, world.vectors, world.graph, world.hot, world.cold))
    return World(engine, *stores)


def watched(world: World, steps: Steps) -> erasure.Stores:
    """The stores with every change counted; of a transaction that writes, its commit."""
    roles = {role: Watched(steps, role, getattr(world, role)) for role in WRITES}

    def execute(connection: sa.Connection, _: Any, statement: str, *__: Any) -> None:
        if not statement.startswith(("SELECT", "PRAGMA")):
            connection.info["writes"] = True

    def commit(connection: sa.Connection) -> None:
        if connection.info.pop("writes", False):
            steps("postgres.commit")

    sa.event.listen(world.engine, "before_cursor_execute", execute)
    sa.event.listen(world.engine, "commit", commit)
    vectors = roles.pop("vectors")
    return erasure.Stores(world.engine, vectors=[vectors], exclusion=world.exclusion, **roles)


def approved(world: World) -> str:
    request = erasure.request(world.engine, ANN, "desk", ERASED_AT)
    erasure.approve(world.engine, request, "officer", ERASED_AT)
    return request


def outcome(certificate: erasure.Certificate) -> dict[str, Any]:
    return {k: v for k, v in certificate.body.items() if k != "issued_at"}


def content(world: World) -> dict[str, Any]:
    """All rows but what tells how often an erasure was begun."""
    return {k: v for k, v in world.everything().items() if k.partition(".")[2] not in
            ("erasures", "tombstones", "counters", "days", "owners", "manifests", "people")}  # fmt: skip


@cache
def undisturbed() -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Certificate, content and steps of a run that nothing disturbs."""
    world, steps = filled(), Steps()
    request = approved(world)
    certificate = erasure.execute(watched(world, steps), request, ERASED_AT, SECRET)
    return outcome(certificate), content(world), steps.taken


def test_every_step_is_tried() -> None:
    assert len(undisturbed()[2]) == STEPS


@pytest.mark.parametrize("at", range(1, STEPS + 1))
def test_killed_and_run_again(at: int) -> None:
    body, rows, _ = undisturbed()
    world = filled()
    request = approved(world)
    with pytest.raises(Killed):
        erasure.execute(watched(world, Steps(at)), request, ERASED_AT, SECRET)
    world = fresh(world)
    certificate = erasure.execute(world.stores, request, ERASED_AT + timedelta(hours=1), SECRET)
    assert outcome(certificate) == body
    assert content(world) == rows
    assert world.hot.held(ANN) == len(world.vectors.entry_ids(ANN)) == len(world.graph.versions(ANN)) == 0
    left = {name for name, found in world.everything().items() if any(map(is_anns, found))}
    assert left == {"postgres.erasures", "postgres.tombstones"}


def fresh(world: World) -> World:
    """The same stores as another process sees them."""
    with world.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        saved = driver.serialize()
    engine = database.connect("sqlite://")
    with engine.connect() as connection:
        other = connection.connection.driver_connection
        assert isinstance(other, sqlite3.Connection)
        other.deserialize(saved)
    world.engine = engine
    world.__post_init__()
    return world


@pytest.mark.parametrize("role", sorted(WRITES))
def test_a_store_that_is_down_leaves_the_person_unreachable(role: str) -> None:
    world = filled()
    request = approved(world)

    def down() -> BaseException:
        return StoreUnavailableError(role, "A_SETTING", "down")

    first = next(i for i, name in enumerate(undisturbed()[2], 1) if name.startswith(f"{role}."))
    with pytest.raises(StoreUnavailableError):
        erasure.execute(watched(world, Steps(first, down)), request, ERASED_AT, SECRET)
    world = fresh(world)
    assert world.published.authority.visible(ANN) == []
    assert len(world.published.authority.visible(BOB)) > 0
    assert erasure.execute(world.stores, request, ERASED_AT, SECRET).survivors == 0


def test_rows_that_come_back_between_two_runs_are_found() -> None:
    """A day job that ran between a kill and the next run makes what is not landed away yet anew."""
    body, _, steps = undisturbed()
    world = filled()
    request = approved(world)
    last = max(i for i, name in enumerate(steps, 1) if name == "lake.write")
    with pytest.raises(Killed):
        erasure.execute(watched(world, Steps(last)), request, ERASED_AT, SECRET)
    world = fresh(world)
    erasure_world.cut(world)
    certificate = erasure.execute(world.stores, request, ERASED_AT, SECRET)
    assert outcome(certificate) == body
    assert not any(map(is_anns, world.rows(erasure_world.EXCHANGES)))


def test_a_residue_keeps_the_certificate_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = filled()
    request = approved(world)
    monkeypatch.setattr(type(world.lake), "purge", lambda self, table: None)
    with pytest.raises(TransientError, match=r"lake\.turns"):
        erasure.execute(world.stores, request, ERASED_AT, SECRET)
    assert set(erasure.load(world.engine, request).certificates) == {"unreachable"}
    monkeypatch.undo()
    assert erasure.execute(world.stores, request, ERASED_AT, SECRET).survivors == 0
