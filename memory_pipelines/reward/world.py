"""What happened around the events of everybody: timelines of behaviour and exchanges.

Belongs here: which rows count, once each; the timelines; moments in them. Does not belong here: what is read from
them (``habits``, ``features``) or expected of them (``controls``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.model import INSTANT, WINDOW, bucket_of
from memory_pipelines.reward.timeline import Floats, Ints, Timeline, codes, floats, micros
from memory_pipelines.tables import TIME

WEEK = WINDOW // INSTANT
DAY = WEEK // 7
HOUR = DAY // 24
NEAR = 2 * HOUR

FOLDS = 3
"""Parts of the people: what is expected of one part is learned from the others."""
COUNTED = ("order", "visit", "coupon", "refund", "cancel")
"""Kinds of behaviour with a timeline of their own."""
LEAVING = ("churn", "unsubscribe")
"""Kinds that end a person's life as a customer."""
CONTACT = "contact"
"""Behaviour that is a support contact whose words are not there: a call, a visit of the counter."""
IDLE = ("chit_chat", "inquiry", "transient_reasoning")
"""Categories of talk without consequence: it does not disturb an ordinary moment."""


@dataclass(frozen=True)
class World:
    """Timelines of everybody's behaviour and exchanges before ``as_of``; owners are codes below ``owners``.

    ``persons``: of each owner the code of the one that stands for the person: itself, but for subjects that identity
    links join; ``folds``: of each person a number below ``FOLDS`` that its key alone decides; ``thirds``: all
    behaviour, owner code · 3 + third of the day (UTC); ``felt``: emotion scores of exchanges."""

    owners: int
    persons: Ints
    folds: Ints
    kinds: dict[str, Timeline]
    spend: Timeline
    dwell: Timeline
    dwelt: Timeline
    bounce: Timeline
    bounced: Timeline
    anything: Timeline
    thirds: Timeline
    contacts: Timeline
    """Exchanges, and behaviour of kind ``CONTACT``."""
    spoken: Timeline
    felt: Timeline
    serious: Timeline
    """Exchanges of any category but ``IDLE``."""
    disturbed: Timeline
    """The same of all subjects of a person, under the code of the one that stands for it."""
    behaviour: pa.Table
    """Rows with ``code`` and ``at``: each event once, none at or after ``as_of``."""


@dataclass(frozen=True)
class Moments:
    """Where to look: owner codes and times, of events or of controls."""

    owners: Ints
    at: Ints

    def __len__(self) -> int:
        return len(self.at)


def unique_behaviour(behaviour: pa.Table, as_of: datetime) -> pa.Table:
    """Behaviour before ``as_of``; of rows with one owner and event id the smallest content hash counts, once."""
    rows = behaviour.filter(pc.field("occurred_at") < pa.scalar(as_of, TIME))
    rows = rows.sort_by([(name, "ascending") for name in ("owner", "event_id", "content_hash")])
    return _first_of_each(rows, ("owner", "event_id"))


def unique_events(events: pa.Table, as_of: datetime) -> pa.Table:
    """Events before ``as_of`` in order of (owner, time, id), each exchange once."""
    rows = events.filter(pc.field("occurred_at") < pa.scalar(as_of, TIME))
    rest = sorted(set(rows.column_names) - {"owner", "exchange_id"})
    rows = rows.sort_by([(name, "ascending") for name in ("owner", "exchange_id", *rest)])
    rows = _first_of_each(rows, ("owner", "exchange_id"))
    return rows.sort_by([(name, "ascending") for name in ("owner", "occurred_at", "exchange_id")])


def _first_of_each(rows: pa.Table, key: tuple[str, str]) -> pa.Table:
    if rows.num_rows < 2:
        return rows
    same = np.ones(rows.num_rows - 1, dtype=bool)
    for name in key:
        column = rows.column(name)
        same &= pc.equal(column.slice(1), column.slice(0, rows.num_rows - 1)).to_numpy()
    return rows.filter(pa.array(np.concatenate(([True], ~same))))


def build_world(
    events: pa.Table, behaviour: pa.Table, others: Mapping[str, Collection[str]] | None = None
) -> tuple[World, Moments]:
    """Timelines of ``unique_events`` and ``unique_behaviour`` rows, and the moments of the events.

    ``others``: owner → the other subjects of the same person."""
    (event_owners, owners), names = codes([events.column("owner"), behaviour.column("owner")])
    count = len(names)
    at, event_at = micros(behaviour.column("occurred_at")), micros(events.column("occurred_at"))
    kinds = behaviour.column("kind")
    kind = kinds.to_numpy()
    value, dwell = floats(behaviour.column("value")), floats(behaviour.column("dwell_seconds"))
    bounce = floats(behaviour.column("bounce"))

    def line(mask: NDArray[np.bool_], values: Floats | None = None) -> Timeline:
        return Timeline(owners[mask], at[mask], count, None if values is None else values[mask])

    visit, order = kind == "visit", kind == "order"
    dwelt, bounced = visit & ~np.isnan(dwell), visit & ~np.isnan(bounce)
    serious = ~_among(events.column("category"), IDLE)
    persons = _persons(names, others or {})
    world = World(
        owners=count,
        persons=persons,
        folds=np.array([bucket_of(name, FOLDS) for name in names], dtype=np.int64)[persons],
        kinds={name: line(kind == name) for name in COUNTED} | {"churn": line(_among(kinds, LEAVING))},
        spend=line(order & ~np.isnan(value), value),
        dwell=line(dwelt, dwell),
        dwelt=line(dwelt),
        bounce=line(bounced, bounce),
        bounced=line(bounced),
        anything=line(np.ones(len(at), dtype=bool)),
        thirds=Timeline(owners * 3 + third_of_day(at), at, count * 3),
        contacts=Timeline(
            np.concatenate([event_owners, owners[kind == CONTACT]]),
            np.concatenate([event_at, at[kind == CONTACT]]),
            count,
        ),
        spoken=Timeline(event_owners, event_at, count),
        felt=Timeline(event_owners, event_at, count, np.nan_to_num(floats(events.column("emotion_score")))),
        serious=Timeline(event_owners[serious], event_at[serious], count),
        disturbed=Timeline(persons[event_owners[serious]], event_at[serious], count),
        behaviour=behaviour.append_column("code", pa.array(owners)).append_column("at", pa.array(at)),
    )
    return world, Moments(event_owners, event_at)


def _persons(names: Sequence[str], others: Mapping[str, Collection[str]]) -> Ints:
    """Of each name the place of the one that stands for the person: the smallest of those that are among the names."""
    place = {name: number for number, name in enumerate(names)}
    first = (min(place[key] for key in (name, *others.get(name, ())) if key in place) for name in names)
    return np.fromiter(first, dtype=np.int64, count=len(names))


def _among(column: pa.ChunkedArray, values: Sequence[str]) -> NDArray[np.bool_]:
    return np.asarray(pc.is_in(column, value_set=pa.array(values)), dtype=bool)


def third_of_day(at: Ints) -> Ints:
    """0, 1 or 2: the eight hours (UTC) in which a moment lies."""
    third: Ints = at // (8 * HOUR) % 3
    return third


def orders_after(world: World, moments: Moments) -> Floats:
    """Orders in the 7 days after each moment, however many of these days are known."""
    return world.kinds["order"].total(moments.owners, moments.at, moments.at + WEEK - 1)
