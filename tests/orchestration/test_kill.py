"""Killed at any point, run, process or server, and run again: the same as one clean run."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg
import psutil
import pytest
from pipeline_world import (
    BUCKETS,
    WEEKS,
    House,
    Killed,
    clean_run,
    dying_at,
    in_memory,
    main_job,
    split_logs,
    state,
)

from assets.partitions import bucket_key
from jobs.schedules import range_tags
from memory_pipelines import local
from memory_pipelines.endpoints import EMBEDDED
from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.local import processes
from memory_pipelines.pipeline import derive
from memory_pipelines.tables import INTENTS
from memory_pipelines.wiring import Platform

ALL_BUCKETS = range_tags(bucket_key(0), bucket_key(BUCKETS - 1))


# ---- in memory: at every kind of change


@pytest.fixture(scope="module")
def clean(weeks: list[Path]) -> dict[str, object]:
    expected = state(clean_run(weeks))
    assert expected["balance"] == 0
    assert expected["graph"] > (3, 3)
    return expected


def changes(logs: Sequence[Path]) -> list[str]:
    """The names of all changes of a run that nobody kills."""
    platform = in_memory()
    with dying_at(platform, 0) as calls:
        main_job(platform, logs)
    return calls


def test_killed_before_any_change(weeks: list[Path], clean: dict[str, object]) -> None:
    """Before the first and some other change of every kind."""
    names = changes(weeks)
    rng = random.Random(1)
    points = set()
    for name in sorted(set(names)):
        at = [number for number, other in enumerate(names, start=1) if other == name]
        points |= {at[0], rng.choice(at)}
    for point in sorted(points):
        platform = in_memory()
        with pytest.raises(Killed), dying_at(platform, point) as calls:
            main_job(platform, weeks)
        assert calls == names[:point]
        main_job(platform, weeks)
        assert state(platform) == clean, f"killed before change {point}, {names[point - 1]}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_again_and_again_while_files_come_in(
    weeks: list[Path], clean: dict[str, object], tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    waiting = split_logs(weeks, tmp_path, 3, rng)
    rng.shuffle(waiting)
    platform = in_memory()
    there: list[Path] = []
    kills = 0
    for _ in range(12):
        there += [waiting.pop() for _ in range(min(len(waiting), 3))]
        try:
            with dying_at(platform, rng.randint(1, 40)):
                main_job(platform, there)
        except Killed:
            kills += 1
    assert not waiting
    assert kills > 4
    main_job(platform, there)
    assert state(platform) == clean


# ---- for real: the process of a run


def is_in(phase: str, platform: Platform) -> bool:
    """Whether a run is in the middle of something, as the stores tell."""
    ledger = platform.ledger
    if phase == "landing":
        return any(not file["complete"] for file in ledger.files())
    if phase == "days":
        return bool(ledger.draft_counts()) and platform.lake.version(INTENTS) >= 0
    if phase == "buckets":
        plan = ledger.plan(0)
        return plan is not None and bool(plan.owners) and 0 in ledger.touched_buckets()
    return bool(platform.authority.open_batches())


@pytest.mark.embedded
def test_a_run_killed_in_every_phase(house: House, clean: dict[str, object]) -> None:
    """Four processes, each killed in the middle of another phase; the fifth run ends what they began."""
    house.reset(WEEKS)
    with house.platform() as platform:
        for phase in ("landing", "days", "buckets", "publishing"):
            kill_in(lambda phase=phase: is_in(phase, platform), house)
    with house.instance() as instance:
        assert house.main_job(instance) == clean
        statuses = [run.status for run in instance.get_runs()]
        assert statuses.count(dg.DagsterRunStatus.STARTED) == 4  # nobody was left to say how they ended
        assert statuses.count(dg.DagsterRunStatus.FAILURE) == 0
        assert house.main_job(instance) == clean


def kill_in(in_the_middle: Callable[[], bool], house: House) -> None:
    """Start a run in a process and send SIGKILL in the middle: it is stopped first, to be sure of the moment."""
    process = house.process()
    assert process.stdout is not None
    try:
        while process.stdout.readline() != "begins\n":
            assert process.poll() is None
        while True:
            if in_the_middle():
                process.send_signal(signal.SIGSTOP)
                if in_the_middle():
                    break
                process.send_signal(signal.SIGCONT)
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.002)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


# ---- for real: the servers


@pytest.mark.embedded
def test_servers_killed_in_the_middle_of_the_bucket_job(
    house: House, weeks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows come in, a server dies while they are derived, the next run starts it again: one after the other."""
    house.reset()
    logs = split_logs(weeks, tmp_path, len(EMBEDDED))
    there: list[Path] = []
    instance = dg.DagsterInstance.ephemeral()
    for number, (server, setting) in enumerate(EMBEDDED.items()):
        wave = [path for path in logs if path.stem.endswith(f"-{number}")]
        for path in wave:
            target = house.inbox / path.parent.name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        there += wave
        house.run("land_logs", instance)
        with house.platform() as platform:
            days = list(platform.ledger.touched_days())
        house.run("day_job", instance, range_tags(days[0], days[-1]))
        with monkeypatch.context() as patch:
            patch.setattr(derive, "link_buckets", dying_server(house, server))
            with pytest.raises(StoreUnavailableError) as raised:
                house.run("bucket_job", instance, ALL_BUCKETS)
        assert setting.upper() in raised.value.setting
        assert raised.value.setting in str(raised.value)
        assert [s.name for s in local.status(house.home) if not s.running] == [server]
        house.run("bucket_job", instance, ALL_BUCKETS)
        with house.platform() as platform:
            assert state(platform) == state(clean_run(there)), f"{server} was killed"


def dying_server(house: House, name: str) -> Callable[[Platform, Sequence[int]], object]:
    """Step 7's first half, in which a server dies."""
    whole = derive.link_buckets

    def link_buckets(platform: Platform, buckets: Sequence[int]) -> object:
        edges = whole(platform, buckets)
        for found in local.status(house.home):
            if found.name == name and found.pid is not None:
                process = psutil.Process(found.pid)
                process.kill()
                while not processes.is_gone(process):
                    time.sleep(0.01)
        return edges

    return link_buckets
