"""Where a person stands: the one read with which every recall begins.

Belongs here: that statement, over links, published state, suppressions, journal and the live vector collection. Does
not belong here: memories (``reads``), or what moves any of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.clock import SystemClock
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import Head, Person, VectorCollection
from memory_pipelines.stores.journal import as_mark, marked
from memory_pipelines.stores.links import devices_of
from memory_pipelines.stores.live import LIVE
from memory_pipelines.stores.statements import parts, reading, texts_in, translated

_COLLECTION = tuple(VectorCollection.__dataclass_fields__)
_MARK = ("last", "turns", "positions", "known")


class PostgresHeads:
    """Reads of where subjects stand, over an engine of ``database.connect``."""

    def __init__(self, engine: sa.Engine, now: Callable[[], datetime] | None = None) -> None:
        self._engine = engine
        self._now = now or SystemClock().now
        # several statements of one read see one state
        on_postgres = engine.dialect.name == "postgresql"
        self._snapshots = engine.execution_options(isolation_level="REPEATABLE READ") if on_postgres else engine
        self._reading = reading(engine)

    def head(self, owner: Owner, as_of: datetime) -> Head:
        """All that a recall of the subject at ``as_of`` asks first, as of one moment. One statement, but where
        something is suppressed."""
        return self._head(owner, as_of, self._now())

    def person(self, owner: Owner, as_of: datetime | None = None) -> Person:
        """The published state of a subject; an unknown one has epoch 0 and nothing visible.

        Suppressions that ended by ``as_of`` (default: now) do not count."""
        until = as_of or self._now()
        return self._head(owner, until, until).persons[0]

    def of_turns(self, owner: Owner, turn_ids: Collection[str]) -> frozenset[str]:
        """Ids of the owner's visible memories with any of these turns."""
        with translated(), self._engine.begin() as connection:
            return _memories_of_turns(connection, owner, set(turn_ids))

    def _head(self, owner: Owner, as_of: datetime, until: datetime) -> Head:
        named: dict[str, Any] = {"user": owner.key, "of_subject": owner.subject, "of_tenant": owner.tenant}
        named |= {"as_of": as_of, "until": until}
        with translated(), self._reading.connect() as connection:
            rows = connection.execute(_HEAD, named).all()
        suppressed = dict[Owner, frozenset[str]]()
        if any(row.turn_id is not None for row in rows):
            with translated(), self._snapshots.begin() as connection:
                rows = connection.execute(_HEAD, named).all()
                turns = defaultdict[Owner, set[str]](set)
                for row in rows:
                    if row.turn_id is not None:
                        turns[Owner(owner.tenant, row.subject)].add(row.turn_id)
                suppressed = {one: _memories_of_turns(connection, one, ids) for one, ids in turns.items()}
        return _of_rows(owner, rows, suppressed)


def _of_rows(owner: Owner, rows: Sequence[sa.Row[Any]], suppressed: dict[Owner, frozenset[str]]) -> Head:
    by_owner = {Owner(owner.tenant, row.subject): row for row in rows}
    devices = sorted((one for one in by_owner if one != owner), key=lambda one: one.subject)
    persons = tuple(
        Person(
            one,
            by_owner[one].epoch or 0,
            by_owner[one].graph_version,
            suppressed.get(one, frozenset()),
            by_owner[one].packed is not None,
        )
        for one in (owner, *devices)
    )
    marks = {one: as_mark(getattr(row, n) for n in _MARK) for one, row in by_owner.items() if row.turns is not None}
    live = None if rows[0].collection is None else VectorCollection(*(getattr(rows[0], n) for n in _COLLECTION))
    return Head(persons, marks, live)


def _memories_of_turns(connection: sa.Connection, owner: Owner, turns: set[str]) -> frozenset[str]:
    table, pointer = schema.memory_versions, schema.memories
    source = texts_in(connection, table.c.source_turn_ids)
    named: set[str] = set()
    for part in parts(sorted(turns)):
        rows = connection.execute(
            sa.select(table.c.memory_id)
            .join(pointer, (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version))
            .where(table.c.owner == owner.key, sa.exists().where(source.c.value.in_(part)))
        )
        named.update(rows.scalars())
    return frozenset(named)


def _statement() -> sa.Select[Any]:
    """A row for the subject and for each device of theirs, and for each turn of it that is suppressed after ``until``:
    the state that is published, the mark of its turns in the journal, and the live vector collection."""
    people, packs, hidden, live = schema.people, schema.packs, schema.suppressions, schema.collections
    user, subject, tenant = (sa.bindparam(name, type_=sa.String) for name in ("user", "of_subject", "of_tenant"))
    asked = sa.select(user.label("owner"), subject.label("subject"))
    read = sa.union_all(asked, devices_of(user, tenant)).cte("read")
    noted = marked(sa.select(read.c.owner)).subquery("noted")
    return (
        sa.select(
            read.c.subject,
            people.c.epoch,
            people.c.graph_version,
            packs.c.epoch.label("packed"),
            hidden.c.turn_id,
            *(noted.c[name] for name in _MARK),
            *(live.c[name] for name in _COLLECTION),
        )
        .select_from(read)
        .outerjoin(people, (people.c.owner == read.c.owner) & (people.c.tenant == tenant))
        .outerjoin(packs, (packs.c.owner == people.c.owner) & (packs.c.epoch == people.c.epoch) & (packs.c.size > 0))
        .outerjoin(
            hidden,
            (hidden.c.owner == people.c.owner) & (hidden.c.until > sa.bindparam("until", type_=schema.Instant)),
        )
        .outerjoin(noted, noted.c.owner == read.c.owner)
        .outerjoin(live, live.c.state == LIVE)
    )


_HEAD = _statement()
"""Built once: every recall runs it, and to build it takes longer than to run it."""
