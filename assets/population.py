"""What the population has in common: the snapshot that distinctiveness is measured against."""

import dagster as dg

from assets.base import day_manifest
from assets.partitions import OWNERS
from memory_pipelines.pipeline import population
from resources.platform import PlatformResource


class SnapshotConfig(dg.Config):
    """Launchpad settings of a population snapshot."""

    now: bool = False
    """Make one also where none is due."""
    everybody: bool = False
    """Derive everybody anew by a new snapshot, however little it moved."""


@dg.asset(
    deps=[dg.AssetDep(day_manifest, partition_mapping=dg.AllPartitionMapping())],
    group_name="derived",
    owners=OWNERS,
    kinds={"python", "deltalake"},
)
def population_snapshot(config: SnapshotConfig, memory: PlatformResource) -> dg.MaterializeResult:
    """How many subjects share each entity, stated value and intent: hashed, none that fewer than five hold. Made
    before the first derivation, after each week of logs, and when an import doubled the subjects; a derivation pins
    the one in use."""
    due = config.now or config.everybody or population.snapshot_due(memory.platform)
    if not due:
        kept = memory.platform.ledger.snapshot()
        return dg.MaterializeResult(metadata={"snapshot": "empty" if kept is None else kept.snapshot, "new": False})
    built = population.build_snapshot(memory.platform, everybody=config.everybody)
    if built is None:
        return dg.MaterializeResult(metadata={"snapshot": "empty", "new": False})
    found = built.in_use
    table = [
        dg.TableRecord({"tenant": tenant, "subjects": s.subjects, "shared keys": len(s.counts)})
        for tenant, s in built.tenants.items()
    ]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": found.keys,
            "snapshot": found.snapshot,
            "new": built.new,
            "landed_through": found.landed_through.isoformat(),
            "subjects": found.subjects,
            "movement": found.movement,
            "everybody_derived_anew": found.everybody,
            **({"tenants": dg.MetadataValue.table(table)} if table else {}),
        }
    )


ASSETS = [population_snapshot]
