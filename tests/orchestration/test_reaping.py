"""Runs whose process has died are failed; live ones, other hosts' and untagged ones are left alone."""

import subprocess
import sys

import dagster as dg
import psutil

from jobs.reaping import IN_PROGRESS, reap
from jobs.schedules import dead_runs
from resources.platform import PROCESS_TAG, is_alive, this_process


def started(instance: dg.DagsterInstance, tags: dict[str, str]) -> str:
    @dg.job
    def some_job() -> None: ...

    return instance.create_run_for_job(some_job, tags=tags, status=dg.DagsterRunStatus.STARTED).run_id


def gone() -> str:
    """The tag of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        host = this_process().split("/")[0]
        tag = f"{host}/{process.pid}/{psutil.Process(process.pid).create_time():.2f}"
        assert is_alive(tag)
        process.kill()
    return tag


def test_only_the_dead_are_reaped() -> None:
    dead = gone()
    _, pid, _ = this_process().rsplit("/", 2)
    with dg.DagsterInstance.ephemeral() as instance:
        runs = {
            "dead": started(instance, {PROCESS_TAG: dead}),
            "reused id": started(instance, {PROCESS_TAG: f"{this_process().split('/')[0]}/{pid}/1.00"}),
            "alive": started(instance, {PROCESS_TAG: this_process()}),
            "elsewhere": started(instance, {PROCESS_TAG: "another-host/1/1.00"}),
            "untagged": started(instance, {}),
        }
        assert reap(instance) == 2
        left = {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=IN_PROGRESS))}
        assert left == {runs["alive"], runs["elsewhere"], runs["untagged"]}
        failed = instance.get_run_by_id(runs["dead"])
        assert failed is not None
        assert failed.status == dg.DagsterRunStatus.FAILURE
        assert reap(instance) == 0
        with dg.build_sensor_context(instance=instance) as context:
            assert "0 runs" in str(dead_runs(context).skip_message)
