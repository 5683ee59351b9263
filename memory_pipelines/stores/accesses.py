"""What agents did with memories, and what age deleted: two ledgers by the owner's own turn ids.

Belongs here: their rows in the relational store. Does not belong here: which uses count as access
(``lifecycle.scores``), or when a memory is deleted (``lifecycle.plan``).

Owners are owner keys, so no row names a person. Every write may be repeated.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

import sqlalchemy as sa

from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import AccessKind
from memory_pipelines.stores.statements import parts, translated, upsert


class AccessLog:
    """Uses of memories and markers of deleted ones, over an engine of ``database.connect``."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def record(self, owner: str, turn_ids: Iterable[str], kind: AccessKind, at: datetime) -> None:
        """Note that memories with these own turns were used at ``at``; the same use twice is one row."""
        rows = [
            {"owner": owner, "turn_id": turn, "at": at, "kind": AccessKind(kind).value} for turn in sorted({*turn_ids})
        ]
        with translated(), self._engine.begin() as connection:
            upsert(connection, schema.accesses, rows, update=())

    def by_owner(self, owners: Collection[str]) -> dict[str, dict[str, list[tuple[datetime, str]]]]:
        """Owner → turn id → (when, kind) of each use, earliest first. Owners without a use are left out."""
        table = schema.accesses
        result: dict[str, dict[str, list[tuple[datetime, str]]]] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted({*owners})):
                query = sa.select(table).where(table.c.owner.in_(part))
                for row in connection.execute(query.order_by(table.c.owner, table.c.turn_id, table.c.at, table.c.kind)):
                    result.setdefault(row.owner, {}).setdefault(row.turn_id, []).append((row.at, row.kind))
        return result

    def owners(self) -> list[str]:
        """Owners of whom something was used."""
        table = schema.accesses
        with translated(), self._engine.begin() as connection:
            return list(connection.execute(sa.select(table.c.owner).distinct().order_by(table.c.owner)).scalars())

    def mark_deleted(self, owner: str, turn_ids: Iterable[str], claim: str, at: datetime) -> None:
        """Remember that age deleted a memory of this claim and these turns; the first time stands."""
        rows = [{"owner": owner, "turn_id": turn, "claim": claim, "at": at} for turn in sorted({*turn_ids})]
        with translated(), self._engine.begin() as connection:
            upsert(connection, schema.markers, rows, update=())

    def markers(self, owners: Collection[str]) -> dict[str, frozenset[tuple[str, str]]]:
        """Owner → (turn id, claim) of what was deleted by age. Owners without a marker are left out."""
        table = schema.markers
        found: dict[str, set[tuple[str, str]]] = {}
        with translated(), self._engine.begin() as connection:
            for part in parts(sorted({*owners})):
                query = sa.select(table.c.owner, table.c.turn_id, table.c.claim).where(table.c.owner.in_(part))
                for owner, turn, claim in connection.execute(query):
                    found.setdefault(owner, set()).add((turn, claim))
        return {owner: frozenset(pairs) for owner, pairs in sorted(found.items())}
