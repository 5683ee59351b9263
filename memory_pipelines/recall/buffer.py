"""Session buffers: a person's turns that no memory holds yet, as rows that the legs can search.

Belongs here: which noted turns are shown and until when, their copy in the hot store (one slot a person, bounded). Does
not belong here: writing the journal (``session``), searching (``noted``).

The journal is the authority. A copy is good for one mark of it; with the journal out of reach, any copy is.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import MemoryType, Owner, Permanence, Role, Tier, iso, stable_hash
from memory_pipelines.recall import text
from memory_pipelines.recall.prompt import NOTED
from memory_pipelines.recall.snapshot import MAX_SNAPSHOTS, Snapshot
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.base import HotStore
from memory_pipelines.stores.session import Journal, NotedTurn

SLOT = "session"
MOST_TURNS = 64
MOST_CHARACTERS = 2_000
"""Of one turn; the journal keeps all of it."""
SHORT_TERM = timedelta(days=9)
"""How long after its session a turn is shown, as a short-term memory is."""
SILENCE = timedelta(hours=6)
"""Where the source names no session, one ends there."""
TRUST = 0.5
"""Nothing has weighed it yet."""

_AGENT = {"zh": "客服：", "en": "Agent: "}
_FIELDS = tuple(f.name for f in fields(NotedTurn) if f.name != "owner")
_TIMES = ("occurred_at", "edited_at")

Copy = tuple[str, list[NotedTurn]]
"""A mark of the journal, and the turns that it had then."""


class Buffers:
    """Reads buffers; every ``missing`` collects the roles of stores that did not answer."""

    def __init__(self, journal: Journal, hot: HotStore) -> None:
        self._journal = journal
        self._hot = hot
        self._lock = threading.Lock()
        self._copies: OrderedDict[Owner, Copy] = OrderedDict()
        self._snapshots: OrderedDict[Owner, tuple[tuple[str, ...], Snapshot]] = OrderedDict()

    def read(self, owners: Sequence[Owner], as_of: datetime, missing: set[str]) -> Snapshot | None:
        """What was said and is not consolidated, of linked owners together; None where there is nothing."""
        try:
            marks = self._journal.marks(owners, as_of)
        except StoreUnavailableError:
            missing.add("relational")
            held = {owner: self._held(owner) or self._slot(owner, missing) for owner in owners}
            copies = {owner: copy for owner, copy in held.items() if copy is not None}
        else:
            copies = self.copies(marks, as_of, missing)
        return self.joined(owners[0], {owner: copies[owner] for owner in owners if owner in copies})

    def copies(self, marks: Mapping[Owner, str], as_of: datetime, missing: set[str]) -> dict[Owner, Copy]:
        """Copies of those who have turns: at these marks or, where the journal has moved on meanwhile, at later ones.
        One that cannot be read is the last that was, or is left out."""
        found = {owner: self._copy(owner, mark, as_of, missing) for owner, mark in marks.items()}
        return {owner: copy for owner, copy in found.items() if copy is not None}

    def joined(self, first: Owner, copies: Mapping[Owner, Copy]) -> Snapshot | None:
        """The turns of all copies as rows, kept for ``first`` until a mark changes; None where there is none."""
        if not any(turns for _, turns in copies.values()):
            return None
        key = tuple(f"{owner.key}:{mark}" for owner, (mark, _) in copies.items())
        with self._lock:
            known = self._snapshots.get(first)
        if known is not None and known[0] == key:
            return known[1]
        joint = Snapshot.joined(first, [Snapshot(owner, as_rows(turns)) for owner, (_, turns) in copies.items()])
        with self._lock:
            _put(self._snapshots, first, (key, joint))
        return joint

    def refresh(self, owner: Owner, as_of: datetime, missing: set[str]) -> None:
        """Bring the hot store's copy up to date, after something was noted."""
        mark = self._journal.marks([owner], as_of).get(owner)
        if mark is not None:
            self._copy(owner, mark, as_of, missing)

    def _copy(self, owner: Owner, mark: str, as_of: datetime, missing: set[str]) -> Copy | None:
        held = self._held(owner)
        if held is None or held[0] != mark:
            held = self._slot(owner, missing)
        if held is not None and held[0] == mark:
            return self._keep(owner, held)
        try:
            latest = self._journal.latest(owner, MOST_TURNS, as_of)
        except StoreUnavailableError:
            missing.add("relational")
            return held
        fresh = (latest.mark, open_turns(latest.turns))  # its own mark: the other one may be older
        try:
            self._hot.put(owner, SLOT, _dump(fresh), SHORT_TERM // timedelta(seconds=1))
        except StoreUnavailableError:
            missing.add("hot")
        return self._keep(owner, fresh)

    def _slot(self, owner: Owner, missing: set[str]) -> Copy | None:
        try:
            raw = self._hot.get(owner, SLOT)
        except StoreUnavailableError:
            missing.add("hot")
            return None
        return None if raw is None else _load(owner, raw)

    def _held(self, owner: Owner) -> Copy | None:
        with self._lock:
            return self._copies.get(owner)

    def _keep(self, owner: Owner, copy: Copy) -> Copy:
        with self._lock:
            _put(self._copies, owner, copy)
        return copy


def _put(held: OrderedDict[Owner, Any], owner: Owner, value: object) -> None:
    held.pop(owner, None)
    held[owner] = value
    while len(held) > MAX_SNAPSHOTS:
        held.popitem(last=False)


def open_turns(turns: Iterable[NotedTurn]) -> list[NotedTurn]:
    """The turns that no slice holds, each in the version that counts (the latest edit, else the smaller hash).

    An answer is held together with the own turn before it in the same talk, one without such with the own turn that
    follows; slices say nothing of answers themselves."""
    versions: dict[str, NotedTurn] = {}
    for turn in sorted(turns, key=_precedence):
        versions.setdefault(turn.turn_id, turn)
    kept = sorted(versions.values(), key=lambda turn: (turn.occurred_at, turn.position))
    known: dict[str, bool] = {}
    for ordered, opening in ((kept, False), (reversed(kept), True)):
        last: dict[tuple[str, str | None], bool] = {}
        for turn in ordered:
            talk = (turn.conversation_id, turn.session_id)
            if turn.role == Role.USER:
                known[turn.turn_id] = last[talk] = turn.known
            elif talk in last and not (opening and turn.turn_id in known):
                known[turn.turn_id] = last[talk]
    return [turn for turn in kept if not known.get(turn.turn_id, False)]


def _precedence(turn: NotedTurn) -> tuple[bool, float, str]:
    edited = turn.edited_at
    return (edited is None, 0.0 if edited is None else -edited.timestamp(), turn.content_hash)


def as_rows(turns: Sequence[NotedTurn]) -> list[StoredMemory]:
    """Noted turns as rows beside the memories: episodic, short-term, not weighed by anything."""
    ends = _session_ends(turns)
    return [_row(turn, end) for turn, end in zip(turns, ends, strict=True)]


def _session_ends(turns: Sequence[NotedTurn]) -> list[datetime]:
    """When the session of each turn (in event-time order) ended, as far as is known."""
    ends: dict[tuple[str, str | None, int], datetime] = {}
    parts: dict[tuple[str, str | None], int] = {}
    last: dict[tuple[str, str | None], datetime] = {}
    keys = []
    for turn in turns:
        talk = (turn.conversation_id, turn.session_id)
        before = last.get(talk)
        if before is not None and turn.session_id is None and turn.occurred_at - before >= SILENCE:
            parts[talk] = parts.get(talk, 0) + 1
        last[talk] = turn.occurred_at
        key = (*talk, parts.get(talk, 0))
        ends[key] = turn.occurred_at
        keys.append(key)
    return [ends[key] for key in keys]


def _row(turn: NotedTurn, session_end: datetime) -> StoredMemory:
    language = text.language(turn.text) or "en"
    said = turn.text[:MOST_CHARACTERS]
    return StoredMemory(
        memory_id=stable_hash(NOTED, turn.owner.tenant, turn.owner.subject, turn.turn_id),
        version=NOTED,
        owner=turn.owner,
        memory_type=MemoryType.EPISODIC,
        permanence=Permanence.SHORT,
        term="short",
        summary=said if turn.role == Role.USER else f"{_AGENT[language]}{said}",
        text="",
        language=language,
        predicate="",
        value="",
        structured="{}",
        confidence=TRUST,
        trust=TRUST,
        score=0.0,
        decision_impact=0.0,
        intent="",
        entities=(),
        slice_ids=(),
        source_turn_ids=(turn.turn_id,),
        stores=(),
        occurred_at=turn.occurred_at,
        valid_from=None,
        valid_to=None,
        expires_at=session_end + SHORT_TERM,
        admitted_at=turn.occurred_at,
        tier=Tier.HOT,
        path=NOTED,
        model_set="",
    )


def _dump(copy: Copy) -> bytes:
    mark, turns = copy
    rows = [[_plain(getattr(turn, name)) for name in _FIELDS] for turn in turns]
    # Surrogates may stand in what was said: ASCII escapes carry them, UTF-8 would refuse.
    return json.dumps({"mark": mark, "fields": _FIELDS, "turns": rows}, separators=(",", ":")).encode("ascii")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    return value[:MOST_CHARACTERS] if isinstance(value, str) else value


def _load(owner: Owner, raw: bytes) -> Copy | None:
    """A copy from :func:`_dump`; None if the bytes are of another form."""
    try:
        parsed = json.loads(raw)
        if tuple(parsed["fields"]) != _FIELDS:
            return None
        return str(parsed["mark"]), [_turn(owner, dict(zip(_FIELDS, row, strict=True))) for row in parsed["turns"]]
    except (ValueError, KeyError, TypeError):
        return None


def _turn(owner: Owner, values: dict[str, Any]) -> NotedTurn:
    for name in _TIMES:
        values[name] = None if values[name] is None else datetime.fromisoformat(values[name])
    return NotedTurn(owner=owner, **values)
