"""Turns per second of steps 1 to 6, of the gate and of publishing: as a library and under Dagster.

    python -m benchmarks.throughput [--turns 10000 100000] [--modes library dagster] [--repeat 1] [--out FILE.json]
    python -m benchmarks.throughput --to-slices --turns 1000000 10000000 --buckets 64

Belongs here: the protocol, one table. Does not belong here: how time is taken (``stopwatch``).

Protocol: simulated bilingual logs of 100 days (``memory_pipelines.sample``, seed 7), embedded servers, a Delta
lake on disk, the default model set, no embeddings before publishing. Each run is a fresh process with a fresh
home; starting the servers and writing the logs are not counted. Days run in ranges of 30. Both modes call the
same functions of the pipeline and are timed there; what else passes until the jobs end is Dagster's own.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import describe, line
from benchmarks.stopwatch import GATE, ONE_TO_SIX, PUBLISHING, STEPS, ServerClock, Spent, Stopwatch
from benchmarks.workplace import temporary_home

if TYPE_CHECKING:
    from memory_pipelines.wiring import Platform

MODES = ("library", "dagster")
DAYS_IN_A_ROW = 30
QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
INSTANCE = Path(__file__).parents[1] / "deploy" / "local" / "dagster.yaml"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, nargs="+", default=[10_000, 100_000], help="sizes of the logs, in turns")
    parser.add_argument("--modes", choices=MODES, nargs="+", default=list(MODES))
    parser.add_argument("--repeat", type=int, default=1, help="runs of each; the table shows the median one")
    parser.add_argument("--to-slices", action="store_true", help="library only: stop after step 6, for large logs")
    parser.add_argument("--buckets", type=int, default=8, help="buckets of subjects; 64 or more for large logs")
    parser.add_argument("--out", type=Path, help="also write every run to this JSON file")
    parser.add_argument("--one", nargs=3, metavar=("MODE", "LOGS", "RESULT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.one:
        mode, logs, result = arguments.one
        run = run_one(mode, Path(logs), arguments.buckets, to_slices=arguments.to_slices)
        Path(result).write_text(json.dumps(run), encoding="utf-8")
        return 0
    modes = ["library"] if arguments.to_slices else arguments.modes
    options = ["--buckets", str(arguments.buckets), *(["--to-slices"] if arguments.to_slices else [])]
    machine = describe()
    print(line(machine), flush=True)
    runs: list[dict[str, Any]] = []
    for size in arguments.turns:
        runs += measure(size, modes, arguments.repeat, options)
        print_table(size, [_median(runs, size, mode) for mode in modes], arguments.repeat)
    for size in arguments.turns:
        print(summary(size, [_median(runs, size, mode) for mode in modes]))
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine, "runs": runs}, indent=1), encoding="utf-8")
    return 0


def measure(size: int, modes: Sequence[str], repeat: int, options: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Every run of one size: a dict with ``mode``, ``size``, ``turns`` and what ``run_one`` measured."""
    from memory_pipelines.sample import Config, write_sample

    runs = []
    with tempfile.TemporaryDirectory(prefix="mp-bench-logs-") as folder:
        written = write_sample(Path(folder), Config.sized(size))
        for _ in range(repeat):
            for mode in modes:
                result = Path(folder) / "result.json"
                command = [sys.executable, "-m", "benchmarks.throughput", "--one", mode, folder, str(result), *options]
                subprocess.run(command, check=True)
                runs.append({"mode": mode, "size": size, "turns": written.turns} | json.loads(result.read_text()))
    return runs


def run_one(mode: str, logs: Path, buckets: int, *, to_slices: bool) -> dict[str, Any]:
    """All steps (or steps 1-6) over the logs below ``logs``, in this process; seconds per step, rows, memory in MB."""
    from memory_pipelines.settings import Settings
    from memory_pipelines.wiring import connect

    with temporary_home() as home:
        os.environ["MEMORY_PIPELINES_HOME"] = str(home)
        os.environ["MEMORY_PIPELINES_INBOX"] = str(logs / "logs")
        os.environ["MEMORY_PIPELINES_BUCKETS"] = str(buckets)
        with connect(Settings.load()) as platform:
            stopwatch = Stopwatch(ServerClock(home))
            with stopwatch.watching():
                if mode == "library":
                    return _library(platform, stopwatch, to_slices=to_slices)
                return _dagster(platform, stopwatch)


def _library(platform: "Platform", stopwatch: Stopwatch, *, to_slices: bool) -> dict[str, Any]:
    from memory_pipelines.pipeline import daily, derive, files
    from memory_pipelines.slices.emotion.score import label_emotions
    from memory_pipelines.slices.entities.find import label_entities
    from memory_pipelines.slices.intent.predict import label_intents
    from memory_pipelines.tables import EMOTIONS, ENTITIES, INTENTS

    began = stopwatch.now()
    files.land(platform, [platform.settings.inbox_path])
    waiting = list(platform.ledger.touched_days())
    for first in range(0, len(waiting), DAYS_IN_A_ROW):
        days = waiting[first : first + DAYS_IN_A_ROW]
        daily.cut_days(platform, days)
        daily.label_days(platform, days, INTENTS, label_intents)
        daily.label_days(platform, days, EMOTIONS, label_emotions)
        daily.label_days(platform, days, ENTITIES, label_entities)
        daily.commit_days(platform, days)
    buckets = platform.ledger.touched_buckets()
    derive.score_buckets(platform, buckets)
    derive.merge_buckets(platform, buckets)
    if not to_slices:
        derive.admit_buckets(platform, buckets)
    memory = _peak_mb()
    if not to_slices:
        derive.link_buckets(platform, buckets)
        derive.publish_buckets(platform, buckets)
    return _result(platform, stopwatch, stopwatch.now() - began, memory, runs=0)


def _dagster(platform: "Platform", stopwatch: Stopwatch) -> dict[str, Any]:
    import dagster as dg

    with _instance(platform.settings.home_path) as instance:
        began = stopwatch.now()
        _run_jobs(instance, platform)
        spent = stopwatch.now() - began
        failed = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
        assert not failed, f"{failed} runs failed"
        return _result(platform, stopwatch, spent, _peak_mb(), runs=instance.get_runs_count())


def _run_jobs(instance: Any, platform: "Platform") -> None:
    """What the sensors would launch for new files in the inbox, in this process."""
    from assets.partitions import bucket_key
    from jobs import schedules
    from memory_pipelines.definitions import defs

    def run(job: str, tags: dict[str, str]) -> None:
        defs.resolve_job_def(job).execute_in_process(instance=instance, tags=tags, run_config=QUIET)

    run(schedules.land_logs.name, {})
    for first, last in schedules.day_ranges(list(platform.ledger.touched_days())):
        run(schedules.day_job.name, schedules.range_tags(first, last))
    buckets = platform.ledger.touched_buckets()
    run(schedules.bucket_job.name, schedules.range_tags(bucket_key(min(buckets)), bucket_key(max(buckets))))


@contextmanager
def _instance(home: Path) -> Iterator[Any]:
    """The instance of ``make run``, in the home."""
    import dagster as dg

    folder = home / "dagster"
    folder.mkdir()
    (folder / "dagster.yaml").write_bytes(INSTANCE.read_bytes())
    os.environ["DAGSTER_HOME"] = str(folder)
    with dg.DagsterInstance.get() as instance:
        yield instance


def _result(platform: "Platform", stopwatch: Stopwatch, spent: Spent, memory: int, runs: int) -> dict[str, Any]:
    from memory_pipelines import local
    from memory_pipelines.pipeline import audit
    from memory_pipelines.tables import DECISIONS, EXCHANGES, MEMORIES, SLICES

    accounts = audit.accounts(platform)
    assert (accounts.balance, accounts.uncut) == (0, 0), "rows are missing: this is no measurement"
    specs = (EXCHANGES, SLICES, DECISIONS, MEMORIES)
    tables = {spec.name: platform.lake.read(spec, columns=["owner"]).num_rows for spec in specs}
    return {
        "steps": {name: asdict(step) for name, step in stopwatch.steps.items()},
        "all": asdict(spent),
        "runs": runs,
        "rows": {"read": accounts.rows, "turns_in_exchanges": accounts.in_exchanges} | tables,
        "peak_mb": memory,
        "server_mb": round(sum(s.memory for s in local.status(platform.settings.home_path)) / 1e6),
    }


def _peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)


# ---- what is printed


def _median(runs: Sequence[dict[str, Any]], size: int, mode: str) -> dict[str, Any]:
    """The run with the median time of steps 1-6 (the lower one of two)."""
    own = sorted((run for run in runs if (run["size"], run["mode"]) == (size, mode)), key=seconds)
    return own[(len(own) - 1) // 2]


def seconds(run: dict[str, Any], names: Sequence[str] = ONE_TO_SIX, clock: str = "wall") -> float:
    """Seconds that a run spent in the named steps."""
    return float(sum(run["steps"][name][clock] for name in names))


def own_cost(run: dict[str, Any], clock: str = "wall") -> float:
    """What passed outside of every step: for Dagster its own cost, with its checks."""
    return float(run["all"][clock]) - seconds(run, tuple(STEPS.values()), clock)


def print_table(size: int, runs: Sequence[dict[str, Any]], repeat: int) -> None:
    """One table: a row per step, for each mode wall, processor seconds, servers' processor seconds, share of wall."""
    head = runs[0]
    rows = ", ".join(f"{name} {count}" for name, count in head["rows"].items())
    print(f"\n{size} turns asked for, {head['turns']} written; {rows}; median of {repeat}, seconds")
    print(f"{'':<20}" + "".join(f"{run['mode'] + ': wall':>15}{'cpu':>8}{'servers':>9}{'share':>7}" for run in runs))
    for name in STEPS.values():
        if any(run["steps"][name]["wall"] for run in runs):
            print(f"{name:<20}" + "".join(_cells(run, (name,)) for run in runs))
    for name, steps in (("steps 1-6", ONE_TO_SIX), ("steps 1-6 and gate", (*ONE_TO_SIX, GATE))):
        print(f"{name:<20}" + "".join(_cells(run, steps) for run in runs))
    print(f"{'outside of steps':<20}" + "".join(_numbers(run, [own_cost(run, c) for c in CLOCKS]) for run in runs))
    print(f"{'all':<20}" + "".join(_numbers(run, [run["all"][clock] for clock in CLOCKS]) for run in runs))
    print(f"{'peak memory, MB':<20}" + "".join(f"{run['peak_mb']:>15}{'':>24}" for run in runs))
    print(f"{'servers at end, MB':<20}" + "".join(f"{run['server_mb']:>15}{'':>24}" for run in runs), flush=True)


CLOCKS = ("wall", "cpu", "server_cpu")


def _cells(run: dict[str, Any], names: Sequence[str]) -> str:
    return _numbers(run, [seconds(run, names, clock) for clock in CLOCKS])


def _numbers(run: dict[str, Any], spent: Sequence[float]) -> str:
    wall, cpu, servers = spent
    return f"{wall:>15.2f}{cpu:>8.2f}{servers:>9.2f}{100 * wall / run['all']['wall']:>6.0f}%"


def summary(size: int, runs: Sequence[dict[str, Any]]) -> str:
    """One line: turns per second of steps 1-6 per mode, of the gate too, and memories per second of publishing."""
    parts = []
    for run in runs:
        one_to_six, with_gate = (run["turns"] / seconds(run, names) for names in (ONE_TO_SIX, (*ONE_TO_SIX, GATE)))
        publishing = run["rows"]["memories"] / max(seconds(run, PUBLISHING), 1e-9)
        text = f"{run['mode']}: {one_to_six:.0f} turns/s, peak {run['peak_mb']} MB"
        if publishing:
            text += f" ({with_gate:.0f} turns/s with the gate), {publishing:.0f} memories/s"
        if run["runs"]:
            text += f", Dagster's own {own_cost(run):.1f} s in {run['runs']} runs"
        parts.append(text)
    return f"{size} turns, " + "; ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
