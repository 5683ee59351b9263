"""The upgrade of a database that an earlier version has filled, on PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from suites import adapters

from memory_pipelines.errors import IntegrityError
from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, migrations, schema

BASELINE = Path(__file__).parent / "data" / "schema_2.sql"
SINCE = {
    ("memory_versions", "places"): {"relational": "m1.v1", "vector": "m1.v1", "graph": "m1"},
    ("plans", "snapshot"): "empty",
    ("memories", "accessed_at"): None,
    ("memories", "activations"): 0,
}
"""What later revisions added, with what old rows have there."""


@pytest.fixture
def url(served: Settings) -> Iterator[str]:
    """A database at the baseline."""
    name = "migrations"
    admin = sa.create_engine(adapters.postgres(served), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    url = adapters.text(adapters.postgres(served, name))
    old = sa.create_engine(url)
    with old.begin() as connection:
        for statement in BASELINE.read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    old.dispose()
    yield url
    with admin.connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


def rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    engine = sa.create_engine(url)
    tables = sa.MetaData()
    with engine.begin() as connection:
        tables.reflect(connection)
        found = {
            table.name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
            for table in tables.sorted_tables
        }
    engine.dispose()
    return found


def test_an_upgrade_keeps_every_row(url: str) -> None:
    before = rows(url)
    engine = database.connect(url)
    after = rows(url)
    assert after.pop("alembic_version") == [{"version_num": migrations.NEWEST}]
    before.pop("schema_version")
    for name, old in before.items():
        added = {column: value for (table, column), value in SINCE.items() if table == name}
        assert after.pop(name) == [row | added for row in old], name
    assert not any(after.values()), "new tables are empty"
    with engine.begin() as connection:
        assert schema.next_touch(connection) == 8
    engine.dispose()


def test_what_the_revisions_make_is_what_the_tables_say(url: str) -> None:
    """A change of ``schema`` without a revision fails here: add one to ``stores.migrations.versions``."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = database.connect(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
    engine.dispose()


def test_two_processes_that_upgrade_at_once(url: str) -> None:
    errors: list[BaseException] = []

    def connect() -> None:
        try:
            database.connect(url).dispose()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=connect) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(rows(url)["people"]) == 1


def test_an_upgrade_that_fails_leaves_the_old_schema(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows(url)
    last = list(migrations.known().values())[-1]
    whole = last.upgrade

    def half() -> None:
        whole()
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(last, "upgrade", half)
        with pytest.raises(RuntimeError, match="killed"):
            database.connect(url)
    assert rows(url) == before
    database.connect(url).dispose()


def test_who_may_only_read_does_not_upgrade(url: str) -> None:
    with pytest.raises(IntegrityError, match=f"has schema 2, this version needs {migrations.NEWEST}"):
        database.reader(url)
    assert "schema_version" in rows(url)
