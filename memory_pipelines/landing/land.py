"""Land a source: chunk by chunk into the lake, each chunk once, resumable where it was killed.

Belongs here: the order of writes that makes landing safe to repeat, and which rows of a source are new. Does not
belong here: formats (``readers``), row types (``normalise``), the rules of step 1 (passed in as ``clean``). A chunk
replaces what a killed attempt left of it, then the ledger notes it together with the days and
subjects it touched, in one transaction.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from memory_pipelines.errors import InputError
from memory_pipelines.landing.mapping import BrokenMappingError, Mapping
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.readers import RawRow, detect_format, read_rows
from memory_pipelines.landing.sources import Source, local_source, unreadable
from memory_pipelines.model import stable_hash, touched_days
from memory_pipelines.shown import shown
from memory_pipelines.stores.base import Lake, Replace
from memory_pipelines.stores.notes import ChunkCounts, LandedChunk, LandingLedger, Progress, SourceNote, Watermark
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS, TableSpec

CHUNK_ROWS = 50_000
CHUNK_CHARACTERS = 32 << 20
"""A chunk ends with the row that reaches one of the two: long messages do not make it large."""

Clean = Callable[[pa.Table], tuple[pa.Table, dict[str, int]]]
Rows = dict[str, list[dict[str, Any]]]
Forget = Callable[[Rows], tuple[Rows, int]]
Normalise = Callable[[RawRow], tuple[str, dict[str, Any]]]
"""A row's kind (``turn``, ``behaviour``, ``quarantine``) and the row of the table of that kind."""
SEEKING = frozenset({"parquet", "zip"})
"""Formats that are not read from front to back."""
ERASED = "erased"
"""The rule under which rows of erased persons are counted."""


class NoReaderError(InputError):
    """What a source holds is no log that any reader is for."""


@dataclass(frozen=True)
class MappingFile:
    """A column mapping and the path under which it is found again."""

    mapping: Mapping
    path: str


@dataclass(frozen=True)
class Written:
    """What a chunk came to: counts, touched days, owners whose behaviour landed, (tenant, turn id, day) of turns."""

    counts: ChunkCounts
    days: frozenset[str]
    owners: frozenset[tuple[str, str, int]]
    turn_days: tuple[tuple[str, str, str], ...]


@dataclass
class Lander:
    """Rows of one source on their way into the lake.

    ``forget`` takes rows out of a chunk that may not be landed, and counts them.
    """

    lake: Lake
    clean: Clean
    normalise: Normalise
    forget: Forget | None = None

    def sort(self, rows: Iterable[RawRow]) -> tuple[Rows, int]:
        """Rows by kind (``turn``, ``behaviour``, ``quarantine``), and how many of them are forgotten.

        Also to be called for rows that are landed already: what is equal goes on counting."""
        by_kind: Rows = {"turn": [], "behaviour": [], "quarantine": []}
        for raw in rows:
            kind, row = self.normalise(raw)
            by_kind[kind].append(row)
        return (by_kind, 0) if self.forget is None else self.forget(by_kind)

    def write(
        self, chunk_id: str, rows: int, by_kind: Rows, erased: int, *, resumed: bool, broken: bool = True
    ) -> Written:
        """Put sorted rows into the lake under a chunk's id. ``resumed``: a killed attempt may have left rows of it.
        Without ``broken`` those of quarantine are left out."""
        turns, filtered = self.clean(_table(TURNS, by_kind["turn"], chunk_id))
        if erased:
            filtered = filtered | {ERASED: erased}
        behaviour = _table(BEHAVIOUR, by_kind["behaviour"], chunk_id)
        tables = [(TURNS, turns), (BEHAVIOUR, behaviour)]
        reasons: dict[str, int] = {}
        if broken:
            tables.append((QUARANTINE, _table(QUARANTINE, by_kind["quarantine"], chunk_id)))
            for row in by_kind["quarantine"]:
                reasons[row["reason"]] = reasons.get(row["reason"], 0) + 1
        replace = [Replace("file_id", (chunk_id,))]
        for spec, table in tables:
            if table.num_rows or (resumed and _left_over(self.lake, spec, chunk_id)):
                self.lake.write(spec, table, replace)
        counts = ChunkCounts(rows, turns.num_rows, behaviour.num_rows, filtered, reasons)
        owners = frozenset((r["tenant"], r["owner"], r["bucket"]) for r in by_kind["behaviour"])
        ids = zip(*(turns[name].to_pylist() for name in ("tenant", "turn_id", "day")), strict=True)
        return Written(counts, touched_days(turns["day"].unique().to_pylist()), owners, tuple(ids))


def fault_state(state: str, mapping: Mapping | BrokenMappingError | None) -> str:
    """The state of a source that cannot be read with this mapping: another one may cure it."""
    return state if mapping is None else f"{state}:{mapping.mark}"


def is_stray(source: Source, error: InputError) -> bool:
    """Whether nothing is wrong: a file was found in a folder, and it is no log."""
    return isinstance(error, NoReaderError) and not source.asked


def note_fault(ledger: LandingLedger, source: Source, state: str, error: InputError) -> None:
    """Note that a source cannot be read as it is in ``state`` (``fault_state``): it is not tried again until that
    changes."""
    told = None if is_stray(source, error) else (source.name, shown(str(error)))
    ledger.source_failed(source.key, state, told)


def chunk_key(file_id: str, chunk: int) -> str:
    """Under which id the lake's rows name a chunk."""
    return f"{file_id}:{chunk:06d}"


def land_file(
    source: Source | Path,
    *,
    lake: Lake,
    ledger: LandingLedger,
    clean: Clean,
    default_tenant: str,
    buckets: int,
    landed_at: datetime,
    chunk_rows: int = CHUNK_ROWS,
    forget: Callable[[], Forget] | None = None,
    mapping: MappingFile | None = None,
) -> ChunkCounts | None:
    """Land one file; None if its content was landed before. Returns the counts of the chunks landed now.

    Of a file that grew since it was landed whole, the new rows. ``forget`` makes the filter of one file's rows.
    Raises InputError if the file cannot be read (to its end); what was read before is landed, and the next call goes
    on from there.
    """
    source = local_source(source) if isinstance(source, Path) else source
    state = source.state()
    note = ledger.source_notes([source.key]).get(source.key)
    if note is not None and note.state == state and note.complete and not note.fault and source.size is None:
        return None
    landing = _Landing(
        ledger,
        lambda file_id: Lander(
            lake, clean, Normaliser(file_id, default_tenant, buckets, landed_at), None if forget is None else forget()
        ),
        mapping,
        chunk_rows,
    )
    try:
        return landing.land(source, state, note)
    except InputError as error:
        note_fault(ledger, source, fault_state(state, None if mapping is None else mapping.mapping), error)
        raise


@dataclass(frozen=True)
class _Landing:
    ledger: LandingLedger
    lander: Callable[[str], Lander]
    mapping: MappingFile | None
    chunk_rows: int

    def land(self, source: Source, state: str, note: SourceNote | None) -> ChunkCounts | None:
        file_format = source_format(source, self.mapping)
        began = note if note is not None and source.grows and note.file_id is not None else None
        digest = source.digest(0 if began is None else began.size)
        continues = None
        parts: list[ChunkCounts] = []
        if began is not None and digest.begins == began.file_id and digest.size > began.size:
            continues = began.file_id
            if not began.complete:  # it grew after a kill: first what there was then
                parts += self._file(source.first(began.size), str(began.file_id), began.size, file_format, None)
        if source.grows:
            source = source.first(digest.size)  # what is being added now has another content's name
        known = self.ledger.progress(digest.file_id)
        if known is None or not known.complete:
            self.ledger.note_source(source.key, SourceNote(state, digest.file_id))
            parts += self._file(source, digest.file_id, digest.size, file_format, continues)
        elif not parts:
            self.ledger.note_source(source.key, SourceNote(state, digest.file_id))
            return None
        if not source.grows and source.state() != state:
            raise InputError(f"{source.name} was changed while it was read; import it again")
        self.ledger.note_source(source.key, SourceNote(state, digest.file_id))
        return ChunkCounts.total(parts)

    def _file(
        self, source: Source, file_id: str, size: int, file_format: str, continues: str | None
    ) -> list[ChunkCounts]:
        path = None if self.mapping is None else self.mapping.path
        progress = self.ledger.begin_file(
            file_id, source.name, size, file_format=file_format, mapping=path, continues=continues
        )  # fmt: skip
        try:
            return self._rows(source, file_id, file_format, progress)
        except _Parted:
            self.ledger.part_file(file_id)
            return self._rows(source, file_id, file_format, replace(progress, before=0, tail=None))

    def _rows(self, source: Source, file_id: str, file_format: str, progress: Progress) -> list[ChunkCounts]:
        """Land the rows of a file that are not landed yet."""
        lander, landed = self.lander(file_id), list[ChunkCounts]()
        with Stream(source, file_format, self.mapping) as stream:
            for group in _groups(stream, progress.before, self.chunk_rows):
                lander.sort(group)
            if stream.last is not None and progress.before and row_hash(stream.last) != progress.tail:
                raise _Parted
            for group in _groups(stream, progress.rows, self.chunk_rows):
                lander.sort(group)
            number = progress.chunks
            while rows := take(stream, self.chunk_rows):
                landed.append(land_chunk(self.ledger, lander, file_id, number, rows, resumed=number == progress.chunks))
                number += 1
            if stream.fault is not None:
                raise stream.fault
        self.ledger.end_file(file_id, None if stream.last is None else row_hash(stream.last))
        return landed


def source_format(source: Source, mapping: MappingFile | None) -> str:
    """The format of a source, as its mapping says or as it looks. Raises NoReaderError for what no reader is for,
    InputError for what cannot be read."""
    given = None if mapping is None else mapping.mapping.format
    head = source.head()
    try:
        file_format = given or detect_format(source.file_name, head)
    except InputError as error:
        raise NoReaderError(str(_named(source, error))) from None
    if file_format in SEEKING and not head:  # else it were known wherever any empty file is
        raise InputError(f"{source.name} is empty: that is no {file_format} file")
    if file_format in SEEKING and not source.seekable:
        raise InputError(f"{source.name}: a {file_format} file is compressed inside; unpack it")
    return file_format


def _named(source: Source, error: InputError) -> InputError:
    return error if source.name in str(error) else InputError(f"{source.name}: {error}")


class _Parted(Exception):
    """What a file begins with reads otherwise now that more follows."""


class Stream:
    """The rows of a source. It ends where the source cannot be read on: why is kept as ``fault``, so that the rows
    before can be landed first. ``last`` is the latest row."""

    def __init__(self, source: Source, file_format: str, mapping: MappingFile | None) -> None:
        self.fault: Exception | None = None
        self.last: RawRow | None = None
        self._rows = self._read(source, file_format, mapping)

    def _read(self, source: Source, file_format: str, mapping: MappingFile | None) -> Generator[RawRow, None, None]:
        stream = None
        try:
            with source.open() as stream:
                used = None if mapping is None else mapping.mapping
                yield from read_rows(stream, file_format, used, name=source.inner_name)
        except (InputError, OSError) as error:
            cause = getattr(getattr(stream, "raw", None), "error", None) or error
            self.fault = unreadable(source.name, cause) if isinstance(cause, OSError) else _named(source, cause)

    def __iter__(self) -> Iterator[RawRow]:
        return self

    def __next__(self) -> RawRow:
        self.last = next(self._rows)
        return self.last

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exception: object) -> None:
        self._rows.close()


def _groups(rows: Iterator[RawRow], count: int, size: int) -> Iterator[list[RawRow]]:
    """The next ``count`` rows, in runs."""
    while count > 0 and (group := take(rows, min(size, count))):
        count -= len(group)
        yield group


def take(rows: Iterator[RawRow], count: int) -> list[RawRow]:
    """The next rows: at most ``count``, and no more once they hold ``CHUNK_CHARACTERS``."""
    taken, size = list[RawRow](), 0
    for row in islice(rows, count):
        taken.append(row)
        size += len(row.raw)
        if size >= CHUNK_CHARACTERS:
            break
    return taken


def land_chunk(
    ledger: LandingLedger,
    lander: Lander,
    file_id: str,
    number: int,
    rows: list[RawRow],
    *,
    resumed: bool,
    watermark: Watermark | None = None,
) -> ChunkCounts:
    by_kind, erased = lander.sort(rows)
    done = lander.write(chunk_key(file_id, number), len(rows), by_kind, erased, resumed=resumed)
    ledger.chunk_landed(
        LandedChunk(file_id, number, done.counts, done.days, done.owners, done.turn_days), watermark
    )  # fmt: skip
    return done.counts


def row_hash(row: RawRow) -> str:
    """Tells a row of a file from what else might stand in its place."""
    return stable_hash(row.position, row.raw, row.error)


def _left_over(lake: Lake, spec: TableSpec, chunk_id: str) -> bool:
    """Whether a killed attempt left rows: one that came too early found future times, say."""
    return bool(lake.read(spec, columns=["file_id"], where=[("file_id", "=", chunk_id)]).num_rows)


def _table(spec: TableSpec, rows: list[dict[str, Any]], chunk_id: str) -> pa.Table:
    for row in rows:
        row["file_id"] = chunk_id
    return pa.Table.from_pylist(rows, schema=spec.schema)
