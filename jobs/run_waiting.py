"""What waits is worked off, through Dagster in one process: what sensors would launch, without a daemon.

Belongs here: the order of landing, days and buckets, and running a job. Does not belong here: any step of them.
``make jobs`` runs it on the home's inbox.
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import dagster as dg

from assets.partitions import BUCKETS, bucket_key, bucket_keys
from jobs.reaping import reap
from jobs.schedules import day_ranges, range_tags
from memory_pipelines.pipeline import files
from memory_pipelines.settings import Settings
from memory_pipelines.wiring import Platform, connect

QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def main() -> int:
    with connect(Settings.load(), progress=say) as platform, dg.DagsterInstance.get() as instance:
        reap(instance)
        runner = Runner(instance)
        work_off(runner, platform, platform.clock.now())
        if not runner.runs:
            say("nothing waits")
    return 0


def work_off(runner: "Runner", platform: Platform, now: datetime) -> None:
    """Land new files and the journal, cut the days that they touched, derive the subjects whose rows changed."""
    if files.unlanded(platform, files.inbox(platform)) or files.journal_waits(platform):
        runner.run("land_logs", now)
    for first, last in day_ranges(list(platform.ledger.touched_days()), now):
        runner.run("day_job", now, range_tags(first, last))
    buckets = platform.ledger.touched_buckets()
    if buckets:
        runner.instance.add_dynamic_partitions(str(BUCKETS.name), bucket_keys(platform.settings.buckets))
        runner.run("bucket_job", now, range_tags(bucket_key(min(buckets)), bucket_key(max(buckets))))


def say(line: str) -> None:
    print(f"  {line}", flush=True)


@dataclass
class Runner:
    """What each job did: runs, seconds and the numbers of its last asset, added up."""

    instance: dg.DagsterInstance
    runs: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    did: dict[str, Counter[str]] = field(default_factory=dict)

    def run(self, job: str, now: datetime, tags: dict[str, str] | None = None, partition: str | None = None) -> None:
        """Run a job at an instant. Raises what a step raised."""
        from memory_pipelines.definitions import build_defs

        began = time.monotonic()
        done = (
            build_defs(now=now.isoformat())
            .resolve_job_def(job)
            .execute_in_process(instance=self.instance, tags=tags or {}, partition_key=partition, run_config=QUIET)
        )
        spent = time.monotonic() - began
        self.runs[job] += 1
        self.seconds[job] += round(spent, 1)  # type: ignore[assignment]
        numbers = self.did.setdefault(job, Counter())
        seen: set[tuple[str, ...]] = set()
        for event in done.get_asset_materialization_events():
            key = tuple(event.asset_key.path) if event.asset_key else ()
            if key in seen:
                continue  # one materialisation per partition of a range, all with the same metadata
            seen.add(key)
            for name, value in event.materialization.metadata.items():
                if name in SHOWN and isinstance(value.value, int | float):
                    numbers[f"{SHOWN[name]}"] += int(value.value)
        say(f"{now:%Y-%m-%d}  {job:<15} {_what(tags, partition):<26} {spent:5.1f} s")


SHOWN = {
    "rows": "rows read",
    "turns": "turns cut",
    "shown": "memories shown",
    "hidden": "hidden",
    "moved": "moved",
    "deleted": "deleted",
    "persons": "persons",
    "follow_ups": "follow-ups",
    "promoted": "promoted",
    "erased": "erased",
    "survivors": "survivors",
}
"""Metadata that the table shows, and under which name."""


def _what(tags: dict[str, str] | None, partition: str | None) -> str:
    return partition or " to ".join(sorted({*(tags or {}).values()}))


if __name__ == "__main__":
    sys.exit(main())
