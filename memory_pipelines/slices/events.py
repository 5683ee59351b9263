"""Which exchanges are one event, and what followed it: shared by steps 5 and 6.

Belongs here: grouping of labelled exchanges and the reading of behaviour after an event. Does not
belong here: scores (``impact``) or the slice rows (``merge``).
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.model import INSTANT, WINDOW

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

_BY_KIND = {"churn": "churned", "refund": "refunded", "cancel": "canceled_order", "order": "bought_again"}
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
    """Owner key → behaviour before ``as_of``; of events with one id the smallest content hash counts, once."""
    unique: dict[tuple[str, str], dict[str, Any]] = {}
    for row in behaviour.select(["owner", "event_id", "kind", "occurred_at", "content_hash"]).to_pylist():
        key = (row["owner"], row["event_id"])
        if key not in unique or row["content_hash"] < unique[key]["content_hash"]:
            unique[key] = row
    result: dict[str, History] = defaultdict(History)
    for row in unique.values():
        if row["occurred_at"] < as_of:
            result[row["owner"]].times.setdefault(row["kind"], []).append(row["occurred_at"])
    for history in result.values():
        for times in history.times.values():
            times.sort()
        history.first_seen = min(times[0] for times in history.times.values())
    return dict(result)


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


def feedback_after(
    event: Sequence[Labelled], items: Sequence[Labelled], history: History | None, as_of: datetime
) -> str:
    """What followed ``event`` within 7 days of its first exchange and before ``as_of``; strongest first.

    ``items`` are all exchanges of the subject in order. Behaviour counts from the event's start, words from
    the end of its last exchange. A complaint again is one that follows a complaint.
    """
    start, end = event[0].started_at, event[-1].started_at
    until = min(start + WINDOW, as_of)
    found = {"none"}
    if history is not None:
        found.update(name for kind, name in _BY_KIND.items() if history.count(kind, start, until))
    own = {item.exchange_id for item in event}
    for item in _between(items, end, until):
        if item.exchange_id in own:
            continue
        if item.intent in COMPLAINTS and event[0].intent in COMPLAINTS:
            found.add("complained_again")
        elif item.intent in THANKS:
            found.add("thanked")
    return min(found, key=FEEDBACK.index)


def _between(items: Sequence[Labelled], after: datetime, until: datetime) -> Iterable[Labelled]:
    first = bisect_right(items, after, key=lambda x: x.started_at)
    last = bisect_left(items, until, key=lambda x: x.started_at)
    return items[first:last]


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
