"""Everything that cannot be made again, copied as of one instant: tables, lake, archived texts, the key ring wrapped.

Belongs here: what a backup holds, and writing it. Does not belong here: holding off writers (``pipeline.backups``).

Vectors, graphs and hot copies are made anew by a restore. The master key is not in it: both in one place open
everything, also of people who were erased afterwards.
"""

from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa

from memory_pipelines.interchange import manifest as manifests
from memory_pipelines.interchange import rows
from memory_pipelines.interchange.folder import Folder
from memory_pipelines.interchange.manifest import BackupManifest, Part
from memory_pipelines.model import iso
from memory_pipelines.stores import migrations, schema
from memory_pipelines.stores.base import ColdStore, Lake
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.statements import translated
from memory_pipelines.tables import ALL

LEFT_OUT = ("alembic_version", "collections", "batches", "packs")
"""Tables of this installation alone: its schema, its vector collections, batches under way."""
MASTER_KEY = "master_key"


def back_up(
    engine: sa.Engine,
    lake: Lake,
    cold: ColdStore,
    folder: Folder,
    *,
    pinned: dict[str, int],
    cold_keys: list[str],
    buckets: int,
    embedder: list[str],
    at: datetime,
) -> BackupManifest:
    """Write a backup; the manifest comes last, so a killed one is none. Nobody may write to the stores meanwhile.

    ``pinned``: lake table → the version that the day manifest names; of others the newest is taken."""
    made = BackupManifest(
        created_at=iso(at),
        schema=migrations.NEWEST,
        buckets=buckets,
        tables={},
        lake={},
        versions={spec.name: pinned.get(spec.name, lake.version(spec)) for spec in ALL},
        cold=[],
        embedder=embedder,
        master_key="",
        missing_cold=0,
    )
    fingerprint = _tables(engine, folder, made)
    for spec in ALL:
        made.lake[spec.name] = []
        for number, (_, found) in enumerate(rows.parts(lake, spec, made.versions[spec.name])):
            part = Part("", found.num_rows, canonical_hash(spec, found))
            made.lake[spec.name].append(
                _put(folder, made, f"lake/{spec.name}/{number:05}.parquet", rows.parquet(found), part)
            )
    missing = 0
    for key in sorted(cold_keys):
        content = cold.get(key)
        if content is None:
            missing += 1
        else:
            _put(folder, made, f"cold/{key}", content, Part("", 1))
            made.cold.append(key)
    done = replace(made, master_key=fingerprint, missing_cold=missing)
    manifests.write(folder, done)
    return done


def _tables(engine: sa.Engine, folder: Folder, made: BackupManifest) -> str:
    """Copy the tables as of one instant; returns the fingerprint of the ring's master key."""
    on_postgres = engine.dialect.name == "postgresql"
    snapshot = engine.execution_options(isolation_level="REPEATABLE READ") if on_postgres else engine
    with translated(), snapshot.begin() as connection:
        for table in schema.metadata.sorted_tables:
            if table.name in LEFT_OUT:
                continue
            made.tables[table.name] = [
                _put(folder, made, f"tables/{table.name}/{number:05}.jsonl.gz", content, Part("", count))
                for number, (content, count) in enumerate(rows.lines(connection, table))
            ]
        ring = connection.execute(sa.select(schema.master_key.c.fingerprint)).scalar_one_or_none()
    return ring or ""


def _put(folder: Folder, made: BackupManifest, path: str, content: bytes, part: Part) -> str:
    folder.put(path, content)
    made.files[path] = replace(part, sha256=manifests.sha256(content))
    return path
