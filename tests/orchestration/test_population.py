"""The population snapshot: the same from any order, k-anonymous, pinned, and whom a new one touches."""

import random
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pipeline_world import LAYERS, cut, derive_all, in_memory, layers, state, write_logs
from quarter_world import copied, living, told

from memory_pipelines.admission.snapshot import EMPTY, MIN_HOLDERS, MIN_SUBJECTS, UNKNOWN_INTENTS, hashed
from memory_pipelines.clock import FixedClock
from memory_pipelines.model import day_start, shift_day
from memory_pipelines.pipeline import derive, files, population
from memory_pipelines.sample import Config
from memory_pipelines.tables import DECISIONS, INTENTS, MEMORIES, POPULATION
from memory_pipelines.wiring import Platform

CROWD = Config(subjects=26, days=12, tenants=("default",), demo=False)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A few days of more persons than a snapshot needs, and of one person of another tenant."""
    return write_logs(tmp_path_factory.mktemp("crowd"), CROWD)


@pytest.fixture(scope="module")
def labelled(crowd: list[Path]) -> Platform:
    """All days cut and labelled, nobody derived; to be copied."""
    platform = landed(crowd)
    cut(platform, list(platform.ledger.touched_days()))
    return platform


@pytest.fixture
def platform(labelled: Platform) -> Platform:
    return copied(labelled)


def landed(logs: list[Path]) -> Platform:
    platform = in_memory()
    files.land(platform, logs)
    return platform


def pinned(platform: Platform) -> set[str]:
    return set(platform.lake.read(DECISIONS)["snapshot"].to_pylist())


@pytest.fixture(scope="module")
def clean(labelled: Platform) -> tuple[str, dict[str, object]]:
    platform = copied(labelled)
    assert population.snapshot_due(platform)
    built = population.build_snapshot(platform)
    assert built is not None
    derive_all(platform)
    return built.in_use.snapshot, state(platform)


def test_the_order_of_days_changes_neither_the_snapshot_nor_what_is_judged_by_it(
    crowd: list[Path], clean: tuple[str, dict[str, object]]
) -> None:
    rng = random.Random(1)
    platform = landed(crowd)
    days = list(platform.ledger.touched_days())
    rng.shuffle(days)
    while days:
        taken = rng.randint(1, 5)
        cut(platform, days[:taken])
        days = days[taken:]
    built = population.build_snapshot(platform)
    assert built is not None
    assert built.in_use.snapshot == clean[0]
    derive_all(platform)
    assert pinned(platform) == {clean[0]}
    assert state(platform) == clean[1]


def test_nothing_is_kept_that_few_share_and_no_name_is(platform: Platform) -> None:
    built = population.build_snapshot(platform)
    assert built is not None
    (tenant,) = built.tenants
    assert tenant == "default", "a tenant of few subjects has no snapshot"
    rows = platform.lake.read(POPULATION).to_pylist()
    shared = [row for row in rows if row["key"]]
    assert len(shared) == built.in_use.keys > MIN_HOLDERS
    assert min(row["subjects"] for row in shared) >= MIN_HOLDERS
    assert all(len(row["key"]) == 32 and set(row["key"]) <= set("0123456789abcdef") for row in shared)
    holders: dict[str, set[str]] = defaultdict(set)
    for row in platform.lake.read(INTENTS, where=[("tenant", "=", "default")]).to_pylist():
        holders[row["intent"]].add(row["owner"])
    figures = built.tenants["default"].counts
    expected = {name: len(owners) for name, owners in holders.items() if name not in UNKNOWN_INTENTS}
    assert min(expected.values()) < MIN_HOLDERS <= max(expected.values())
    for name, subjects in expected.items():
        assert figures.get(hashed(f"intent={name}"), 0) == (subjects if subjects >= MIN_HOLDERS else 0)


def test_the_first_one_touches_everybody_and_a_like_one_nobody(platform: Platform) -> None:
    derive_all(platform)
    assert pinned(platform) == {EMPTY}
    first = population.build_snapshot(platform)
    assert first is not None
    assert first.in_use.everybody
    assert platform.ledger.touched_buckets() == list(range(platform.settings.buckets))
    derive_all(platform)
    assert pinned(platform) == {first.in_use.snapshot}
    again = population.build_snapshot(platform, everybody=True)
    assert again is not None
    assert (again.new, again.in_use.snapshot, again.in_use.movement) == (False, first.in_use.snapshot, 0.0)
    assert platform.ledger.touched_buckets() == []
    assert platform.lake.read(POPULATION).num_rows == first.in_use.keys + 1


def test_another_one_touches_nobody_unless_it_moved_far_or_is_asked_to(
    crowd: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = landed(crowd)
    days = list(begun.ledger.touched_days())
    cut(begun, days[:-4])
    population.build_snapshot(begun)
    derive_all(begun)
    cut(begun, days[-4:])
    derive_all(begun)

    def after(movement: float, *, everybody: bool) -> tuple[bool, bool]:
        platform = copied(begun)
        monkeypatch.setattr(population, "MOST_MOVEMENT", movement)
        second = population.build_snapshot(platform, everybody=everybody)
        assert second is not None
        assert second.new
        assert 0 < second.in_use.movement < 1
        return second.in_use.everybody, bool(platform.ledger.touched_buckets())

    assert after(1.0, everybody=False) == (False, False)
    assert after(0.0, everybody=False) == (True, True)
    assert after(1.0, everybody=True) == (True, True)


def test_a_derivation_that_has_begun_keeps_its_snapshot(platform: Platform) -> None:
    buckets = range(platform.settings.buckets)
    derive.score_buckets(platform, buckets)
    population.build_snapshot(platform)
    derive.merge_buckets(platform, buckets)
    derive.admit_buckets(platform, buckets)
    assert pinned(platform) == {EMPTY}


def test_when_one_is_due(platform: Platform, crowd: list[Path]) -> None:
    assert not population.snapshot_due(landed(crowd)), "no day is committed"
    assert population.snapshot_due(platform)
    built = population.build_snapshot(platform)
    assert built is not None
    assert not population.snapshot_due(platform)
    found = built.in_use
    platform.ledger.use_snapshot(replace(found, landed_through=found.landed_through - timedelta(days=6)))
    assert not population.snapshot_due(platform)
    platform.ledger.use_snapshot(replace(found, landed_through=found.landed_through - timedelta(days=7)))
    assert population.snapshot_due(platform), "a week of logs later"
    platform.ledger.use_snapshot(replace(found, known_subjects=found.known_subjects // 2))
    assert population.snapshot_due(platform), "an import has doubled the subjects"


def test_few_subjects_have_the_empty_snapshot(weeks: list[Path]) -> None:
    platform = landed(weeks)
    cut(platform, list(platform.ledger.touched_days()))
    assert 0 < platform.ledger.known_owners() < MIN_SUBJECTS
    assert not population.snapshot_due(platform)
    built = population.build_snapshot(platform)
    assert built is not None
    assert (built.in_use.snapshot, built.in_use.everybody, built.new) == (EMPTY, False, False)
    derive_all(platform)
    assert pinned(platform) == {EMPTY}


def test_what_many_share_counts_less(platform: Platform) -> None:
    """Of episodes that name nothing, the intent decides how distinct they are."""
    built = population.build_snapshot(platform)
    assert built is not None
    derive_all(platform)
    found = {dict(row["parts"])["personalisation.distinctiveness"] for row in platform.lake.read(DECISIONS).to_pylist()}
    assert len(found) > 5
    assert min(found) < 0.5 < max(found)
    assert set(platform.lake.read(MEMORIES)["term"].to_pylist()) == {"short", "long"}


def test_the_bucket_job_makes_one_before_it_derives(platform: Platform) -> None:
    day = max(platform.ledger.day_counts())
    platform.clock = FixedClock(day_start(shift_day(day, 1)))
    with living(platform) as life:
        (tags,) = life.tick("touched_buckets")
        result = life.run("bucket_job", *tags.values())
        found = told(result, "population_snapshot")
        assert (found["new"], found["everybody_derived_anew"]) == (True, True)
        assert pinned(platform) == {found["snapshot"]}
        assert told(result, "memories")["by_arm"] == {"A": platform.lake.read(DECISIONS).num_rows}
        assert life.tick("touched_buckets") == []
        before = layers(platform)
        again = life.run("bucket_job", *tags.values())
        assert told(again, "population_snapshot") == {"snapshot": found["snapshot"], "new": False}
        assert layers(platform) == before
        assert {spec.name for spec in LAYERS} == set(before)
