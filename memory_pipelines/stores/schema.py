"""The relational schema: the ledger of what was done, and the authority over what is visible.

Belongs here: table definitions, the engine, upserts. Does not belong here: when a row is written.
Everything runs on PostgreSQL; on an in-memory SQLite it serves unit tests.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from memory_pipelines.errors import IntegrityError, PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import utc

SCHEMA_VERSION = 2
ROWS_PER_STATEMENT = 5_000
CONNECT_SECONDS = 10

T = TypeVar("T")

metadata = sa.MetaData()


class Instant(sa.TypeDecorator[datetime]):
    """An aware UTC datetime, also on a database that knows no time zones."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else utc(value)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _table(name: str, *columns: sa.Column[Any] | sa.Index) -> sa.Table:
    return sa.Table(name, metadata, *columns)


schema_version = _table("schema_version", sa.Column("version", sa.Integer, primary_key=True))

counters = _table(
    "counters",
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)
"""Touches are numbered by one row whose lock is held until the transaction ends: numbers appear in commit order."""

# ---- ledger: landing

files = _table(
    "files",
    sa.Column("file_id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("complete", sa.Boolean, nullable=False),
    sa.Column("format", sa.String(32), nullable=False),
    sa.Column("mapping", sa.String),
    sa.Column("continues", sa.String(32)),
    sa.Column("tail", sa.String(32)),
)
"""``mapping``: path of the column mapping that was used; ``continues``: the file that this one is, grown: the rows of
that one are not landed again; ``tail``: hash of the last row."""

chunks = _table(
    "chunks",
    sa.Column("file_id", sa.String(32), primary_key=True),
    sa.Column("chunk", sa.Integer, primary_key=True),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("turns", sa.BigInteger, nullable=False),
    sa.Column("behaviour", sa.BigInteger, nullable=False),
    sa.Column("filtered", sa.JSON, nullable=False),
    sa.Column("quarantined", sa.JSON, nullable=False),
)
sources = _table(
    "sources",
    sa.Column("source", sa.String(32), primary_key=True),
    sa.Column("state", sa.String(64), nullable=False),
    sa.Column("file_id", sa.String(32)),
    sa.Column("fault", sa.Boolean, nullable=False),
)
"""Hash of a source's address → what was found there in which state: an unchanged one is not read again. ``fault``: it
could not be read to its end."""

watermarks = _table(
    "watermarks",
    sa.Column("file_id", sa.String(32), primary_key=True),
    sa.Column("value", sa.JSON, nullable=False),
    sa.Column("edge", sa.JSON, nullable=False),
)
"""How far a SQL table was read: the column's value, and hashes of the rows with just that value that were read."""

readmissions = _table(
    "readmissions",
    sa.Column("file_id", sa.String(32), primary_key=True),
    sa.Column("chunk", sa.Integer, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("turns", sa.BigInteger, nullable=False),
    sa.Column("behaviour", sa.BigInteger, nullable=False),
    sa.Column("filtered", sa.JSON, nullable=False),
    sa.Column("quarantined", sa.JSON, nullable=False),
    sa.Column("positions", sa.JSON, nullable=False),
)
"""Rows that left quarantine for good. ``quarantined``: reason → how many; ``positions`` of the rows in their file."""

turn_days = _table(
    "turn_days",
    sa.Column("turn", sa.String(32), primary_key=True),
    sa.Column("day", sa.String(10), nullable=False),
)
"""Hash of (tenant, turn id) → the day on which it was first seen."""

turn_conflicts = _table(
    "turn_conflicts",
    sa.Column("turn", sa.String(32), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Index("turn_conflicts_day", "day"),
)
"""The days of a turn id that has versions on more than one."""

# ---- ledger: day and bucket jobs

days = _table(
    "days",
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("touched", sa.BigInteger, nullable=False),
    sa.Column("written", sa.BigInteger, nullable=False),
    sa.Column("cut", sa.BigInteger, nullable=False),
    sa.Column("landed", sa.BigInteger, nullable=False),
    sa.Column("version", sa.BigInteger),
    sa.Column("draft", sa.JSON(none_as_null=True)),
    sa.Column("counts", sa.JSON(none_as_null=True)),
)
"""``touched`` > ``cut`` or ``written``: landed rows wait for the day job. ``written`` and ``draft``: what the exchanges
in the lake, as of ``version``, were cut from, with their counts, until the commit makes them ``cut`` and ``counts``."""

pending = _table(
    "pending",
    sa.Column("announcement", sa.BigInteger, primary_key=True),
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("bucket", sa.Integer, nullable=False),
    sa.Column("written_to", sa.String),
    sa.Column("version", sa.BigInteger),
    sa.Index("pending_day", "day"),
)
"""Owners whose rows of a day are being changed; every commit of the day touches them, until one pins the
``version`` of the table in which the change lies (null: its writer has not said yet, or was killed)."""

owners = _table(
    "owners",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("bucket", sa.Integer, nullable=False),
    sa.Column("touched", sa.BigInteger, nullable=False),
    sa.Column("derived", sa.BigInteger, nullable=False),
    sa.Column("due_at", Instant),
    sa.Column("repeated", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("conflicting", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("owners_bucket", "bucket"),
)
"""``touched`` > ``derived``: something changed; ``due_at``: when the next 7-day window closes. ``repeated`` and
``conflicting``: landed behaviour events that say an event again, the same or otherwise."""

manifests = _table(
    "manifests",
    sa.Column("manifest_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("landed_through", Instant, nullable=False),
    sa.Column("model_set", sa.String, nullable=False),
    sa.Column("versions", sa.JSON, nullable=False),
)
plans = _table(
    "plans",
    sa.Column("bucket", sa.Integer, primary_key=True),
    sa.Column("as_of", Instant, nullable=False),
    sa.Column("model_set", sa.String, nullable=False),
    sa.Column("versions", sa.JSON, nullable=False),
    sa.Column("owners", sa.JSON, nullable=False),
    sa.Column("everything", sa.Boolean, nullable=False),
)
"""What the running (or last) derivation of a bucket works on: owner → touch number."""

# ---- authority

people = _table(
    "people",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("subject", sa.String, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("graph_version", sa.String(32)),
)
memories = _table(
    "memories",
    sa.Column("memory_id", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("version", sa.String(32)),
    sa.Column("tier", sa.String(8), nullable=False),
    sa.Column("admitted_at", Instant, nullable=False),
    sa.Index("memories_owner", "owner"),
)
"""Which version of a memory is visible (null: none any more) and in which tier."""

memory_versions = _table(
    "memory_versions",
    sa.Column("memory_id", sa.String(32), primary_key=True),
    sa.Column("version", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("subject", sa.String, nullable=False),
    sa.Column("memory_type", sa.String(16), nullable=False),
    sa.Column("permanence", sa.String(16), nullable=False),
    sa.Column("term", sa.String(8), nullable=False),
    sa.Column("summary", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("language", sa.String(8), nullable=False),
    sa.Column("predicate", sa.String, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("structured", sa.Text, nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    sa.Column("trust", sa.Float, nullable=False),
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("decision_impact", sa.Float, nullable=False),
    sa.Column("intent", sa.String, nullable=False),
    sa.Column("entities", sa.JSON, nullable=False),
    sa.Column("slice_ids", sa.JSON, nullable=False),
    sa.Column("source_turn_ids", sa.JSON, nullable=False),
    sa.Column("stores", sa.JSON, nullable=False),
    sa.Column("occurred_at", Instant, nullable=False),
    sa.Column("valid_from", Instant),
    sa.Column("valid_to", Instant),
    sa.Column("expires_at", Instant),
    sa.Column("path", sa.String, nullable=False),
    sa.Column("model_set", sa.String, nullable=False),
    sa.Index("memory_versions_owner", "owner"),
)
slice_turns = _table(
    "slice_turns",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("slice_id", sa.String, primary_key=True),
    sa.Column("turn_id", sa.String, primary_key=True),
    sa.Column("current", sa.Boolean, nullable=False),
    sa.Index("slice_turns_turn", "owner", "turn_id"),
)
"""Own turns of every slice ever published: redirects are a view on shared turns."""

suppressions = _table(
    "suppressions",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("turn_id", sa.String, primary_key=True),
    sa.Column("until", Instant, nullable=False),
)
batches = _table(
    "batches",
    sa.Column("batch_id", sa.String(32), primary_key=True),
    sa.Column("bucket", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("plan", sa.JSON, nullable=False),
)
"""Publishing batches: ``preparing`` → ``committed`` → gone. ``plan`` names all that the batch writes or removes."""

# ---- identity

identity_links = _table(
    "identity_links",
    sa.Column("link_id", sa.String(32), primary_key=True),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("device_owner", sa.String(32), nullable=False),
    sa.Column("device_subject", sa.String, nullable=False),
    sa.Column("user_owner", sa.String(32), nullable=False),
    sa.Column("user_subject", sa.String, nullable=False),
    sa.Column("linked_at", Instant, nullable=False),
    sa.Column("visible_at", Instant),
    sa.Column("unlinked_at", Instant),
    sa.Index("identity_links_user", "user_owner"),
    sa.Index(
        *("identity_links_open", "device_owner", "user_owner"),
        unique=True,
        postgresql_where=sa.text("unlinked_at IS NULL"),
        sqlite_where=sa.text("unlinked_at IS NULL"),
    ),
)
"""Logins of users on devices; rows are only added, one that was wrong gets ``unlinked_at``. ``link_id``: hash of
device, user and ``linked_at``; ``visible_at``: when a recall of the user could first use the device's memories."""


# ---- life after admission

accesses = _table(
    "accesses",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("turn_id", sa.String, primary_key=True),
    sa.Column("at", Instant, primary_key=True),
    sa.Column("kind", sa.String(12), primary_key=True),
)
"""What agents did with memories, by own turn: ``presented``, ``activated``, ``echo`` or ``negated``."""

markers = _table(
    "markers",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("turn_id", sa.String, primary_key=True),
    sa.Column("claim", sa.String, primary_key=True),
    sa.Column("at", Instant, nullable=False),
)
"""Deleted by age: memories of this claim (``<type>:<predicate>``) and turn are never published again."""

reflection_tasks = _table(
    "reflection_tasks",
    sa.Column("task_id", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("week", sa.String(10), nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("due_at", Instant),
    sa.Column("done", sa.Boolean, nullable=False),
    sa.Index("reflection_tasks_owner", "owner"),
)
"""Follow-ups of weekly reflections."""

models = _table(
    "models",
    sa.Column("model_id", sa.String(32), primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("data_from", Instant, nullable=False),
    sa.Column("data_to", Instant, nullable=False),
    sa.Column("data_hash", sa.String(32), nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("metrics", sa.JSON, nullable=False),
    sa.Column("verdict", sa.String, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)
"""Every model that was ever trained; ``model_id`` is the hash of ``body``."""

promotions = _table(
    "promotions",
    sa.Column("promotion_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("model_id", sa.String(32), nullable=False),
    sa.Column("at", Instant, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
)
"""Which model came into use when, and why; the newest row of a kind names the champion."""

erasures = _table(
    "erasures",
    sa.Column("request_id", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("subject", sa.String),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("requested_at", Instant, nullable=False),
    sa.Column("approved_by", sa.String),
    sa.Column("progress", sa.JSON, nullable=False),
    sa.Column("certificate", sa.JSON),
    sa.Index("erasures_owner", "owner"),
)
"""Requests to forget somebody: requested, approved, unreachable, erased. ``subject`` is forgotten at the end."""

tombstones = _table(
    "tombstones",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("before", Instant, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
)
"""Rows of this owner with an event time before the instant are never landed or restored again. ``epoch`` is the last
one that readers knew: should the owner come back, theirs goes on from it, so that no old copy fits."""

# ---- key ring

master_key = _table(
    "master_key",
    sa.Column("one", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.String(32), nullable=False),
)
"""One row: which master key the ring opens with, so that another one is never taken for it."""

subject_keys = _table(
    "subject_keys",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("wrapped", sa.LargeBinary, nullable=False),
)
"""The random key of each owner, wrapped by the master key. Without its row, the owner's tokens are noise for ever."""

sensitive_values = _table(
    "sensitive_values",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("token", sa.String(32), primary_key=True),
    sa.Column("cipher", sa.LargeBinary, nullable=False),
)
"""What tokens in texts stand for, encrypted with the owner's key."""


def connect(url: str, setting: str = "MEMORY_PIPELINES_POSTGRES_URL") -> sa.Engine:
    """An engine with the schema in place.

    Raises SettingError (no such URL, credentials), StoreUnavailableError, IntegrityError on another schema's tables.
    """
    engine = _engine(url, setting)
    with translated(setting), engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # two processes may start on an empty database at once
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(727274)"))
        metadata.create_all(connection)
        _sample_no_text(connection)
        found = connection.execute(sa.select(sa.func.max(schema_version.c.version))).scalar_one()
        if found not in (None, SCHEMA_VERSION):
            raise IntegrityError(f"the database of {setting} has schema {found}, this version needs {SCHEMA_VERSION}")
        upsert(connection, schema_version, [{"version": SCHEMA_VERSION}], update=())
        upsert(connection, counters, [{"name": "touch", "value": 0}], update=())
    return engine


def reader(url: str, setting: str = "MEMORY_PIPELINES_POSTGRES_URL") -> sa.Engine:
    """An engine on a database that has the schema; nothing is created. Raises as ``connect``, also without a schema."""
    engine = _engine(url, setting)
    with translated(setting), engine.begin() as connection:
        known = sa.inspect(connection).has_table(schema_version.name)
        found = connection.execute(sa.select(sa.func.max(schema_version.c.version))).scalar_one() if known else None
    if found != SCHEMA_VERSION:
        raise IntegrityError(f"the database of {setting} has schema {found}, this version needs {SCHEMA_VERSION}")
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
    for table in metadata.tables.values():
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


@contextmanager
def translated(setting: str = "MEMORY_PIPELINES_POSTGRES_URL") -> Iterator[None]:
    """The driver's errors as the library's, without their texts: those may quote a row.

    Raises StoreUnavailableError, SettingError on refused credentials, PermanentError on a refused statement.
    """
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        cause = getattr(error, "orig", None) or error
        if "authentication failed" in str(cause):
            raise SettingError(f"the relational store refuses the user or password of {setting}") from None
        raise StoreUnavailableError("relational", setting, type(cause).__name__) from None
    except (sa.exc.SQLAlchemyError, UnicodeError) as error:
        reason = type(getattr(error, "orig", None) or error).__name__
        raise PermanentError(f"the relational store refuses a statement ({reason})") from None


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in runs short enough for one statement."""
    for start in range(0, len(items), ROWS_PER_STATEMENT):
        yield items[start : start + ROWS_PER_STATEMENT]


def upsert(
    connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]], update: Sequence[str] | None = None
) -> None:
    """Insert rows; on a known key set ``update`` columns (default all others; empty: leave the old row)."""
    if not rows:
        return
    key = [column.name for column in table.primary_key]
    names = [n for n in rows[0] if n not in key] if update is None else list(update)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table)
    if names:
        statement = statement.on_conflict_do_update(
            index_elements=key, set_={name: statement.excluded[name] for name in names}
        )
    else:
        statement = statement.on_conflict_do_nothing(index_elements=key)
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        connection.execute(statement, list(rows[start : start + ROWS_PER_STATEMENT]))


def insert_new(
    connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]], column: sa.Column[Any]
) -> set[Any]:
    """Insert the rows whose key is not known, all in one statement; returns their values of a column."""
    if not rows:
        return set()
    if connection.dialect.name != "postgresql":
        statement: Any = sqlite.insert(table).on_conflict_do_nothing().returning(column)
        return set(connection.execute(statement, list(rows)).scalars())
    columns = [table.c[name] for name in rows[0]]  # arrays of columns: a tenth of the time of a list of rows
    arrays = [sa.cast(sa.literal([row[c.name] for row in rows], sa.ARRAY(c.type)), sa.ARRAY(c.type)) for c in columns]
    found = sa.func.unnest(*arrays).table_valued(*(c.name for c in columns)).render_derived()
    statement = postgresql.insert(table).from_select([c.name for c in columns], sa.select(found))
    return set(connection.execute(statement.on_conflict_do_nothing().returning(column)).scalars())


def hold_touches(connection: sa.Connection) -> None:
    """Let no touch or manifest be committed until the transaction ends: what it reads belongs together."""
    connection.execute(sa.select(counters.c.value).where(counters.c.name == "touch").with_for_update())


def next_touch(connection: sa.Connection) -> int:
    """The next touch number; holds the counter's lock until the transaction ends."""
    statement = (
        counters.update()
        .where(counters.c.name == "touch")
        .values(value=counters.c.value + 1)
        .returning(counters.c.value)
    )
    return int(connection.execute(statement).scalar_one())
