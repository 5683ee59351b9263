"""The ledger of what was landed: files, their chunks, how far tables were read, what left quarantine.

Belongs here: bookkeeping of landing, each change in one transaction. Does not belong here: what days and buckets
do with landed rows (``ledger``). ``Ledger`` is this and the rest.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from memory_pipelines.model import stable_hash, touched_days
from memory_pipelines.stores import schema
from memory_pipelines.stores.notes import (
    ChunkCounts,
    LandedChunk,
    Progress,
    Readmitted,
    SourceFault,
    SourceNote,
    Watermark,
)
from memory_pipelines.stores.persons import others_of
from memory_pipelines.stores.schema import next_touch
from memory_pipelines.stores.statements import among, insert_new, parts, translated, upsert


class FileLedger:
    """The landing part of the ledger. Every method is one transaction and safe to repeat."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

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
        row = {
            "file_id": file_id,
            "name": name,
            "size": size,
            "complete": False,
            "format": file_format,
            "mapping": mapping,
            "continues": continues,
            "tail": None,
        }
        with translated(), self._engine.begin() as connection:
            upsert(connection, schema.files, [row], update=())
            return _progress(connection, file_id)

    def progress(self, file_id: str) -> Progress | None:
        """How far a file is landed; None for an unknown one."""
        with translated(), self._engine.begin() as connection:
            known = connection.execute(sa.select(schema.files.c.size).where(schema.files.c.file_id == file_id)).first()
            return None if known is None else _progress(connection, file_id)

    def chunk_landed(self, chunk: LandedChunk, watermark: Watermark | None = None) -> None:
        """Note a chunk; touch its days and owners, and the days on which one of its ids has another version.

        ``watermark``: how far the table is read with this chunk."""
        counts = chunk.counts
        with translated(), self._engine.begin() as connection:
            row = {
                "file_id": chunk.file_id,
                "chunk": chunk.chunk,
                "rows": counts.rows,
                "turns": counts.turns,
                "behaviour": counts.behaviour,
                "filtered": counts.filtered,
                "quarantined": counts.quarantined,
            }
            touch = next_touch(connection)
            upsert(connection, schema.chunks, [row])
            if watermark is not None:
                mark = {"file_id": chunk.file_id, "value": watermark.value, "edge": sorted(watermark.edge)}
                upsert(connection, schema.watermarks, [mark])
            self._touch(connection, chunk.days, chunk.owners, chunk.turn_days, touch)

    def _touch(
        self,
        connection: sa.Connection,
        days: frozenset[str],
        owners: frozenset[tuple[str, str, int]],
        turns: Sequence[tuple[str, str, str]],
        touch: int,
    ) -> None:
        again = self._meet_versions(connection, turns)
        touch_days(connection, days | again, touch)
        touch_owners(connection, owners | _of_same_persons(connection, owners), touch)

    def _meet_versions(self, connection: sa.Connection, turns: Sequence[tuple[str, str, str]]) -> set[str]:
        """Register turn ids; returns all days of those that have versions on several days, with neighbours."""
        seen: dict[str, set[str]] = {}
        for tenant, turn, day in turns:
            seen.setdefault(stable_hash(tenant, turn), set()).add(day)
        table = schema.turn_days
        met: set[tuple[str, str]] = {(turn, day) for turn, on in seen.items() if len(on) > 1 for day in on}
        rows = [{"turn": turn, "day": min(on)} for turn, on in sorted(seen.items())]
        again = sorted(seen.keys() - insert_new(connection, table, rows, table.c.turn))
        for part in parts(again):
            known = connection.execute(sa.select(table.c.turn, table.c.day).where(table.c.turn.in_(part)))
            for turn, day in known:
                if seen[turn] != {day}:
                    met.update((turn, d) for d in seen[turn] | {day})
        conflicts = schema.turn_conflicts
        upsert(connection, conflicts, [{"turn": t, "day": d} for t, d in sorted(met)], update=())
        found: set[str] = set()
        for part in parts(sorted({turn for turn, _ in met})):  # also days of earlier chunks: another version may win
            found.update(
                connection.execute(sa.select(conflicts.c.day).where(conflicts.c.turn.in_(part)).distinct()).scalars()
            )
        return set(touched_days(found))

    def end_file(self, file_id: str, tail: str | None = None) -> None:
        """All rows of the file are landed; ``tail``: hash of the last one."""
        with translated(), self._engine.begin() as connection:
            connection.execute(
                schema.files.update().where(schema.files.c.file_id == file_id).values(complete=True, tail=tail)
            )

    def part_file(self, file_id: str) -> None:
        """The file does not go on where the one that it begins with ended: it is landed as one of its own."""
        with translated(), self._engine.begin() as connection:
            connection.execute(schema.files.update().where(schema.files.c.file_id == file_id).values(continues=None))

    # ---- sources

    def note_source(self, source: str, note: SourceNote) -> None:
        """What was found at a source, whose address is known by its hash. An earlier fault is gone."""
        with translated(), self._engine.begin() as connection:
            _note_source(connection, source, note)
            connection.execute(schema.source_faults.delete().where(schema.source_faults.c.source == source))

    def source_failed(self, source: str, state: str, told: tuple[str, str] | None) -> None:
        """A source cannot be read to its end, as it is in this state. The file that it was is still known.

        ``told``: its name and the fault, for ``faults``."""
        table, faults = schema.sources, schema.source_faults
        with translated(), self._engine.begin() as connection:
            was = connection.execute(sa.select(table.c.file_id).where(table.c.source == source)).scalar_one_or_none()
            _note_source(connection, source, SourceNote(state, was, fault=True))
            if told is None:
                connection.execute(faults.delete().where(faults.c.source == source))
            else:
                upsert(connection, faults, [{"source": source, "name": told[0], "fault": told[1]}])

    def faults(self) -> list[SourceFault]:
        """The sources that could not be read to their end when they were last looked at, by name."""
        table, told = schema.sources, schema.source_faults
        query = (
            sa.select(table.c.source, table.c.file_id, told.c.name, told.c.fault)
            .join_from(told, table, told.c.source == table.c.source)
            .order_by(told.c.name, told.c.source)
        )
        with translated(), self._engine.begin() as connection:
            return [SourceFault(*row) for row in connection.execute(query)]

    def source_notes(self, sources: Collection[str]) -> dict[str, SourceNote]:
        """Source → its last note; ``complete`` tells whether what was found there is landed whole."""
        return source_notes(self._engine, sources)

    def watermark(self, file_id: str) -> Watermark | None:
        """How far a table was read."""
        table = schema.watermarks
        with translated(), self._engine.begin() as connection:
            row = connection.execute(sa.select(table).where(table.c.file_id == file_id)).first()
        return None if row is None else Watermark(row.value, frozenset(row.edge))

    def reopen(self, file_id: str) -> None:
        """A table is being read on: not finished until ``end_file``."""
        with translated(), self._engine.begin() as connection:
            connection.execute(schema.files.update().where(schema.files.c.file_id == file_id).values(complete=False))

    # ---- quarantine

    def readmitted(self, admitted: Readmitted) -> None:
        """Rows of a chunk were landed from quarantine: note it, with all that landing touches."""
        counts = admitted.counts
        row = {
            "file_id": admitted.file_id,
            "chunk": admitted.chunk,
            "attempt": admitted.attempt,
            "turns": counts.turns,
            "behaviour": counts.behaviour,
            "filtered": counts.filtered,
            "quarantined": counts.quarantined,
            "positions": sorted(admitted.positions),
        }
        with translated(), self._engine.begin() as connection:
            touch = next_touch(connection)
            upsert(connection, schema.readmissions, [row])
            self._touch(connection, admitted.days, admitted.owners, admitted.turn_days, touch)

    def readmissions(self, file_id: str, chunk: int) -> list[frozenset[int]]:
        """By attempt the positions of the rows of a chunk that left quarantine."""
        table = schema.readmissions
        chosen = sa.select(table.c.positions).where(table.c.file_id == file_id, table.c.chunk == chunk)
        with translated(), self._engine.begin() as connection:
            return [frozenset(p) for p in connection.execute(chosen.order_by(table.c.attempt)).scalars()]

    def quarantined_chunks(self, file_id: str) -> list[int]:
        """The landed chunks of a file from which any row was ever quarantined."""
        table = schema.chunks
        chosen = sa.select(table.c.chunk, table.c.quarantined).where(table.c.file_id == file_id)
        with translated(), self._engine.begin() as connection:
            return [chunk for chunk, broken in connection.execute(chosen.order_by(table.c.chunk)) if broken]

    # ---- what was landed

    def landed(self) -> ChunkCounts:
        """Counts of everything that was ever landed, as it stands after re-admissions."""
        with translated(), self._engine.begin() as connection:
            return _sum(counts for _, counts in _counts(connection))

    def files(self) -> list[dict[str, Any]]:
        """Every file by name: what was noted, ``complete``, rows, filtered by rule, quarantined by reason."""
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(sa.select(schema.files).order_by(schema.files.c.name)).mappings().all()
            by_file: dict[str, list[ChunkCounts]] = {}
            for file_id, counts in _counts(connection):
                by_file.setdefault(file_id, []).append(counts)
        found = []
        for row in rows:
            counts = _sum(by_file.get(row["file_id"], ()))
            now = {"rows": counts.rows, "filtered": counts.filtered, "quarantined": counts.quarantined}
            found.append({**row, **now})
        return found


def source_notes(engine: sa.Engine, sources: Collection[str]) -> dict[str, SourceNote]:
    """See ``FileLedger.source_notes``; a plain read, for those that may write nothing."""
    table, files = schema.sources, schema.files
    columns = (table, files.c.complete, files.c.size)
    found: dict[str, SourceNote] = {}
    with translated(), engine.begin() as connection:
        for part in parts(sorted(sources)):
            joined = sa.select(*columns).select_from(table.outerjoin(files, table.c.file_id == files.c.file_id))
            for row in connection.execute(joined.where(table.c.source.in_(part))):
                found[row.source] = SourceNote(row.state, row.file_id, row.fault, bool(row.complete), row.size or 0)
    return found


def is_complete(engine: sa.Engine, file_id: str) -> bool:
    """Whether a file is known and landed whole; a plain read."""
    files = schema.files
    with translated(), engine.begin() as connection:
        return bool(connection.execute(sa.select(files.c.complete).where(files.c.file_id == file_id)).scalar())


def _note_source(connection: sa.Connection, source: str, note: SourceNote) -> None:
    row = {"source": source, "state": note.state, "file_id": note.file_id, "fault": note.fault}
    upsert(connection, schema.sources, [row])


def _progress(connection: sa.Connection, file_id: str) -> Progress:
    files, chunks = schema.files, schema.chunks

    def landed(of: str) -> tuple[int, int]:
        counted = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(chunks.c.rows), 0))
        number, rows = connection.execute(counted.where(chunks.c.file_id == of)).one()
        return int(number), int(rows)

    row = connection.execute(sa.select(files).where(files.c.file_id == file_id)).one()
    complete = bool(row.complete)
    number, rows = landed(file_id)
    links = []
    while row.continues is not None:  # a file that grew and grew: each link landed what it had more
        row = connection.execute(sa.select(files).where(files.c.file_id == row.continues)).one()
        links.append(row)
    before = sum(landed(link.file_id)[1] for link in links)
    return Progress(complete, number, rows, before, links[0].tail if links else None)


def _counts(connection: sa.Connection) -> Iterable[tuple[str, ChunkCounts]]:
    for row in connection.execute(sa.select(schema.chunks)).mappings():
        counts = ChunkCounts(row["rows"], row["turns"], row["behaviour"], row["filtered"], row["quarantined"])
        yield row["file_id"], counts
    for row in connection.execute(sa.select(schema.readmissions)).mappings():
        left = {reason: -number for reason, number in row["quarantined"].items()}
        yield row["file_id"], ChunkCounts(0, row["turns"], row["behaviour"], row["filtered"], left)


def _sum(counts: Iterable[ChunkCounts]) -> ChunkCounts:
    total = ChunkCounts.total(counts)
    return replace(total, quarantined={reason: number for reason, number in total.quarantined.items() if number})


def _of_same_persons(connection: sa.Connection, owners: Collection[tuple[str, str, int]]) -> set[tuple[str, str, int]]:
    """The other subjects of the persons whose behaviour landed, as far as they are known: it counts for them too."""
    table, found = schema.owners, set[tuple[str, str, int]]()
    others = others_of(connection, {owner for _, owner, _ in owners})
    for part in parts(sorted(set[str]().union(*others.values()))):
        query = sa.select(table.c.tenant, table.c.owner, table.c.bucket).where(among(connection, table.c.owner, part))
        found.update((tenant, owner, bucket) for tenant, owner, bucket in connection.execute(query))
    return found


def touch_days(connection: sa.Connection, days: Collection[str], touch: int) -> None:
    """Mark days as touched, with a number of ``next_touch``."""
    rows = [{"day": day, "touched": touch, "written": 0, "cut": 0, "landed": 0} for day in sorted(days)]
    upsert(connection, schema.days, rows, update=("touched",))


def touch_owners(connection: sa.Connection, owners: Collection[tuple[str, str, int]], touch: int) -> None:
    """Mark (tenant, owner key, bucket) as touched, with a number of ``next_touch``."""
    rows: list[dict[str, Any]] = [
        {"owner": owner, "tenant": tenant, "bucket": bucket, "touched": touch, "derived": 0, "due_at": None}
        for tenant, owner, bucket in sorted(owners, key=lambda o: o[1])  # as end_derivation locks them
    ]
    upsert(connection, schema.owners, rows, update=("touched",))
