"""One subject's visible rows of one epoch, or those of linked subjects together, with what is computed from them once.

Belongs here: the rows in presentation order, their term statistics, which of them a recall may
use, the byte form of a person, and the bounded cache of snapshots in this process. Does
not belong here: deciding where rows come from (``source``), columns and bytes of rows (``columns``, ``pack``).
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner, micros
from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.bm25 import Bm25, Mask
from memory_pipelines.recall.columns import Columns, Floats
from memory_pipelines.recall.context import Context
from memory_pipelines.recall.instants import Ints
from memory_pipelines.recall.pack import Pack, in_order
from memory_pipelines.recall.text import one_line
from memory_pipelines.stores.authority import Person, StoredMemory

MAX_SNAPSHOTS = 128
MAX_BYTES = 256 * 2**20
"""Of packs that one process holds, as far as one alone is not larger."""

Validity = Literal["current", "superseded", "upcoming"]


class Snapshot:
    """Rows newest ``occurred_at`` first, then by memory id: a row's position breaks every tie.

    ``parts``: the packs of one subject or of several, each with the position that its rows have here. The arrays are
    those of ``Columns``, of all parts."""

    def __init__(self, owner: Owner, rows: Sequence[StoredMemory]) -> None:
        """Rows of others than the owner are dropped: whatever a cache or an authority answers, they never pass."""
        own = in_order(owner, rows)
        self._hold(owner, [Pack(owner, 0, own, Columns.of(own), None, None)])

    @classmethod
    def of(cls, pack: Pack) -> "Snapshot":
        """The rows of a pack."""
        made = cls.__new__(cls)
        made._hold(pack.owner, [pack])
        return made

    @classmethod
    def joined(cls, owner: Owner, snapshots: Sequence["Snapshot"]) -> "Snapshot":
        """The rows of several subjects as one."""
        made = cls.__new__(cls)
        made._hold(owner, [pack for snapshot in snapshots for pack, _ in snapshot.parts])
        return made

    def _hold(self, owner: Owner, packs: Sequence[Pack]) -> None:
        self.owner = owner
        self.parts = tuple(zip(packs, _places(packs), strict=True))
        self.occurred: Ints = self._all("occurred")
        self.since: Ints = self._all("since")
        self.activations: Ints = self._all("activations")
        self.expires: Ints = self._all("expires")
        self.valid_from: Ints = self._all("valid_from")
        self.valid_to: Ints = self._all("valid_to")
        self.impact: Floats = self._all("impact")
        self.trust: Floats = self._all("trust")
        self.episodic: Mask = self._all("episodic")
        self.fact: Mask = self._all("fact")
        self.languages, self.spoken = self._names("languages", "language")
        self.predicates, self.predicate = self._names("predicates", "predicate")
        self.by_language: dict[str, Mask] = {name: self.spoken == i for i, name in enumerate(self.languages)}
        """Which rows are in each language."""
        counts = {name: int(mask.sum()) for name, mask in self.by_language.items()}
        self.language = "zh" if counts.get("zh", 0) > counts.get("en", 0) else "en"
        self._sentences: dict[int, str] = {}
        self.graph: tuple[tuple[str | None, ...], Adjacency | None] | None = None
        """The graph over these rows, as far as it was needed, with the version of each part's (``reach``)."""
        self.costs: dict[tuple[int, str, bool], float] = {}
        """Prompt tokens of a row's line by language and whether it is superseded, as far as they were counted."""
        self.words = Bm25([(pack.columns.words, at) for pack, at in self.parts])
        self.claims = Bm25([(pack.columns.claims, at) for pack, at in self.parts])

    def __len__(self) -> int:
        return len(self.occurred)

    @cached_property
    def rows(self) -> Sequence[StoredMemory]:
        """The memories themselves; those of a pack are read when they are asked for."""
        return (
            self.parts[0][0].rows if len(self.parts) == 1 else _JointRows([p.rows for p, _ in self.parts], *self._where)
        )

    @cached_property
    def memory_ids(self) -> Sequence[str]:
        return self._strings("memory_ids")

    @cached_property
    def by_memory(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.memory_ids)}

    @cached_property
    def by_entry(self) -> dict[str, int]:
        pairs = zip(self.memory_ids, self._strings("versions"), strict=True)
        return {f"{memory}.{version}": i for i, (memory, version) in enumerate(pairs)}

    def sentence(self, row: int) -> str:
        """The row's summary on one line, or its id."""
        found = self._sentences.get(row)
        if found is None:
            memory = self.rows[row]
            found = self._sentences[row] = one_line(memory.summary) or memory.memory_id
        return found

    @cached_property
    def context(self) -> Context:
        owned = np.zeros(len(self), dtype=np.int64)
        speakers: dict[str, list[Ints]] = {}
        for number, (pack, at) in enumerate(self.parts):
            owned[at] = number
            for name, rows in pack.columns.speakers.items():
                speakers.setdefault(name, []).append(at[rows])
        told = {name: np.sort(np.concatenate(speakers[name])) for name in sorted(speakers)}
        return Context(self.episodic, owned, self.occurred, told)

    def usable(self, as_of: datetime, suppressed: frozenset[str]) -> Mask:
        """Rows that a recall at ``as_of`` may use: occurred by then, not expired, not suppressed."""
        instant = micros(as_of)
        mask: Mask = (self.occurred <= instant) & (self.expires > instant)
        for memory_id in suppressed:
            if memory_id in self.by_memory:
                mask[self.by_memory[memory_id]] = False
        return mask

    def within(self, start: datetime, end: datetime) -> Mask:
        """Rows that occurred in [start, end)."""
        mask: Mask = (self.occurred >= micros(start)) & (self.occurred < micros(end))
        return mask

    def current_facts(self, as_of: datetime) -> Mask:
        """Facts whose validity window is open at ``as_of``."""
        instant = micros(as_of)
        mask: Mask = self.fact & (self.valid_from <= instant) & (self.valid_to > instant)
        return mask

    def _all(self, name: str) -> NDArray[Any]:
        """A column of all parts."""
        columns = [getattr(pack.columns, name) for pack, _ in self.parts]
        return self._placed(columns)

    def _placed(self, columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
        if len(columns) == 1:
            return columns[0]
        out = np.empty(sum(map(len, columns)), dtype=columns[0].dtype)
        for column, (_, at) in zip(columns, self.parts, strict=True):
            out[at] = column
        return out

    def _names(self, names: str, column: str) -> tuple[tuple[str, ...], Ints]:
        """Names of all parts, and their numbers by row."""
        packs = [pack.columns for pack, _ in self.parts]
        known = tuple(sorted({name for columns in packs for name in getattr(columns, names)}))
        number = {name: i for i, name in enumerate(known)}
        told = [np.array([number[name] for name in getattr(c, names)], dtype=np.int64) for c in packs]
        return known, self._placed([t[getattr(c, column)] for t, c in zip(told, packs, strict=True)])

    @cached_property
    def _where(self) -> tuple[Ints, Ints]:
        """Of each row its part, and its row there."""
        return (
            self._placed([np.full(len(at), number) for number, (_, at) in enumerate(self.parts)]),
            self._placed([np.arange(len(at)) for _, at in self.parts]),
        )

    def _strings(self, name: str) -> Sequence[str]:
        found = [getattr(pack.columns, name) for pack, _ in self.parts]
        if len(found) == 1:
            return found[0]  # type: ignore[no-any-return]
        return [found[part][row] for part, row in zip(*(where.tolist() for where in self._where), strict=True)]


class _JointRows(Sequence[StoredMemory]):
    """Rows of several packs in one order."""

    def __init__(self, parts: Sequence[Sequence[StoredMemory]], part: Ints, row: Ints) -> None:
        self._parts = parts
        self._part = part
        self._row = row

    def __len__(self) -> int:
        return len(self._part)

    @overload
    def __getitem__(self, index: int) -> StoredMemory: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[StoredMemory]: ...
    def __getitem__(self, index: int | slice) -> StoredMemory | Sequence[StoredMemory]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._parts[int(self._part[index])][int(self._row[index])]

    def __iter__(self) -> Iterator[StoredMemory]:
        return (self[i] for i in range(len(self)))


def _places(packs: Sequence[Pack]) -> list[Ints]:
    """The position in the whole of each pack's rows."""
    if len(packs) == 1:
        return [np.arange(len(packs[0].columns))]
    keys = [
        (-at, memory, number, row)
        for number, pack in enumerate(packs)
        for row, (at, memory) in enumerate(zip(pack.columns.occurred.tolist(), pack.columns.memory_ids, strict=True))
    ]
    places = [np.empty(len(pack.columns), dtype=np.int64) for pack in packs]
    for position, (_, _, number, row) in enumerate(sorted(keys)):
        places[number][row] = position
    return places


def as_told(memory: StoredMemory, as_of: datetime, now: datetime) -> StoredMemory:
    """The memory as it could be told at ``as_of``: of a fact that has ended since, the end was not known, and since
    its sentence tells it, the words in which the fact was said take its place."""
    if memory.valid_to is None or not as_of < memory.valid_to <= now:
        return memory
    return replace(memory, valid_to=None, summary=one_line(memory.text) or memory.summary)


def validity(memory: StoredMemory, as_of: datetime) -> Validity:
    """Where ``as_of`` lies against the memory's window [valid_from, valid_to)."""
    if memory.valid_to is not None and memory.valid_to <= as_of:
        return "superseded"
    return "upcoming" if memory.valid_from is not None and memory.valid_from > as_of else "current"


def dump_person(person: Person) -> bytes:
    """The person as JSON for a cache of its own (the owner itself is not in it)."""
    told = {"epoch": person.epoch, "graph_version": person.graph_version, "suppressed": sorted(person.suppressed)}
    return json.dumps(told, separators=(",", ":")).encode("ascii")


def load_person(owner: Owner, raw: bytes) -> Person:
    """A person from :func:`dump_person`; IntegrityError if the bytes are of another form."""
    try:
        parsed = json.loads(raw)
        return Person(owner, int(parsed["epoch"]), parsed["graph_version"], frozenset(parsed["suppressed"]))
    except (ValueError, KeyError, TypeError):
        raise IntegrityError("a cached person cannot be read") from None


@dataclass(slots=True)
class Held:
    """A snapshot that this process holds, ``size`` bytes as a pack; ``best``: there is no better one of the epoch,
    since the jobs made it or theirs cannot be read; ``copied`` is the person as last copied to the hot store."""

    epoch: int
    snapshot: Snapshot
    size: int = 0
    best: bool = False
    copied: Person | None = None


class SnapshotCache:
    """Least recently used snapshots, one per owner: a new epoch takes the place of the old one."""

    def __init__(self, size: int = MAX_SNAPSHOTS, most_bytes: int = MAX_BYTES) -> None:
        self._size = size
        self._most_bytes = most_bytes
        self._bytes = 0
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
            before = self._held.pop(owner, None)
            self._bytes -= 0 if before is None else before.size
            if len(held.snapshot):
                self._held[owner] = held
                self._bytes += held.size
            while len(self._held) > self._size or (self._bytes > self._most_bytes and len(self._held) > 1):
                self._bytes -= self._held.popitem(last=False)[1].size

    def __len__(self) -> int:
        return len(self._held)
