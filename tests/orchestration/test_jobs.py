"""Sensors, schedule, range backfills, blocking checks, and what Dagster is told of the people in the logs."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test
from pipeline_world import BUCKETS, NOW, WEEKS, House, clean_run, cut, state

from assets.partitions import DAYS_PER_RUN, bucket_key, bucket_keys
from jobs.schedules import day_ranges, range_tags
from memory_pipelines.landing.sources import log_files
from memory_pipelines.model import day_of, days_between, shift_day
from memory_pipelines.pipeline import audit, daily, files, model_sets
from memory_pipelines.tables import BEHAVIOUR, EXCHANGES, QUARANTINE, TURNS
from resources.platform import PlatformResource

pytestmark = pytest.mark.embedded

MANIFEST = dg.AssetKey("day_manifest")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def empty(house: House) -> House:
    house.reset()
    return house


def tick(house: House, name: str, instance: dg.DagsterInstance, now: str = NOW.isoformat()) -> list[dict[str, str]]:
    """One evaluation of a sensor: the tags of the runs that it asks for."""
    defs = house.definitions()
    resource = PlatformResource(home=str(house.home), now=now)
    with dg.build_sensor_context(instance=instance, definitions=defs, resources={"memory": resource}) as context:
        requests = defs.get_repository_def().get_sensor_def(name).evaluate_tick(context).run_requests or []
    return [{k: v for k, v in request.tags.items() if k in range_tags("", "")} for request in requests]


def turn(number: int, at: datetime, text: str = "Where is my parcel? SF Express says nothing") -> dict[str, Any]:
    return {
        "conversation_id": "c-1",
        "turn_id": f"t-{number}",
        "user_id": "person-4711",
        "role": "user",
        "occurred_at": at.isoformat(),
        "text": text,
    }


def write(house: House, name: str, rows: Sequence[dict[str, Any]]) -> None:
    house.inbox.mkdir(parents=True, exist_ok=True)
    (house.inbox / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


# ---- sensors and schedule


def test_the_inbox_finds_a_new_file_once(empty: House, instance: dg.DagsterInstance) -> None:
    assert tick(empty, "inbox", instance) == []
    write(empty, "one.jsonl", [turn(1, NOW - timedelta(days=3))])
    write(empty, "readme.txt", [])
    (empty.inbox / ".hidden.jsonl").write_text("{}")
    assert tick(empty, "inbox", instance) == [{}]
    run = create_run_for_test(instance, job_name="land_logs", status=dg.DagsterRunStatus.STARTED)
    assert tick(empty, "inbox", instance) == [], "it is being landed"
    instance.report_run_canceled(run)
    assert tick(empty, "inbox", instance) == [{}], "nobody lands it any more"
    empty.run("land_logs", instance)
    assert tick(empty, "inbox", instance) == []
    (empty.inbox / "one.jsonl").rename(empty.inbox / "same under another name.jsonl")
    assert tick(empty, "inbox", instance) == [{}], "a look reads no content"
    empty.run("land_logs", instance)
    assert tick(empty, "inbox", instance) == []
    write(empty, "two.jsonl", [turn(2, NOW - timedelta(days=2))])
    assert tick(empty, "inbox", instance) == [{}]


def test_touched_days_are_asked_for_in_ranges_once_they_have_ended(empty: House, instance: dg.DagsterInstance) -> None:
    now = datetime.now(UTC)
    write(empty, "now.jsonl", [turn(1, now - timedelta(minutes=1))])
    write(empty, "old.jsonl", [turn(2 + n, datetime(2024, 1, 5, 8, tzinfo=UTC) + timedelta(days=n)) for n in range(70)])
    with PlatformResource(home=str(empty.home)).open() as platform:
        files.land(platform, log_files(empty.inbox))
        touched = list(platform.ledger.touched_days())
    assert touched[-1] > day_of(now)
    requests = tick(empty, "touched_days", instance)
    ranges = [tuple(tags.values()) for tags in requests]
    asked = [days_between(first, last) for first, last in ranges]
    assert max(map(len, asked)) == DAYS_PER_RUN
    flat = [day for days in asked for day in days]
    assert flat == [day for day in touched if day < day_of(datetime.now(UTC))]
    assert requests[0] == range_tags("2024-01-03", "2024-02-01")
    for job in ("land_logs", "day_job"):
        run = create_run_for_test(instance, job_name=job, status=dg.DagsterRunStatus.STARTED)
        assert tick(empty, "touched_days", instance) == []
        instance.report_run_canceled(run)
    assert tick(empty, "touched_days", instance) == requests


def test_day_ranges() -> None:
    now = datetime(2024, 3, 10, 0, 0, 1, tzinfo=UTC)
    assert day_ranges([], now) == []
    assert day_ranges(["2024-03-10", "2024-03-11"], now) == []
    assert day_ranges(["2024-03-09"], now) == [("2024-03-09", "2024-03-09")]
    assert day_ranges(["2024-03-09", "2024-03-01", "2024-03-02"], now) == [
        ("2024-03-01", "2024-03-02"),
        ("2024-03-09", "2024-03-09"),
    ]
    month = days_between("2024-01-01", "2024-01-31")
    assert day_ranges(month, now) == [("2024-01-01", "2024-01-30"), ("2024-01-31", "2024-01-31")]


def test_touched_buckets_wait_for_the_days_and_are_asked_for_in_one_run(
    empty: House, instance: dg.DagsterInstance
) -> None:
    assert tick(empty, "touched_buckets", instance) == []
    people = [f"person-{n}" for n in range(12)]
    rows = [turn(n, NOW - timedelta(days=20)) | {"user_id": name} for n, name in enumerate(people)]
    write(empty, "one.jsonl", rows)
    empty.run("land_logs", instance)
    assert tick(empty, "touched_buckets", instance) == [], "landed, not cut"
    (tags,) = tick(empty, "touched_days", instance)
    empty.run("day_job", instance, tags)
    whole = [range_tags(bucket_key(0), bucket_key(BUCKETS - 1))]
    for job in ("land_logs", "day_job", "bucket_job"):
        for status in (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED):
            run = create_run_for_test(instance, job_name=job, status=status)
            assert tick(empty, "touched_buckets", instance) == []
            instance.delete_run(run.run_id)
    assert tick(empty, "touched_buckets", instance) == whole
    empty.run("bucket_job", instance, whole[0])
    assert tick(empty, "touched_buckets", instance) == []


def test_every_night_the_day_that_has_ended(house: House, instance: dg.DagsterInstance) -> None:
    repository = house.definitions().get_repository_def()
    schedule = repository.get_schedule_def("daily")
    at = datetime(2024, 5, 18, 0, 30, tzinfo=UTC)
    with dg.build_schedule_context(
        instance=instance, scheduled_execution_time=at, repository_def=repository
    ) as context:
        (request,) = schedule.evaluate_tick(context).run_requests or []
    assert request.partition_key == "2024-05-17"
    assert schedule.cron_schedule == "30 0 * * *"
    assert schedule.execution_timezone in (None, "UTC")


# ---- a whole run


@pytest.fixture(scope="module")
def ran(house: House) -> Iterator[tuple[House, dg.DagsterInstance]]:
    """A fortnight run as the sensors would, on an instance on disk; one row of it is quarantined with its text."""
    logs = house.reset(WEEKS)
    told = [turn(n, NOW - timedelta(days=290 + n), f"I live in street number {n} of Aberdeen") for n in range(9)]
    future = turn(10, NOW + timedelta(days=400), "a quarantined sentence that nobody else says")
    write(house, "sample/logs/default/late.jsonl", [*told, future])
    expected = state(clean_run([*logs, house.inbox / "sample/logs/default/late.jsonl"]))
    with house.instance() as instance:
        assert house.main_job(instance) == expected
        yield house, instance


def test_a_range_run_materialises_each_partition(ran: tuple[House, dg.DagsterInstance]) -> None:
    house, instance = ran
    with house.platform() as platform:
        days = set(platform.ledger.day_counts())
    assert len(days) > WEEKS.days
    for name in ("exchanges", "intent_action", "emotion", "entities", "day_manifest"):
        assert instance.get_materialized_partitions(dg.AssetKey(name)) == days
    for name in ("decision_impact", "event_slices", "memories", "slice_graph", "published_memories"):
        assert instance.get_materialized_partitions(dg.AssetKey(name)) == set(bucket_keys(BUCKETS))
    jobs = Counter(run.job_name for run in instance.get_runs())
    assert jobs == {"land_logs": 1, "day_job": 1, "bucket_job": 1}


def test_counts_are_shown(ran: tuple[House, dg.DagsterInstance]) -> None:
    house, instance = ran
    event = instance.get_latest_materialization_event(dg.AssetKey("landed_logs"))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    with house.platform() as platform:
        accounts = audit.accounts(platform)
        exchanges = platform.lake.read(EXCHANGES).num_rows
    quarantined = {k: v for k, v in accounts.quarantined.items() if k != "conflicting_version"}
    assert metadata["rows"] == accounts.rows
    assert metadata["rejected_rows"] == sum(quarantined.values()) > 1
    assert metadata["quarantined_by_reason"] == quarantined
    assert metadata["filtered_by_rule"] == accounts.filtered
    for name in ("exchanges", "intent_action", "emotion", "entities"):
        event = instance.get_latest_materialization_event(dg.AssetKey(name))
        assert event is not None
        assert event.asset_materialization is not None
        assert event.asset_materialization.metadata["dagster/row_count"].value == exchanges


def test_every_check_ran_and_passed(ran: tuple[House, dg.DagsterInstance]) -> None:
    house, instance = ran
    results = {}
    for run in instance.get_runs():
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
            evaluation = entry.get_dagster_event().asset_check_evaluation_data
            results[evaluation.asset_check_key] = evaluation.passed
    made = {
        key
        for name in ("land_logs", "day_job", "bucket_job")
        for key in house.definitions().resolve_job_def(name).asset_layer.selected_asset_keys
    }
    checks = (key for part in house.definitions().asset_checks or () for key in part.check_keys)
    assert set(results) == {key for key in checks if key.asset_key in made}
    assert all(results.values())


def test_dagster_is_told_nothing_personal(ran: tuple[House, dg.DagsterInstance]) -> None:
    """Neither texts nor user ids of the log are in anything that the instance keeps: it is never erased."""
    house, instance = ran
    with house.platform() as platform:
        turns, behaviour = platform.lake.read(TURNS), platform.lake.read(BEHAVIOUR)
        quarantined = platform.lake.read(QUARANTINE)["raw"].to_pylist()
        memories = [m for owner in platform.authority.owners() for m in platform.authority.visible(owner)]
    users = {s.partition(":")[2] for s in turns["subject"].to_pylist() + behaviour["subject"].to_pylist() if s}
    sentences = {text for text in turns["text"].to_pylist() if len(text) > 7}
    sentences |= {m.summary for m in memories} | {m.text for m in memories if len(m.text) > 7}
    assert "a quarantined sentence that nobody else says" in "".join(quarantined)
    needles = {"a quarantined sentence that nobody else says", "person-4711", *users, *sentences, *quarantined}
    assert len(needles) > 100
    kept = [
        *(
            file.read_bytes().decode("utf-8", "replace")
            for file in (house.home / "dagster").rglob("*")
            if file.is_file()
        ),
        *(dg.serialize_value(run) for run in instance.get_runs()),
        *(dg.serialize_value(entry) for run in instance.get_runs() for entry in instance.all_logs(run.run_id)),
    ]
    haystack = "\n".join(kept)
    assert "day_manifest" in haystack
    assert "landed_through" in haystack
    found = [n for n in needles if n in haystack or json.dumps(n)[1:-1] in haystack]
    assert found == []


# ---- blocking checks


def lost_turn(turns: Any, days: Any, buckets: int, whole: Any = daily.cut_exchanges) -> Any:
    """Step 1 with a fault: a turn is counted nowhere."""
    result = whole(turns, days, buckets)
    busy = max(result.counts.values(), key=lambda c: c.in_exchanges)
    busy.in_exchanges -= 1
    return result


def lost_intent(exchanges: Any, model_set: Any, model: Any, whole: Any = model_sets.label_intents) -> Any:
    """Step 2 with a fault: an exchange gets no label."""
    return whole(exchanges, model_set, model).slice(1)


def lost_emotion(exchanges: Any, model_set: Any, scorer: Any, whole: Any = model_sets.label_emotions) -> Any:
    """Step 3 with a fault: no exchange gets a label."""
    return whole(exchanges, model_set, scorer).slice(0, 0)


@pytest.mark.parametrize(
    ("module", "name", "fault", "check"),
    [
        (daily, "cut_exchanges", lost_turn, "turns_add_up"),
        (model_sets, "label_intents", lost_intent, "all_exchanges_labelled"),
        (model_sets, "label_emotions", lost_emotion, "all_exchanges_labelled"),
    ],
)
def test_a_failed_blocking_check_keeps_the_day_from_being_derived(
    empty: House,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    fault: Any,
    check: str,
) -> None:
    write(empty, "one.jsonl", [turn(n, NOW - timedelta(days=9, minutes=5 * n)) for n in range(4)])
    empty.run("land_logs", instance)
    (tags,) = tick(empty, "touched_days", instance)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fault)
        result = empty.run("day_job", instance, tags, check=False)
    assert not result.success
    failed = [e for e in result.get_asset_check_evaluations() if not e.passed]
    assert {e.check_name for e in failed} == {check}
    assert not result.asset_materializations_for_node("day_manifest")
    assert instance.get_materialized_partitions(MANIFEST) == set()
    with empty.platform() as platform:
        assert platform.ledger.manifest() is None
        assert platform.ledger.day_counts() == {}
    assert tick(empty, "touched_buckets", instance) == []
    assert tick(empty, "touched_days", instance) == [tags]
    empty.run("day_job", instance, tags)
    assert tick(empty, "touched_days", instance) == []
    empty.run("bucket_job", instance, tick(empty, "touched_buckets", instance)[0])
    with empty.platform() as platform:
        assert state(platform) == state(clean_run(log_files(empty.inbox)))


def test_a_day_under_way_in_another_run_stops_nobody(empty: House, instance: dg.DagsterInstance) -> None:
    """Its exchanges are written, its labels not yet, while the blocking checks of another day look."""
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    write(empty, "one.jsonl", [turn(n, at + timedelta(days=10 * n)) for n in range(2)])
    empty.run("land_logs", instance)
    early, late = (day_of(at + timedelta(days=10 * n)) for n in range(2))
    with empty.platform() as platform:
        daily.cut_days(platform, [late])
        assert platform.ledger.draft_counts()[late]["exchanges"] == 1
    empty.run("day_job", instance, range_tags(shift_day(early, -1), shift_day(early, 1)))
    empty.run("day_job", instance, {"dagster/partition": shift_day(early, 2)})
    assert instance.get_materialized_partitions(MANIFEST) == set(
        days_between(shift_day(early, -1), shift_day(early, 2))
    )
    with empty.platform() as platform:
        assert late in platform.ledger.touched_days()
        cut(platform, [late])
        assert late not in platform.ledger.touched_days()
