"""Where a person stands: the one read with which every recall begins.

Belongs here: that statement, over links, published state, suppressions, journal and the live vector collection. Does
not belong here: memories (``reads``), or what moves any of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.clock import SystemClock
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import Head, Person, VectorCollection
from memory_pipelines.stores.journal import MARK, as_mark, marked
from memory_pipelines.stores.links import devices_of
from memory_pipelines.stores.live import LIVE
from memory_pipelines.stores.statements import among, parts, reading, texts_in, translated

_COLLECTION = tuple(VectorCollection.__dataclass_fields__)


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
        rows, suppressed = self._rows(_HEAD, owner, {"until": self._now(), "as_of": as_of})
        by_owner = {_owner(owner, row): row for row in rows}
        devices = sorted((one for one in by_owner if one != owner), key=lambda one: one.subject)
        persons = tuple(_person(one, by_owner[one], suppressed) for one in (owner, *devices))
        marks = {one: as_mark(getattr(row, n) for n in MARK) for one, row in by_owner.items() if row.turns is not None}
        live = None if rows[0].collection is None else VectorCollection(*(getattr(rows[0], n) for n in _COLLECTION))
        return Head(persons, marks, live)

    def person(self, owner: Owner, as_of: datetime | None = None) -> Person:
        """The published state of a subject; an unknown one has epoch 0 and nothing visible.

        Suppressions that ended by ``as_of`` (default: now) do not count."""
        rows, suppressed = self._rows(_PERSON, owner, {"until": as_of or self._now()})
        return _person(owner, rows[0], suppressed)

    def of_turns(self, owner: Owner, turn_ids: Collection[str]) -> frozenset[str]:
        """Ids of the owner's visible memories with any of these turns."""
        with translated(), self._engine.begin() as connection:
            return _memories_of_turns(connection, {owner.key: set(turn_ids)}).get(owner.key, frozenset())

    def _rows(
        self, statement: sa.Select[Any], owner: Owner, named: Mapping[str, datetime]
    ) -> tuple[Sequence[sa.Row[Any]], dict[str, frozenset[str]]]:
        """The statement's rows, and by owner key the memories whose turns they name as suppressed."""
        parameters = {"user": owner.key, "of_tenant": owner.tenant, **named}
        with translated(), self._reading.connect() as connection:
            rows = connection.execute(statement, parameters).all()
        if all(row.turn_id is None for row in rows):
            return rows, {}
        with translated(), self._snapshots.begin() as connection:
            rows = connection.execute(statement, parameters).all()
            turns = defaultdict[str, set[str]](set)
            for row in rows:
                if row.turn_id is not None:
                    turns[row.owner].add(row.turn_id)
            return rows, _memories_of_turns(connection, turns)


def _owner(asked: Owner, row: sa.Row[Any]) -> Owner:
    return asked if row.subject is None else Owner(asked.tenant, row.subject)


def _person(owner: Owner, row: sa.Row[Any], suppressed: Mapping[str, frozenset[str]]) -> Person:
    hidden = suppressed.get(owner.key, frozenset())
    return Person(owner, row.epoch or 0, row.graph_version, hidden, row.packed is not None)


def _memories_of_turns(connection: sa.Connection, turns: Mapping[str, Collection[str]]) -> dict[str, frozenset[str]]:
    """Owner key → ids of the owner's visible memories with any of their turns, of those who have such."""
    table, pointer = schema.memory_versions, schema.memories
    source = texts_in(connection, table.c.source_turn_ids)
    visible = (pointer.c.memory_id == table.c.memory_id) & (pointer.c.version == table.c.version)
    rest_on = sa.select(table.c.owner, table.c.memory_id, source.c.value)
    rest_on = rest_on.select_from(table.join(pointer, visible).join(source, sa.true()))
    found = defaultdict[str, set[str]](set)
    for part in parts(sorted(set[str]().union(*turns.values()))):
        these = among(connection, table.c.owner, sorted(turns)), among(connection, source.c.value, part)
        for row in connection.execute(rest_on.where(*these)):
            if row.value in turns[row.owner]:
                found[row.owner].add(row.memory_id)
    return {owner: frozenset(memories) for owner, memories in found.items()}


def _published(read: sa.FromClause, tenant: sa.ColumnElement[str]) -> sa.Select[Any]:
    """A row for each owner that is read, and for each turn of theirs that is suppressed after ``until``: the state that
    is published."""
    people, packs, hidden = schema.people, schema.packs, schema.suppressions
    until = sa.bindparam("until", type_=schema.Instant)
    return (
        sa.select(*read.c, people.c.epoch, people.c.graph_version, packs.c.epoch.label("packed"), hidden.c.turn_id)
        .select_from(read)
        .outerjoin(people, (people.c.owner == read.c.owner) & (people.c.tenant == tenant))
        .outerjoin(packs, (packs.c.owner == people.c.owner) & (packs.c.epoch == people.c.epoch) & (packs.c.size > 0))
        .outerjoin(hidden, (hidden.c.owner == people.c.owner) & (hidden.c.until > until))
    )


def _statements() -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Of the head: the subject (whose name is not sent: null) and its devices, with the marks of their turns in the
    journal, and the live vector collection. Of a person: the subject alone."""
    user, tenant = (sa.bindparam(name, type_=sa.String) for name in ("user", "of_tenant"))
    asked = sa.select(user.label("owner"), sa.cast(sa.null(), sa.String).label("subject"))
    read = sa.union_all(asked, devices_of(user, tenant)).cte("read")
    noted = marked(sa.select(read.c.owner)).subquery("noted")
    live = schema.collections
    head = (
        _published(read, tenant).outerjoin(noted, noted.c.owner == read.c.owner).outerjoin(live, live.c.state == LIVE)
    )
    head = head.add_columns(*(noted.c[name] for name in MARK), *(live.c[name] for name in _COLLECTION))
    return head, _published(asked.subquery("read"), tenant)


_HEAD, _PERSON = _statements()
"""Built once: every recall runs them, and to build one takes longer than to run it."""
