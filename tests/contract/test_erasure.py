"""Erasure on servers, and what it asks of adapters: purge, wipe, the lock."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa
from suites import adapters, erasure_world
from suites.erasure_world import ANN, BOB, DIMENSION, ERASED_AT, PLANTED, SECRET, TWIN, World, is_anns, of_others

from memory_pipelines import erasure
from memory_pipelines.erasure.landed import trace
from memory_pipelines.erasure.places import Target
from memory_pipelines.erasure.scan import gather, residues
from memory_pipelines.errors import IntegrityError, PermanentError, TransientError
from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, schema
from memory_pipelines.stores.base import GraphStore, HotStore, Lake, Replace
from memory_pipelines.stores.exclusion import Exclusion
from memory_pipelines.stores.hot import _names
from memory_pipelines.stores.lake import DeltaLake
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TableSpec


@pytest.fixture(scope="module")
def engine(served: Settings) -> Iterator[sa.Engine]:
    """A database of its own: an erasure works on the whole of it."""
    with sa.create_engine(adapters.postgres(served), isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(sa.text("CREATE DATABASE erasure"))
    engine = database.connect(adapters.text(adapters.postgres(served, "erasure")))
    yield engine
    engine.dispose()


@pytest.fixture
def world(engine: sa.Engine, served: Settings, bolt: GraphStore, tmp_path: Path) -> Iterator[World]:
    schema.metadata.drop_all(engine)
    database.connect(engine.url.render_as_string(hide_password=False)).dispose()
    vectors = adapters.vectors(served, "erasure")
    vectors.ensure(DIMENSION)
    hot, cold = adapters.hot(served), adapters.cold(served, "erasure")
    cold.ensure()
    world = World(engine, DeltaLake(str(tmp_path / "lake")), vectors, bolt, hot, cold)
    yield erasure_world.fill(world, tmp_path)
    for owner in erasure_world.PEOPLE:
        hot.wipe(owner)
        vectors.delete(vectors.entry_ids(owner))
    cold.delete(cold.keys())
    for store in (vectors, hot, cold):
        store.close()


def test_one_person_is_forgotten_in_all_servers(world: World) -> None:
    assert erasure.dry_run(world.stores, ANN).counts == PLANTED
    before = of_others(world)
    certificate = world.erase(ANN)
    assert {name: n["before"] for name, n in certificate.body["places"].items()} == PLANTED
    assert certificate.survivors == 0
    assert of_others(world) == before
    left = {name for name, rows in world.everything().items() if any(map(is_anns, rows))}
    assert left == {"postgres.erasures", "postgres.tombstones"}
    saved = erasure.load(world.engine, certificate.body["request_id"]).certificates
    assert all(erasure.verify(item, SECRET) for item in saved.values())
    assert erasure.sweep(world.stores).survivors == {}
    assert world.erase(TWIN).survivors == 0
    assert world.graph.versions(TWIN) == set()
    assert world.vectors.entry_ids(BOB) != set()


def test_the_scan_reads_all_of_postgres(world: World) -> None:
    looked_for = gather(world.lake, Target(ANN, trace(world.lake, ANN)))
    found = residues(world.stores, looked_for)
    held = {name for name, rows in world.everything().items() if any(map(is_anns, rows))}
    held |= {"postgres.batches", "postgres.files"}  # these name her in their own ways
    assert {name for name in found if "postgres." in name} == {name for name in held if "postgres." in name}


def test_somebody_who_comes_back_starts_above_every_old_epoch(world: World) -> None:
    old = next(s for s in erasure_world.states(world) if s.owner == ANN)
    for states in ([type(old)(ANN)], [old], [type(old)(ANN)], [old]):
        world.published.publish(0, states, ERASED_AT)
    epoch = world.published.authority.person(ANN).epoch
    assert epoch == 5
    world.erase(ANN)
    assert world.published.authority.person(ANN).epoch == 0
    world.published.publish(0, [old], ERASED_AT)
    assert world.published.authority.person(ANN).epoch == epoch + 1
    assert world.published.authority.person(BOB).epoch == 2  # once published, once redacted


def test_an_erasure_waits_for_jobs_and_the_person_does_not(world: World) -> None:
    request = erasure.request(world.engine, ANN, "desk", ERASED_AT)
    erasure.approve(world.engine, request, "officer", ERASED_AT)
    with Exclusion(world.engine).shared():
        with pytest.raises(TransientError, match="other jobs use the lake"):
            erasure.execute(world.stores, request, ERASED_AT, SECRET, patience_seconds=1)
        assert world.published.authority.visible(ANN) == []
    assert erasure.execute(world.stores, request, ERASED_AT, SECRET, patience_seconds=5).survivors == 0


# ---- the lock


def test_jobs_share_the_lock_and_a_purge_has_it_alone(engine: sa.Engine) -> None:
    one, other = Exclusion(engine), Exclusion(engine)
    with one.shared(), one.shared(), other.shared(), pytest.raises(TransientError), Exclusion(engine).alone(1):
        raise AssertionError("not alone")
    with one.alone(1), pytest.raises(TransientError), other.alone(1):
        raise AssertionError("not alone")
    with other.alone(1):
        pass


def test_whoever_waits_to_be_alone_lets_nobody_new_in(engine: sa.Engine) -> None:
    order: list[str] = []
    running, go_on = threading.Event(), threading.Event()

    def job() -> None:
        with Exclusion(engine).shared():
            running.set()
            go_on.wait(30)
            order.append("job")

    def purge() -> None:
        with Exclusion(engine).alone(30):
            order.append("purge")

    def late() -> None:
        with Exclusion(engine).shared():
            order.append("late")

    threads = [threading.Thread(target=job), threading.Thread(target=purge), threading.Thread(target=late)]
    threads[0].start()
    assert running.wait(30)
    threads[1].start()
    _until_waiting(engine, 1)
    threads[2].start()
    _until_waiting(engine, 2)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert order == ["job", "purge", "late"]


def _until_waiting(engine: sa.Engine, number: int) -> None:
    """Until so many sessions wait for an advisory lock."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    pause = threading.Event()
    for _ in range(300):
        with engine.connect() as connection:
            if connection.execute(sa.text(waiting)).scalar_one() == number:
                return
        pause.wait(0.1)
    raise AssertionError("nobody waits")


def test_the_lock_goes_with_its_session(engine: sa.Engine) -> None:
    with Exclusion(engine).alone(1):
        kill = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
        with engine.begin() as connection:
            connection.execute(sa.text(kill))
        with Exclusion(engine).alone(5):
            pass


def test_who_lands_is_alone_with_it_but_not_with_the_lake(engine: sa.Engine) -> None:
    one, other = Exclusion(engine), Exclusion(engine)
    with one.landing(1), other.shared(), pytest.raises(TransientError, match="being landed"), other.landing(1):
        raise AssertionError("two land at once")
    with other.landing(1):
        pass


def test_a_thread_does_not_wait_for_itself() -> None:
    lock = Exclusion(database.connect("sqlite://"))
    with lock.shared(), pytest.raises(IntegrityError), lock.alone():
        raise AssertionError("not alone")
    with lock.alone():
        pass


# ---- the lake


def event(number: int, owner: Owner, file: str = "f") -> dict[str, object]:
    row = dict.fromkeys(BEHAVIOUR.schema.names) | {"tenant": owner.tenant, "event_id": str(number), "file_id": file}
    return row | {"owner": owner.key, "bucket": owner.bucket(8), "reference": f"order of {owner.subject}"}


def rows(*found: dict[str, object], spec: TableSpec = BEHAVIOUR) -> pa.Table:
    return pa.Table.from_pylist(list(found), schema=spec.schema)


def test_a_purge_leaves_the_newest_version_and_nothing_else(lake: Lake, tenant: str) -> None:
    gone, stays = Owner(tenant, "u:gone"), Owner(tenant, "u:stays")
    for owner in (gone, stays):
        lake.write(BEHAVIOUR, rows(event(1, owner)), [Replace("owner", (owner.key,))])
    old = lake.version(BEHAVIOUR)
    lake.write(BEHAVIOUR, BEHAVIOUR.schema.empty_table(), [Replace("owner", (gone.key,))])
    before = lake.read(BEHAVIOUR)
    for _ in range(2):
        lake.purge(BEHAVIOUR)
    assert lake.read(BEHAVIOUR).equals(before)
    with pytest.raises(PermanentError):
        lake.read(BEHAVIOUR, version=old)
    assert lake.read(BEHAVIOUR, version=lake.version(BEHAVIOUR)).num_rows == 1
    content = list(lake.stored(BEHAVIOUR))
    assert any(path.endswith(".parquet") for path, _ in content)
    assert not any(gone.key.encode() in raw or b"u:gone" in raw for _, raw in content)
    lake.write(BEHAVIOUR, rows(event(2, gone)), [Replace("owner", (gone.key,))])
    assert lake.read(BEHAVIOUR).num_rows == 2


def test_a_table_that_was_never_written_has_nothing_to_purge(lake: Lake) -> None:
    lake.purge(QUARANTINE)
    assert list(lake.stored(QUARANTINE)) == []
    assert lake.version(QUARANTINE) == -1


# ---- the hot store


def test_wiping_leaves_nothing_of_one_owner(hot_store: HotStore, tenant: str) -> None:
    mine, other = Owner(tenant, "u:1"), Owner(tenant, "u:2")
    for owner in (mine, other):
        for name in ("pack", "包 *", "names"):
            hot_store.put(owner, name, b"value", 60)
    assert hot_store.held(mine) == 3
    for _ in range(2):
        hot_store.wipe(mine)
        assert (hot_store.held(mine), hot_store.get(mine, "pack")) == (0, None)
    assert (hot_store.held(other), hot_store.get(other, "pack")) == (3, b"value")


def test_values_that_lost_their_name_are_wiped_too(served: Settings, owner: Owner) -> None:
    store = adapters.hot(served)
    store.put(owner, "pack", b"value", 60)
    adapters.redis_client(served).delete(_names(owner))
    store.delete(owner)
    assert (store.get(owner, "pack"), store.held(owner)) == (None, 1)
    store.wipe(owner)
    assert store.held(owner) == 0
    store.close()
