"""Steps 1 to 4, by day: exchanges, their labels, and the manifest that says which versions belong together."""

import dagster as dg

from assets.landing import landed_logs
from assets.partitions import BUCKETS, DAYS, DAYS_PER_RUN, OWNERS, bucket_keys, days_checked, days_of
from memory_pipelines.pipeline import daily
from memory_pipelines.tables import EMOTIONS, ENTITIES, INTENTS, TableSpec
from resources.platform import PlatformResource

BACKFILL = dg.BackfillPolicy.multi_run(DAYS_PER_RUN)


@dg.asset(
    deps=[landed_logs],
    partitions_def=DAYS,
    backfill_policy=BACKFILL,
    group_name="base",
    owners=OWNERS,
    kinds={"python", "deltalake"},
)
def exchanges(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Step 1. A person's turns with the replies to them, cut by time and role only: a pure function of the
    landed turns of the day and its neighbours."""
    counts = daily.cut_days(memory.platform, days_of(context))
    table = [
        dg.TableRecord({"day": day, **day_counts.as_dict()}) for day, day_counts in counts.items() if day_counts.landed
    ]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(c.exchanges for c in counts.values()),
            "turns": sum(c.landed for c in counts.values()),
            "rejected_rows": sum(c.conflicts for c in counts.values()),
            "duplicates": sum(c.duplicates for c in counts.values()),
            "turns_of_nobody": sum(c.nobody for c in counts.values()),
            **({"days": dg.MetadataValue.table(table)} if table else {}),
        }
    )


@dg.asset_check(asset=exchanges, blocking=True)
def turns_add_up(context: dg.AssetCheckExecutionContext, memory: PlatformResource) -> dg.AssetCheckResult:
    """Of each day that waits for its commit: landed = in exchanges + nobody's + duplicates + conflicts."""
    drafts = memory.platform.ledger.draft_counts()
    drafts = {day: drafts[day] for day in days_checked(context, drafts)}
    parts = ("in_exchanges", "nobody", "duplicates", "conflicts")
    wrong = [day for day, counts in drafts.items() if counts["landed"] != sum(counts[p] for p in parts)]
    return dg.AssetCheckResult(passed=not wrong, metadata={"days": len(drafts), "wrong_days": wrong})


@dg.asset(
    deps=[exchanges],
    partitions_def=DAYS,
    backfill_policy=BACKFILL,
    group_name="labels",
    owners=OWNERS,
    kinds={"python", "deltalake"},
)
def intent_action(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Step 2. Intent, action and category of each exchange by one small local model, with confidence."""
    from memory_pipelines.pipeline.model_sets import intent_step

    return _labelled(context, memory, INTENTS, intent_step(memory.platform), "intent")


@dg.asset(
    deps=[exchanges],
    partitions_def=DAYS,
    backfill_policy=BACKFILL,
    group_name="labels",
    owners=OWNERS,
    kinds={"python", "deltalake"},
)
def emotion(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Step 3. Emotion of each exchange: a score in [-1, 1] and a label with its strength."""
    from memory_pipelines.pipeline.model_sets import emotion_step

    return _labelled(context, memory, EMOTIONS, emotion_step(memory.platform), "emotion")


@dg.asset(
    deps=[exchanges],
    partitions_def=DAYS,
    backfill_policy=BACKFILL,
    group_name="labels",
    owners=OWNERS,
    kinds={"python", "deltalake"},
)
def entities(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Step 4. Named things of each exchange with canonical ids; aliases joined, generic words left out."""
    from memory_pipelines.pipeline.model_sets import entity_step

    return _labelled(context, memory, ENTITIES, entity_step(memory.platform), "language")


def _labelled(
    context: dg.AssetExecutionContext, memory: PlatformResource, spec: TableSpec, step: daily.Step, shown: str
) -> dg.MaterializeResult:
    from memory_pipelines.pipeline.model_sets import model_set_of

    labels = daily.label_days(memory.platform, days_of(context), spec, step, shown)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": labels.total(),
            "model_set": memory.platform.settings.model_set,
            "fingerprint": model_set_of(memory.platform).fingerprint,
            f"rows_by_{shown}": dict(labels.most_common()),
        }
    )


def _complete(asset: dg.AssetsDefinition, spec: TableSpec) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=asset, name="all_exchanges_labelled", blocking=True)
    def all_exchanges_labelled(context: dg.AssetCheckExecutionContext, memory: PlatformResource) -> dg.AssetCheckResult:
        """Every exchange of the days that wait for their commit has a label of the model set."""
        days = days_checked(context, memory.platform.ledger.draft_counts())
        missing = daily.unlabelled(memory.platform, days, [spec]) if days else 0
        return dg.AssetCheckResult(passed=missing == 0, metadata={"days": len(days), "missing": missing})

    return all_exchanges_labelled


@dg.asset(
    deps=[intent_action, emotion, entities],
    partitions_def=DAYS,
    backfill_policy=BACKFILL,
    group_name="labels",
    owners=OWNERS,
    kinds={"postgresql"},
)
def day_manifest(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """The commit of a day: which versions of the tables belong together. Only days whose checks passed get here;
    subjects whose rows changed are marked for derivation."""
    context.instance.add_dynamic_partitions(str(BUCKETS.name), bucket_keys(memory.platform.settings.buckets))
    manifest_id = daily.commit_days(memory.platform, days_of(context))
    manifest = memory.platform.ledger.manifest()
    return dg.MaterializeResult(
        metadata={
            "manifest": manifest_id,
            "landed_through": manifest.landed_through.isoformat() if manifest else "",
            "buckets_waiting": len(memory.platform.ledger.touched_buckets()),
        }
    )


ASSETS = [exchanges, intent_action, emotion, entities, day_manifest]
CHECKS = [
    turns_add_up,
    _complete(intent_action, INTENTS),
    _complete(emotion, EMOTIONS),
    _complete(entities, ENTITIES),
]
