"""The relational schema: the ledger of what was done, and the authority over what is visible.

Belongs here: table definitions, touch numbers. Does not belong here: connections (``database``), how rows are
written (``statements``), or when.
Everything runs on PostgreSQL; on an in-memory SQLite it serves unit tests.
"""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.model import utc

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


alembic_version = _table("alembic_version", sa.Column("version_num", sa.String(32), primary_key=True))
"""The migration that the tables are at (``stores.migrations``)."""

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

source_faults = _table(
    "source_faults",
    sa.Column("source", sa.String(32), primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("fault", sa.String, nullable=False),
)
"""Of sources with a fault: the name that they are shown by, and what the fault was."""

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
    sa.Column("snapshot", sa.String, nullable=False, server_default="empty"),
)
"""What the running (or last) derivation of a bucket works on: owner → touch number; the population ``snapshot``."""

snapshots = _table(
    "snapshots",
    sa.Column("snapshot_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("snapshot", sa.String, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("landed_through", Instant, nullable=False),
    sa.Column("subjects", sa.BigInteger, nullable=False),
    sa.Column("known_subjects", sa.BigInteger, nullable=False),
    sa.Column("keys", sa.BigInteger, nullable=False),
    sa.Column("movement", sa.Float, nullable=False),
    sa.Column("everybody", sa.Boolean, nullable=False),
)
"""Which population snapshot came into use when: the newest row is the one in use. ``subjects`` were counted of
``known_subjects``; ``movement``: how far distinctiveness moved; ``everybody`` was touched for it, or not."""

# ---- authority

people = _table(
    "people",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("subject", sa.String, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("graph_version", sa.String(32)),
)
packs = _table(
    "packs",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("form", sa.String, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("left_out", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""A copy of what is visible of a subject, made for recall; good while ``epoch`` is that of ``people``."""

memories = _table(
    "memories",
    sa.Column("memory_id", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("version", sa.String(32)),
    sa.Column("tier", sa.String(8), nullable=False),
    sa.Column("admitted_at", Instant, nullable=False),
    sa.Column("accessed_at", Instant),
    sa.Column("activations", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Index("memories_owner", "owner"),
)
"""Which version of a memory is visible (null: none any more), in which tier, and how it was used."""

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
    sa.Column("places", sa.JSON, nullable=False, server_default="{}"),
    sa.Index("memory_versions_owner", "owner"),
)
"""``stores`` is where a memory is routed; ``places``: store → the id under which this version is there."""
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

collections = _table(
    "collections",
    sa.Column("collection", sa.String(255), primary_key=True),
    sa.Column("embedder", sa.String, nullable=False),
    sa.Column("model_id", sa.String, nullable=False),
    sa.Column("dimension", sa.Integer, nullable=False),
    sa.Column("state", sa.String(8), nullable=False),
    sa.Column("since", Instant, nullable=False),
    sa.Index(
        *("collections_live", "state"),
        unique=True,
        postgresql_where=sa.text("state = 'live'"),
        sqlite_where=sa.text("state = 'live'"),
    ),
)
"""Vector collections and the setting of the embedder that each is of: one is ``live``, others are ``building`` or
``former``. Readers and publishers follow the live one."""

# ---- what is said

journal = _table(
    "journal",
    sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("of_subject", sa.String, nullable=False),
    sa.Column("noted_at", Instant, nullable=False),
    sa.Column("turn_id", sa.String, nullable=False),
    sa.Column("conversation_id", sa.String, nullable=False),
    sa.Column("session_id", sa.String),
    sa.Column("subject", sa.String),
    sa.Column("role", sa.String(8), nullable=False),
    sa.Column("occurred_at", Instant, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("origin", sa.String),
    sa.Column("edited_at", Instant),
    sa.Column("vector_clock", sa.String),
    sa.Column("content_hash", sa.String(32), nullable=False),
    sa.Index("journal_turn", "owner", "turn_id", "content_hash", unique=True),
)
"""Turns as agents note them, with tokens for sensitive values; rows are only added, and go once landed and old.
``owner`` and ``of_subject``: whose session buffer a turn is in; ``subject``: whom it names itself (null: nobody)."""

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
    sa.Column("owners_touched", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("identity_links_user", "user_owner"),
    sa.Index(
        *("identity_links_waiting", "device_owner"),
        postgresql_where=sa.text("NOT owners_touched"),
        sqlite_where=sa.text("NOT owners_touched"),
    ),
    sa.Index(
        *("identity_links_open", "device_owner", "user_owner"),
        unique=True,
        postgresql_where=sa.text("unlinked_at IS NULL"),
        sqlite_where=sa.text("unlinked_at IS NULL"),
    ),
)
"""Logins of users on devices; rows are only added, one that was wrong gets ``unlinked_at``. ``link_id``: hash of
device, user and ``linked_at``; ``visible_at``: when a recall of the user could first use the device's memories;
``owners_touched``: whether the jobs know of it, as it is now: a login itself does not wait for their locks."""


# ---- life after admission

accesses = _table(
    "accesses",
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("turn_id", sa.String, primary_key=True),
    sa.Column("at", Instant, primary_key=True),
    sa.Column("kind", sa.String(12), primary_key=True),
)
"""What became of memories, by turn: ``presented``, ``activated``, ``echo``, ``negated`` or ``corrected``."""

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
