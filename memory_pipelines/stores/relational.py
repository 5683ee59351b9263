"""The authority in PostgreSQL: which version of which memory a reader sees.

Belongs here: reads of visible memories, and the three transactions of publishing (prepare, commit,
finish) as far as they concern this database. Does not belong here: the other stores (``publish``).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.clock import SystemClock
from memory_pipelines.errors import TransientError
from memory_pipelines.model import Owner, Tier
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import Person, StoredMemory, cold_key
from memory_pipelines.stores.batches import Batch, OwnerChange, from_json, to_json
from memory_pipelines.stores.statements import parts, reading, translated, upsert

_LOCK_SPACE = 7272
_PAYLOAD = [c.name for c in schema.memory_versions.columns]


@dataclass(frozen=True)
class Visible:
    """A memory's pointer: the version that readers see (None: none any more) and its tier."""

    memory_id: str
    version: str | None
    tier: str


class PostgresAuthority:
    """Reads and the publishing transactions. Writers other than ``publish`` must not touch these tables."""

    def __init__(self, engine: sa.Engine, now: Callable[[], datetime] | None = None) -> None:
        self._engine = engine
        self._now = now or SystemClock().now
        # several statements of one read see one state
        on_postgres = engine.dialect.name == "postgresql"
        self._snapshots = engine.execution_options(isolation_level="REPEATABLE READ") if on_postgres else engine
        self._reading = reading(engine)

    # ---- reads

    def person(self, owner: Owner, as_of: datetime | None = None) -> Person:
        """The published state of a subject; an unknown one has epoch 0 and nothing visible.

        Suppressions that ended by ``as_of`` (default: now) do not count."""
        named = {"key": owner.key, "of_tenant": owner.tenant, "as_of": as_of or self._now()}
        with translated(), self._reading.connect() as connection:
            rows = connection.execute(_PERSON, named).all()
        suppressed = frozenset[str]()
        if any(row.turn_id is not None for row in rows):
            with translated(), self._snapshots.begin() as connection:
                rows = connection.execute(_PERSON, named).all()
                turns = {row.turn_id for row in rows if row.turn_id is not None}
                suppressed = self._memories_of_turns(connection, owner, turns)
        if not rows:
            return Person(owner, 0, None, frozenset())
        return Person(owner, rows[0].epoch, rows[0].graph_version, suppressed, rows[0].packed is not None)

    def of_turns(self, owner: Owner, turn_ids: Collection[str]) -> frozenset[str]:
        """Ids of the owner's visible memories with any of these turns."""
        with translated(), self._engine.begin() as connection:
            return self._memories_of_turns(connection, owner, set(turn_ids))

    @staticmethod
    def _memories_of_turns(connection: sa.Connection, owner: Owner, turns: set[str]) -> frozenset[str]:
        table, pointer = schema.memory_versions, schema.memories
        on_postgres = connection.dialect.name == "postgresql"
        each = sa.func.json_array_elements_text if on_postgres else sa.func.json_each
        source = each(table.c.source_turn_ids).table_valued("value")
        named: set[str] = set()
        for part in parts(sorted(turns)):
            rows = connection.execute(
                sa.select(table.c.memory_id)
                .join(pointer, (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version))
                .where(table.c.owner == owner.key, sa.exists().where(source.c.value.in_(part)))
            )
            named.update(rows.scalars())
        return frozenset(named)

    def visible(self, owner: Owner) -> list[StoredMemory]:
        """All committed memories of the owner, newest ``occurred_at`` first, then by id."""
        pointer = schema.memories
        return self._visible(pointer.c.owner == owner.key, pointer.c.tenant == owner.tenant)

    def everything_visible(self) -> list[StoredMemory]:
        """All committed memories of everybody, for jobs that plan over all of them."""
        return self._visible()

    def _visible(self, *conditions: sa.ColumnElement[bool]) -> list[StoredMemory]:
        table, pointer = schema.memory_versions, schema.memories
        query = (
            sa.select(table, pointer.c.tier, pointer.c.admitted_at)
            .join(pointer, (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version))
            .where(*conditions)
            .order_by(table.c.occurred_at.desc(), table.c.memory_id)
        )
        with translated(), self._engine.begin() as connection:
            return [
                _stored(Owner(row["tenant"], row["subject"]), dict(row)) for row in connection.execute(query).mappings()
            ]

    def counts(self) -> dict[str, int]:
        """Visible memories by tier and by type, people, and batches under way."""
        table, pointer = schema.memory_versions, schema.memories
        joined = sa.select(table.c.memory_type, pointer.c.tier, sa.func.count().label("n")).join(
            pointer, (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version)
        )
        result: dict[str, int] = {"memories": 0, "people": 0, "batches": 0}
        with translated(), self._engine.begin() as connection:
            for kind, tier, n in connection.execute(joined.group_by(table.c.memory_type, pointer.c.tier)):
                result["memories"] += n
                result[kind] = result.get(kind, 0) + n
                result[tier] = result.get(tier, 0) + n
            for name, source in (("people", schema.people), ("batches", schema.batches)):
                result[name] = connection.execute(sa.select(sa.func.count()).select_from(source)).scalar_one()
        return result

    def shown(self, memory_ids: Collection[str]) -> list[StoredMemory]:
        """Those of the memories that are visible."""
        table = schema.memory_versions
        return [row for part in parts(sorted(memory_ids)) for row in self._visible(table.c.memory_id.in_(part))]

    def stored_versions(self, owners: Collection[str] | None = None) -> dict[str, set[str]]:
        """Owner key → entry ids of every version that is stored, visible or not."""
        table = schema.memory_versions
        result: dict[str, set[str]] = {}
        for row in self._of(sa.select(table.c.owner, table.c.memory_id, table.c.version), table.c.owner, owners):
            result.setdefault(row.owner, set()).add(f"{row.memory_id}.{row.version}")
        return result

    def pointed(self, owners: Collection[str] | None = None) -> dict[str, set[str]]:
        """Owner key → entry ids that pointers name, whether their version is stored or not."""
        table = schema.memories
        named = sa.select(table.c.owner, table.c.memory_id, table.c.version).where(table.c.version.is_not(None))
        result: dict[str, set[str]] = {}
        for row in self._of(named, table.c.owner, owners):
            result.setdefault(row.owner, set()).add(f"{row.memory_id}.{row.version}")
        return result

    def archived(self, owners: Collection[str] | None = None) -> dict[str, set[str]]:
        """Owner key → keys under which the cold store has to hold the texts of visible cold memories."""
        table, pointer = schema.memory_versions, schema.memories
        query = (
            sa.select(table.c.tenant, table.c.subject, table.c.memory_id, table.c.version)
            .join(pointer, (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version))
            .where(pointer.c.tier == Tier.COLD)
        )
        result: dict[str, set[str]] = {}
        for row in self._of(query, table.c.owner, owners):
            owner = Owner(row.tenant, row.subject)
            result.setdefault(owner.key, set()).add(cold_key(owner, f"{row.memory_id}.{row.version}"))
        return result

    def drop_unseen(self, entries: Collection[str]) -> None:
        """Forget those of the versions that no pointer names. The caller holds their buckets."""
        with translated(), self._engine.begin() as connection:
            pairs = [(memory, version) for memory, _, version in (entry.partition(".") for entry in sorted(entries))]
            self._drop_versions(connection, pairs)

    def unpoint(self, entries: Collection[str]) -> None:
        """Nothing is visible any more where a version is lost: a publish shows it anew. The caller holds buckets."""
        table = schema.memories
        pairs = [(memory, version) for memory, _, version in (entry.partition(".") for entry in sorted(entries))]
        with translated(), self._engine.begin() as connection:
            for part in parts(pairs):
                lost = sa.tuple_(table.c.memory_id, table.c.version).in_(part)
                connection.execute(table.update().where(lost).values(version=None))

    def owners(self) -> list[Owner]:
        """Everybody who was ever published."""
        table = schema.people
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(sa.select(table.c.tenant, table.c.subject).order_by(table.c.owner))
            return [Owner(row.tenant, row.subject) for row in rows]

    def graphs(self, owners: Collection[str] | None = None) -> dict[str, str]:
        """Owner key → the graph version that readers use; of these owners, or of everybody."""
        table = schema.people
        query = sa.select(table.c.owner, table.c.graph_version).where(table.c.graph_version.is_not(None))
        return {row.owner: row.graph_version for row in self._of(query, table.c.owner, owners)}

    def _of(self, query: sa.Select[Any], owner: sa.Column[Any], owners: Collection[str] | None) -> list[sa.Row[Any]]:
        chosen = [query] if owners is None else [query.where(owner.in_(part)) for part in parts(sorted(owners))]
        with translated(), self._engine.begin() as connection:
            return [row for one in chosen for row in connection.execute(one)]

    def routed(self, store: str, owners: Collection[str] | None = None) -> dict[str, set[str]]:
        """Owner key → entry ids of visible memories, cold ones apart, that are routed to a store."""
        table, pointer = schema.memory_versions, schema.memories
        query = (
            sa.select(pointer.c.owner, table.c.memory_id, table.c.version, table.c.stores)
            .join(pointer, (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version))
            .where(pointer.c.tier != Tier.COLD)
        )
        result: dict[str, set[str]] = {}
        for row in self._of(query, pointer.c.owner, owners):
            if store in row.stores:
                result.setdefault(row.owner, set()).add(f"{row.memory_id}.{row.version}")
        return result

    def places(self, owners: Collection[str]) -> dict[str, dict[str, dict[str, str]]]:
        """Owner key → visible memory id → store → the id under which it is there."""
        table, pointer = schema.memory_versions, schema.memories
        query = sa.select(pointer.c.owner, table.c.memory_id, table.c.places).join(
            pointer, (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version)
        )
        result: dict[str, dict[str, dict[str, str]]] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted(owners)):
                for row in connection.execute(query.where(pointer.c.owner.in_(part))):
                    result.setdefault(row.owner, {})[row.memory_id] = row.places
        return result

    def redirects(self, owner: Owner, slice_id: str) -> list[str]:
        """Today's slices that share an own turn with ``slice_id`` (itself, if it still stands)."""
        old, new = schema.slice_turns.alias("old"), schema.slice_turns.alias("new")
        query = (
            sa.select(new.c.slice_id)
            .join(old, (old.c.turn_id == new.c.turn_id) & (old.c.owner == new.c.owner))
            .where(old.c.owner == owner.key, old.c.slice_id == slice_id, new.c.current)
            .distinct()
            .order_by(new.c.slice_id)
        )
        with translated(), self._engine.begin() as connection:
            return list(connection.execute(query).scalars())

    # ---- publishing

    def pointers(self, owners: Collection[str]) -> dict[str, list[Visible]]:
        """Per owner key the pointers of all its memories that are visible."""
        table = schema.memories
        result: dict[str, list[Visible]] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted(owners)):
                rows = connection.execute(sa.select(table).where(table.c.owner.in_(part), table.c.version.is_not(None)))
                for row in rows.mappings():
                    pointer = Visible(row["memory_id"], row["version"], row["tier"])
                    result.setdefault(row["owner"], []).append(pointer)
        return result

    def words(self, versions: Collection[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """By (memory id, version) the summary and text of those versions that are stored."""
        table = schema.memory_versions
        wanted = set(versions)
        result: dict[tuple[str, str], tuple[str, str]] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted({memory for memory, _ in wanted})):
                columns = table.c.memory_id, table.c.version, table.c.summary, table.c.text
                for row in connection.execute(sa.select(*columns).where(table.c.memory_id.in_(part))):
                    if (row.memory_id, row.version) in wanted:
                        result[row.memory_id, row.version] = (row.summary, row.text)
        return result

    def graph_versions(self, owners: Collection[str]) -> dict[str, str | None]:
        table = schema.people
        result: dict[str, str | None] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted(owners)):
                rows = connection.execute(
                    sa.select(table.c.owner, table.c.graph_version).where(table.c.owner.in_(part))
                )
                result.update({row.owner: row.graph_version for row in rows})
        return result

    def prepare(self, batch: Batch, rows: Sequence[dict[str, Any]], at: datetime) -> None:
        """Record the batch and write its new versions beside the old ones; readers see nothing of it yet."""
        record = {
            "batch_id": batch.batch_id,
            "bucket": batch.bucket,
            "state": "preparing",
            "created_at": at,
            "plan": to_json(batch.changes),
        }
        with translated(), self._engine.begin() as connection:
            upsert(connection, schema.batches, [record])
            upsert(connection, schema.memory_versions, [{name: row[name] for name in _PAYLOAD} for row in rows])

    def commit(self, batch: Batch, at: datetime) -> None:
        """The one transaction that makes the whole batch visible. Committing twice changes nothing.

        Raises TransientError if somebody else has rolled the batch back: the bucket was lost in the meantime."""
        with translated(), self._engine.begin() as connection:
            state = connection.execute(
                sa.select(schema.batches.c.state).where(schema.batches.c.batch_id == batch.batch_id).with_for_update()
            ).scalar_one_or_none()
            if state is None:
                raise TransientError(f"batch {batch.batch_id} is gone: another publisher holds bucket {batch.bucket}")
            if state != "preparing":
                return
            self._show(connection, batch.changes, at)
            connection.execute(
                schema.batches.update().where(schema.batches.c.batch_id == batch.batch_id).values(state="committed")
            )

    @staticmethod
    def _show(connection: sa.Connection, changes: Sequence[OwnerChange], at: datetime) -> None:
        """A statement a table for all owners: with some a person, they cost more than the rows."""
        table, people, turns = schema.memories, schema.people, schema.slice_turns
        shown = [
            {
                "memory_id": memory,
                "owner": change.owner.key,
                "tenant": change.owner.tenant,
                "version": version,
                "tier": tier,
                "admitted_at": at,
            }
            for change in changes
            for memory, version, tier in change.show
        ]
        upsert(connection, table, shown, update=("version", "tier"))
        for part in parts([memory for change in changes for memory in change.hide]):
            connection.execute(table.update().where(table.c.memory_id.in_(part)).values(version=None))
        persons = [
            {
                "owner": change.owner.key,
                "tenant": change.owner.tenant,
                "subject": change.owner.subject,
                "epoch": 0,
                "graph_version": change.graph_version,
            }
            for change in changes
        ]
        upsert(connection, people, persons, update=("graph_version",))
        known = sa.select(schema.tombstones.c.epoch).where(schema.tombstones.c.owner == people.c.owner)
        last = known.scalar_subquery()  # an erased owner goes on counting
        grown = sa.case((people.c.epoch < last, last), else_=people.c.epoch) + 1
        for keys in parts([change.owner.key for change in changes]):
            connection.execute(people.update().where(people.c.owner.in_(keys)).values(epoch=grown))
            connection.execute(turns.update().where(turns.c.owner.in_(keys), turns.c.current).values(current=False))
        current = [
            {"slice_id": slice_id, "turn_id": turn_id, "owner": change.owner.key, "current": True}
            for change in changes
            for slice_id, turn_id in change.slices
        ]
        upsert(connection, turns, current, update=("current",))

    def finish(self, batch: Batch) -> None:
        """Forget superseded versions and the batch itself; the other stores have removed theirs."""
        gone = [pair for change in batch.changes for pair in change.superseded]
        with translated(), self._engine.begin() as connection:
            self._drop_versions(connection, gone)
            connection.execute(schema.batches.delete().where(schema.batches.c.batch_id == batch.batch_id))

    def roll_back(self, batch: Batch) -> None:
        """Forget a batch that was never committed, with its versions unless a reader sees them."""
        written = [(m, v) for change in batch.changes for m, v, _ in change.show]
        with translated(), self._engine.begin() as connection:
            self._drop_versions(connection, written)
            connection.execute(schema.batches.delete().where(schema.batches.c.batch_id == batch.batch_id))

    @staticmethod
    def _drop_versions(connection: sa.Connection, pairs: Iterable[tuple[str, str]]) -> None:
        table, pointer = schema.memory_versions, schema.memories
        seen = sa.exists().where(pointer.c.memory_id == table.c.memory_id, pointer.c.version == table.c.version)
        for part in parts(sorted(pairs)):
            named = sa.tuple_(table.c.memory_id, table.c.version).in_(part)
            connection.execute(table.delete().where(named, sa.not_(seen)))

    @contextmanager
    def publishing(self, *buckets: int) -> Iterator[None]:
        """Hold buckets alone; a second publisher waits. A process that dies lets go at once."""
        with self._locked("SELECT pg_advisory_lock(:space, :bucket)", sorted(buckets)):
            yield

    @contextmanager
    def publishing_if_free(self, bucket: int) -> Iterator[bool]:
        """As ``publishing`` where nobody holds the bucket; False at once where somebody does."""
        with self._locked("SELECT pg_try_advisory_lock(:space, :bucket)", [bucket]) as answers:
            yield False not in answers

    @contextmanager
    def _locked(self, statement: str, buckets: Sequence[int]) -> Iterator[list[Any]]:
        if self._engine.dialect.name != "postgresql":  # the in-memory database has one process
            yield []
            return
        with ExitStack() as held:
            with translated():
                connection = held.enter_context(self._engine.connect())
                connection.detach()  # closed, not pooled, at the end: the lock goes with its session, whatever happens
                keys = [{"space": _LOCK_SPACE, "bucket": bucket} for bucket in buckets]
                answers = [connection.execute(sa.text(statement), key).scalar() for key in keys]
                connection.commit()  # a session lock outlives the transaction, and an idle one would block vacuum
            yield answers

    def open_batches(self, bucket: int | None = None) -> list[Batch]:
        """Batches that somebody began and did not finish, oldest first."""
        table = schema.batches
        query = sa.select(table).order_by(table.c.created_at, table.c.batch_id)
        if bucket is not None:
            query = query.where(table.c.bucket == bucket)
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(query).mappings().all()
        return [Batch(r["batch_id"], r["bucket"], r["state"], from_json(r["plan"]), r["created_at"]) for r in rows]

    def admitted(self, owners: Collection[str]) -> dict[str, datetime]:
        """Memory id → when it first entered the stores, of everything that the owners ever published."""
        table = schema.memories
        result: dict[str, datetime] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted(owners)):
                rows = connection.execute(
                    sa.select(table.c.memory_id, table.c.admitted_at).where(table.c.owner.in_(part))
                )
                result.update({row.memory_id: row.admitted_at for row in rows})
        return result

    def people(self, owners: Collection[str]) -> dict[str, Owner]:
        """Owner key → owner, of those that ever published."""
        table = schema.people
        result: dict[str, Owner] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted(owners)):
                rows = connection.execute(
                    sa.select(table.c.owner, table.c.tenant, table.c.subject).where(table.c.owner.in_(part))
                )
                result.update({row.owner: Owner(row.tenant, row.subject) for row in rows})
        return result

    def current_slices(self, owners: Collection[str]) -> dict[str, set[tuple[str, str]]]:
        """Per owner key the (slice id, own turn id) pairs that are current."""
        table = schema.slice_turns
        result: dict[str, set[tuple[str, str]]] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted(owners)):
                rows = connection.execute(sa.select(table).where(table.c.owner.in_(part), table.c.current))
                for row in rows:
                    result.setdefault(row.owner, set()).add((row.slice_id, row.turn_id))
        return result


def _person() -> sa.Select[Any]:
    """Epoch, graph and pack of subject ``key``, a row for each turn that is suppressed after ``as_of``."""
    people, packs, table = schema.people, schema.packs, schema.suppressions
    of_epoch = (packs.c.owner == people.c.owner) & (packs.c.epoch == people.c.epoch) & (packs.c.size > 0)
    until = sa.bindparam("as_of", type_=schema.Instant)
    return (
        sa.select(people.c.epoch, people.c.graph_version, packs.c.epoch.label("packed"), table.c.turn_id)
        .outerjoin(packs, of_epoch)
        .outerjoin(table, (table.c.owner == people.c.owner) & (table.c.until > until))
        .where(people.c.owner == sa.bindparam("key"), people.c.tenant == sa.bindparam("of_tenant"))
    )


_PERSON = _person()
"""Built once: every recall runs it, and to build it takes longer than to run it."""


def _stored(owner: Owner, row: Mapping[str, Any]) -> StoredMemory:
    names = StoredMemory.__dataclass_fields__
    values = {name: row[name] for name in names if name != "owner"}
    for name in ("entities", "slice_ids", "source_turn_ids", "stores"):
        values[name] = tuple(values[name])
    return StoredMemory(owner=owner, **values)
