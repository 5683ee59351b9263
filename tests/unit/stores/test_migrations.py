"""Revisions and the tables as they are now say the same, on SQLite; the contract tests upgrade a PostgreSQL."""

import sqlalchemy as sa

from memory_pipelines.stores import database, migrations, schema


def test_the_newest_revision_is_the_one_that_is_named() -> None:
    names = list(migrations.known())
    assert names[-1] == migrations.NEWEST
    assert names[0] == migrations.BASELINE
    assert [int(name) for name in names] == list(range(int(names[0]), int(names[-1]) + 1))


def test_a_new_database_notes_the_newest_revision() -> None:
    engine = database.connect("sqlite://")
    with engine.begin() as connection:
        assert migrations.current(connection) == migrations.NEWEST


def test_the_revisions_make_the_tables_of_the_schema() -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
        migrations.known()[migrations.BASELINE].upgrade()
        connection.execute(sa.text("INSERT INTO schema_version VALUES (2)"))
        migrations.bring_up(connection, "A_SETTING")
        inspector = sa.inspect(connection)
        made = {name: {c["name"] for c in inspector.get_columns(name)} for name in inspector.get_table_names()}
    assert made == {name: {c.name for c in table.columns} for name, table in schema.metadata.tables.items()}
