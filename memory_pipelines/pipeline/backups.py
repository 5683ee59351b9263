"""Backup and restore over the platform: who is held off, who was erased since, what is made anew.

Belongs here: the order of a restore. Does not belong here: the form of a backup (``interchange``), how a person is
erased (``erasure``).

Both hold the lake alone: jobs wait, recall goes on. A restore shows nobody before everybody who was erased since the
backup is erased from it again. Tombstones are looked for in the backup, in the database that is replaced, and in the
cold store, where each erasure leaves its own.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from memory_pipelines.erasure.certificate import certificate_secret
from memory_pipelines.erasure.execute import execute
from memory_pipelines.erasure.places import KnownByKey
from memory_pipelines.erasure.requests import approve, request
from memory_pipelines.erasure.sweep import sweep
from memory_pipelines.erasure.tombstones import Tombstone, all_tombstones, kept_tombstones
from memory_pipelines.errors import IntegrityError, PermanentError, SettingError
from memory_pipelines.interchange import manifest as manifests
from memory_pipelines.interchange import restore as parts
from memory_pipelines.interchange.backup import back_up
from memory_pipelines.interchange.folder import BucketFolder, DiskFolder, Folder
from memory_pipelines.interchange.manifest import BackupManifest
from memory_pipelines.model import Owner
from memory_pipelines.pipeline.agreement import COLD_KEY
from memory_pipelines.pipeline.packs import pack_owners
from memory_pipelines.pipeline.rebuild import by_bucket, remake
from memory_pipelines.settings import PREFIX
from memory_pipelines.stores import schema
from memory_pipelines.stores.exclusion import Exclusion
from memory_pipelines.stores.masterkey import MasterKeySource
from memory_pipelines.stores.statements import translated
from memory_pipelines.tables import ALL, BEHAVIOUR, TURNS
from memory_pipelines.wiring import Platform

S3 = "s3://"


@dataclass(frozen=True)
class Restored:
    """``persons`` are visible again; ``erased``: requests carried out again because they are newer than the backup;
    ``vectors``, ``graphs``: made anew; ``archived`` texts put back."""

    persons: int
    erased: int
    vectors: int
    graphs: int
    archived: int


def folder_at(platform: Platform, place: str) -> Folder:
    """A folder, or ``s3://bucket/prefix`` on the server of the cold store.

    Raises SettingError for the cold store's own bucket: a repair there would take a backup for nobody's objects."""
    if not place.startswith(S3):
        return DiskFolder(Path(place).expanduser().absolute())
    bucket, _, prefix = place.removeprefix(S3).partition("/")
    if bucket == platform.settings.s3_bucket:
        raise SettingError(f"a backup needs another bucket than {PREFIX}S3_BUCKET")
    store = platform.bucket(bucket)
    store.ensure()
    return BucketFolder(store, prefix)


def backup(platform: Platform, place: str) -> BackupManifest:
    """Copy everything into an empty folder or prefix, read it back and compare. Jobs wait meanwhile.

    Raises PermanentError where something lies there."""
    folder = folder_at(platform, place)
    if any(True for _ in folder.paths()):
        raise PermanentError("a backup needs an empty folder: it never writes over another one")
    with platform.exclusion.alone():
        for bucket in sorted({batch.bucket for batch in platform.authority.open_batches()}):
            with platform.authority.publishing(bucket):
                platform.publisher.recover(bucket)
        pinned, live = platform.ledger.manifest(), platform.collections.live() or platform.wanted()
        back_up(
            platform.engine,
            platform.lake,
            platform.cold,
            folder,
            pinned={} if pinned is None else pinned.versions,
            cold_keys=[key for keys in platform.authority.archived().values() for key in keys],
            buckets=platform.settings.buckets,
            embedder=[live.embedder, live.model_id],
            at=platform.clock.now(),
        )
    return manifests.verify(folder)


def restore(platform: Platform, place: str, *, replace_all: bool = False, without_key: bool = False) -> Restored:
    """Put a backup back. Killed, it is run again; until then no job works and nobody is visible.

    Every file is verified before anything is changed. Raises PermanentError where the platform holds something and
    ``replace_all`` is not said, SettingError where the master key is not the backup's and ``without_key`` is not,
    IntegrityError where the backup was changed, or a person who was erased would come back."""
    folder = folder_at(platform, place)
    manifest = manifests.verify(folder)
    _fits(platform, manifest, without_key=without_key)
    if not parts.is_empty(platform.engine) and not replace_all:
        raise PermanentError("this platform holds memories already; say --replace to lose them for the backup's")
    with platform.exclusion.alone():
        known, epochs = _known_tombstones(platform), _epochs(platform.engine)
        newer = _newer(known, folder, manifest)
        parts.put_tables(platform.engine, folder, manifest, known)
        _clear(platform)
        parts.put_lake(platform.lake, folder, manifest)
        parts.tell_ledger(platform.engine, platform.lake)
        parts.put_cold(platform.cold, folder, manifest)
        replayed = _erase_again(platform, newer, _names(platform, folder, manifest))
        parts.serve(platform.engine, folder, manifest, newer.keys(), epochs)
        done = {store: _make_anew(platform, store) for store in ("vector", "graph", "cold")}
        pack_owners(platform)
        for spec in ALL:
            platform.lake.purge(spec)
        parts.pin_versions(platform.engine, platform.lake)
    left = sweep(platform.erasure_stores)
    if left.survivors:
        raise IntegrityError(f"{sum(left.survivors.values())} rows of erased persons are left; nothing may serve")
    parts.ended(platform.engine)
    persons = len(platform.authority.owners())
    return Restored(persons, replayed, done["vector"], done["graph"], len(manifest.cold))


def _fits(platform: Platform, manifest: BackupManifest, *, without_key: bool) -> None:
    if manifest.buckets != platform.settings.buckets:
        raise SettingError(f"the backup is cut into {manifest.buckets} buckets: set {PREFIX}BUCKETS to that")
    if manifest.master_key and not without_key:
        keys = MasterKeySource(platform.settings).load(make=False)
        if manifest.master_key not in {key.fingerprint for key in keys}:
            raise SettingError(
                f"the backup's key ring opens with another master key: set {PREFIX}MASTER_KEY or "
                f"{PREFIX}MASTER_KEY_FILE, or say --without-key: kept values stay tokens"
            )


def _known_tombstones(platform: Platform) -> dict[str, Tombstone]:
    """Of the database that is replaced and of the cold store; those of the backup are in its table."""
    known = kept_tombstones(platform.cold)
    for key, stone in all_tombstones(platform.engine).items():
        known[key] = stone.later(known.get(key))
    return known


def _newer(known: Mapping[str, Tombstone], folder: Folder, manifest: BackupManifest) -> dict[str, Tombstone]:
    """The tombstones of erasures that the backup does not know."""
    found = parts.rows_in(folder, manifest, schema.tombstones)
    then = {row["owner"]: row["before"] for rows in found for row in rows}
    return {key: stone for key, stone in known.items() if key not in then or stone.before > then[key]}


def _epochs(engine: sa.Engine) -> dict[str, int]:
    table = schema.people
    with translated(), engine.begin() as connection:
        return {row.owner: row.epoch for row in connection.execute(sa.select(table.c.owner, table.c.epoch))}


def _clear(platform: Platform) -> None:
    """Empty the stores that are filled anew."""
    for collection in platform.all_vectors:
        collection.delete([entry for entry, _ in collection.entries()])
    for key, version in sorted(platform.graph.all_versions()):
        platform.graph.drop(KnownByKey("", key), version)
    objects = platform.cold.keys()
    platform.cold.delete(key for key in objects if COLD_KEY.fullmatch(key))


def _erase_again(platform: Platform, newer: Mapping[str, Tombstone], names: Mapping[str, Owner]) -> int:
    """Erase from what was restored everybody who was erased since and is named in it; returns how many."""
    held = replace(platform.erasure_stores, exclusion=_AlreadyAlone(platform.engine))
    secret, now = certificate_secret(platform.settings), platform.clock.now()
    back = sorted(newer.keys() & names.keys())
    for key in back:
        again = request(platform.engine, names[key], "restore", now)
        approve(platform.engine, again, "tombstone", now)
        execute(held, again, newer[key].before, secret)
    return len(back)


def _names(platform: Platform, folder: Folder, manifest: BackupManifest) -> dict[str, Owner]:
    """Owner key → owner, of everybody who is named in what was landed or published."""
    shown = [row for rows in parts.rows_in(folder, manifest, schema.people) for row in rows]
    for spec in (TURNS, BEHAVIOUR):
        rows = platform.lake.read(spec, columns=["tenant", "subject"]).group_by(["tenant", "subject"]).aggregate([])
        shown += rows.to_pylist()
    owners = (Owner(row["tenant"], row["subject"]) for row in shown if row["subject"] is not None)
    return {owner.key: owner for owner in owners}


def _make_anew(platform: Platform, store: str) -> int:
    written = 0
    owners = {owner.key for owner in platform.authority.owners()}
    for bucket, keys in by_bucket(owners, platform.settings.buckets).items():
        with platform.authority.publishing(bucket):
            written += remake(platform, store, keys).written
    return written


class _AlreadyAlone(Exclusion):
    """For what asks for the lock that the caller holds."""

    @contextmanager
    def alone(self, patience_seconds: int = 0) -> Iterator[None]:
        yield
