"""Connections to the relational store, with the schema in place.

Belongs here: engines, and what a server is told of the tables. Does not belong here: the tables (``schema``).
"""

from typing import Any

import sqlalchemy as sa

from memory_pipelines.errors import MemoryPipelinesError, SettingError
from memory_pipelines.stores import leases, migrations, schema, tls
from memory_pipelines.stores.statements import translated, upsert

CONNECT_SECONDS = 10


def connect(url: str, setting: str = "MEMORY_PIPELINES_POSTGRES_URL", ca_file: str = "") -> sa.Engine:
    """An engine with the schema in place. A server's certificate is checked if the URL asks for it by ``sslmode``.

    An older schema is migrated, by whoever connects first; the others wait. Raises SettingError (no such URL,
    credentials, certificate), StoreUnavailableError, IntegrityError on a newer version's tables.
    """
    engine = _engine(url, setting, ca_file)
    leases.watch(engine)
    with translated(setting), engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # two processes may start on an empty database at once
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(727274)"))
        migrations.bring_up(connection, setting)
        _sample_no_text(connection)
        upsert(connection, schema.counters, [{"name": "touch", "value": 0}], update=())
    return engine


def reader(url: str, setting: str = "MEMORY_PIPELINES_POSTGRES_URL", ca_file: str = "") -> sa.Engine:
    """An engine on a database that has the schema; nothing is created. Raises as ``connect``, also without a schema."""
    engine = _engine(url, setting, ca_file)
    with translated(setting), engine.begin() as connection:
        migrations.demand_newest(connection, setting)
    return engine


def reader_if_there(url: str, ca_file: str = "") -> sa.Engine | None:
    """An engine to read from, if the database answers and has the schema; nothing is created. Empty URL: None."""
    try:
        return reader(url, ca_file=ca_file) if url else None
    except MemoryPipelinesError:
        return None


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


def _engine(url: str, setting: str, ca_file: str) -> sa.Engine:
    options: dict[str, Any] = {"pool_pre_ping": True, "hide_parameters": True}
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "sqlite":
            # a database in memory is its one connection; threads take turns, else one would be in another's transaction
            options |= {"poolclass": sa.QueuePool, "pool_size": 1, "max_overflow": 0}
            options["connect_args"] = {"check_same_thread": False}
        else:
            asked: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS}
            if parsed.query.get("sslmode") == "verify-full":  # else libpq looks for a file in the user's home
                asked["sslrootcert"] = tls.authority(ca_file) if ca_file else "system"
            options["connect_args"] = {name: value for name, value in asked.items() if name not in parsed.query}
        return sa.create_engine(parsed, **options)
    except (sa.exc.ArgumentError, ImportError, ValueError):
        raise SettingError(f"{setting} must be postgresql+psycopg://user:password@host:port/database") from None
