"""Steps 5 to 7, by bucket of subjects: impact, event slices, memories, graph, and what the stores show.

Each works on the subjects that something touched since the bucket was last published, and on all of their
history; the first opens that plan, the last closes it.
"""

import dagster as dg

from assets.base import day_manifest
from assets.partitions import BUCKETS, OWNERS, buckets_of
from assets.population import population_snapshot
from assets.previews import means_by, picture, value_counts
from memory_pipelines.pipeline import audit, derive
from resources.platform import PlatformResource

BACKFILL = dg.BackfillPolicy.single_run()


class DeriveConfig(dg.Config):
    """Launchpad settings of a derivation."""

    everything: bool = False
    """Derive all subjects of the bucket, not only those that something touched."""


@dg.asset(
    deps=[dg.AssetDep(day_manifest, partition_mapping=dg.AllPartitionMapping()), population_snapshot],
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
    rows = derive.score_buckets(memory.platform, buckets_of(context), everything=config.everything)
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
    slices = derive.merge_buckets(memory.platform, buckets_of(context))
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
    decisions, admitted = derive.admit_buckets(memory.platform, buckets_of(context))
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": admitted,
            "decisions": decisions.num_rows,
            "rejected_rows": value_counts(decisions["outcome"]).get("discard", 0),
            "by_outcome": value_counts(decisions["outcome"]),
            "by_rule": value_counts(decisions["rule"]),
            "by_arm": value_counts(decisions["arm"]),
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
    """Step 7, first half. Edges of each subject's graph: shared entities, evidence, causes, order in a session, topic,
    likeness; and a picture of one graph, without anybody in it."""
    from memory_pipelines.slices.graph.picture import draw

    linked = derive.link_buckets(memory.platform, buckets_of(context))
    pictures = {"one_graph": picture("one subject's graph", draw(linked.shown))} if linked.shown else {}
    return dg.MaterializeResult(
        metadata={"dagster/row_count": linked.kinds.total(), "by_kind": dict(linked.kinds.most_common()), **pictures},
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
    done = derive.publish_buckets(memory.platform, buckets_of(context))
    return dg.MaterializeResult(metadata={"dagster/row_count": done.shown, **vars(done)})


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


@dg.asset_check(asset=published_memories)
def cross_store_references(memory: PlatformResource) -> dg.AssetCheckResult:
    """Every memory row says in which stores it is and under which id: followed for some owners, others each day."""
    found = audit.follow_references(memory.platform)
    return dg.AssetCheckResult(
        passed=not found.lost.total(),
        metadata={
            "owners": found.owners,
            **{f"{store}_references": number for store, number in found.references.items()},
            **{f"{store}_lost": number for store, number in found.lost.items()},
        },
    )


ASSETS = [decision_impact, event_slices, memories, slice_graph, published_memories]
CHECKS = [no_batch_left_open, stores_agree, cross_store_references]
