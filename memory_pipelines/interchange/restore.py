"""A backup put back: into tables, lake and cold store, verified by hash.

Belongs here: what is written, in which order, and what the ledger is told of new table versions. Does not belong here:
erasures since the backup, vectors and graphs (``pipeline.backups``).

``SERVED`` tables come last: before, no reader finds anybody.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from memory_pipelines.errors import IntegrityError
from memory_pipelines.interchange import rows
from memory_pipelines.interchange.folder import Folder
from memory_pipelines.interchange.manifest import BackupManifest, checked
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import ColdStore, Lake, Replace
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.statements import parts, translated, upsert
from memory_pipelines.tables import ALL


class Tombstoned(Protocol):
    """Who was erased: nothing from before the instant may come back, and epochs go on from the last one."""

    @property
    def before(self) -> datetime: ...
    @property
    def epoch(self) -> int: ...


SERVED = ("people", "memories", "journal")
RESTORING = "restoring"
"""The counter that says so while a restore has not ended: no job works on half of it."""


def is_empty(engine: sa.Engine) -> bool:
    """Whether nothing was ever landed or published here, or what is here is half a restore."""
    with translated(), engine.begin() as connection:
        counters = schema.counters
        if connection.execute(sa.select(counters).where(counters.c.name == RESTORING)).first():
            return True
        tables = (schema.files, schema.people, schema.tombstones, schema.subject_keys)
        return not any(connection.execute(sa.select(table).limit(1)).first() for table in tables)


def put_tables(
    engine: sa.Engine, folder: Folder, manifest: BackupManifest, tombstones: Mapping[str, Tombstoned]
) -> None:
    """Replace all tables but those served, whose rows go, in one transaction; ``tombstones`` known here are kept.

    ``tombstones``: by owner key."""
    with translated(), engine.begin() as connection:
        for table in schema.metadata.sorted_tables:
            if table.name not in ("alembic_version", "collections"):
                connection.execute(table.delete())
            if table.name not in SERVED:
                for row in rows_in(folder, manifest, table):
                    upsert(connection, table, row)
        stones = schema.tombstones
        for key, stone in sorted(tombstones.items()):
            kept = {"owner": key, "before": stone.before, "epoch": stone.epoch}
            old = connection.execute(sa.select(stones).where(stones.c.owner == key)).mappings().first()
            if old is not None:
                kept |= {name: max(kept[name], old[name]) for name in ("before", "epoch")}
            upsert(connection, stones, [kept])
        upsert(connection, schema.counters, [{"name": RESTORING, "value": 1}])
        go_on_counting(connection)


def put_lake(lake: Lake, folder: Folder, manifest: BackupManifest) -> None:
    """Replace the rows of every lake table. Raises IntegrityError if they are not those of the backup."""
    for spec in ALL:
        if lake.version(spec) >= 0:
            lake.write(spec, spec.schema.empty_table(), [])
        for path in manifest.lake.get(spec.name, []):
            found = rows.table(spec, checked(folder, manifest, path))
            column = spec.partition_by[0] if spec.partition_by else ""
            value = found[column][0].as_py() if column else None
            lake.write(spec, found, [Replace(column, (str(value),))] if column else [])
            back = lake.read(spec, where=[(column, "=", value)] if column else ())
            if canonical_hash(spec, back) != canonical_hash(spec, found):
                raise IntegrityError(f"lake table {spec.name} does not give back what was restored")


def put_cold(cold: ColdStore, folder: Folder, manifest: BackupManifest) -> None:
    """Write the archived texts."""
    for part in parts(manifest.cold):
        cold.archive({key: checked(folder, manifest, f"cold/{key}") for key in part})


def tell_ledger(engine: sa.Engine, lake: Lake) -> None:
    """The tables have versions of their own now; days that were written but not committed are cut anew."""
    days, owners, pending, table = schema.days, schema.owners, schema.pending, schema.manifests
    with translated(), engine.begin() as connection:
        touch = schema.next_touch(connection)
        announced = connection.execute(sa.select(pending.c.owner).distinct()).scalars().all()
        for part in parts(sorted(announced)):
            connection.execute(owners.update().where(owners.c.owner.in_(part)).values(touched=touch))
        connection.execute(pending.delete())
        connection.execute(schema.plans.delete())
        connection.execute(days.update().values(version=None))
        connection.execute(
            days.update().where(days.c.written != days.c.cut).values(written=days.c.cut, draft=days.c.counts)
        )
        newest = sa.select(sa.func.max(table.c.manifest_id)).scalar_subquery()
        connection.execute(table.delete().where(table.c.manifest_id < newest))
    pin_versions(engine, lake)


def pin_versions(engine: sa.Engine, lake: Lake) -> None:
    """What belongs together is what the tables hold now."""
    table = schema.manifests
    with translated(), engine.begin() as connection:
        for row in connection.execute(sa.select(table)).mappings().all():
            versions = {spec.name: lake.version(spec) for spec in ALL if spec.name in row["versions"]}
            this = table.c.manifest_id == row["manifest_id"]
            connection.execute(table.update().where(this).values(versions=versions))


def serve(
    engine: sa.Engine, folder: Folder, manifest: BackupManifest, erased: Collection[str], epochs: Mapping[str, int]
) -> None:
    """Show everybody again but those erased since. ``epochs``: those that readers knew here, so that no copy fits."""
    with translated(), engine.begin() as connection:
        for table in (schema.people, schema.memories, schema.journal):
            for found in rows_in(folder, manifest, table):
                upsert(connection, table, [_newer(row, epochs) for row in found if row["owner"] not in erased])
        go_on_counting(connection)


def ended(engine: sa.Engine) -> None:
    """Note that the restore is through."""
    with translated(), engine.begin() as connection:
        connection.execute(schema.counters.delete().where(schema.counters.c.name == RESTORING))


def _newer(row: dict[str, Any], epochs: Mapping[str, int]) -> dict[str, Any]:
    return row | {"epoch": max(row["epoch"], epochs.get(row["owner"], 0)) + 1} if "epoch" in row else row


def rows_in(folder: Folder, manifest: BackupManifest, table: sa.Table) -> Iterator[list[dict[str, Any]]]:
    """A table's rows, file by file."""
    for path in manifest.tables.get(table.name, []):
        yield rows.rows_of(table, checked(folder, manifest, path))


def go_on_counting(connection: sa.Connection) -> None:
    """Numbers that the database gives go on after those that were restored."""
    if connection.dialect.name != "postgresql":
        return
    for table in schema.metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None:
            sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
            highest = sa.select(sa.func.coalesce(sa.func.max(column), 0) + 1).scalar_subquery()
            connection.execute(sa.select(sa.func.setval(sequence, highest, False)))
