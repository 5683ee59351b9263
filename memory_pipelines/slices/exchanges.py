"""Step 1, exchanges: the unit of everything later, cut by time and role only, never by a model.

Belongs here: which version of a turn counts, and where an exchange begins and ends. Does not belong
here: labels. The cut of a day depends on turns of that day and of three days to either side (``REACH``):
a reply of the day before may belong to an exchange that began on the second day before, whose first own
turn depends on a run of own turns that may have begun on the third. Save for runs of own turns, no more
than two minutes apart, that fill a whole day: those are followed back to where they begin, since the
limits count from there (``needs_earlier``).

How the limits are read, where several readings are possible: an own turn after a reply, or more than
two minutes after the own turn before it, always begins an exchange, so a cut never depends on what
lies far before. Replies beyond 20 turns or 24 hours wait for the next own turn and open its exchange,
the latest first, within its own limits; what waits longer than 24 hours belongs to nobody.
"""

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.model import (
    Owner,
    Role,
    canonical_json,
    day_of,
    day_start,
    exchange_id,
    month_of,
    stable_hash,
)
from memory_pipelines.tables import CONFLICTING_VERSION, EXCHANGES, QUARANTINE

OWN_GAP = timedelta(minutes=2)
LONGEST = timedelta(hours=24)
MOST_TURNS = 20
SILENCE = timedelta(hours=6)
REACH = 3
"""Days to either side of a day that its cut may depend on."""

_US = timedelta(microseconds=1)
_OWN_GAP, _LONGEST, _SILENCE = OWN_GAP // _US, LONGEST // _US, SILENCE // _US


@dataclass(frozen=True, slots=True)
class _Turn:
    at: int
    position: int
    turn_id: str
    subject: str | None
    own: bool
    """Spoken by a user; whether by *the* subject depends on the stream."""
    text: str
    origin: str | None
    clock: str | None
    day: str


@dataclass
class DayCounts:
    """One day's turns: landed = in exchanges + nobody + duplicates + conflicts."""

    landed: int = 0
    in_exchanges: int = 0
    nobody: int = 0
    duplicates: int = 0
    conflicts: int = 0
    exchanges: int = 0

    def as_dict(self) -> dict[str, int]:
        return dict(vars(self))


@dataclass(frozen=True)
class Cut:
    """``exchanges`` (EXCHANGES) of the asked-for days, lost versions (QUARANTINE), counts per day."""

    exchanges: pa.Table
    conflicts: pa.Table
    counts: dict[str, DayCounts]


def cut_exchanges(turns: pa.Table, days: Collection[str], buckets: int) -> Cut:
    """Cut the exchanges whose first own turn lies in ``days``.

    ``turns``: TURNS rows of ``days`` and of ``REACH`` days around each, with every version of an id
    that has several. Equal input rows in any order and any number of times give equal exchanges.
    """
    wanted = set(days)
    counts = {day: DayCounts() for day in sorted(wanted)}
    winners, lost = _resolve(turns, counts)
    exchanges: list[dict[str, Any]] = []
    used: set[tuple[str, str]] = set()
    for (tenant, conversation, session), members in winners.items():
        for stream in _streams(members, split=session is None):
            for subject in sorted(stream.own):
                owner = Owner(tenant, subject)
                for draft in _cut_stream(stream, subject):
                    used.update((tenant, t.turn_id) for t in draft.all_turns if t.day in wanted)
                    if draft.own[0].day in wanted:
                        exchanges.append(_row(draft, owner, conversation, session, buckets))
    for (tenant, _, _), members in winners.items():
        for turn in members:
            if turn.day in wanted:
                if (tenant, turn.turn_id) in used:
                    counts[turn.day].in_exchanges += 1
                else:
                    counts[turn.day].nobody += 1
    for row in exchanges:
        counts[row["day"]].exchanges += 1
    return Cut(
        pa.Table.from_pylist(exchanges, schema=EXCHANGES.schema),
        pa.Table.from_pylist([row for row in lost if row["day"] in wanted], schema=QUARANTINE.schema),
        counts,
    )


def needs_earlier(turns: pa.Table, first_day: str) -> bool:
    """Whether a run of own turns goes on from before ``first_day`` through all of it.

    Only then does a cut of later days depend on a day before ``first_day``, at which ``turns`` starts.
    """
    start = _micros(day_start(first_day))
    end = start + _LONGEST
    runs: dict[tuple[str, str, str | None, str | None], int] = defaultdict(lambda: start)
    ordered = turns.filter(pc.equal(turns["day"], first_day)).sort_by([("occurred_at", "ascending")])
    names = ("tenant", "conversation_id", "session_id", "subject", "role", "occurred_at")
    for tenant, conversation, session, subject, role, at in zip(*(ordered[n].to_pylist() for n in names), strict=True):
        key = (tenant, conversation, session, subject)
        moment = _micros(at)
        if role == Role.USER and moment - runs[key] <= _OWN_GAP:
            if moment >= end - _OWN_GAP:
                return True
            runs[key] = moment
    return False


def _resolve(
    turns: pa.Table, counts: dict[str, DayCounts]
) -> tuple[dict[tuple[str, str, str | None], list[_Turn]], list[dict[str, Any]]]:
    """Of each turn id the version that counts: the latest edit, else the smaller content hash."""
    versions: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in turns.to_pylist():
        if row["day"] in counts:
            counts[row["day"]].landed += 1
        known = versions[row["tenant"], row["turn_id"]]
        twin = known.get(row["content_hash"])
        if twin is None:
            known[row["content_hash"]] = row
            continue
        if row["day"] in counts:
            counts[row["day"]].duplicates += 1
        if _arrival(row) < _arrival(twin):  # one of equal rows, the same one in any order of reading
            known[row["content_hash"]] = row
    winners: dict[tuple[str, str, str | None], list[_Turn]] = defaultdict(list)
    lost: list[dict[str, Any]] = []
    for known in versions.values():
        best = min(known.values(), key=_precedence) if len(known) > 1 else next(iter(known.values()))
        for row in known.values():
            if row is not best:
                if row["day"] in counts:
                    counts[row["day"]].conflicts += 1
                lost.append(_conflict(row))
        winners[best["tenant"], best["conversation_id"], best["session_id"]].append(_turn(best))
    return winners, lost


def _precedence(row: dict[str, Any]) -> tuple[int, str]:
    edited = row["edited_at"]
    return (-_micros(edited) if edited is not None else 0, row["content_hash"])


def _arrival(row: dict[str, Any]) -> tuple[int, int, str]:
    edited = row["edited_at"]
    return (-_micros(edited) if edited is not None else 0, row["position"], row["file_id"])


def _conflict(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in ("turn_id", "conversation_id", "role", "text")}
    return {
        "tenant": row["tenant"],
        "file_id": f"day:{row['day']}",
        "position": row["position"],
        "reason": CONFLICTING_VERSION,
        "raw": canonical_json(kept | {"content_hash": row["content_hash"]}),
        "day": row["day"],
    }


def _turn(row: dict[str, Any]) -> _Turn:
    return _Turn(
        _micros(row["occurred_at"]),
        row["position"],
        row["turn_id"],
        row["subject"],
        row["role"] == Role.USER,
        row["text"],
        row["origin"],
        row["vector_clock"],
        row["day"],
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _US


def _streams(members: list[_Turn], *, split: bool) -> Iterator["_Stream"]:
    """Turns in order; without a session of its own a conversation is split at 6 h of silence."""
    members.sort(key=lambda t: (t.at, t.position, t.turn_id))
    start = 0
    if split:
        for i in range(1, len(members)):
            if members[i].at - members[i - 1].at >= _SILENCE:
                yield _Stream(members[start:i])
                start = i
    yield _Stream(members[start:])


class _Stream:
    """One session's turns in order, and where in it whose turns are.

    A reply to a subject is any turn that is not its own, but for answers that name another. With the places at
    hand the cut of a session of thousands of persons takes time in proportion to its turns: no person's cut walks
    through the turns of all others.
    """

    def __init__(self, turns: list[_Turn]) -> None:
        self.turns = turns
        self.own: dict[str, list[int]] = defaultdict(list)
        self._everybodys: list[int] = []
        self._naming: dict[str, list[int]] = defaultdict(list)
        for place, turn in enumerate(turns):
            if turn.own or turn.subject is None:
                self._everybodys.append(place)
            else:
                self._naming[turn.subject].append(place)
            if turn.own and turn.subject is not None:
                self.own[turn.subject].append(place)

    def first_replies(self, subject: str, after: int, before: int, most: int) -> list[int]:
        """Places of the first replies to the subject between two of its own turns that follow each other."""
        found: list[int] = []
        for places in self._replies(subject):
            start = bisect_right(places, after)
            found += places[start : min(start + most, bisect_left(places, before))]
        return sorted(found)[:most]

    def last_replies(self, subject: str, after: int, before: int, most: int) -> list[int]:
        """The same from the end, in order of time; none for ``most`` 0."""
        found: list[int] = []
        for places in self._replies(subject):
            end = bisect_left(places, before)
            found += places[max(end - most, bisect_right(places, after)) : end]
        return sorted(found)[-most:] if most else []

    def _replies(self, subject: str) -> tuple[list[int], list[int]]:
        return self._everybodys, self._naming.get(subject, [])


@dataclass
class _Draft:
    own: list[_Turn]
    others: list[_Turn]
    opening: list[_Turn]
    context: str | None

    @property
    def all_turns(self) -> list[_Turn]:
        return [*self.opening, *self.own, *self.others]


def _cut_stream(stream: _Stream, subject: str) -> Iterator[_Draft]:
    """The subject's exchanges in one session, in order."""
    turns, places = stream.turns, stream.own[subject]
    taken = -1
    """The last place that an exchange has; replies after it wait."""
    last_reply: int | None = None
    position = 0
    while position < len(places):
        first = places[position]
        before = stream.last_replies(subject, places[position - 1] if position else -1, first, 1)
        last_reply = before[0] if before else last_reply
        own = [first]
        while position + len(own) < len(places) and _continues(stream, subject, own, places[position + len(own)]):
            own.append(places[position + len(own)])
        position += len(own)
        following = places[position] if position < len(places) else len(turns)
        others = []
        for place in stream.first_replies(subject, own[-1], following, MOST_TURNS - len(own)):
            if turns[place].at - turns[first].at > _LONGEST:
                break
            others.append(place)
        end = (others or own)[-1]
        waiting = stream.last_replies(subject, taken, first, MOST_TURNS - len(own) - len(others))
        opening = [place for place in waiting if turns[end].at - turns[place].at <= _LONGEST]
        recent = last_reply is not None and turns[first].at - turns[last_reply].at <= _LONGEST
        context = turns[last_reply].turn_id if recent and last_reply is not None else None
        taken = end
        yield _Draft([turns[i] for i in own], [turns[i] for i in others], [turns[i] for i in opening], context)


def _continues(stream: _Stream, subject: str, own: Sequence[int], place: int) -> bool:
    """Own turns go on only while nobody answered and no limit is reached."""
    turns = stream.turns
    near = turns[place].at - turns[own[-1]].at <= _OWN_GAP
    fits = len(own) < MOST_TURNS and turns[place].at - turns[own[0]].at <= _LONGEST
    return near and fits and not stream.first_replies(subject, own[-1], place, 1)


def _row(draft: _Draft, owner: Owner, conversation: str, session: str | None, buckets: int) -> dict[str, Any]:
    first = draft.own[0]
    day = day_of(_EPOCH + first.at * _US)
    turns = draft.all_turns
    own_text = "\n".join(t.text for t in draft.own)
    other_text = "\n".join(t.text for t in (*draft.opening, *draft.others))
    context = draft.context if draft.context not in {t.turn_id for t in draft.opening} else None
    return {
        "tenant": owner.tenant,
        "subject": owner.subject,
        "exchange_id": exchange_id(owner, first.turn_id),
        "conversation_id": conversation,
        "session_id": session,
        "origin": first.origin,
        "started_at": _EPOCH + first.at * _US,
        "ended_at": _EPOCH + max(t.at for t in turns) * _US,
        "own_text": own_text,
        "other_text": other_text,
        "own_turn_ids": [t.turn_id for t in draft.own],
        "turn_ids": [t.turn_id for t in turns],
        "context_turn_id": context,
        "vector_clock": merged_clock(t.clock for t in turns),
        "text_hash": stable_hash(own_text),
        "day": day,
        "month": month_of(day),
        "owner": owner.key,
        "bucket": owner.bucket(buckets),
    }


def merged_clock(clocks: Iterable[str | None]) -> str | None:
    """The join of vector clocks in JSON: per replica the highest counter; None without any."""
    merged: dict[str, int] = {}
    for clock in clocks:
        if clock is not None:
            for replica, counter in json.loads(clock).items():
                merged[replica] = max(counter, merged.get(replica, 0))
    return canonical_json(merged) if merged else None
