"""What readers see of the authority in PostgreSQL: visible memories, and where things lie.

Belongs here: reads alone. Does not belong here: what moves the pointers (``relational``), where a person stands
(``heads``).
"""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from memory_pipelines.model import Owner, Tier
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.base import cold_key
from memory_pipelines.stores.heads import PostgresHeads
from memory_pipelines.stores.statements import parts, translated

POINTED = ("tier", "admitted_at", "accessed_at", "activations")
"""Columns that the pointer has, not the version."""


class PostgresReads(PostgresHeads):
    """Reads of committed state."""

    def visible(self, owner: Owner) -> list[StoredMemory]:
        """All committed memories of the owner, newest ``occurred_at`` first, then by id."""
        pointer = schema.memories
        return self._visible(pointer.c.owner == owner.key, pointer.c.tenant == owner.tenant)

    def visible_of(self, owners: Collection[Owner]) -> dict[Owner, list[StoredMemory]]:
        """All committed memories of each of the owners, in the order of ``visible``; read together."""
        pointer = schema.memories
        result: dict[Owner, list[StoredMemory]] = {owner: [] for owner in owners}
        for part in parts(sorted(owner.key for owner in owners)):
            for row in self._visible(pointer.c.owner.in_(part)):
                result[row.owner].append(row)
        return result

    def sizes(self, owners: Collection[str]) -> dict[str, int]:
        """Owner key → visible memories."""
        table = schema.memories
        query = sa.select(table.c.owner, sa.func.count().label("n")).where(table.c.version.is_not(None))
        return {row.owner: row.n for row in self._of(query.group_by(table.c.owner), table.c.owner, owners)}

    def states(self, owners: Collection[str]) -> dict[str, tuple[int, str | None]]:
        """Owner key → epoch, and the graph version that readers use."""
        table = schema.people
        query = sa.select(table.c.owner, table.c.epoch, table.c.graph_version)
        return {row.owner: (row.epoch, row.graph_version) for row in self._of(query, table.c.owner, owners)}

    def everything_visible(self) -> list[StoredMemory]:
        """All committed memories of everybody, for jobs that plan over all of them."""
        return self._visible()

    def _visible(self, *conditions: sa.ColumnElement[bool]) -> list[StoredMemory]:
        table, pointer = schema.memory_versions, schema.memories
        query = (
            sa.select(table, *(pointer.c[name] for name in POINTED))
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


def _stored(owner: Owner, row: Mapping[str, Any]) -> StoredMemory:
    names = StoredMemory.__dataclass_fields__
    values = {name: row[name] for name in names if name != "owner"}
    for name in ("entities", "slice_ids", "source_turn_ids", "stores"):
        values[name] = tuple(values[name])
    return StoredMemory(owner=owner, **values)
