"""The jobs of the platform with their schedules and sensors. All are off until somebody switches them on."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
)
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from assets import admission, base, derived, landing, life, population, reward, stores, trained, upkeep
from assets.partitions import DAYS, DAYS_PER_RUN, QUARTERS, WEEKS, bucket_key
from jobs.reaping import IN_PROGRESS, reap
from memory_pipelines.model import day_of, shift_day
from memory_pipelines.pipeline import files, forget, recovery
from resources.platform import PlatformResource

EXCLUSIVE = "memory_pipelines/exclusive"
"""One run at a time per value of this tag (see dagster.yaml): two runs over the same days or buckets would only
repeat each other's work."""

FAILED = AssetCheckExecutionRecordStatus.FAILED
DAY = timedelta(days=1)
RETRAINED_ONCE_IN = timedelta(days=7)
"""A check that fails each morning is no reason to train each morning."""

land_logs = dg.define_asset_job(
    "land_logs",
    selection=dg.AssetSelection.assets(landing.landed_logs, landing.quarantine),
    description="Read the files in the inbox that were not read before, and what agents noted since the last run.",
    tags={EXCLUSIVE: "landing"},
)
readmit_job = dg.define_asset_job(
    "readmit_job",
    selection=dg.AssetSelection.assets(landing.readmitted_rows),
    description="Read quarantined rows again, after a fix or when their time has come.",
    tags={EXCLUSIVE: "landing"},
)
day_job = dg.define_asset_job(
    "day_job",
    selection=dg.AssetSelection.assets(*base.ASSETS),
    partitions_def=DAYS,
    description="Steps 1-4 of one day or a range of days, ending in the manifest.",
    tags={EXCLUSIVE: "days"},
)
bucket_job = dg.define_asset_job(
    "bucket_job",
    selection=dg.AssetSelection.assets(*population.ASSETS, *derived.ASSETS),
    description="The population snapshot if one is due, then steps 5-7 for the touched subjects of a range of buckets.",
    tags={EXCLUSIVE: "buckets"},
)
replay_job = dg.define_asset_job(
    "replay_job",
    selection=dg.AssetSelection.assets(*admission.ASSETS),
    description="What other thresholds of the gate would keep.",
)
tier_job = dg.define_asset_job(
    "tier_job",
    selection=dg.AssetSelection.assets(life.memory_tiers),
    partitions_def=DAYS,
    description="Scores and tiers as of a day's end: moves between hot, warm and cold, and deletions.",
    tags={EXCLUSIVE: "buckets"},
)
health_job = dg.define_asset_job(
    "health_job",
    selection=dg.AssetSelection.assets(life.memory_health, life.tier_plan),
    description="The health metrics and the dry run of tonight's tiers.",
)
reflection_job = dg.define_asset_job(
    "reflection_job",
    selection=dg.AssetSelection.assets(life.weekly_reflection),
    partitions_def=WEEKS,
    description="A reflection per person on the week that has ended.",
    tags={EXCLUSIVE: "buckets"},
)
reward_job = dg.define_asset_job(
    "reward_job",
    selection=dg.AssetSelection.assets(*reward.ASSETS),
    partitions_def=QUARTERS,
    description="Retrain the reward model on what a quarter showed; promoted only if it is better.",
    tags={EXCLUSIVE: "reward"},
)
intent_job = dg.define_asset_job(
    "intent_job",
    selection=dg.AssetSelection.assets(trained.intent_model),
    description="Train the intent model on the labelled rows; promoted only if it is better.",
    tags={EXCLUSIVE: "intent"},
)
emotion_job = dg.define_asset_job(
    "emotion_job",
    selection=dg.AssetSelection.assets(trained.emotion_model),
    description="Train an emotion head on the labelled scores; promoted only if it is better.",
    tags={EXCLUSIVE: "emotion"},
)
entity_job = dg.define_asset_job(
    "entity_job",
    selection=dg.AssetSelection.assets(trained.entity_model),
    description="Train a tagger of entities on the labelled spans; promoted only if it is better.",
    tags={EXCLUSIVE: "entities"},
)
erasure_job = dg.define_asset_job(
    "erasure_job",
    selection=dg.AssetSelection.assets(life.erasure_certificates),
    description="Carry out approved requests to forget somebody.",
    tags={EXCLUSIVE: "erasure"},
)
sweep_job = dg.define_asset_job(
    "sweep_job",
    selection=dg.AssetSelection.assets(life.erasure_sweep),
    description="Look again for everybody who was erased.",
)
upkeep_job = dg.define_asset_job(
    "upkeep_job",
    selection=dg.AssetSelection.assets(*upkeep.ASSETS),
    description="Join the lake's small files, sorted by subject, and remove those that no recent version needs.",
    tags={EXCLUSIVE: "days"},
)
recovery_job = dg.define_asset_job(
    "recovery_job",
    selection=dg.AssetSelection.assets(stores.recovered_batches),
    description="End publishing batches that a killed process left open.",
    tags={EXCLUSIVE: "recovery"},
)
store_check_job = dg.define_asset_job(
    "store_check_job",
    selection=dg.AssetSelection.assets(stores.store_differences),
    description="Compare every store with what is visible.",
)
store_repair_job = dg.define_asset_job(
    "store_repair_job",
    selection=dg.AssetSelection.assets(stores.repaired_stores),
    description="Remove from the stores what nothing references, make again what is missing.",
    tags={EXCLUSIVE: "stores"},
)
rebuild_job = dg.define_asset_job(
    "rebuild_job",
    selection=dg.AssetSelection.assets(stores.rebuilt_store),
    description="Make one store again from lake and ledger; the run's config names it.",
    tags={EXCLUSIVE: "stores"},
)
reembed_job = dg.define_asset_job(
    "reembed_job",
    selection=dg.AssetSelection.assets(stores.live_collection),
    description="Embed everything by the settings' model beside the live collection, then switch.",
    tags={EXCLUSIVE: "stores"},
)

daily_landing = dg.ScheduleDefinition(
    job=land_logs,
    name="daily_landing",
    cron_schedule="5 0 * * *",
    description="Each night, before the day that has ended is cut: what agents noted is landed.",
)
daily = dg.build_schedule_from_partitioned_job(
    day_job,
    name="daily",
    hour_of_day=0,
    minute_of_hour=30,
    description="Each night the day that has ended.",
)
nightly_tiers = dg.build_schedule_from_partitioned_job(
    tier_job, name="nightly_tiers", hour_of_day=2, minute_of_hour=0, description="Each night, after the day's memories."
)
weekly_reflections = dg.build_schedule_from_partitioned_job(
    reflection_job,
    name="weekly_reflections",
    hour_of_day=3,
    minute_of_hour=0,
    description="Each Monday, on the week before.",
)


@dg.schedule(
    job=reward_job,
    cron_schedule="0 0 1 1,4,7,10 *",
    execution_timezone="UTC",
    description="On the first day of each quarter, on the quarter before.",
)
def quarterly_retraining(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    quarter = QUARTERS.get_partition_key_for_timestamp((context.scheduled_execution_time - DAY).timestamp())
    return dg.RunRequest(run_key=quarter, partition_key=quarter)


daily_health = dg.ScheduleDefinition(
    job=health_job, name="daily_health", cron_schedule="30 5 * * *", description="Each morning."
)
weekly_sweep = dg.ScheduleDefinition(
    job=sweep_job, name="weekly_sweep", cron_schedule="0 4 * * 0", description="Each Sunday."
)
nightly_upkeep = dg.ScheduleDefinition(
    job=upkeep_job, name="nightly_upkeep", cron_schedule="30 4 * * *", description="Each night, after the reflections."
)
nightly_store_check = dg.ScheduleDefinition(
    job=store_check_job, name="nightly_store_check", cron_schedule="0 5 * * *", description="Each night, at its end."
)


@dg.sensor(job=land_logs, minimum_interval_seconds=30, description="New files in the inbox are landed.")
def inbox(context: dg.SensorEvaluationContext, memory: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    if _running(context, land_logs.name):
        return dg.SkipReason("files are being landed")
    with memory.open() as platform:
        waiting = files.unlanded(platform, files.inbox(platform))
    if not waiting:
        return dg.SkipReason("no new file in the inbox")
    return dg.RunRequest()


@dg.sensor(
    job=day_job,
    minimum_interval_seconds=60,
    description="Days that late or imported rows touched are cut again, a month in a run.",
)
def touched_days(context: dg.SensorEvaluationContext, memory: PlatformResource) -> Iterator[dg.RunRequest]:
    if _running(context, land_logs.name, readmit_job.name, day_job.name):
        return
    with memory.open() as platform:
        waiting = list(platform.ledger.touched_days())
    for first, last in day_ranges(waiting):
        yield dg.RunRequest(tags=range_tags(first, last))


@dg.sensor(
    job=bucket_job,
    minimum_interval_seconds=60,
    description="Touched subjects are derived and published, once the day runs are through: a backfill derives once.",
)
def touched_buckets(context: dg.SensorEvaluationContext, memory: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    if _running(context, land_logs.name, readmit_job.name, day_job.name, bucket_job.name):
        return dg.SkipReason("runs are in progress")
    with memory.open() as platform:
        waiting = platform.ledger.touched_buckets()
    if not waiting:
        return dg.SkipReason("no subject was touched")
    return dg.RunRequest(tags=range_tags(bucket_key(min(waiting)), bucket_key(max(waiting))))


@dg.sensor(job=erasure_job, minimum_interval_seconds=60, description="Approved erasure requests are carried out.")
def approved_erasures(context: dg.SensorEvaluationContext, memory: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    if _running(context, erasure_job.name):
        return dg.SkipReason("an erasure is under way")
    with memory.open() as platform:
        waiting = forget.waiting_erasures(platform)
    if not waiting:
        return dg.SkipReason("no approved request waits")
    return dg.RunRequest()


@dg.sensor(job=recovery_job, minimum_interval_seconds=60, description="Publishing batches left open are ended.")
def batches_left_open(context: dg.SensorEvaluationContext, memory: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    if _running(context, recovery_job.name):
        return dg.SkipReason("batches are being ended")
    with memory.open() as platform:
        left = recovery.left_open(platform)
    return dg.RunRequest() if left else dg.SkipReason("no batch was left open")


@dg.sensor(
    job=reward_job,
    minimum_interval_seconds=3600,
    description="A failed check of the impacts in use asks for a retraining on what has landed, once a week at most.",
)
def skewed_impacts(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    failed = [record.id for record in _newest(context.instance, reward.IMPACT_CHECKS) if record.status == FAILED]
    if not failed:
        return dg.SkipReason("the impacts in use are sound")
    if max(failed) <= int(context.cursor or 0):
        return dg.SkipReason("a retraining was asked for since that check failed")
    now = datetime.now(UTC)
    before = context.instance.get_run_records(dg.RunsFilter(job_name=reward_job.name), limit=1)
    if before and now - before[0].create_timestamp < RETRAINED_ONCE_IN:
        return dg.SkipReason("the reward model was retrained less than a week ago")
    context.update_cursor(str(max(failed)))
    return dg.RunRequest(
        run_key=f"failed-check-{max(failed)}", partition_key=QUARTERS.get_partition_key_for_timestamp(now.timestamp())
    )


def _newest(instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]) -> list[AssetCheckExecutionRecord]:
    """Of each check that was evaluated, the newest evaluation."""
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return [found[key] for key in keys if key in found]


@dg.sensor(minimum_interval_seconds=60, description="Runs whose process has died are failed: they hold up others.")
def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    return dg.SkipReason(f"{reap(context.instance)} runs had died")


def range_tags(first: str, last: str) -> dict[str, str]:
    """Tags of a run over a range of partitions, both ends included."""
    return {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}


BRIDGED_DAYS = 5
"""Untouched days that a range may run over: cutting them again changes nothing, and costs less than another run."""


def day_ranges(days: Sequence[str], now: datetime | None = None) -> list[tuple[str, str]]:
    """Days that have ended → ranges of them, each of ``DAYS_PER_RUN`` at most, over gaps of ``BRIDGED_DAYS``."""
    today = day_of(now or datetime.now(UTC))  # partitions end with the machine's clock, as Dagster's do
    ranges: list[tuple[str, str]] = []
    for day in sorted(d for d in days if d < today):
        near = ranges and shift_day(ranges[-1][1], BRIDGED_DAYS + 1) >= day
        if near and shift_day(ranges[-1][0], DAYS_PER_RUN) > day:
            ranges[-1] = (ranges[-1][0], day)
        else:
            ranges.append((day, day))
    return ranges


def _running(context: dg.SensorEvaluationContext, *jobs: str) -> bool:
    return any(context.instance.get_runs_count(dg.RunsFilter(job_name=job, statuses=IN_PROGRESS)) for job in jobs)


JOBS = [
    land_logs,
    readmit_job,
    day_job,
    bucket_job,
    replay_job,
    tier_job,
    health_job,
    reflection_job,
    reward_job,
    intent_job,
    emotion_job,
    entity_job,
    erasure_job,
    sweep_job,
    upkeep_job,
    recovery_job,
    store_check_job,
    store_repair_job,
    rebuild_job,
    reembed_job,
]
SCHEDULES = [
    daily_landing,
    daily,
    nightly_tiers,
    weekly_reflections,
    quarterly_retraining,
    daily_health,
    weekly_sweep,
    nightly_upkeep,
    nightly_store_check,
]
SENSORS = [inbox, touched_days, touched_buckets, approved_erasures, batches_left_open, skewed_impacts, dead_runs]
