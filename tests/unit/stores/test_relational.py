"""The authority on SQLite (the suite shared with the contract tests), and how a database is connected to."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from suites.authority_suite import AuthoritySuite, assert_silent

from memory_pipelines.errors import IntegrityError, PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.stores import database, schema, statements
from memory_pipelines.stores.batches import Batch, OwnerChange, Pointer
from memory_pipelines.stores.relational import PostgresAuthority


class TestAuthority(AuthoritySuite):
    pass


def test_a_database_that_is_not_there_names_the_setting() -> None:
    url = "postgresql+psycopg://somebody:hush@127.0.0.1:1/memory"
    with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_POSTGRES_URL") as error:
        database.connect(url)
    assert error.value.setting == "MEMORY_PIPELINES_POSTGRES_URL"
    assert error.value.store == "relational"
    assert_silent(error.value, "hush", "somebody")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense hush",
        "postgres://a:hush@localhost/d",
        "nosuch+driver://a:hush@localhost/d",
        "postgresql+psycopg://a:hush@localhost:port/d",
    ],
)
def test_a_url_that_can_never_work_names_the_setting(url: str) -> None:
    with pytest.raises(SettingError, match="OTHER_SETTING must be") as error:
        database.connect(url, "OTHER_SETTING")
    assert_silent(error.value, "hush")


def test_connecting_again_keeps_what_is_there(tmp_path: Path) -> None:
    for expected in (1, 2):
        engine = database.connect(f"sqlite:///{tmp_path}/ledger.db")
        with engine.begin() as connection:
            assert schema.next_touch(connection) == expected
        engine.dispose()


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    engine = database.connect(url)
    database.connect(url)
    with engine.begin() as connection:
        connection.execute(schema.alembic_version.update().values(version_num="99"))
    engine.dispose()
    with pytest.raises(IntegrityError, match="has schema 99, this version needs"):
        database.connect(url)


def test_a_pool_without_a_free_connection_is_a_store_that_does_not_answer() -> None:
    with pytest.raises(StoreUnavailableError, match="TimeoutError"), statements.translated():
        raise sa.exc.TimeoutError("QueuePool limit reached")


def test_a_full_disk_is_named_and_not_tried_again() -> None:
    from psycopg.errors import DiskFull

    with pytest.raises(PermanentError, match="disk of the relational store is full"), statements.translated():
        raise sa.exc.OperationalError("", {}, DiskFull("a row of somebody"))


def test_an_upsert_without_rows_does_nothing() -> None:
    engine = database.connect("sqlite://")
    with engine.begin() as connection:
        statements.upsert(connection, schema.people, [])
        assert connection.execute(sa.select(schema.people)).all() == []


def test_a_commit_takes_as_many_statements_for_many_persons_as_for_one() -> None:
    engine = database.connect("sqlite://")
    authority = PostgresAuthority(engine)
    statements_of: list[str] = []
    sa.event.listen(
        engine, "before_cursor_execute", lambda c, cursor, statement, *rest: statements_of.append(statement)
    )
    at, counts = datetime(2026, 1, 1, tzinfo=UTC), []
    for number, size in ((1, 1), (2, 40)):
        owners = [Owner("many", f"u:{number}.{i}") for i in range(size)]
        changes = [
            OwnerChange(o, (Pointer(o.key, "v", "hot"),), hide=(f"x{o.key}"[:32],), slices=(("s", "t"),))
            for o in owners
        ]
        batch = Batch(f"b{number}", 0, "preparing", tuple(changes))
        authority.prepare(batch, [], at)
        statements_of.clear()
        authority.commit(batch, at)
        counts.append(len(statements_of))
        assert [authority.person(owner).epoch for owner in owners] == [1] * size
    assert counts[0] == counts[1]
