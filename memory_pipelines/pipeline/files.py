"""Landing over the stores: which sources, with which mapping, and what became of them.

Belongs here: what joins sources, settings, ledger and tombstones. Does not belong here: formats and rows
(``landing``), or how much a row is worth.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from memory_pipelines.erasure.tombstones import Forgotten, load_tombstones
from memory_pipelines.errors import InputError
from memory_pipelines.landing import journal, sources
from memory_pipelines.landing.land import (
    CHUNK_ROWS,
    Lander,
    MappingFile,
    fault_state,
    is_stray,
    land_chunk,
    land_file,
    note_fault,
)
from memory_pipelines.landing.mapping import BrokenMappingError, Mapping, find_mapping, load_mapping
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.preview import Preview, preview
from memory_pipelines.landing.sources import NoSourceError, Source
from memory_pipelines.landing.sql import FORMAT as SQL
from memory_pipelines.landing.sql import SqlTable
from memory_pipelines.pipeline.lock import lands_alone, uses_lake
from memory_pipelines.settings import Settings
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.stores.landing_ledger import is_complete, source_notes
from memory_pipelines.stores.notes import ChunkCounts
from memory_pipelines.wiring import Platform

if TYPE_CHECKING:
    from sqlalchemy import Engine

Progress = Callable[[str], None]


@dataclass(frozen=True)
class LandedFile:
    """``status``: landed, known (its content was landed before), no log (found in a folder, and no reader is for it)
    or unreadable (see ``error``)."""

    name: str
    status: str
    counts: ChunkCounts = field(default_factory=ChunkCounts)
    error: str = ""


def inbox(platform: Platform) -> list[Source]:
    """The sources in the inbox, a folder or an ``s3://`` prefix; none while there is nothing.

    Raises InputError where an object store refuses to tell, StoreUnavailableError."""
    settings = platform.settings
    if settings.inbox.startswith(sources.S3):
        try:
            return find(platform.given, [settings.inbox])
        except NoSourceError:
            return []
    return find(platform.given, [settings.inbox_path]) if settings.inbox_path.is_dir() else []


def find(given: Settings, places: Sequence[str | Path]) -> list[Source]:
    """The sources that paths, folders, globs and ``s3://`` addresses name. Raises InputError where one names none.

    ``given``: settings as the user gave them; an embedded server is no object store of sources."""
    return sources.find(places, cache(lambda: sources.s3_files(given)))


@lands_alone
@uses_lake
def land(
    platform: Platform,
    places: Sequence[str | Path | Source],
    progress: Progress | None = None,
    mapping: Path | None = None,
) -> list[LandedFile]:
    """Land sources one after the other. An unreadable one is reported and does not stop the others.

    ``mapping``: the column mapping of all of them; else each takes the nearest one beside or above it.
    Rows of erased persons from before their erasure are not landed again."""
    tombstones = load_tombstones(platform.engine)
    named = [place for place in places if not isinstance(place, Source)]
    given = [place for place in places if isinstance(place, Source)]
    explicit, beside = load_mapping_file(mapping), _Beside()
    results = []
    for source in [*given, *find(platform.given, named)]:
        try:
            used = explicit or beside.mapping(source)
            counts = land_file(
                source,
                lake=platform.lake,
                ledger=platform.ledger,
                clean=platform.clean,
                default_tenant=platform.settings.tenant,
                buckets=platform.settings.buckets,
                landed_at=platform.clock.now(),
                forget=(lambda: Forgotten(tombstones)) if tombstones else None,
                mapping=used,
            )
            status = "known" if counts is None else "landed"
            results.append(LandedFile(source.name, status, counts or ChunkCounts()))
        except InputError as error:
            if isinstance(error, BrokenMappingError) and (state := _state(source)) is not None:
                note_fault(platform.ledger, source, fault_state(state, error), error)
            stray = is_stray(source, error)
            results.append(
                LandedFile(source.name, "no log") if stray else LandedFile(source.name, "unreadable", error=str(error))
            )
        if progress is not None:
            progress(f"{source.name}: {results[-1].status}, {results[-1].counts.rows} rows")
    return results


@lands_alone
@uses_lake
def land_table(platform: Platform, table: SqlTable, mapping: Path | None = None) -> ChunkCounts:
    """Land the rows of a SQL table from the last watermark on; killed, the next call goes on from there.

    Raises InputError, StoreUnavailableError."""
    ledger, explicit = platform.ledger, load_mapping_file(mapping)
    progress = ledger.begin_file(
        table.file_id, table.name, 0, file_format=SQL, mapping=None if explicit is None else explicit.path
    )  # fmt: skip
    ledger.reopen(table.file_id)
    lander = make_lander(platform, table.file_id)
    landed = []
    pages = table.pages(
        ledger.watermark(table.file_id), progress.rows, CHUNK_ROWS, None if explicit is None else explicit.mapping
    )
    for number, (rows, watermark) in enumerate(pages, start=progress.chunks):
        first = number == progress.chunks
        landed.append(land_chunk(ledger, lander, table.file_id, number, rows, resumed=first, watermark=watermark))
    ledger.end_file(table.file_id)
    return ChunkCounts.total(landed)


def unlanded(platform: Platform, places: Sequence[str | Path | Source]) -> list[Source]:
    """The sources that have something to land, or may have: their state is not one in which they were landed whole,
    or found to be unreadable with the mapping that they have now. Nothing of them is read."""
    named = [place for place in places if not isinstance(place, Source)]
    found = [place for place in places if isinstance(place, Source)] + find(platform.given, named)
    beside = _Beside()
    notes = platform.ledger.source_notes([source.key for source in found])
    waiting = []
    for source in found:
        note, state = notes.get(source.key), _state(source)
        if note is not None and state is not None:
            if note.fault:
                state = fault_state(state, beside.found(source))
            if note.state == state and (note.complete or note.fault):
                continue
        waiting.append(source)
    return waiting


def _state(source: Source) -> str | None:
    try:
        return source.state()
    except InputError:  # gone since it was found
        return None


# ---- what would be


def look(
    settings: Settings,
    places: Sequence[str | Path],
    at: datetime,
    engine: "Engine | None" = None,
    mapping: Path | None = None,
) -> Iterator[Preview]:
    """What landing would do with each source at an instant; nothing is written anywhere.

    ``settings``: as the user gave them. ``engine``: the relational store, to tell known and grown files from new ones;
    it is only read.
    Raises InputError where a place names no source, or the mapping cannot be read."""
    explicit, beside = load_mapping_file(mapping), _Beside()
    for source in find(settings, places):
        try:
            used = explicit or beside.mapping(source)
        except InputError as error:
            yield Preview(source.name, fault=str(error))
            continue
        found = preview(
            source, used, clean=clean, default_tenant=settings.tenant, buckets=settings.buckets, at=at
        )  # fmt: skip
        if engine is not None and found.format:
            found.known = _known(source, engine)
        yield found


def _known(source: Source, engine: "Engine") -> str:
    note = source_notes(engine, [source.key]).get(source.key)
    if note is not None and note.complete and not note.fault and note.state == source.state():
        return "known"
    digest = source.digest(note.size if note is not None and source.grows else 0)
    if is_complete(engine, digest.file_id):
        return "known"
    return "grown" if note is not None and digest.begins == note.file_id is not None else "new"


def load_mapping_file(path: Path | None) -> MappingFile | None:
    return None if path is None else MappingFile(load_mapping(path), str(path.absolute()))


class _Beside:
    """The mappings that lie beside sources or above them, each read once."""

    def __init__(self) -> None:
        self._read = cache(_load_or_fault)

    def mapping(self, source: Source) -> MappingFile | None:
        """The mapping that is for a source. Raises BrokenMappingError."""
        path, found = self._nearest(source)
        if isinstance(found, BrokenMappingError):
            raise found
        return None if found is None else MappingFile(found, str(path))

    def found(self, source: Source) -> Mapping | BrokenMappingError | None:
        """The mapping, or what is wrong with it."""
        return self._nearest(source)[1]

    def _nearest(self, source: Source) -> tuple[Path | None, Mapping | BrokenMappingError | None]:
        if source.folder is None or source.root is None:
            return None, None
        path = find_mapping(Path(source.path), source.root)
        found = None if path is None else self._read(path)
        return path, None if isinstance(found, Mapping) and not found.covers(source.file_name) else found


def _load_or_fault(path: Path) -> Mapping | BrokenMappingError:
    try:
        return load_mapping(path)
    except BrokenMappingError as error:
        return error


def make_lander(platform: Platform, file_id: str) -> Lander:
    settings, tombstones = platform.settings, load_tombstones(platform.engine)
    normalise = Normaliser(file_id, settings.tenant, settings.buckets, platform.clock.now())
    return Lander(platform.lake, platform.clean, normalise, Forgotten(tombstones) if tombstones else None)


def clean(turns: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    cleaned = clean_turns(turns)
    return cleaned.turns, cleaned.filtered


# ---- what agents noted


def journal_waits(platform: Platform) -> bool:
    """Whether something was noted that is not landed."""
    return platform.journal.end() > journal.landed_to(platform.ledger)


@lands_alone
@uses_lake
def land_journal(platform: Platform) -> ChunkCounts:
    """Land what agents noted since the last time, as a file's rows are landed."""
    lander = make_lander(platform, journal.FILE_ID)
    return journal.land_journal(platform.journal, platform.clock.now(), ledger=platform.ledger, lander=lander)
