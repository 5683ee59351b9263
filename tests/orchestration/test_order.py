"""Order cannot matter: whatever the days, runs and files come in, equal canonical rows and equal memories shown."""

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from pipeline_world import (
    BUCKETS,
    LAYERS,
    MONTH,
    House,
    clean_run,
    cut,
    derive_all,
    in_memory,
    split_logs,
    state,
    write_logs,
)

from assets.partitions import bucket_key
from jobs.schedules import range_tags
from memory_pipelines.pipeline import audit, daily, derive, files, upkeep
from memory_pipelines.sample import Config
from memory_pipelines.stores.lake import DeltaLake
from memory_pipelines.tables import DECISIONS, EXCHANGES, MEMORIES, SLICES
from memory_pipelines.wiring import Platform


def landed(logs: Sequence[Path], **settings: object) -> tuple[Platform, list[str]]:
    platform = in_memory(**settings)
    files.land(platform, logs)
    return platform, list(platform.ledger.touched_days())


@pytest.fixture(scope="module")
def clean(month: list[Path]) -> dict[str, object]:
    """A month as one range and one derivation."""
    platform = clean_run(month)
    expected = state(platform)
    assert expected["balance"] == 0
    assert expected["waiting"] == ([], [])
    assert expected["unfinished"] == [0] * 5
    return expected


def test_the_month_has_something_of_everything(month: list[Path], clean: dict[str, object]) -> None:
    platform = clean_run(month)
    assert state(platform) == clean
    accounts = audit.accounts(platform)
    assert min(accounts.duplicates, accounts.behaviour, accounts.in_exchanges) > 3
    assert accounts.quarantined["conflicting_version"] == 2
    for spec in (EXCHANGES, SLICES, DECISIONS, MEMORIES):
        rows = platform.lake.read(spec)
        assert {"default", "acme"} <= set(rows["tenant"].to_pylist())
    assert set(platform.lake.read(MEMORIES)["term"].to_pylist()) == {"short", "long"}
    assert len(set(platform.lake.read(SLICES)["feedback"].to_pylist())) > 2


def test_day_by_day_deriving_after_each(month: list[Path], clean: dict[str, object]) -> None:
    platform, days = landed(month)
    for day in days:
        cut(platform, [day])
        derive_all(platform)
    assert state(platform) == clean


def test_tiers_and_terms_pass_alike_day_by_day(month: list[Path]) -> None:
    """In the short life of the commerce profile memories change tiers and expire within the month."""
    clean = clean_run(month, profile="commerce")
    tiers = {m.tier for owner in clean.authority.owners() for m in clean.authority.visible(owner)}
    assert len(tiers) > 1
    platform, days = landed(month, profile="commerce")
    for day in days:
        cut(platform, [day])
        derive_all(platform)
    assert state(platform) == state(clean)


@pytest.mark.parametrize(("seed", "between"), [(1, False), (2, True), (3, True)])
def test_days_in_any_order(month: list[Path], clean: dict[str, object], seed: int, between: bool) -> None:
    platform, days = landed(month)
    rng = random.Random(seed)
    rng.shuffle(days)
    while days:
        taken = rng.randint(1, 4)
        cut(platform, days[:taken])
        days = days[taken:]
        if between and rng.random() < 0.5:
            derive_all(platform)
    derive_all(platform)
    assert state(platform) == clean


def test_everything_twice(month: list[Path], clean: dict[str, object]) -> None:
    platform, days = landed(month)
    for _ in range(2):
        assert {f.status for f in files.land(platform, month)} == {"known"}
        cut(platform, days)
        derive_all(platform)
    assert state(platform) == clean
    done = derive.derive_buckets(platform, range(platform.settings.buckets), everything=True)
    assert (done.shown, done.hidden, done.unchanged_owners) == (0, 0, done.owners)
    assert state(platform) == clean


def test_a_day_that_is_cut_again_without_a_change_touches_nobody(month: list[Path]) -> None:
    platform, days = landed(month)
    cut(platform, days)
    derive_all(platform)
    cut(platform, days)
    assert platform.ledger.touched_buckets() == []


@pytest.mark.parametrize(("seed", "scattered"), [(1, False), (2, True), (3, True)])
def test_other_files_late_and_in_any_order(
    month: list[Path], clean: dict[str, object], tmp_path: Path, seed: int, scattered: bool
) -> None:
    rng = random.Random(seed)
    logs = split_logs(month, tmp_path, 3, rng if scattered else None)
    rng.shuffle(logs)
    platform = in_memory()
    while logs:
        taken = rng.randint(1, 6)
        files.land(platform, logs[:taken])
        logs = logs[taken:]
        days = list(platform.ledger.touched_days())
        rng.shuffle(days)
        for start in range(0, len(days), 7):
            cut(platform, days[start : start + 7])
            if rng.random() < 0.3:
                derive_all(platform)
    derive_all(platform)
    assert state(platform) == clean


def test_a_delta_lake_says_the_same(month: list[Path], clean: dict[str, object], tmp_path: Path) -> None:
    platform = in_memory()
    platform.__dict__["lake"] = DeltaLake(str(tmp_path / "lake"))
    rng = random.Random(4)
    logs = list(month)
    rng.shuffle(logs)
    for part in (logs[:3], logs[3:]):
        files.land(platform, part)
        days = list(platform.ledger.touched_days())
        rng.shuffle(days)
        for start in range(0, len(days), 12):
            cut(platform, days[start : start + 12])
        derive_all(platform)
    assert state(platform) == clean


@pytest.mark.parametrize("buckets", [1, 64])
def test_the_number_of_buckets_changes_no_memory(month: list[Path], clean: dict[str, object], buckets: int) -> None:
    other = state(clean_run(month, buckets=buckets))
    assert {name: other[name] for name in ("shown", "vectors", "graph")} == {
        name: clean[name] for name in ("shown", "vectors", "graph")
    }


@pytest.mark.embedded
def test_one_range_run_through_dagster(house: House, clean: dict[str, object]) -> None:
    house.reset(MONTH)
    assert house.main_job() == clean
    before = {spec.name: house.lake_version(spec) for spec in LAYERS}
    assert house.main_job() == clean
    assert {spec.name: house.lake_version(spec) for spec in LAYERS} == before


@pytest.mark.embedded
def test_a_run_a_day_through_dagster(house: House, clean: dict[str, object]) -> None:
    house.reset(MONTH)
    instance = dg.DagsterInstance.ephemeral()
    house.run("land_logs", instance)
    with house.platform() as platform:
        days = list(platform.ledger.touched_days())
        assert len(days) > MONTH.days
        for number, day in enumerate(days):
            house.run("day_job", instance, range_tags(day, day))
            if number % 12 == 11:
                house.run("bucket_job", instance, range_tags(bucket_key(0), bucket_key(BUCKETS - 1)))
        house.run("bucket_job", instance, range_tags(bucket_key(0), bucket_key(BUCKETS - 1)))
        assert state(platform) == clean


@pytest.mark.parametrize("kept", [upkeep.KEPT, timedelta(0)], ids=["versions kept", "no version kept"])
def test_small_portions_and_compacted_files_say_the_same(
    month: list[Path], clean: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: timedelta
) -> None:
    monkeypatch.setattr(daily, "MOST_ROWS", 30)
    monkeypatch.setattr(derive, "MOST_EXCHANGES", 8)
    platform = in_memory()
    platform.__dict__["lake"] = DeltaLake(str(tmp_path / "lake"))
    rng = random.Random(5)
    compacted: set[str] = set()
    for part in (month[::2], month[1::2]):
        files.land(platform, part)
        days = list(platform.ledger.touched_days())
        for start in range(0, len(days), 9):
            cut(platform, days[start : start + 9])
            if rng.random() < 0.3:
                derive_all(platform)
                compacted |= set(upkeep.keep_up(platform, most_files=1, kept=kept).compacted)
    derive.derive_buckets(platform, range(platform.settings.buckets), everything=True)
    assert {"turns", "exchanges", "entities", "slices", "memories"} <= compacted
    assert state(platform) == clean
    assert not upkeep.keep_up(platform, kept=kept).waiting


SIXTY_DAYS = Config(subjects=3, days=60, broken=0.03, duplicates=0.06, late=0.5, midnight=0.2, sessionless=0.4)


@pytest.fixture(scope="module")
def sixty_days(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], dict[str, object]]:
    logs = write_logs(tmp_path_factory.mktemp("sixty"), SIXTY_DAYS)
    return logs, state(clean_run(logs))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_sixty_days_in_thirty_permutations(
    sixty_days: tuple[list[Path], dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Files split at random, some late, landed and cut in any order, in runs and portions of any size."""
    logs, clean = sixty_days
    rng = random.Random(seed)
    monkeypatch.setattr(daily, "MOST_ROWS", rng.choice([25, 100, 100_000]))
    monkeypatch.setattr(derive, "MOST_EXCHANGES", rng.choice([5, 40, 100_000]))
    waiting = split_logs(logs, tmp_path, rng.randint(2, 5), rng if rng.random() < 0.7 else None)
    rng.shuffle(waiting)
    platform = in_memory()
    while waiting:
        taken = rng.randint(1, len(waiting))
        files.land(platform, waiting[:taken])
        waiting = waiting[taken:]
        days = list(platform.ledger.touched_days())
        if rng.random() < 0.5:
            rng.shuffle(days)
        length = rng.choice([1, 4, 30, 60])
        for start in range(0, len(days), length):
            cut(platform, days[start : start + length])
            if rng.random() < 0.1:
                derive_all(platform)
    derive_all(platform)
    assert state(platform) == clean
