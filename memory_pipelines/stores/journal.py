"""The journal in the relational store: every turn that was noted, until it is landed and old.

Belongs here: its rows. Does not belong here: what a buffer shows of them (``recall.buffer``), landing them
(``landing.journal``).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.schema import Instant
from memory_pipelines.stores.session import MarkedTurns, NotedTurn
from memory_pipelines.stores.statements import reading, translated

TOGETHER = 100
"""Turns of one statement."""
PAGE = 2_000
"""Rows that landing reads at a time, each page in a transaction of its own."""

_TABLE = schema.journal
_FIELDS = tuple(f.name for f in fields(NotedTurn) if f.name not in ("owner", "position", "known"))


_SLICES, _SUPPRESSIONS = schema.slice_turns, schema.suppressions
_KNOWN = sa.exists().where(
    _SLICES.c.owner == _TABLE.c.owner, _SLICES.c.turn_id == _TABLE.c.turn_id, _SLICES.c.current
)  # fmt: skip
"""Whether the turn is one of the owner's own in a slice that is current."""
_SUPPRESSED = sa.exists().where(
    _SUPPRESSIONS.c.owner == _TABLE.c.owner,
    _SUPPRESSIONS.c.turn_id == _TABLE.c.turn_id,
    _SUPPRESSIONS.c.until > sa.bindparam("as_of", type_=Instant),
)


_NUMBERS = {
    "last": sa.func.max(_TABLE.c.position),
    "turns": sa.func.count(),
    "positions": sa.func.sum(_TABLE.c.position),
    "known_turns": sa.func.sum(sa.case((_KNOWN, 1), else_=0)),
}
"""What changes whenever a turn comes, goes, is suppressed or is taken over by a slice."""
MARK = tuple(_NUMBERS)


def marked(owners: Any) -> sa.Select[Any]:
    """Of those of the owners (what ``IN`` takes) who have turns, the numbers of ``as_mark`` under the names ``MARK``.
    Suppressions that ended by the parameter ``as_of`` do not count."""
    numbers = (number.label(name) for name, number in _NUMBERS.items())
    return sa.select(_TABLE.c.owner, *numbers).where(_TABLE.c.owner.in_(owners), ~_SUPPRESSED).group_by(_TABLE.c.owner)


def as_mark(numbers: Iterable[Any]) -> str:
    """The mark of an owner whose turns have these numbers."""
    return ":".join(str(int(n)) for n in numbers)


_MARKS = marked(sa.bindparam("owners", expanding=True))
_LATEST = (
    sa.select(_TABLE, _KNOWN.label("known"), *(number.over().label(name) for name, number in _NUMBERS.items()))
    .where(_TABLE.c.owner == sa.bindparam("owner"), _TABLE.c.tenant == sa.bindparam("tenant"), ~_SUPPRESSED)
    .order_by(_TABLE.c.occurred_at.desc(), _TABLE.c.position.desc())
    .limit(sa.bindparam("most"))
)


class TurnJournal:
    """A ``Journal`` over an engine of ``database.connect``. Raises as ``statements.translated`` says."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._reading = reading(engine)

    def append(self, turns: Sequence[NotedTurn], at: datetime) -> int:
        """Write turns, all or none; returns how many are new."""
        if not turns:
            return 0
        stones = schema.tombstones
        keys = sorted({turn.owner.key for turn in turns})
        with translated(), self._engine.begin() as connection:
            found = connection.execute(sa.select(stones.c.owner, stones.c.before).where(stones.c.owner.in_(keys)))
            before = {row.owner: row.before for row in found}
            rows = [_row(t, at) for t in turns if t.owner.key not in before or t.occurred_at >= before[t.owner.key]]
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            new = 0
            for start in range(0, len(rows), TOGETHER):
                insert = dialect.insert(_TABLE).values(rows[start : start + TOGETHER]).on_conflict_do_nothing()
                new += len(connection.execute(insert.returning(_TABLE.c.position)).all())
            return new

    def marks(self, owners: Collection[Owner], as_of: datetime) -> dict[Owner, str]:
        """Owner → mark, in one statement."""
        by_key = {owner.key: owner for owner in owners}
        with translated(), self._reading.connect() as connection:
            rows = connection.execute(_MARKS, {"owners": sorted(by_key), "as_of": as_of}).all()
        return {by_key[row[0]]: as_mark(row[1:]) for row in rows}

    def latest(self, owner: Owner, most: int, as_of: datetime) -> MarkedTurns:
        """The latest ``most`` of the owner's turns, and the mark of all, in one statement."""
        of = {"owner": owner.key, "tenant": owner.tenant, "most": most, "as_of": as_of}
        with translated(), self._reading.connect() as connection:
            rows = connection.execute(_LATEST, of).mappings().all()
        mark = as_mark(rows[0][name] for name in MARK) if rows else ""
        return MarkedTurns(mark, [_noted(row) for row in reversed(rows)])

    def end(self) -> int:
        """The highest position, once all who are writing have ended: positions do not appear in commit order."""
        with translated(), self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text(f"LOCK TABLE {_TABLE.name} IN SHARE MODE"))
            return int(connection.execute(sa.select(sa.func.max(_TABLE.c.position))).scalar() or 0)

    def rows(self, after: int, end: int) -> Iterator[NotedTurn]:
        """The rows with positions in (after, end], page by page."""
        query = sa.select(_TABLE, sa.false().label("known")).order_by(_TABLE.c.position).limit(PAGE)
        while True:
            with translated(), self._engine.begin() as connection:
                within = query.where(_TABLE.c.position > after, _TABLE.c.position <= end)
                page = connection.execute(within).mappings().all()
            yield from map(_noted, page)
            if len(page) < PAGE:
                return
            after = page[-1]["position"]

    def trim(self, end: int, before: datetime) -> int:
        """Remove rows up to a position that occurred before an instant."""
        old = _TABLE.delete().where(_TABLE.c.position <= end, _TABLE.c.occurred_at < before)
        with translated(), self._engine.begin() as connection:
            return connection.execute(old).rowcount


def _row(turn: NotedTurn, at: datetime) -> dict[str, Any]:
    named = {"owner": turn.owner.key, "tenant": turn.owner.tenant, "of_subject": turn.owner.subject, "noted_at": at}
    return named | {name: getattr(turn, name) for name in _FIELDS}


def _noted(row: sa.RowMapping) -> NotedTurn:
    values = {name: row[name] for name in (*_FIELDS, "position")}
    return NotedTurn(owner=Owner(row["tenant"], row["of_subject"]), known=bool(row["known"]), **values)
