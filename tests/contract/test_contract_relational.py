"""Ledger, authority, heads and packs on PostgreSQL: the suites of the unit tests, and what only a server can show."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from suites import adapters
from suites.authority_suite import AuthoritySuite, assert_silent
from suites.head_suite import HeadSuite
from suites.ledger_suite import AT, DAY, A, LedgerSuite, chunk, commit
from suites.pack_suite import PackSuite
from suites.publish_world import draft, world

from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores import schema, statements
from memory_pipelines.stores.authority import Person
from memory_pipelines.stores.batches import Batch, OwnerChange, Pointer
from memory_pipelines.stores.database import connect
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.relational import PostgresAuthority


@pytest.fixture(scope="module")
def database(served: Settings) -> Iterator[sa.Engine]:
    """A database of this module alone: its tests empty it."""
    url = adapters.postgres(served)
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text("CREATE DATABASE relational_suite"))
    engine = connect(url.set(database="relational_suite").render_as_string(hide_password=False))
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(sa.text("DROP DATABASE relational_suite"))
    admin.dispose()


@pytest.fixture
def engine(database: sa.Engine) -> Iterator[sa.Engine]:
    names = ", ".join(t.name for t in schema.metadata.sorted_tables if t.name not in ("counters", "alembic_version"))
    with database.begin() as connection:
        connection.execute(sa.text(f"TRUNCATE {names}"))
    yield database
    assert database.pool.checkedout() == 0  # type: ignore[attr-defined]


class TestPacks(PackSuite):
    pass


class TestHeads(HeadSuite):
    pass


class TestLedger(LedgerSuite):
    def test_a_commit_that_comes_while_a_derivation_is_planned(self, ledger: Ledger, engine: sa.Engine) -> None:
        """Between the reads of manifest and owners: what is planned as touched must be in the planned manifest."""
        ledger.chunk_landed(chunk(0, [DAY], [A]))
        commit(ledger, {DAY: 0}, versions={"exchanges": 1})
        first = ledger.begin_derivation(3)
        assert first is not None
        ledger.end_derivation(first, {})
        ledger.announce({DAY: [("owner a", "tenant", 3)]})
        other = threading.Thread(target=commit, args=(ledger, {DAY: 0}), kwargs={"versions": {"exchanges": 2}})
        planner = threading.get_ident()

        def meanwhile(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if threading.get_ident() == planner and "FROM manifests" in statement and other.ident is None:
                other.start()
                other.join(0.5)

        sa.event.listen(engine, "after_cursor_execute", meanwhile)
        try:
            plan = ledger.begin_derivation(3)
        finally:
            sa.event.remove(engine, "after_cursor_execute", meanwhile)
        other.join()
        assert plan is not None
        ledger.end_derivation(plan, {})
        assert plan.versions == {"exchanges": 2} or ledger.touched_buckets() == [3]

    def test_touches_of_many_threads_are_all_kept(self, ledger: Ledger) -> None:
        """Landing, commits and derivations at once: no deadlock, and what is touched last waits."""
        owners = [(f"tenant {i % 3}", f"{(i * 7919) % 50:032x}", 3) for i in range(50)]
        commit(ledger, {DAY: 0})

        def land(n: int) -> None:
            ledger.chunk_landed(chunk(n, [f"2026-01-{d:02d}" for d in range(1, 20)], owners))

        def derive(n: int) -> None:
            plan = ledger.begin_derivation(3)
            assert plan is not None
            ledger.end_derivation(plan, {})

        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(land if n % 2 else derive, n) for n in range(40)]
            assert [w.result() for w in work] == [None] * 40
        land(99)
        plan = ledger.begin_derivation(3)
        assert plan is not None
        assert len(plan.owners) == 50
        assert len(set(plan.owners.values())) == 1
        assert len(ledger.touched_days()) == 19


class TestAuthority(AuthoritySuite):
    @pytest.mark.parametrize(
        "bad",
        [
            {"text": "a secret\x00 秘密"},
            {"confidence": "a secret 秘密"},
            {"memory_type": "a secret 秘密 that is longer than the column"},
            {"occurred_at": None, "text": "a secret 秘密"},
        ],
    )
    def test_what_the_server_refuses_is_not_in_the_error(
        self, authority: PostgresAuthority, owner: Owner, bad: dict[str, object]
    ) -> None:
        row = {**draft(owner, 1).payload, "version": "v", "places": {}} | bad
        with pytest.raises(PermanentError, match="refuses a statement") as error:
            authority.prepare(Batch("b", 1, "preparing"), [row], AT)
        assert_silent(error.value, "secret", "秘密", owner.subject, owner.tenant)
        assert authority.open_batches() == []

    def test_a_person_is_read_from_one_state(
        self, authority: PostgresAuthority, engine: sa.Engine, owner: Owner
    ) -> None:
        """A commit in between may not take a suppressed memory away from under the epoch that shows it."""
        row = {**draft(owner, 1).payload, "version": "v", "places": {}}
        memory = str(row["memory_id"])
        shown = Batch("b", 1, "preparing", (OwnerChange(owner, (Pointer(memory, "v", "hot"),)),))
        authority.prepare(shown, [row], AT)
        authority.commit(shown, AT)
        with engine.begin() as connection:
            until = AT.replace(year=2900)
            statements.upsert(
                connection, schema.suppressions, [{"owner": owner.key, "turn_id": "turn-1", "until": until}]
            )
        hidden = Batch("h", 1, "preparing", (OwnerChange(owner, hide=(memory,)),))
        authority.prepare(hidden, [], AT)
        reader = threading.get_ident()
        done: list[bool] = []

        def meanwhile(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if threading.get_ident() != reader or "JOIN people" not in statement:
                return
            done.append(True)
            if len(done) == 2:  # a first look says whether anything is suppressed, a second one counts
                other = threading.Thread(target=authority.commit, args=(hidden, AT))
                other.start()
                other.join()

        sa.event.listen(engine, "after_cursor_execute", meanwhile)
        try:
            person = authority.person(owner)
        finally:
            sa.event.remove(engine, "after_cursor_execute", meanwhile)
        assert len(done) == 2
        assert person == Person(owner, 1, None, frozenset({memory}))
        assert authority.person(owner) == Person(owner, 2, None, frozenset())


class TestBucketLock:
    def test_a_second_publisher_waits_for_the_first(self, engine: sa.Engine) -> None:
        authority, bucket = PostgresAuthority(engine), world().bucket
        order: list[str] = []

        def second() -> None:
            with authority.publishing(bucket):
                order.append("second")

        other = threading.Thread(target=second)
        with authority.publishing(bucket):
            other.start()
            while not locks(engine, granted=False):
                time.sleep(0.01)
            with authority.publishing(bucket + 1_000_000):
                order.append("another bucket")
            order.append("first")
        other.join()
        assert order == ["another bucket", "first", "second"]

    def test_an_error_lets_go(self, engine: sa.Engine) -> None:
        authority, bucket = PostgresAuthority(engine), world().bucket
        with pytest.raises(UnicodeError), authority.publishing(bucket):
            "\ud83d".encode()  # not an error of this store: it passes as it is
        with authority.publishing(bucket):
            assert len(locks(engine, granted=True)) >= 1
        while locks(engine, granted=True):
            time.sleep(0.01)

    def test_the_lock_takes_no_connection_of_the_pool_and_no_transaction(self, engine: sa.Engine) -> None:
        authority = PostgresAuthority(engine)
        with authority.publishing(world().bucket):
            assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
            with engine.connect() as connection:
                idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                assert connection.execute(sa.text(idle)).scalar_one() == 0

    def test_more_publishers_than_the_pool_has_connections(self, engine: sa.Engine) -> None:
        authority, barrier = PostgresAuthority(engine), threading.Barrier(20)
        buckets = [world().bucket for _ in range(20)]

        def publish(bucket: int) -> int:
            with authority.publishing(bucket):
                barrier.wait()
                return len(authority.open_batches(bucket))

        with ThreadPoolExecutor(20) as pool:
            assert list(pool.map(publish, buckets)) == [0] * 20

    def test_the_server_releases_the_lock_of_a_session_that_ended(self, engine: sa.Engine) -> None:
        authority, bucket = PostgresAuthority(engine), world().bucket
        with authority.publishing(bucket):
            (pid,) = locks(engine, granted=True)
            with engine.begin() as connection:
                connection.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
            with authority.publishing(bucket):  # would wait for ever
                assert authority.open_batches(bucket) == []


def locks(engine: sa.Engine, granted: bool) -> list[int]:
    """Sessions that hold, or wait for, a bucket."""
    query = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 7272 AND granted = :granted"
    with engine.begin() as connection:
        return list(connection.execute(sa.text(query), {"granted": granted}).scalars())


def test_a_server_that_goes_away_is_named_by_its_setting(engine: sa.Engine) -> None:
    def work() -> None:
        with statements.translated(), engine.begin() as connection:
            pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
            with engine.begin() as other:
                other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
            connection.execute(sa.text("SELECT :words"), words)

    words = {"words": "秘密"}
    with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_POSTGRES_URL") as error:
        work()
    assert_silent(error.value, "秘密")
    assert Ledger(engine).landed().rows == 0  # the next one has a new connection


def test_refused_credentials_name_the_setting(served: Settings) -> None:
    url = adapters.postgres(served).set(password="wrong-password")
    with pytest.raises(SettingError, match="refuses the user or password of MEMORY_PIPELINES_POSTGRES_URL") as error:
        connect(url.render_as_string(hide_password=False))
    assert "wrong-password" not in str(error.value)


def test_two_processes_may_start_on_an_empty_database_at_once(served: Settings) -> None:
    url = adapters.postgres(served)
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text("CREATE DATABASE empty_suite"))
    text = url.set(database="empty_suite").render_as_string(hide_password=False)
    with ThreadPoolExecutor(4) as pool:
        engines = list(pool.map(connect, [text] * 4))
    assert [Ledger(e).touched_days() for e in engines] == [{}] * 4
    for engine in engines:
        engine.dispose()
    with admin.connect() as connection:
        connection.execute(sa.text("DROP DATABASE empty_suite"))
    admin.dispose()


def test_no_text_is_sampled_for_the_planner(engine: sa.Engine) -> None:
    """Planner statistics outlive the rows, so an erasure could not reach a text in them."""
    secret, number = "penicillin-in-a-sentence", 300
    task = {"owner": "o", "week": "2024-05-13", "kind": "k", "text": secret, "due_at": None, "done": False}
    rows = [{"task_id": f"{i:032d}", **task} for i in range(number)]
    with engine.begin() as connection:
        statements.upsert(connection, schema.reflection_tasks, rows)
        connection.execute(sa.text("ANALYZE"))
        sampled = connection.execute(
            sa.text(
                "SELECT tablename, attname, coalesce(most_common_vals::text, '') || "
                "coalesce(histogram_bounds::text, '') FROM pg_stats"
            )
        ).all()
    assert not [(table, column) for table, column, values in sampled if secret in values]
    assert ("reflection_tasks", "owner") in {(table, column) for table, column, _ in sampled}, "others are sampled"
