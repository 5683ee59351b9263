"""Connections to the relational store, with the schema in place.

Belongs here: engines, and what a server is told of the tables. Does not belong here: the tables (``schema``).
"""

from typing import Any

import sqlalchemy as sa

from memory_pipelines.errors import IntegrityError, SettingError
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated, upsert

CONNECT_SECONDS = 10


def connect(url: str, setting: str = "MEMORY_PIPELINES_POSTGRES_URL") -> sa.Engine:
    """An engine with the schema in place.

    Raises SettingError (no such URL, credentials), StoreUnavailableError, IntegrityError on another schema's tables.
    """
    engine = _engine(url, setting)
    with translated(setting), engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # two processes may start on an empty database at once
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(727274)"))
        schema.metadata.create_all(connection)
        _sample_no_text(connection)
        found = connection.execute(sa.select(sa.func.max(schema.schema_version.c.version))).scalar_one()
        if found not in (None, schema.SCHEMA_VERSION):
            raise IntegrityError(
                f"the database of {setting} has schema {found}, this version needs {schema.SCHEMA_VERSION}"
            )
        upsert(connection, schema.schema_version, [{"version": schema.SCHEMA_VERSION}], update=())
        upsert(connection, schema.counters, [{"name": "touch", "value": 0}], update=())
    return engine


def reader(url: str, setting: str = "MEMORY_PIPELINES_POSTGRES_URL") -> sa.Engine:
    """An engine on a database that has the schema; nothing is created. Raises as ``connect``, also without a schema."""
    engine = _engine(url, setting)
    with translated(setting), engine.begin() as connection:
        known = sa.inspect(connection).has_table(schema.schema_version.name)
        found = (
            connection.execute(sa.select(sa.func.max(schema.schema_version.c.version))).scalar_one() if known else None
        )
    if found != schema.SCHEMA_VERSION:
        raise IntegrityError(
            f"the database of {setting} has schema {found}, this version needs {schema.SCHEMA_VERSION}"
        )
    return engine


def _sample_no_text(connection: sa.Connection) -> None:
    """Keep texts, names and keys out of PostgreSQL's planner statistics: those outlive the rows they come from."""
    if connection.dialect.name != "postgresql":
        return
    sampled = connection.execute(
        sa.text(
            "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "WHERE c.relnamespace = current_schema()::regnamespace AND coalesce(a.attstattarget, -1) <> 0"
        )
    )
    present = {(row.relname, row.attname) for row in sampled}
    for table in schema.metadata.tables.values():
        for column in table.columns:
            free = isinstance(column.type, sa.JSON | sa.LargeBinary)
            free = free or (isinstance(column.type, sa.String) and not column.type.length)
            if free and (table.name, column.name) in present:
                connection.execute(sa.text(f'ALTER TABLE "{table.name}" ALTER COLUMN "{column.name}" SET STATISTICS 0'))


def _engine(url: str, setting: str) -> sa.Engine:
    options: dict[str, Any] = {"pool_pre_ping": True, "hide_parameters": True}
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "sqlite":
            options |= {"poolclass": sa.StaticPool, "connect_args": {"check_same_thread": False}}
        elif "connect_timeout" not in parsed.query:
            options["connect_args"] = {"connect_timeout": CONNECT_SECONDS}
        return sa.create_engine(parsed, **options)
    except (sa.exc.ArgumentError, ImportError, ValueError):
        raise SettingError(f"{setting} must be postgresql+psycopg://user:password@host:port/database") from None
