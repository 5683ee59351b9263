"""The main job on the sample logs, through Dagster, in one process: what ``make run`` does.

Belongs here: the order of the jobs for a first look, and a summary. Does not belong here: any step of
them. What it launches is what the sensors would launch, on the same instance that ``make ui`` shows.
"""

import sys
import time
from collections import Counter
from datetime import datetime

import dagster as dg

from assets.partitions import bucket_key
from jobs.schedules import bucket_job, day_job, day_ranges, land_logs, range_tags
from memory_pipelines import pipeline
from memory_pipelines.cli import print_answer
from memory_pipelines.sample import Config, write_sample
from memory_pipelines.settings import Settings
from memory_pipelines.tables import DECISIONS, SLICES
from memory_pipelines.wiring import Platform, connect

QUESTIONS = (("u:zh-demo", "我之前投诉过什么物流问题？"), ("u:en-demo", "What seat do I prefer when flying?"))
QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def main() -> int:
    from memory_pipelines.definitions import defs

    began = time.monotonic()
    settings = Settings.load()
    with connect(settings, progress=_say) as platform, dg.DagsterInstance.get() as instance:
        sample = settings.inbox_path / "sample"
        if not (sample / "truth").exists():
            summary = write_sample(sample, Config.sample())
            _say(f"sample written: {summary.turns} turns of dialogue")
        run_jobs(defs, instance, platform)
        _summary(platform, time.monotonic() - began)
    return 0


def run_jobs(defs: dg.Definitions, instance: dg.DagsterInstance, platform: Platform) -> None:
    """Land what is new, cut the days that it touched, derive the subjects whose rows changed."""
    files = pipeline.unlanded(platform, pipeline.log_files(platform.settings.inbox_path))
    if files:
        _run(defs, instance, land_logs.name, f"landing {len(files)} files", {})
    for first, last in day_ranges(list(platform.ledger.touched_days())):
        _run(defs, instance, day_job.name, f"steps 1-4, {first} to {last}", range_tags(first, last))
    buckets = platform.ledger.touched_buckets()
    if buckets:
        first, last = bucket_key(min(buckets)), bucket_key(max(buckets))
        _run(defs, instance, bucket_job.name, f"steps 5-7, buckets {first} to {last}", range_tags(first, last))


def _run(defs: dg.Definitions, instance: dg.DagsterInstance, job: str, what: str, tags: dict[str, str]) -> None:
    began = time.monotonic()
    defs.resolve_job_def(job).execute_in_process(instance=instance, tags=tags, run_config=QUIET)
    _say(f"{what}: {time.monotonic() - began:.1f} s")


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _summary(platform: Platform, seconds: float) -> None:
    accounts = pipeline.accounts(platform)
    visible = platform.authority.counts()
    nodes, edges = platform.graph.count()
    outcomes = Counter[str](platform.lake.read(DECISIONS, columns=["outcome"])["outcome"].to_pylist())
    rows = {
        "rows read": accounts.rows,
        "  turns in exchanges": accounts.in_exchanges,
        "  behaviour events": accounts.behaviour,
        "  filtered": f"{sum(accounts.filtered.values())}  {accounts.filtered}",
        "  duplicates": accounts.duplicates,
        "  of nobody": accounts.nobody,
        "  quarantined": f"{sum(accounts.quarantined.values())}  {accounts.quarantined}",
        "  not accounted for": accounts.balance,
        "event slices": platform.lake.read(SLICES, columns=["slice_id"]).num_rows,
        "decisions of the gate": f"{sum(outcomes.values())}  {dict(sorted(outcomes.items()))}",
        "memories (PostgreSQL)": f"{visible['memories']}  { {k: v for k, v in visible.items() if k != 'memories'} }",
        "  vectors (Milvus)": platform.vectors.count(),
        "  graph (Bolt)": f"{nodes} nodes, {edges} edges",
        "  archived texts (S3)": len(platform.cold.keys()),
        "  keys (Valkey)": platform.hot.count(),
    }
    print()
    for name, value in rows.items():
        print(f"{name:<24} {value}")
    for subject, question in QUESTIONS:
        print(f"\n{subject} asks: {question}")
        print_answer(
            platform.recall.recall(
                question, tenant=platform.settings.tenant, subject=subject, as_of=_end(platform), limit=5
            )
        )
    print(f"\n{seconds:.0f} s in all. The same in the Dagster UI: make ui, then http://127.0.0.1:3000")


def _end(platform: Platform) -> datetime | None:
    """The sample's present: the end of its last day."""
    manifest = platform.ledger.manifest()
    return manifest.landed_through if manifest else None


if __name__ == "__main__":
    sys.exit(main())
