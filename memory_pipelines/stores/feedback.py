"""The ledger of uses as the online module writes and reads it: accesses, suppressions, and the memories behind turns.

Belongs here: their rows in the relational store. Does not belong here: what jobs make of uses (``accesses`` is theirs),
or what a use means (``recall.feedback``).
"""

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import AccessKind, Person, StoredMemory
from memory_pipelines.stores.relational import PostgresAuthority
from memory_pipelines.stores.statements import parts, translated, upsert


class UseLedger:
    """A ``FeedbackLedger`` over an engine of ``database.connect``. Raises as ``statements.translated`` says."""

    def __init__(self, engine: sa.Engine, authority: PostgresAuthority) -> None:
        self._engine = engine
        self._authority = authority

    def tell(
        self, owner: Owner, turn_ids: Collection[str], kind: AccessKind, at: datetime, until: datetime | None = None
    ) -> None:
        """Note a use, in one transaction with the suppression that follows from it."""
        turns = sorted(set(turn_ids))
        rows = [{"owner": owner.key, "turn_id": turn, "at": at, "kind": AccessKind(kind).value} for turn in turns]
        with translated(), self._engine.begin() as connection:
            upsert(connection, schema.accesses, rows, update=())
            if until is not None and turns:
                _suppress(connection, owner, _own(connection, owner, turns) or turns, until)

    def presented(self, owners: Collection[Owner], since: datetime, until: datetime) -> dict[Owner, frozenset[str]]:
        """The turns of what was presented in [since, until]."""
        table, by_key = schema.accesses, {owner.key: owner for owner in owners}
        query = sa.select(table.c.owner, table.c.turn_id).where(
            table.c.owner.in_(sorted(by_key)),
            table.c.kind == AccessKind.PRESENTED.value,
            table.c.at >= since,
            table.c.at <= until,
        )
        found: dict[Owner, set[str]] = {}
        with translated(), self._engine.begin() as connection:
            for owner, turn in connection.execute(query):
                found.setdefault(by_key[owner], set()).add(turn)
        return {owner: frozenset(turns) for owner, turns in found.items()}

    def holding(self, owner: Owner, turn_ids: Collection[str]) -> list[StoredMemory]:
        """The owner's visible memories with any of these turns."""
        return self._authority.shown(self._authority.of_turns(owner, turn_ids))

    def shown(self, owners: Collection[Owner], memory_ids: Collection[str]) -> list[StoredMemory]:
        """Those of the memories that are visible, and one of the owners'."""
        return [memory for memory in self._authority.shown(memory_ids) if memory.owner in owners]

    def person(self, owner: Owner) -> Person:
        """As the authority shows it now."""
        return self._authority.person(owner)


def _own(connection: sa.Connection, owner: Owner, turns: Collection[str]) -> list[str]:
    """Those of the turns that the owner said: what an agent answered is shared by too much."""
    slices, noted = schema.slice_turns, schema.journal
    found: set[str] = set()
    for part in parts(sorted(turns)):
        said = sa.select(slices.c.turn_id).where(slices.c.owner == owner.key, slices.c.turn_id.in_(part))
        just = sa.select(noted.c.turn_id).where(
            noted.c.owner == owner.key, noted.c.turn_id.in_(part), noted.c.subject.is_not(None), noted.c.role == "user"
        )
        found.update(connection.execute(said.union(just)).scalars())
    return sorted(found)


def _suppress(connection: sa.Connection, owner: Owner, turns: Collection[str], until: datetime) -> None:
    """Nobody sees what these turns are in until then; a suppression that lasts longer stands."""
    table = schema.suppressions
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table)
    longer = statement.on_conflict_do_update(
        index_elements=["owner", "turn_id"],
        set_={"until": statement.excluded.until},
        where=statement.excluded.until > table.c.until,
    )
    connection.execute(longer, [{"owner": owner.key, "turn_id": turn, "until": until} for turn in turns])
