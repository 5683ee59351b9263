"""The stores' own upkeep: batches left open, what they hold against what is visible, and making one again."""

import dagster as dg

from assets.derived import published_memories
from assets.partitions import OWNERS
from memory_pipelines.pipeline import agreement, rebuild, recovery, reembed
from resources.platform import PlatformResource

DEPS = [dg.AssetDep(published_memories, partition_mapping=dg.AllPartitionMapping())]
KINDS = {"postgresql", "neo4j", "milvus", "s3"}


class Rebuild(dg.Config):
    """Which store is made again: relational, vector, graph, hot, cold or packs."""

    store: str


@dg.asset(deps=DEPS, group_name="stores", owners=OWNERS, kinds=KINDS)
def recovered_batches(memory: PlatformResource) -> dg.MaterializeResult:
    """Publishing batches that a killed process left open: rolled forward after their commit, back before it."""
    done = recovery.recover(memory.platform)
    dropped = reembed.drop_former(memory.platform)
    metadata = {"forward": done.forward, "back": done.back, "busy": done.busy, "dropped_collections": dropped}
    return dg.MaterializeResult(metadata=metadata)


@dg.asset(deps=DEPS, group_name="stores", owners=OWNERS, kinds=KINDS)
def store_differences(memory: PlatformResource) -> dg.MaterializeResult:
    """Each night: what any store holds that no committed version references, and what it lacks. Nothing is changed."""
    return dg.MaterializeResult(metadata=_told(agreement.check(memory.platform)))


@dg.asset_check(asset=store_differences)
def stores_hold_what_is_visible(memory: PlatformResource) -> dg.AssetCheckResult:
    """Vectors, graphs, archived texts, versions and keys are those of what is committed, no more and no less."""
    found = agreement.check(memory.platform)
    return dg.AssetCheckResult(passed=found.whole, metadata=_told(found))


@dg.asset(deps=DEPS, group_name="stores", owners=OWNERS, kinds=KINDS)
def repaired_stores(memory: PlatformResource) -> dg.MaterializeResult:
    """On request: what nothing references is removed, what is missing is made again."""
    return dg.MaterializeResult(metadata=_told(agreement.repair(memory.platform)))


@dg.asset(deps=DEPS, group_name="stores", owners=OWNERS, kinds=KINDS)
def rebuilt_store(config: Rebuild, memory: PlatformResource) -> dg.MaterializeResult:
    """On request: one store made again from lake and ledger, to the same content."""
    done = rebuild.rebuild(memory.platform, config.store)
    content = rebuild.content(memory.platform, config.store)
    return dg.MaterializeResult(metadata={**vars(done), "content": content})


@dg.asset(deps=DEPS, group_name="stores", owners=OWNERS, kinds={"milvus", "python"})
def live_collection(memory: PlatformResource) -> dg.MaterializeResult:
    """After a change of the embedding model: its collection is built beside the live one and takes its place."""
    done = reembed.reembed(memory.platform)
    return dg.MaterializeResult(metadata=dict(vars(done)))


def _told(found: agreement.Agreement) -> dict[str, dg.MetadataValue | int]:
    table = [dg.TableRecord(dict(row)) for row in found.rows()]
    return {
        "missing": found.missing.total(),
        "extra": found.extra.total(),
        "lost": found.lost.total(),
        "stores": dg.MetadataValue.table(table),
    }


ASSETS = [recovered_batches, store_differences, repaired_stores, rebuilt_store, live_collection]
CHECKS = [stores_hold_what_is_visible]
