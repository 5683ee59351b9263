"""Publishing with PostgreSQL as the authority, over in-memory stores and over all embedded servers."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlalchemy as sa
from suites import killed_publisher
from suites.publish_suite import FINISH, PREPARE, CrashSuite, PublishSuite
from suites.publish_world import AT, DIMENSION, LATER, Faults, Stores, draft, expected, state, world

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, publish
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.stores.publish import OwnerState
from memory_pipelines.stores.relational import PostgresAuthority

pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def engine(embedded: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(embedded.postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def beside_fakes(engine: sa.Engine) -> Stores:
    vectors = MemoryVectors()
    vectors.ensure(DIMENSION)
    return Stores(engine, PostgresAuthority(engine), vectors, MemoryGraph(), MemoryHot(), MemoryCold())


@pytest.fixture(scope="module")
def servers(embedded: Settings) -> Iterator[Stores]:
    stores = killed_publisher.open_stores(embedded)
    yield stores
    stores.engine.dispose()
    for store in (stores.vectors, stores.graph, stores.hot, stores.cold):
        store.close()


class TestCrashesOfPostgres(CrashSuite):
    @pytest.fixture
    def stores(self, beside_fakes: Stores) -> Stores:
        return beside_fakes


class TestServers(PublishSuite):
    @pytest.fixture
    def stores(self, servers: Stores) -> Stores:
        return servers


@pytest.mark.parametrize("start", range(3))
def test_two_publishers_of_one_bucket_at_once(beside_fakes: Stores, start: int) -> None:
    """One of the two states remains, whole, whichever was last; never a mixture, never a rest."""
    stores, at = beside_fakes, world()
    stores.publish(at.bucket, at.old)
    third = [state(o, [draft(o, n, "third") for n in range(1, 4)]) for o in at.owners]
    errors: list[BaseException] = []

    def run(states: list[OwnerState], times: int) -> None:
        try:
            for _ in range(times):
                stores.publish(at.bucket, states, LATER)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(s, 3)) for s in ((at.new, third), (third, at.new))[start % 2]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    seen = [stores.read(o) for o in at.owners]
    new = {s.owner: expected(s) for s in at.new}
    assert seen in ([new[o] for o in at.owners], [expected(s) for s in third])
    stores.assert_clean(at.bucket, at.owners)


def test_a_reader_beside_a_publisher_sees_old_or_new(beside_fakes: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pointers of all owners of a batch move at once, however often one looks."""
    monkeypatch.setattr(publish, "BATCH_MEMORIES", 1_000)
    stores, at = beside_fakes, world()
    stores.publish(at.bucket, at.old)
    looks: list[tuple[int, ...]] = []

    def look() -> None:
        looks.append(tuple(stores.authority.person(o).epoch for o in at.owners))

    calls = [*PREPARE, "authority.commit", *FINISH]
    stores.publish(at.bucket, at.new, LATER, Faults(meanwhile=dict.fromkeys(calls, look)))
    assert set(looks) == {(1, 1, 1, 0, 1, 1), (2, 1, 2, 1, 2, 2)}


@pytest.mark.parametrize(
    ("call", "after", "published"),
    [
        ("vectors.upsert", True, False),
        ("authority.commit", False, False),
        ("authority.commit", True, True),
        ("vectors.delete", True, True),
    ],
)
def test_a_process_killed_with_signal_9(
    servers: Stores, embedded: Settings, call: str, after: bool, published: bool
) -> None:
    at = world()
    servers.publish(at.bucket, at.old, AT)
    order = {"settings": asdict(embedded), "world": at.bucket, "call": call, "after": after}
    here = Path(__file__).parents[1]
    path = os.pathsep.join([str(here), str(here.parent)])
    ended = subprocess.run(
        [sys.executable, "-m", "suites.killed_publisher"],
        input=json.dumps(order),
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert [b.state for b in servers.authority.open_batches(at.bucket)] == ["committed" if published else "preparing"]
    before = {s.owner: s for s in at.old}
    states = at.new if published else [before.get(s.owner, OwnerState(s.owner)) for s in at.new]
    assert [servers.read(s.owner) for s in states] == [expected(s) for s in states]
    servers.publish(at.bucket, at.new, LATER)  # the server has released the dead process's bucket
    assert [servers.read(s.owner) for s in at.new] == [expected(s) for s in at.new]
    servers.assert_clean(at.bucket, at.owners)
