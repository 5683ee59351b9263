"""What landing notes in the ledger: rows by outcome, chunks, sources and how far they were read.

Belongs here: the port of the landing ledger and the rows that cross it. Does not belong here: the stores' ports
(``base``), or the tables behind this one (``landing_ledger``).
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class ChunkCounts:
    """Rows of one chunk: ``rows`` = ``turns`` + ``behaviour`` + filtered + quarantined."""

    rows: int = 0
    turns: int = 0
    behaviour: int = 0
    filtered: dict[str, int] = field(default_factory=dict)
    quarantined: dict[str, int] = field(default_factory=dict)

    @classmethod
    def total(cls, parts: Iterable["ChunkCounts"]) -> "ChunkCounts":
        """The sum of counts."""
        rows = turns = behaviour = 0
        filtered: Counter[str] = Counter()
        quarantined: Counter[str] = Counter()
        for part in parts:
            rows, turns, behaviour = rows + part.rows, turns + part.turns, behaviour + part.behaviour
            filtered.update(part.filtered)
            quarantined.update(part.quarantined)
        return cls(rows, turns, behaviour, dict(sorted(filtered.items())), dict(sorted(quarantined.items())))


@dataclass(frozen=True)
class LandedChunk:
    """What the ledger notes of a chunk, in one transaction."""

    file_id: str
    chunk: int
    counts: ChunkCounts
    days: frozenset[str]
    owners: frozenset[tuple[str, str, int]]
    """(tenant, owner key, bucket) whose behaviour landed."""
    turn_days: tuple[tuple[str, str, str], ...]
    """(tenant, turn id, day) of every landed turn, to find one id on two days."""


@dataclass(frozen=True)
class Readmitted:
    """Rows of a landed chunk that left quarantine in one attempt. ``counts``: what became of them; its
    ``quarantined`` says how many of which reason left, its ``rows`` is 0: they were read before."""

    file_id: str
    chunk: int
    attempt: int
    positions: frozenset[int]
    counts: ChunkCounts
    days: frozenset[str]
    owners: frozenset[tuple[str, str, int]]
    turn_days: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file is landed: its ``chunks`` and ``rows``; ``before``: rows at its beginning that files landed
    which it continues, the last of them with the hash ``tail``."""

    complete: bool
    chunks: int
    rows: int
    before: int = 0
    tail: str | None = None


@dataclass(frozen=True, slots=True)
class SourceNote:
    """What was found at a source in a state. ``complete`` and ``size`` are those of the file that it was."""

    state: str
    file_id: str | None
    fault: bool = False
    complete: bool = False
    size: int = 0


@dataclass(frozen=True, slots=True)
class SourceFault:
    """A source that cannot be read to its end. ``source``: hash of its address; ``file_id``: the file that it was
    when it could be read, or that was begun; ``name`` is the hash, and ``fault`` empty, where they named an erased
    person."""

    source: str
    file_id: str | None
    name: str
    fault: str


@dataclass(frozen=True)
class Watermark:
    """How far a table was read. ``value``: of the column, as JSON; ``edge``: hashes of read rows with that value."""

    value: dict[str, str]
    edge: frozenset[str]


class LandingLedger(Protocol):
    """Remembers which chunks of which files are in the lake."""

    def begin_file(
        self,
        file_id: str,
        name: str,
        size: int,
        *,
        file_format: str = "",
        mapping: str | None = None,
        continues: str | None = None,
    ) -> Progress:
        """Note a file; of a known one the first note stands. ``continues``: a complete file that it begins with."""
        ...

    def part_file(self, file_id: str) -> None:
        """The file does not continue another after all."""
        ...

    def progress(self, file_id: str) -> Progress | None:
        """How far a file is landed; None for an unknown one."""
        ...

    def chunk_landed(self, chunk: LandedChunk, watermark: Watermark | None = None) -> None:
        """Note a chunk; mark its days and owners as touched, and days on which one id meets another version."""
        ...

    def end_file(self, file_id: str, tail: str | None = None) -> None: ...
    def reopen(self, file_id: str) -> None: ...
    def note_source(self, source: str, note: SourceNote) -> None: ...
    def source_failed(self, source: str, state: str, told: tuple[str, str] | None) -> None: ...
    def source_notes(self, sources: Collection[str]) -> dict[str, SourceNote]: ...
    def watermark(self, file_id: str) -> Watermark | None: ...
    def quarantined_chunks(self, file_id: str) -> list[int]:
        """The landed chunks of a file from which any row was ever quarantined."""
        ...

    def readmissions(self, file_id: str, chunk: int) -> list[frozenset[int]]:
        """By attempt the positions of the rows of a chunk that left quarantine."""
        ...

    def readmitted(self, admitted: Readmitted) -> None:
        """Note rows that were landed from quarantine, with all that landing touches."""
        ...
