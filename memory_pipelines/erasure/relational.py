"""What PostgreSQL holds of a person: the authority's rows, what happened to them, and the ledger's notes.

Belongs here: how each table is searched and emptied. Does not belong here: when.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from memory_pipelines.erasure.naming import keys_of_name
from memory_pipelines.erasure.places import Stores, Target, tally
from memory_pipelines.model import Owner, stable_hash
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import parts, translated


class _Table(ABC):
    """One table; each search and each deletion is one transaction, or part of the caller's."""

    table: sa.Table

    @property
    def name(self) -> str:
        return f"postgres.{self.table.name}"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        with translated(), stores.engine.begin() as connection:
            return self.held(connection, targets)

    def delete(self, stores: Stores, target: Target) -> None:
        with translated(), stores.engine.begin() as connection:
            self.drop(connection, target)

    @abstractmethod
    def held(self, connection: sa.Connection, targets: Sequence[Target]) -> dict[str, int]:
        """As ``count``, in the caller's transaction."""

    @abstractmethod
    def drop(self, connection: sa.Connection, target: Target) -> None:
        """As ``delete``, in the caller's transaction."""


@dataclass(frozen=True)
class OwnedTable(_Table):
    """A table with a column ``owner``. ``time``: when the row's matter happened; None: no column says so."""

    table: sa.Table
    time: str | None = None
    found_by: str = "owner"

    def held(self, connection: sa.Connection, targets: Sequence[Target]) -> dict[str, int]:
        by_key = {target.key: target for target in targets}
        columns = [self.table.c.owner] + ([] if self.time is None else [self.table.c[self.time]])
        found: list[str] = []
        for part in parts(sorted(by_key)):
            rows = connection.execute(sa.select(*columns).where(self.table.c.owner.in_(part)))
            found += [row[0] for row in rows if by_key[row[0]].counts(None if self.time is None else row[1])]
        return tally(found)

    def drop(self, connection: sa.Connection, target: Target) -> None:
        connection.execute(self.table.delete().where(self.table.c.owner == target.key))


@dataclass(frozen=True)
class NotedTurns(_Table):
    """A table of the ledger by hash of turn ids."""

    table: sa.Table
    found_by: str = "hash of a turn id"

    def held(self, connection: sa.Connection, targets: Sequence[Target]) -> dict[str, int]:
        result = {}
        for target in targets:
            found = 0
            for part in parts(sorted(target.trace.turns)):
                query = sa.select(sa.func.count()).select_from(self.table).where(self.table.c.turn.in_(part))
                found += connection.execute(query).scalar_one()
            if found:
                result[target.key] = found
        return result

    def drop(self, connection: sa.Connection, target: Target) -> None:
        for part in parts(sorted(target.trace.turns)):
            connection.execute(self.table.delete().where(self.table.c.turn.in_(part)))


@dataclass(frozen=True)
class Plans(_Table):
    """Running derivations of buckets. One that works on the person is given up: its bucket begins anew."""

    table: sa.Table = schema.plans
    found_by: str = "owner in the plan"

    def held(self, connection: sa.Connection, targets: Sequence[Target]) -> dict[str, int]:
        whole = {target.key for target in targets if target.until is None}
        rows = connection.execute(sa.select(self.table.c.owners)).scalars()
        return tally(key for owners in rows for key in whole & set(owners))

    def drop(self, connection: sa.Connection, target: Target) -> None:
        for bucket, owners in connection.execute(sa.select(self.table.c.bucket, self.table.c.owners)).all():
            if target.key in owners:
                connection.execute(self.table.delete().where(self.table.c.bucket == bucket))


@dataclass(frozen=True)
class Batches(_Table):
    """Publishing batches that were left behind: the person's part is taken out, the rest is brought to an end."""

    table: sa.Table = schema.batches
    found_by: str = "owner in the plan"

    def held(self, connection: sa.Connection, targets: Sequence[Target]) -> dict[str, int]:
        whole = {target.key for target in targets if target.until is None}
        found = (key for _, changes in self._plans(connection) for key in whole & {_key(c) for c in changes})
        return tally(found)

    def drop(self, connection: sa.Connection, target: Target) -> None:
        for batch, changes in list(self._plans(connection)):
            kept = [change for change in changes if _key(change) != target.key]
            if len(kept) < len(changes):
                connection.execute(self.table.update().where(self.table.c.batch_id == batch).values(plan=kept))

    def _plans(self, connection: sa.Connection) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for row in connection.execute(sa.select(self.table.c.batch_id, self.table.c.plan)).all():
            yield row.batch_id, row.plan


def _key(change: Mapping[str, Any]) -> str:
    return Owner(change["tenant"], change["subject"]).key


@dataclass(frozen=True)
class DeviceLinks(_Table):
    """Logins on devices. A device's rows go; of a user's only the user: the device must stay one that others have
    used as well, or what was said on it would join whoever logs in next."""

    table: sa.Table = schema.identity_links
    found_by: str = "owner of device or user"

    def held(self, connection: sa.Connection, targets: Sequence[Target]) -> dict[str, int]:
        by_key = {target.key: target for target in targets}
        found: list[str] = []
        for part in parts(sorted(by_key)):
            for column in (self.table.c.device_owner, self.table.c.user_owner):
                rows = connection.execute(sa.select(column, self.table.c.linked_at).where(column.in_(part)))
                found += [key for key, at in rows if by_key[key].counts(at)]
        return tally(found)

    def drop(self, connection: sa.Connection, target: Target) -> None:
        table = self.table
        connection.execute(table.delete().where(table.c.device_owner == target.key))
        links = sa.select(table.c.link_id).where(table.c.user_owner == target.key)
        for link in connection.execute(links).scalars().all():
            nobody = stable_hash("erased", link)
            gone = {"link_id": nobody, "user_owner": nobody, "user_subject": ""}
            connection.execute(table.update().where(table.c.link_id == link).values(**gone))


@dataclass(frozen=True)
class FileNames(_Table):
    """Names of imported files: one that names the person becomes the file's id."""

    table: sa.Table = schema.files
    found_by: str = "an id in the file's name"

    def held(self, connection: sa.Connection, targets: Sequence[Target]) -> dict[str, int]:
        return tally(target.key for target in targets for _ in self._naming(connection, target))

    def drop(self, connection: sa.Connection, target: Target) -> None:
        for file_id in self._naming(connection, target):
            connection.execute(self.table.update().where(self.table.c.file_id == file_id).values(name=file_id))

    def _naming(self, connection: sa.Connection, target: Target) -> list[str]:
        if target.until is not None:
            return []
        (key,) = self.table.primary_key
        rows = connection.execute(sa.select(key, self.table.c.name)).all()
        return [found for found, name in rows if target.key in keys_of_name(name, target.owner.tenant)]


@dataclass(frozen=True)
class SourceNames(FileNames):
    """Names of sources that cannot be read: one that names the person becomes the source's key, without the fault."""

    table: sa.Table = schema.source_faults

    def drop(self, connection: sa.Connection, target: Target) -> None:
        table = self.table
        for key in self._naming(connection, target):
            connection.execute(table.update().where(table.c.source == key).values(name=key, fault=""))
