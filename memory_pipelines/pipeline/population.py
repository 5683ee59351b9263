"""The population snapshot over the stores: when one is due, made of whom, and what comes into use with it.

Belongs here: the sample of subjects, reading, writing, the change to a new version. Does not belong here: what is
counted of a subject (``admission.snapshot``). See docs/adr/0010-population-snapshot.md.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.admission.snapshot import (
    ALL_SUBJECTS,
    EMPTY,
    MIN_SUBJECTS,
    Snapshot,
    exchange_keys,
    kept_counts,
    movement,
)
from memory_pipelines.pipeline.derive import Portion, read_labelled, snapshots
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.owned import placed
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.ledger import Manifest, Plan, SnapshotInUse
from memory_pipelines.tables import EXCHANGES, POPULATION
from memory_pipelines.wiring import Platform

MOST_SUBJECTS = 20_000
"""Subjects of a tenant that are counted: those with the smallest keys, which are hashes of names."""
MOST_EXCHANGES = 100_000
"""Exchanges of a tenant's counted subjects, ``OF_SUBJECT`` of each at most: what a snapshot costs is bounded."""
OF_SUBJECT = 200
READ_SUBJECTS = 1_000
WEEK = timedelta(days=7)
GROWTH = 2
"""So many times the subjects of the last snapshot, as a historical import brings them, make a new one due at once."""
MOST_MOVEMENT = 0.1
"""A mean movement of distinctiveness above it has everybody derived anew: scores move by a third of it at most."""
_READ = ["tenant", "exchange_id", "started_at", "ended_at", "own_text", "day", "owner"]


@dataclass(frozen=True)
class Built:
    """The snapshot in use with its figures by tenant; ``new``: it came into use just now."""

    in_use: SnapshotInUse
    tenants: Mapping[str, Snapshot]
    new: bool


def snapshot_due(platform: Platform) -> bool:
    """Whether a snapshot is to be made before anybody is derived: the first one, a week of logs after the last one,
    or at once after an import that doubled the subjects. Of too few subjects none is made."""
    manifest, in_use = platform.ledger.manifest(), platform.ledger.snapshot()
    known = platform.ledger.known_owners()
    if manifest is None or known < MIN_SUBJECTS:
        return False
    if in_use is None or known >= GROWTH * in_use.known_subjects:
        return True
    return manifest.landed_through >= in_use.landed_through + WEEK


@uses_lake
def build_snapshot(platform: Platform, *, everybody: bool = False) -> Built | None:
    """Make a snapshot of the newest manifest and bring it into use; None while no day is committed.

    Everybody is touched for the first one, for one that moved far, or if asked (``everybody``); else who is derived
    from now on is judged by it. The same rows and labels give the same version, whatever order they came in."""
    manifest = platform.ledger.manifest()
    if manifest is None:
        return None
    known, before = platform.ledger.known_owners(), platform.ledger.snapshot()
    tenants = _counted(platform, manifest)
    rows = _rows(tenants)
    version = EMPTY if not tenants else f"{manifest.landed_through:%Y%m%d}-{_fingerprint(rows)}"
    tenants = {tenant: Snapshot(version, s.subjects, s.counts) for tenant, s in tenants.items()}
    if tenants:
        named = rows.set_column(0, "snapshot", pa.array([version] * rows.num_rows, pa.string()))
        platform.lake.write(POPULATION, named, [Replace("snapshot", (version,))])
    moved = _movement(snapshots(platform, EMPTY if before is None else before.snapshot), tenants)
    first = before is None or before.snapshot == EMPTY
    new = version != (EMPTY if before is None else before.snapshot)
    found = SnapshotInUse(
        version,
        platform.clock.now(),
        manifest.landed_through,
        sum(s.subjects for s in tenants.values()),
        known,
        sum(len(s.counts) for s in tenants.values()),
        moved,
        new and (first or moved > MOST_MOVEMENT or everybody),
    )
    platform.ledger.use_snapshot(found)
    return Built(found, tenants, new)


def snapshot_in_use(platform: Platform) -> Built | None:
    """The one in use, from the lake; None if none was ever made."""
    found = platform.ledger.snapshot()
    return None if found is None else Built(found, snapshots(platform, found.snapshot), new=False)


def _counted(platform: Platform, manifest: Manifest) -> dict[str, Snapshot]:
    """Tenant → figures of its sample; tenants of fewer than ``MIN_SUBJECTS`` are left out."""
    tenants = {}
    for tenant, owners in sorted(_sample(platform, manifest).items()):
        if len(owners) >= MIN_SUBJECTS:
            tenants[tenant] = Snapshot("", len(owners), kept_counts(_held(platform, manifest, owners)))
    return tenants


def _sample(platform: Platform, manifest: Manifest) -> dict[str, list[str]]:
    """Tenant → keys of its counted subjects, in order."""
    committed = pa.array(list(platform.ledger.day_counts()), pa.string())
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for bucket in range(platform.settings.buckets):
        exchanges = platform.lake.read(
            EXCHANGES,
            columns=["tenant", "owner", "day"],
            where=[("bucket", "=", bucket)],
            version=manifest.versions[EXCHANGES.name],
        )
        counts = exchanges.filter(pc.is_in(exchanges["day"], value_set=committed)).group_by(["tenant", "owner"])
        for row in counts.aggregate([("owner", "count")]).to_pylist():
            found[row["tenant"]].append((row["owner"], row["owner_count"]))
        for tenant, owners in found.items():
            found[tenant] = sorted(owners)[:MOST_SUBJECTS]
    return {tenant: _bounded(owners) for tenant, owners in found.items()}


def _bounded(owners: list[tuple[str, int]]) -> list[str]:
    kept: list[str] = []
    total = 0
    for owner, exchanges in owners:
        total += min(exchanges, OF_SUBJECT)
        if total > MOST_EXCHANGES:
            break
        kept.append(owner)
    return kept


def _held(platform: Platform, manifest: Manifest, owners: list[str]) -> Iterator[set[str]]:
    """What each of the owners holds, in no particular order."""
    plan = Plan(0, manifest.landed_through, manifest.model_set, manifest.versions, {}, False, EMPTY)
    for start in range(0, len(owners), READ_SUBJECTS):
        some = owners[start : start + READ_SUBJECTS]
        labelled = read_labelled(platform, Portion(plan, placed(some, platform.settings.buckets)), _READ)
        for owner in some:
            items = labelled.get(owner, [])[-OF_SUBJECT:]
            yield {key for item in items for key in exchange_keys(item.row)}


def _rows(tenants: Mapping[str, Snapshot]) -> pa.Table:
    rows = [
        {"snapshot": "", "tenant": tenant, "key": key, "subjects": subjects}
        for tenant, snapshot in sorted(tenants.items())
        for key, subjects in [(ALL_SUBJECTS, snapshot.subjects), *snapshot.counts.items()]
    ]
    return pa.Table.from_pylist(rows, schema=POPULATION.schema)


def _fingerprint(rows: pa.Table) -> str:
    return canonical_hash(POPULATION, rows)[:8]


def _movement(old: Mapping[str, Snapshot], new: Mapping[str, Snapshot]) -> float:
    """The mean over tenants, by their subjects."""
    total = sum(snapshot.subjects for snapshot in new.values())
    moved = sum(s.subjects * movement(old.get(tenant, Snapshot()), s) for tenant, s in new.items())
    return round(moved / total, 4) if total else 0.0
