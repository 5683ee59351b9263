"""Which exchanges are one event, and what followed it: shared by steps 5 and 6.

Belongs here: grouping of labelled exchanges and the reading of behaviour after an event. Does not
belong here: scores (``impact``) or the slice rows (``merge``).
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.model import INSTANT, WINDOW, canonical_json, iso, own_event_id
from memory_pipelines.tables import QUARANTINE

CONFLICTING_EVENT = "conflicting_event"
"""Reason of a behaviour event that says otherwise than the one of its id that counts."""
CONTENT = ("kind", "occurred_at", "value", "dwell_seconds", "bounce", "reference")
"""Columns of BEHAVIOUR that say what happened."""
NEAR = timedelta(hours=2)
LONGEST = timedelta(hours=24)

FEEDBACK = (
    "churned",
    "refunded",
    "canceled_order",
    "complained_again",
    "bought_again",
    "thanked",
    "none",
)
"""What followed an event within 7 days, strongest first."""

_BY_KIND = {
    "churn": "churned",
    "unsubscribe": "churned",
    "refund": "refunded",
    "cancel": "canceled_order",
    "order": "bought_again",
}
COMPLAINTS = frozenset({"logistics_complaint", "product_complaint", "service_complaint", "payment_issue"})
THANKS = frozenset({"thanks", "praise"})


@dataclass(frozen=True, slots=True)
class Labelled:
    """One exchange with its labels; ``row`` holds all columns of the four tables."""

    exchange_id: str
    started_at: datetime
    ended_at: datetime
    intent: str
    action: str
    entities: tuple[str, ...]
    row: Mapping[str, Any]


@dataclass
class History:
    """One subject's behaviour up to ``as_of``, sorted by time."""

    times: dict[str, list[datetime]] = field(default_factory=dict)
    first_seen: datetime | None = None

    def count(self, kind: str, after: datetime, until: datetime) -> int:
        """Events of ``kind`` in (after, until): a window that closes at ``as_of`` knows all that is in it."""
        times = self.times.get(kind, [])
        return max(0, bisect_left(times, until) - bisect_right(times, after))

    def before(self, kind: str, moment: datetime) -> int:
        """Events of ``kind`` strictly before the moment."""
        return bisect_left(self.times.get(kind, []), moment)


def labelled_exchanges(
    exchanges: pa.Table, intents: pa.Table, emotions: pa.Table, entities: pa.Table, as_of: datetime
) -> dict[str, list[Labelled]]:
    """Owner key → its exchanges before ``as_of`` that carry all labels, in order of (start, id).

    An exchange without labels belongs to a day that is being cut anew: it is left out, and comes with
    the commit of that day.
    """
    labels: dict[str, dict[str, Any]] = defaultdict(dict)
    seen: dict[str, int] = defaultdict(int)
    for table in (intents, emotions, entities):
        for row in table.to_pylist():
            labels[row["exchange_id"]].update(row)
            seen[row["exchange_id"]] += 1
    result: dict[str, list[Labelled]] = defaultdict(list)
    for row in exchanges.to_pylist():
        if seen[row["exchange_id"]] != 3 or row["started_at"] >= as_of:
            continue
        row = labels[row["exchange_id"]] | row
        names = tuple(sorted({e["canonical"] for e in row["entities"]}))
        item = Labelled(
            row["exchange_id"], row["started_at"], row["ended_at"], row["intent"], row["action"], names, row
        )
        result[row["owner"]].append(item)
    for items in result.values():
        items.sort(key=lambda x: (x.started_at, x.exchange_id))
    return dict(sorted(result.items()))


def histories(behaviour: pa.Table, as_of: datetime) -> dict[str, History]:
    """Owner key → behaviour before ``as_of``, each event once (see ``settled_events``)."""
    result: dict[str, History] = defaultdict(History)
    for row in settled_events(behaviour).select(["owner", "kind", "occurred_at"]).to_pylist():
        if row["occurred_at"] < as_of:
            result[row["owner"]].times.setdefault(row["kind"], []).append(row["occurred_at"])
    for history in result.values():
        for times in history.times.values():
            times.sort()
        history.first_seen = min(times[0] for times in history.times.values())
    return dict(result)


# ---- an event that is told more than once: by the same row in two files, or by rows that contradict each other


def settled_events(behaviour: pa.Table) -> pa.Table:
    """The BEHAVIOUR rows that count: of an owner's rows with one event id that with the smallest content hash, once.

    Whatever the order of the rows. Two subjects may use one event id: those are two events."""
    rows, first, _ = _versions(behaviour)
    return rows.filter(pa.array(first))


def events_of_persons(settled: pa.Table, others: Mapping[str, Collection[str]]) -> pa.Table:
    """``settled_events``, and for each owner of ``others`` those of these others once more, as the owner's.

    What two of them tell with one id and one content is one event; without ids of the log (``event_id`` is then made
    from the content) the content decides. The same id with another content is another event: ids need only be unique
    within a subject. Rows that are added keep the subject and bucket of who acted."""
    if not others:
        return settled
    concerned = pa.array(sorted({*others, *(other for of in others.values() for other in of)}))
    places = np.flatnonzero(pc.is_in(settled["owner"], value_set=concerned).to_numpy())
    rows = settled.select(["owner", "event_id", "content_hash", *CONTENT]).take(places)
    acted: dict[str, list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    for place, owner, event in zip(places.tolist(), rows["owner"].to_pylist(), _events_told(rows), strict=True):
        acted[owner].append((place, event))
    copied, owners = list[int](), list[str]()
    for owner in sorted(others):
        told = {event for _, event in acted[owner]}
        for other in sorted(others[owner]):
            for place, event in acted[other]:
                if event not in told:
                    told.add(event)
                    copied.append(place)
                    owners.append(owner)
    added = settled.take(pa.array(copied, pa.int64()))
    names = pc.binary_join_element_wise(added["owner"], added["event_id"], "/")
    for column, values in (("event_id", names), ("owner", pa.array(owners, pa.string()))):
        added = added.set_column(added.schema.get_field_index(column), settled.schema.field(column), values)
    return pa.concat_tables([settled, added])


def _events_told(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Of each row what makes two subjects' rows the same event: neither names its subject."""
    columns = (rows[name].to_pylist() for name in ("event_id", "content_hash", *CONTENT))
    for event_id, content_hash, *content in zip(*columns, strict=True):
        yield (None if event_id == own_event_id(content_hash) else event_id, *content)


def lost_events(behaviour: pa.Table) -> pa.Table:
    """The rows that say otherwise than the one that counts, each content once."""
    rows, first, new = _versions(behaviour)
    return rows.filter(pa.array(new & ~first))


def repeats(behaviour: pa.Table) -> dict[str, tuple[int, int]]:
    """Owner key → how many rows say an event again: just the same, and otherwise; only of owners that have any."""
    rows, first, new = _versions(behaviour)
    found: dict[str, tuple[int, int]] = {}
    for place in np.flatnonzero(~first).tolist():
        owner = rows["owner"][place].as_py()
        same, other = found.get(owner, (0, 0))
        found[owner] = (same, other + 1) if new[place] else (same + 1, other)
    return found


def conflict_rows(lost: pa.Table) -> pa.Table:
    """Lost versions as QUARANTINE rows, under the key of their owner."""
    rows = []
    for row in lost.to_pylist():
        subject, _, name = row["subject"].partition(":")
        said = {column: row[column] for column in ("event_id", "kind", "value", "dwell_seconds", "bounce", "reference")}
        said |= {"user_id" if subject == "u" else "device_id": name, "occurred_at": iso(row["occurred_at"])}
        rows.append(
            {
                "tenant": row["tenant"],
                "file_id": f"owner:{row['owner']}",
                "position": row["position"],
                "reason": CONFLICTING_EVENT,
                "raw": canonical_json(said | {"content_hash": row["content_hash"]}),
                "day": row["day"],
            }
        )
    return pa.Table.from_pylist(rows, schema=QUARANTINE.schema)


def _versions(behaviour: pa.Table) -> tuple[pa.Table, NDArray[np.bool_], NDArray[np.bool_]]:
    """The rows by owner, event, content and arrival; which are the first of their event, and of their content."""
    order = ("owner", "event_id", "content_hash", "position", "file_id")
    rows = behaviour.sort_by([(name, "ascending") for name in order])
    first, new = np.ones(rows.num_rows, dtype=bool), np.ones(rows.num_rows, dtype=bool)
    if rows.num_rows > 1:
        owner, event, content = (_differs(rows[name]) for name in order[:3])
        first[1:] = owner | event
        new[1:] = first[1:] | content
    return rows, first, new


def _differs(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Whether each value but the first is another one than that before."""
    return np.asarray(pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)), dtype=bool)


def group_events(items: Sequence[Labelled]) -> list[list[Labelled]]:
    """Exchanges of one subject → events: same intent, action and entities, each < 2 h after the one before.

    An event lasts 24 h at most. Exchanges of other kinds in between do not end it. ``items`` are in order.
    """
    open_events: dict[tuple[str, str, tuple[str, ...]], list[Labelled]] = {}
    events: list[list[Labelled]] = []
    for item in items:
        key = (item.intent, item.action, item.entities)
        event = open_events.get(key)
        if (
            event is not None
            and item.started_at - event[-1].started_at < NEAR
            and item.started_at - event[0].started_at <= LONGEST
        ):
            event.append(item)
        else:
            open_events[key] = [item]
            events.append(open_events[key])
    return events


@dataclass(frozen=True)
class Words:
    """When a subject complained and gave thanks, in order of time."""

    complaints: list[datetime]
    thanks: list[datetime]


def words_of(items: Sequence[Labelled]) -> Words:
    """The words that are feedback, of all exchanges of a subject in order."""
    return Words(
        [item.started_at for item in items if item.intent in COMPLAINTS],
        [item.started_at for item in items if item.intent in THANKS],
    )


def feedback_after(event: Sequence[Labelled], words: Words, history: History | None, as_of: datetime) -> str:
    """What followed ``event`` within 7 days of its first exchange and before ``as_of``; strongest first.

    Behaviour counts from the event's start, words from the start of its last exchange. A complaint again is one
    that follows a complaint.
    """
    start, end = event[0].started_at, event[-1].started_at
    until = min(start + WINDOW, as_of)
    found = {"none"}
    if history is not None:
        found.update(name for kind, name in _BY_KIND.items() if history.count(kind, start, until))
    if event[0].intent in COMPLAINTS and _within(words.complaints, end, until):
        found.add("complained_again")
    if _within(words.thanks, end, until):
        found.add("thanked")
    return min(found, key=FEEDBACK.index)


def _within(times: Sequence[datetime], after: datetime, until: datetime) -> bool:
    return bisect_right(times, after) < bisect_left(times, until)


def next_change(starts: Iterable[datetime], ahead: Iterable[datetime], as_of: datetime) -> datetime | None:
    """When time alone changes what followed a subject's events; None if it never does.

    ``starts``: of its exchanges. Either a 7-day window closes, or behaviour of ``ahead``, which was landed and
    is not before ``as_of`` yet, comes to pass in an open window.
    """
    closes = [start + WINDOW for start in starts if start + WINDOW > as_of]
    if not closes:
        return None
    passed = [at + INSTANT for at in ahead if as_of <= at < max(closes)]  # only what lies before as_of is known
    return min([*closes, *passed])
