"""Upkeep of the lake, apart from what it holds: its files."""

import dagster as dg

from assets.base import day_manifest
from assets.partitions import OWNERS
from memory_pipelines.pipeline import upkeep
from resources.platform import PlatformResource


@dg.asset(
    deps=[dg.AssetDep(day_manifest, partition_mapping=dg.AllPartitionMapping())],
    group_name="upkeep",
    owners=OWNERS,
    kinds={"deltalake"},
)
def lake_files(memory: PlatformResource) -> dg.MaterializeResult:
    """Each night: partitions with many small files get few, sorted by subject; files that no version of the last
    seven days needs are removed. No row changes."""
    done = upkeep.keep_up(memory.platform)
    table = [
        dg.TableRecord({"table": name, "files before": c.files_before, "files after": c.files_after})
        for name, c in sorted(done.compacted.items())
    ]
    return dg.MaterializeResult(
        metadata={
            "compacted_tables": len(table),
            "removed_files": sum(done.vacuumed.values()),
            "waiting_for_commit": done.waiting,
            **({"files": dg.MetadataValue.table(table)} if table else {}),
        }
    )


ASSETS = [lake_files]
