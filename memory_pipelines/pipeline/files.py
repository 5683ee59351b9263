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
from memory_pipelines.landing import sources
from memory_pipelines.landing.land import (
    CHUNK_ROWS,
    Clean,
    Lander,
    MappingFile,
    NoReaderError,
    land_chunk,
    land_file,
)
from memory_pipelines.landing.mapping import find_mapping, load_mapping
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.preview import Preview, preview
from memory_pipelines.landing.sources import Source
from memory_pipelines.landing.sql import FORMAT as SQL
from memory_pipelines.landing.sql import SqlTable
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.settings import Settings
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.slices.sensitive import hide_sensitive
from memory_pipelines.stores.landing_ledger import complete_files, source_notes
from memory_pipelines.stores.notes import ChunkCounts
from memory_pipelines.wiring import Platform

if TYPE_CHECKING:
    from sqlalchemy import Engine

Progress = Callable[[str], None]
log_files = sources.log_files


@dataclass(frozen=True)
class LandedFile:
    """``status``: landed, known (its content was landed before), no log (found in a folder, and no reader is for it)
    or unreadable (see ``error``)."""

    name: str
    status: str
    counts: ChunkCounts = field(default_factory=ChunkCounts)
    error: str = ""


def inbox(settings: Settings) -> list[Source]:
    """The sources in the inbox, a folder or an ``s3://`` prefix; none while there is nothing."""
    if settings.inbox.startswith(sources.S3):
        try:
            return find(settings, [settings.inbox])
        except InputError:
            return []
    return find(settings, [settings.inbox_path]) if settings.inbox_path.is_dir() else []


def find(settings: Settings, places: Sequence[str | Path]) -> list[Source]:
    """The sources that paths, folders, globs and ``s3://`` addresses name. Raises InputError where one names none."""
    return sources.find(places, cache(lambda: sources.s3_files(settings)))


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
    explicit = load_mapping_file(mapping)
    results = []
    for source in [*given, *find(platform.settings, named)]:
        try:
            counts = land_file(
                source,
                lake=platform.lake,
                ledger=platform.ledger,
                clean=protected(platform),
                default_tenant=platform.settings.tenant,
                buckets=platform.settings.buckets,
                landed_at=platform.clock.now(),
                forget=(lambda: Forgotten(tombstones)) if tombstones else None,
                mapping=explicit or _mapping(source),
            )
            status = "known" if counts is None else "landed"
            results.append(LandedFile(source.name, status, counts or ChunkCounts()))
        except InputError as error:
            stray = isinstance(error, NoReaderError) and not source.asked
            results.append(
                LandedFile(source.name, "no log") if stray else LandedFile(source.name, "unreadable", error=str(error))
            )
        if progress is not None:
            progress(f"{source.name}: {results[-1].status}, {results[-1].counts.rows} rows")
    return results


@uses_lake
def land_table(platform: Platform, table: SqlTable, mapping: Path | None = None) -> ChunkCounts:
    """Land the rows of a SQL table from the last watermark on; killed, the next call goes on from there.

    Raises InputError, StoreUnavailableError."""
    ledger, explicit = platform.ledger, load_mapping_file(mapping)
    ledger.begin_file(
        table.file_id, table.name, 0, file_format=SQL, mapping=None if explicit is None else explicit.path
    )  # fmt: skip
    progress = ledger.progress(table.file_id)
    assert progress is not None, "begun"
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
    or found to be unreadable. Nothing of them is read."""
    named = [place for place in places if not isinstance(place, Source)]
    found = [place for place in places if isinstance(place, Source)] + find(platform.settings, named)
    notes = platform.ledger.source_notes([source.key for source in found])
    waiting = []
    for source in found:
        note = notes.get(source.key)
        if note is None or not (note.complete or note.fault) or note.state != _state(source):
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
    ledger: "Engine | None" = None,
    mapping: Path | None = None,
) -> Iterator[Preview]:
    """What landing would do with each source at an instant; nothing is written anywhere.

    ``ledger``: the relational store, to tell known and grown files from new ones; it is only read.
    Raises InputError where a place names no source, or the mapping cannot be read."""
    explicit = load_mapping_file(mapping)
    for source in find(settings, places):
        try:
            used = explicit or _mapping(source)
        except InputError as error:
            yield Preview(source.name, fault=str(error))
            continue
        found = preview(
            source, used, clean=clean, default_tenant=settings.tenant, buckets=settings.buckets, at=at
        )  # fmt: skip
        if ledger is not None and found.format:
            found.known = _known(source, ledger)
        yield found


def _known(source: Source, ledger: "Engine") -> str:
    note = source_notes(ledger, [source.key]).get(source.key)
    if note is not None and note.complete and note.state == source.state():
        return "known"
    digest = source.digest(note.size if note is not None and source.grows else 0)
    if digest.file_id in complete_files(ledger):
        return "known"
    return "grown" if note is not None and digest.begins == note.file_id else "new"


def load_mapping_file(path: Path | None) -> MappingFile | None:
    return None if path is None else MappingFile(load_mapping(path), str(path.absolute()))


def _mapping(source: Source) -> MappingFile | None:
    """The mapping that lies beside a source or above it, if it is for it."""
    if source.folder is None or source.root is None:
        return None
    path = find_mapping(Path(source.path), source.root)
    found = load_mapping_file(path)
    return found if found is not None and found.mapping.covers(source.file_name) else None


def make_lander(platform: Platform, file_id: str) -> Lander:
    settings, tombstones = platform.settings, load_tombstones(platform.engine)
    normalise = Normaliser(file_id, settings.tenant, settings.buckets, platform.clock.now())
    return Lander(platform.lake, protected(platform), normalise, Forgotten(tombstones) if tombstones else None)


def clean(turns: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    cleaned = clean_turns(turns)
    return cleaned.turns, cleaned.filtered


def protected(platform: Platform) -> Clean:
    """As ``clean``, with tokens for sensitive fields; their values are in the key ring before the rows are landed."""

    def clean_and_hide(turns: pa.Table) -> tuple[pa.Table, dict[str, int]]:
        cleaned, filtered = clean(turns)
        return hide_sensitive(cleaned, platform.keyring), filtered

    return clean_and_hide
