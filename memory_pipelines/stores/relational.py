"""The authority in PostgreSQL: which version of which memory a reader sees.

Belongs here: the three transactions of publishing (prepare, commit, finish) as far as they concern this database,
what they have to know, and repairs. Does not belong here: what readers see (``reads``), the other stores (``publish``).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.errors import TransientError
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.batches import Batch, OwnerChange, Pointer, from_json, to_json
from memory_pipelines.stores.reads import PostgresReads
from memory_pipelines.stores.statements import parts, translated, upsert

_LOCK_SPACE = 7272
_PAYLOAD = [c.name for c in schema.memory_versions.columns]


class PostgresAuthority(PostgresReads):
    """Reads and the publishing transactions. Writers other than ``publish`` must not touch these tables."""

    # ---- publishing

    def pointers(self, owners: Collection[str]) -> dict[str, list[Pointer]]:
        """Per owner key the pointers of all its memories that are visible."""
        table = schema.memories
        result: dict[str, list[Pointer]] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted(owners)):
                rows = connection.execute(sa.select(table).where(table.c.owner.in_(part), table.c.version.is_not(None)))
                for row in rows.mappings():
                    pointer = Pointer(**{name: row[name] for name in Pointer._fields})
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
            pointer._asdict() | {"owner": change.owner.key, "tenant": change.owner.tenant, "admitted_at": at}
            for change in changes
            for pointer in change.show
        ]
        upsert(connection, table, shown, update=("version", "tier", "accessed_at", "activations"))
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
        written = [(p.memory_id, p.version) for change in batch.changes for p in change.show if p.version is not None]
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

    # ---- repairs

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
