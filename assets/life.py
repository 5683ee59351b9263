"""Memories after their admission: tiers by day, reflections by week, erasure on request, health."""

from collections import Counter

import dagster as dg

from assets.derived import published_memories
from assets.partitions import DAYS, DAYS_PER_RUN, OWNERS, WEEKS
from memory_pipelines.pipeline import forget, health, life, reflection
from memory_pipelines.quality.health import Metric
from resources.platform import PlatformResource

ALL = dg.AllPartitionMapping()


@dg.asset(
    deps=[dg.AssetDep(published_memories, partition_mapping=ALL)],
    partitions_def=DAYS,
    backfill_policy=dg.BackfillPolicy.multi_run(DAYS_PER_RUN),
    group_name="life",
    owners=OWNERS,
    kinds={"postgresql", "s3"},
)
def memory_tiers(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Each night: scores and tiers as of the day's end. Hot, warm, cold and back by copy, verify, switch, drop;
    what age has used up is deleted and leaves a marker."""
    groups: Counter[tuple[str, str, str]] = Counter()
    moved = deleted = 0
    window = context.partition_time_window
    for plan in life.move_tiers(memory.platform, life.ends_of_days(window.start, window.end)):
        moved += len(plan.moves)
        deleted += len(plan.deletions)
        for row in plan.summary():
            groups[str(row["from"]), str(row["to"]), str(row["reason"])] += int(row["memories"])
    table = [
        dg.TableRecord({"from": a, "to": b, "reason": why, "memories": n}) for (a, b, why), n in sorted(groups.items())
    ]
    return dg.MaterializeResult(
        metadata={
            "moved": moved,
            "deleted": deleted,
            **({"moves": dg.MetadataValue.table(table)} if table else {}),
        }
    )


@dg.asset(
    deps=[dg.AssetDep(published_memories, partition_mapping=ALL)],
    group_name="life",
    owners=OWNERS,
    kinds={"python"},
)
def tier_plan(memory: PlatformResource) -> dg.MaterializeResult:
    """The dry run of tonight's moves and deletions: nothing is changed."""
    plan = life.plan_tiers(memory.platform, memory.platform.clock.now())
    table = [dg.TableRecord(dict(row)) for row in plan.summary()]
    return dg.MaterializeResult(
        metadata={
            "would_move": len(plan.moves),
            "would_delete": len(plan.deletions),
            "unmoved": plan.unmoved,
            **({"plan": dg.MetadataValue.table(table)} if table else {}),
        }
    )


@dg.asset(
    deps=[dg.AssetDep(published_memories, partition_mapping=ALL)],
    partitions_def=WEEKS,
    backfill_policy=dg.BackfillPolicy.multi_run(8),
    group_name="life",
    owners=OWNERS,
    kinds={"python", "openai"},
)
def weekly_reflection(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Each week, per person: needs, patterns, changes, anomalies and follow-ups, each citing memories. By a
    language model where an endpoint is set, else by statistics of the same schema."""
    weeks = [reflection.reflect_week(memory.platform, day) for day in reflection.mondays(context.partition_keys)]
    kinds: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    for week in weeks:
        kinds.update(week.by_kind)
        problems.update(week.problems)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(week.insights for week in weeks),
            "persons": max((week.persons for week in weeks), default=0),
            "follow_ups": sum(week.tasks for week in weeks),
            "insights_by_kind": dict(kinds),
            "problems": dict(problems),
            "tokens": sum(week.tokens for week in weeks),
            "money": sum(week.money for week in weeks),
        }
    )


@dg.asset(
    deps=[dg.AssetDep(published_memories, partition_mapping=ALL)],
    group_name="erasure",
    owners=OWNERS,
    kinds={"python"},
)
def erasure_certificates(memory: PlatformResource) -> dg.MaterializeResult:
    """Approved requests to forget somebody, carried out: unreachable at once, then deleted place by place, read again,
    and certified."""
    done = forget.erase_waiting(memory.platform)
    table = [
        dg.TableRecord(
            {"request": e.request_id, "survivors": e.certificate.survivors, "signature": e.certificate.signature}
        )
        for e in done
    ]
    return dg.MaterializeResult(
        metadata={
            "erased": len(done),
            "survivors": sum(e.survivors for e in done),
            **({"certificates": dg.MetadataValue.table(table)} if table else {}),
        }
    )


@dg.asset(deps=[erasure_certificates], group_name="erasure", owners=OWNERS, kinds={"python"})
def erasure_sweep(memory: PlatformResource) -> dg.MaterializeResult:
    """Each week: everybody who was ever erased is looked for again in every place."""
    found = forget.sweep_erased(memory.platform)
    return dg.MaterializeResult(
        metadata={
            "persons": found.persons,
            "returned": found.returned,
            "survivors": sum(found.survivors.values()),
            "places": dict(found.survivors),
        }
    )


@dg.asset_check(asset=erasure_sweep)
def nothing_is_left(memory: PlatformResource) -> dg.AssetCheckResult:
    """No place holds anything of anybody who was erased."""
    found = forget.sweep_erased(memory.platform)
    return dg.AssetCheckResult(passed=not found.survivors, metadata={"persons": found.persons, **found.survivors})


@dg.asset(
    deps=[dg.AssetDep(published_memories, partition_mapping=ALL)],
    group_name="health",
    owners=OWNERS,
    kinds={"python"},
)
def memory_health(memory: PlatformResource) -> dg.MaterializeResult:
    """Admission per dimension, quarantine and duplicates; the four alerting metrics are its checks."""
    metrics = health.further_metrics(memory.platform)
    return dg.MaterializeResult(metadata={m.name: m.value for m in metrics if m.value is not None})


@dg.asset_check(asset=memory_health)
def slice_freshness_rate(memory: PlatformResource) -> dg.AssetCheckResult:
    """Slices of the last 7 days over slices of the last 30: below 15 % the flow of logs dries up."""
    return metric_check(health.slice_freshness(memory.platform, memory.platform.clock.now()))


@dg.asset_check(asset=memory_health)
def ripple_activation_rate(memory: PlatformResource) -> dg.AssetCheckResult:
    """Slices activated in 7 days over the hot and warm ones of recalled persons: below 8 % the graph is idle."""
    return metric_check(health.ripple_activation(memory.platform, memory.platform.clock.now()))


@dg.asset_check(asset=memory_health)
def impact_skew(memory: PlatformResource) -> dg.AssetCheckResult:
    """Standard deviation of the final impacts of 90 days, with the other faults of their distribution."""
    return metric_check(health.impact_skew(memory.platform, memory.platform.clock.now()))


@dg.asset_check(asset=memory_health)
def sync_latency(memory: PlatformResource) -> dg.AssetCheckResult:
    """Login on a device until its memories were visible: above 3 s is too late."""
    return metric_check(health.sync_latency(memory.platform, memory.platform.clock.now()))


def metric_check(metric: Metric) -> dg.AssetCheckResult:
    """A metric as a check; its value is plotted over time in the UI."""
    value = {} if metric.value is None else {"value": metric.value}
    return dg.AssetCheckResult(
        passed=metric.passed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={**value, "limit": metric.limit if metric.limit is not None else "none", **metric.detail},
    )


ASSETS = [memory_tiers, tier_plan, weekly_reflection, erasure_certificates, erasure_sweep, memory_health]
CHECKS = [nothing_is_left, slice_freshness_rate, ripple_activation_rate, impact_skew, sync_latency]
