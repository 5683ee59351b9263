"""Publishing with PostgreSQL as the authority, over in-memory stores and over all servers."""

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
from suites import adapters, killed_publisher
from suites.publish_suite import FINISH, PREPARE, CrashSuite, PublishSuite
from suites.publish_world import AT, DIMENSION, LATER, Faults, Stores, draft, expected, state, world

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, publish
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.stores.publish import OwnerState
from memory_pipelines.stores.relational import PostgresAuthority


@pytest.fixture(scope="module")
def engine(served: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(adapters.text(adapters.postgres(served)))
    yield engine
    engine.dispose()


@pytest.fixture
def beside_fakes(engine: sa.Engine) -> Stores:
    vectors = MemoryVectors()
    vectors.ensure(DIMENSION)
    return Stores(engine, PostgresAuthority(engine), vectors, MemoryGraph(), MemoryHot(), MemoryCold())


@pytest.fixture(scope="module")
def servers(served: Settings) -> Iterator[Stores]:
    stores = killed_publisher.open_stores(served)
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


CALLS = [step.call for step in publish.STEPS]


@pytest.mark.parametrize(("call", "after"), [(CALLS[0], False), *((call, True) for call in CALLS)])
def test_a_process_killed_with_signal_9(servers: Stores, served: Settings, call: str, after: bool) -> None:
    at = world()
    servers.publish(at.bucket, at.old, AT)
    order = {"settings": asdict(served), "world": at.bucket, "call": call, "after": after}
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
    published = after and CALLS.index(call) >= CALLS.index("authority.commit")
    recorded = after and call != CALLS[-1]
    left = ["committed" if published else "preparing"] if recorded else []
    assert [b.state for b in servers.authority.open_batches(at.bucket)] == left
    before = {s.owner: s for s in at.old}
    states = at.new if published else [before.get(s.owner, OwnerState(s.owner)) for s in at.new]
    assert [servers.read(s.owner) for s in states] == [expected(s) for s in states]
    with servers.authority.publishing(at.bucket):  # the server has released the dead process's bucket
        assert [b.state for b in servers.publisher().recover(at.bucket)] == left
    assert [servers.read(s.owner) for s in states] == [expected(s) for s in states]
    servers.assert_clean(at.bucket, at.owners)
    servers.publish(at.bucket, at.new, LATER)
    assert [servers.read(s.owner) for s in at.new] == [expected(s) for s in at.new]
    servers.assert_clean(at.bucket, at.owners)


def test_a_held_bucket_is_not_recovered_by_another(beside_fakes: Stores) -> None:
    stores, at = beside_fakes, world()
    with stores.authority.publishing(at.bucket):
        with stores.authority.publishing_if_free(at.bucket) as free:
            assert not free
        with stores.authority.publishing_if_free(at.bucket + 1) as free:
            assert free
    with stores.authority.publishing_if_free(at.bucket) as free:
        assert free


def test_publishers_of_different_buckets_do_not_wait_for_each_other(beside_fakes: Stores) -> None:
    """One is in the middle of its batch until the other has ended."""
    stores, one, other = beside_fakes, world(), world()
    ended = threading.Event()

    def wait() -> None:
        assert ended.wait(60)

    thread = threading.Thread(
        target=stores.publish, args=(one.bucket, one.old, AT, Faults(meanwhile={"authority.commit": wait}))
    )
    thread.start()
    stores.publish(other.bucket, other.old)
    ended.set()
    thread.join()
    for at in (one, other):
        assert [stores.read(s.owner) for s in at.old] == [expected(s) for s in at.old]
        stores.assert_clean(at.bucket, at.owners)
