"""One subject's visible rows of one epoch, or those of linked subjects together, with what is computed from them once.

Belongs here: the rows in presentation order, their term statistics, which of them a recall may
use, their byte form for the hot store, and the bounded cache of snapshots in this process. Does
not belong here: deciding where rows come from (``source``).
"""

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import MemoryType, Owner, iso
from memory_pipelines.recall import text
from memory_pipelines.recall.bm25 import Bm25, Mask
from memory_pipelines.recall.context import Context
from memory_pipelines.stores.base import Person, StoredMemory
from memory_pipelines.stores.vault import untagged

MAX_SNAPSHOTS = 128

Validity = Literal["current", "superseded", "upcoming"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NEVER = np.iinfo(np.int64).max
_TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at", "admitted_at")
_LISTS = ("entities", "slice_ids", "source_turn_ids", "stores")
_NAMES = tuple(f.name for f in fields(StoredMemory) if f.name != "owner")


class Snapshot:
    """Rows newest ``occurred_at`` first, then by memory id: a row's position breaks every tie."""

    def __init__(self, owner: Owner, rows: Sequence[StoredMemory], linked: Collection[Owner] = ()) -> None:
        """Rows of others than the owner and those ``linked`` to it are dropped: whatever a cache or an
        authority answers, they never pass."""
        self.owner = owner
        owners = (owner, *linked)
        own = (row for row in rows if row.owner in owners)
        self.rows = tuple(sorted(own, key=lambda m: (-_micros(m.occurred_at), m.memory_id)))
        self.by_memory = {row.memory_id: i for i, row in enumerate(self.rows)}
        self.by_entry = {row.entry_id: i for i, row in enumerate(self.rows)}
        self.language = _main_language(self.rows)
        spoken = np.array([row.language for row in self.rows])
        self.by_language: dict[str, Mask] = {name: spoken == name for name in sorted({*spoken.tolist()})}
        """Which rows are in each language."""
        self._is_fact = np.array([is_fact(row) for row in self.rows], dtype=np.bool_)
        self.words = Bm25([text.tokens(_searchable(row)) for row in self.rows])
        self.claims = Bm25([text.tokens(_claim(row)) if is_fact(row) else [] for row in self.rows])
        self._occurred = _instants((row.occurred_at for row in self.rows), 0)
        self._expires = _instants((row.expires_at for row in self.rows), _NEVER)
        self._valid_from = _instants((row.valid_from for row in self.rows), -_NEVER)
        self._valid_to = _instants((row.valid_to for row in self.rows), _NEVER)
        self.context = Context(self.rows, self._occurred)

    def usable(self, as_of: datetime, suppressed: frozenset[str]) -> Mask:
        """Rows that a recall at ``as_of`` may use: occurred by then, not expired, not suppressed."""
        instant = _micros(as_of)
        mask: Mask = (self._occurred <= instant) & (self._expires > instant)
        for memory_id in suppressed:
            if memory_id in self.by_memory:
                mask[self.by_memory[memory_id]] = False
        return mask

    def within(self, start: datetime, end: datetime) -> Mask:
        """Rows that occurred in [start, end)."""
        mask: Mask = (self._occurred >= _micros(start)) & (self._occurred < _micros(end))
        return mask

    def current_facts(self, as_of: datetime) -> Mask:
        """Facts whose validity window is open at ``as_of``."""
        instant = _micros(as_of)
        mask: Mask = self._is_fact & (self._valid_from <= instant) & (self._valid_to > instant)
        return mask


def is_fact(memory: StoredMemory) -> bool:
    """Whether the memory states a value of a predicate."""
    return memory.memory_type == MemoryType.SEMANTIC and bool(memory.predicate)


def validity(memory: StoredMemory, as_of: datetime) -> Validity:
    """Where ``as_of`` lies against the memory's window [valid_from, valid_to)."""
    if memory.valid_to is not None and memory.valid_to <= as_of:
        return "superseded"
    return "upcoming" if memory.valid_from is not None and memory.valid_from > as_of else "current"


def entity_name(canonical: str) -> str:
    """``carrier/sf_express`` as words: ``sf express``."""
    return canonical.rpartition("/")[2].replace("_", " ")


def _searchable(memory: StoredMemory) -> str:
    return untagged(memory.summary if memory.text in memory.summary else f"{memory.summary}\n{memory.text}")


def _claim(memory: StoredMemory) -> str:
    words = (memory.predicate.replace("_", " "), memory.value, memory.summary, *map(entity_name, memory.entities))
    return untagged("\n".join(words))


def _main_language(rows: Sequence[StoredMemory]) -> str:
    counts = Counter(row.language for row in rows)
    return "zh" if counts["zh"] > counts["en"] else "en"


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def _instants(times: Iterable[datetime | None], none: int) -> NDArray[np.int64]:
    return np.array([none if time is None else _micros(time) for time in times], dtype=np.int64)


def dump_rows(rows: Sequence[StoredMemory]) -> bytes:
    """The rows as JSON for a cache of their owner (the owner itself is not in it)."""
    return _dump({"fields": _NAMES, "rows": [[getattr(row, name) for name in _NAMES] for row in rows]})


def load_rows(owner: Owner, raw: bytes) -> list[StoredMemory]:
    """Rows from :func:`dump_rows`; IntegrityError if the bytes are of another form."""
    try:
        parsed = json.loads(raw)
        if tuple(parsed["fields"]) != _NAMES:
            raise ValueError
        return [_row(owner, dict(zip(_NAMES, values, strict=True))) for values in parsed["rows"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise IntegrityError("cached rows cannot be read") from None


def dump_person(person: Person) -> bytes:
    return _dump(
        {"epoch": person.epoch, "graph_version": person.graph_version, "suppressed": sorted(person.suppressed)}
    )


def load_person(owner: Owner, raw: bytes) -> Person:
    """A person from :func:`dump_person`; IntegrityError if the bytes are of another form."""
    try:
        parsed = json.loads(raw)
        return Person(owner, int(parsed["epoch"]), parsed["graph_version"], frozenset(parsed["suppressed"]))
    except (ValueError, KeyError, TypeError):
        raise IntegrityError("a cached person cannot be read") from None


def _dump(value: object) -> bytes:
    # Surrogates may stand in old logs: ASCII escapes carry them, UTF-8 would refuse.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=_encode).encode("ascii")


def _encode(value: object) -> str:
    if isinstance(value, datetime):
        return iso(value)
    raise TypeError(type(value).__name__)


def _row(owner: Owner, values: dict[str, object]) -> StoredMemory:
    for name in _TIMES:
        raw = values[name]
        values[name] = datetime.fromisoformat(raw) if isinstance(raw, str) else None
    for name in _LISTS:
        items = values[name]
        if not isinstance(items, list):
            raise TypeError(name)
        values[name] = tuple(items)
    return StoredMemory(owner=owner, **values)  # type: ignore[arg-type]


@dataclass(slots=True)
class Held:
    """A snapshot that this process holds; ``copied`` is the person as last copied to the hot store."""

    epoch: int
    snapshot: Snapshot
    copied: Person | None = None


class SnapshotCache:
    """Least recently used snapshots, one per owner: a new epoch takes the place of the old one."""

    def __init__(self, size: int = MAX_SNAPSHOTS) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._held: OrderedDict[Owner, Held] = OrderedDict()

    def get(self, owner: Owner, epoch: int) -> Held | None:
        with self._lock:
            held = self._held.get(owner)
            if held is None or held.epoch != epoch:
                return None
            self._held.move_to_end(owner)
            return held

    def put(self, owner: Owner, held: Held) -> None:
        """Hold a snapshot; one without rows only takes away what was held."""
        with self._lock:
            self._held.pop(owner, None)
            if held.snapshot.rows:
                self._held[owner] = held
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def __len__(self) -> int:
        return len(self._held)
