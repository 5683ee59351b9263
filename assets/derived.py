"""Steps 5 to 7, by bucket of subjects: impact, event slices, memories, graph, and what the stores show.

Each works on the subjects that something touched since the bucket was last published, and on all of their
history; the first opens that plan, the last closes it.
"""

from collections import Counter

import dagster as dg
import pyarrow as pa

from assets.base import day_manifest
from assets.partitions import BUCKETS, OWNERS, buckets_of
from assets.previews import means_by, summed, value_counts
from memory_pipelines.pipeline import audit, derive
from resources.platform import PlatformResource

BACKFILL = dg.BackfillPolicy.single_run()


class DeriveConfig(dg.Config):
    """Launchpad settings of a derivation."""

    everything: bool = False
    """Derive all subjects of the bucket, not only those that something touched."""


@dg.asset(
    deps=[dg.AssetDep(day_manifest, partition_mapping=dg.AllPartitionMapping())],
    group_name="derived",
    kinds={"python", "deltalake"},
    partitions_def=BUCKETS,
    backfill_policy=BACKFILL,
    owners=OWNERS,
)
def decision_impact(
    context: dg.AssetExecutionContext, config: DeriveConfig, memory: PlatformResource
) -> dg.MaterializeResult:
    """Step 5. How much each exchange changed what the person then did, in [0, 1]: provisional at first, final
    when its 7 days have closed."""
    rows = sum(
        derive.score_bucket(memory.platform, bucket, everything=config.everything) for bucket in buckets_of(context)
    )
    return dg.MaterializeResult(metadata={"dagster/row_count": rows})


@dg.asset(
    deps=[decision_impact],
    group_name="derived",
    kinds={"python", "deltalake"},
    partitions_def=BUCKETS,
    backfill_policy=BACKFILL,
    owners=OWNERS,
)
def event_slices(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Step 6. Exchanges about one event joined into event slices, with what followed within 7 days."""
    slices = pa.concat_tables([derive.merge_bucket(memory.platform, bucket) for bucket in buckets_of(context)])
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": slices.num_rows,
            "by_impact": value_counts(slices["impact_label"]),
            "by_feedback": value_counts(slices["feedback"]),
            **means_by(slices, "intent", ["decision_impact", "emotion_score"]),
        }
    )


@dg.asset(
    deps=[event_slices],
    group_name="derived",
    kinds={"python", "deltalake"},
    partitions_def=BUCKETS,
    backfill_policy=BACKFILL,
    owners=OWNERS,
)
def memories(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """The gate: of everything said, what deserves to be remembered, for how long and in which store. Every
    decision is kept with its parts."""
    results = [derive.admit_bucket(memory.platform, bucket) for bucket in buckets_of(context)]
    decisions = pa.concat_tables([decided for decided, _ in results])
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(admitted for _, admitted in results),
            "decisions": decisions.num_rows,
            "rejected_rows": value_counts(decisions["outcome"]).get("discard", 0),
            "by_outcome": value_counts(decisions["outcome"]),
            "by_rule": value_counts(decisions["rule"]),
            **means_by(decisions, "outcome", ["persistence", "structure", "personalisation", "score"]),
        }
    )


@dg.asset(
    deps=[memories],
    group_name="derived",
    kinds={"python", "deltalake"},
    partitions_def=BUCKETS,
    backfill_policy=BACKFILL,
    owners=OWNERS,
)
def slice_graph(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Step 7, first half. Edges between admitted memories: shared entities, causes, order in a session, topic."""
    kinds = sum((derive.link_bucket(memory.platform, bucket) for bucket in buckets_of(context)), Counter())
    return dg.MaterializeResult(
        metadata={"dagster/row_count": kinds.total(), "by_kind": dict(kinds.most_common())},
    )


@dg.asset(
    deps=[slice_graph],
    group_name="published",
    kinds={"postgresql", "neo4j", "milvus", "redis", "s3"},
    partitions_def=BUCKETS,
    backfill_policy=BACKFILL,
    owners=OWNERS,
)
def published_memories(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Step 7, second half. The memories in the stores, by a two-phase commit with PostgreSQL as the one authority."""
    results = [derive.publish_bucket(memory.platform, bucket) for bucket in buckets_of(context)]
    totals = summed([vars(result) for result in results])
    return dg.MaterializeResult(metadata={"dagster/row_count": totals.get("shown", 0), **totals})


@dg.asset_check(asset=published_memories)
def no_batch_left_open(memory: PlatformResource) -> dg.AssetCheckResult:
    """No publishing batch was begun and not finished."""
    left = memory.platform.authority.open_batches()
    return dg.AssetCheckResult(passed=not left, metadata={"open_batches": len(left)})


@dg.asset_check(asset=published_memories)
def stores_agree(memory: PlatformResource) -> dg.AssetCheckResult:
    """The graph holds what PostgreSQL shows and nothing else, and the vector store as many entries."""
    differences = audit.store_differences(memory.platform)
    return dg.AssetCheckResult(passed=not any(differences.values()), metadata=dict(differences))


ASSETS = [decision_impact, event_slices, memories, slice_graph, published_memories]
CHECKS = [no_batch_left_open, stores_agree]
