"""Retraining, reflection, tiers and erasure killed at any point and run again: the same as one clean run."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from pipeline_world import House, Killed, derive_all, main_job
from quarter_world import LANDED, QUARTER, SECRET, Life, copied, dying, life_state, living, write_spring

from jobs.schedules import range_tags
from memory_pipelines.landing.sources import log_files
from memory_pipelines.pipeline import forget, reflection, reward
from memory_pipelines.pipeline import life as tiers
from memory_pipelines.wiring import Platform

NIGHTS = tiers.ends_of_days(LANDED, datetime(2024, 11, 1, tzinfo=UTC))
Job = Callable[[Platform], None]


# ---- in memory: at every kind of change


def retrain(platform: Platform) -> None:
    reward.collect_reward_events(platform, LANDED)
    reward.train_reward(platform, LANDED)
    reward.decide_reward(platform, LANDED)
    derive_all(platform)


def reflect(platform: Platform) -> None:
    for week in reflection.mondays(["2024-06-24", "2024-07-01"]):
        reflection.reflect_week(platform, week)


def move(platform: Platform) -> None:
    tiers.move_tiers(platform, NIGHTS[80:82])


def erase(platform: Platform) -> None:
    forget.erase_waiting(platform)
    main_job(platform, [])


def old(platform: Platform) -> None:
    """All that is not exempt is deleted by age, after its time in the cold."""
    later = [LANDED + timedelta(days=days) for days in (100, 5_000, 5_001)]
    tiers.move_tiers(platform, later)


def asked(platform: Platform) -> Platform:
    """A request to forget the first person that has memories is approved."""
    owner = min({memory.owner for memory in platform.authority.everything_visible()}, key=lambda o: o.key)
    forget.approve_erasure(platform, forget.request_erasure(platform, owner, "desk"), "officer")
    return platform


@pytest.mark.parametrize("job", [retrain, reflect, move, old, erase])
def test_killed_before_any_kind_of_change(life: Life, job: Job) -> None:
    start = asked(life.platform) if job is erase else life.platform
    clean = copied(start)
    with dying(clean) as names:
        job(clean)
    expected = life_state(clean)
    assert expected != life_state(start)
    assert set(expected["unfinished"]) == {0}
    rng = random.Random(1)
    points = set()
    for name in sorted(set(names)):
        points.add(rng.choice([number for number, other in enumerate(names, start=1) if other == name]))
    for point in sorted(points):
        platform = copied(start)
        with pytest.raises(Killed), dying(platform, point) as calls:
            job(platform)
        assert calls == names[:point]
        job(platform)
        assert life_state(platform) == expected, f"killed before change {point}, {names[point - 1]}"


# ---- for real: the process of a run


_PROCESS = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
from jobs.schedules import range_tags
from pipeline_world import House

home, job, first, last, module, name, call = sys.argv[1:]
*path, method = name.split(".")
target = import_module("memory_pipelines.stores." + module)
for part in path:
    target = getattr(target, part)
whole, calls = getattr(target, method), []

def dying(*arguments, **named):
    calls.append(1)
    if len(calls) == int(call):
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments, **named)

setattr(target, method, dying)
house = House(Path(home))
with house.instance() as instance:
    house.run(job, instance, range_tags(first, last) if first else {})
"""
"""A run that dies when a method of a store is called for the n-th time."""


@pytest.mark.embedded
def test_each_job_killed_in_its_process(house: House, derived: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is killed once, run again, and compared with a life in memory that nobody killed."""
    monkeypatch.setenv("MEMORY_PIPELINES_CERTIFICATE_SECRET", SECRET)
    house.reset()
    write_spring(house.inbox / "sample")
    clean = copied(derived)
    with house.instance() as instance, house.platform() as platform:
        main_job(platform, log_files(house.inbox))  # by the library: quicker than by Dagster
        assert life_state(platform) == life_state(clean)
        for job, first, last, at in (
            ("reward_job", QUARTER, QUARTER, ("registry", "ModelRegistry.promote", "1")),
            ("reflection_job", "2024-06-03", "2024-07-01", ("tasks", "TaskList.replace_week", "3")),
            ("tier_job", "2024-10-08", "2024-10-20", ("relational", "PostgresAuthority.finish", "1")),
            ("erasure_job", "", "", ("lake", "DeltaLake.purge", "3")),
        ):
            if job == "erasure_job":
                asked(platform)
                asked(clean)
            with living(clean) as other:
                other.run(job, first, last)
            main_job(clean, [])
            die(house, job, first, last, *at)
            assert life_state(platform) != life_state(clean)
            house.run(job, instance, range_tags(first, last) if first else {})
            main_job(platform, [])
            assert life_state(platform) == life_state(clean), f"{job} was killed"
        assert not forget.sweep_erased(platform).survivors
        statuses = [run.status for run in instance.get_runs()]
        assert statuses.count(dg.DagsterRunStatus.STARTED) == 4  # nobody was left to say how they ended
        assert statuses.count(dg.DagsterRunStatus.FAILURE) == 0


def die(house: House, *arguments: str) -> None:
    """Run a job in a process that dies on the way."""
    here = Path(__file__).resolve().parent
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS, str(house.home), *arguments],
        env=os.environ | house.environment | {"PYTHONPATH": os.pathsep.join([str(here.parents[1]), str(here)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
