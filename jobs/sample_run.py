"""One quarter lived through on the sample logs, by Dagster in one process: what ``make run`` does.

Belongs here: the order of the jobs as time passes, and a summary. Does not belong here: any step of them. What it
launches is what schedules and sensors would launch, on the same instance that ``make ui`` shows. The clock is
injected: each month's logs arrive on the first of the next one.
"""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from jobs import schedules
from jobs.reaping import reap
from jobs.run_waiting import Runner, say, work_off
from jobs.schedules import range_tags
from memory_pipelines.cli import print_answer
from memory_pipelines.clock import FixedClock
from memory_pipelines.model import Owner
from memory_pipelines.pipeline import audit, forget
from memory_pipelines.sample import Config, write_sample
from memory_pipelines.settings import Settings
from memory_pipelines.tables import DECISIONS, SLICES
from memory_pipelines.wiring import Platform, connect

QUESTIONS = (("u:zh-demo", "我之前投诉过什么物流问题？"), ("u:en-demo", "What seat do I prefer when flying?"))
FORGOTTEN = "u:cbe82feea52"
QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def main() -> int:
    began = time.monotonic()
    settings = Settings.load()
    with connect(settings, progress=say) as platform, dg.DagsterInstance.get() as instance:
        if died := reap(instance):
            say(f"{died} runs of killed processes closed")
        sample = settings.home_path / "sample"
        if not (sample / "truth").exists():
            summary = write_sample(sample, Config.sample())
            say(f"sample written: {summary.turns} turns of dialogue, {summary.rows['behaviour']} behaviour events")
        runner = Runner(instance)
        months = sorted({path.stem[-7:] for path in (sample / "logs").rglob("*-20*.*")})
        arrivals = [(month, _arrival(month)) for month in months]
        arrivals[-1] = (arrivals[-1][0], _last_midnight(sample))
        for number, (month, now) in enumerate(arrivals):
            after = arrivals[number + 1][1] if number + 1 < len(arrivals) else now
            _arrive(sample / "logs", month, settings.inbox_path)
            live(runner, platform, now, after)
        _forget_somebody(runner, platform, arrivals[-1][1])
        _summary(platform, runner, time.monotonic() - began)
    return 0


def live(runner: Runner, platform: Platform, now: datetime, until: datetime) -> None:
    """What the schedules and sensors launch from ``now``, when new logs have arrived, until ``until``."""
    platform.clock = FixedClock(now)
    work_off(runner, platform, now)
    for key in missing(runner.instance, "reward_champion", _quarters(now)):
        runner.run("reward_job", now, partition=key)
    work_off(runner, platform, now)  # a promoted model has everybody derived anew
    weeks = missing(runner.instance, "weekly_reflection", _weeks(platform, now))
    if weeks:
        runner.run("reflection_job", now, range_tags(weeks[0], weeks[-1]))
    for subject, question in QUESTIONS:
        platform.feedback.used(ask(platform, subject, question))
    days = missing(runner.instance, "memory_tiers", _days(now, until))
    if days:
        runner.run("tier_job", until, range_tags(days[0], days[-1]))


def missing(instance: dg.DagsterInstance, asset: str, keys: Sequence[str]) -> list[str]:
    """The partitions that were never materialised."""
    done = instance.get_materialized_partitions(dg.AssetKey(asset))
    return [key for key in keys if key not in done]


def _arrival(month: str) -> datetime:
    """The first of the month after."""
    first = date.fromisoformat(f"{month}-01")
    following = (first + timedelta(days=32)).replace(day=1)
    return datetime(following.year, following.month, 1, tzinfo=UTC)


def _last_midnight(sample: Path) -> datetime:
    config = Config.sample()
    end = config.start + timedelta(days=config.days)
    return datetime(end.year, end.month, end.day, tzinfo=UTC)


def _arrive(logs: Path, month: str, inbox: Path) -> None:
    for path in sorted(logs.rglob(f"*-{month}.*")):
        target = inbox / path.relative_to(logs)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target.with_suffix(".part"))
            target.with_suffix(".part").rename(target)  # whole or not at all: a sensor may be looking


def _quarters(now: datetime) -> list[str]:
    """The quarter whose last logs have arrived by ``now``: the one of the day before."""
    day = (now - timedelta(days=1)).date()
    return [date(day.year, 3 * ((day.month - 1) // 3) + 1, 1).isoformat()] if _closes(now) else []


def _closes(now: datetime) -> bool:
    """Whether a quarter's logs are complete: on its last month's arrival, and at the end of the sample."""
    return now.month in (1, 4, 7, 10) or now.day != 1


def _weeks(platform: Platform, now: datetime) -> list[str]:
    """Mondays of the weeks with landed days that have ended by ``now``."""
    days = [day for day, counts in platform.ledger.day_counts().items() if counts["landed"]]
    mondays = {date.fromisoformat(d) - timedelta(days=date.fromisoformat(d).weekday()) for d in days}
    return sorted(m.isoformat() for m in mondays if m + timedelta(days=7) <= now.date())


def _days(now: datetime, until: datetime) -> list[str]:
    return [(now + timedelta(days=n)).date().isoformat() for n in range((until - now).days)]


def ask(platform: Platform, subject: str, question: str) -> Any:
    """A recall at the platform's present."""
    return platform.recall.recall(question, tenant=platform.settings.tenant, subject=subject, limit=5)


def _forget_somebody(runner: Runner, platform: Platform, now: datetime) -> None:
    """File and approve a request to forget one person, carry it out, look again; then the health checks."""
    owner = Owner(platform.settings.tenant, FORGOTTEN)
    if owner.key in platform.authority.people([owner.key]):
        request_id = forget.request_erasure(platform, owner, "the person")
        forget.approve_erasure(platform, request_id, "data protection officer")
    if forget.waiting_erasures(platform):
        runner.run("erasure_job", now)
        work_off(runner, platform, now)
    if runner.runs:
        runner.run("sweep_job", now)
        runner.run("health_job", now)


def _summary(platform: Platform, runner: Runner, seconds: float) -> None:
    accounts = audit.accounts(platform)
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
        "  erased": accounts.erased,
        "  not accounted for": accounts.balance,
        "event slices": platform.lake.read(SLICES, columns=["slice_id"]).num_rows,
        "decisions of the gate": f"{sum(outcomes.values())}  {dict(sorted(outcomes.items()))}",
        "memories (PostgreSQL)": f"{visible['memories']}  { ({k: v for k, v in visible.items() if k != 'memories'}) }",
        "  vectors (Milvus)": platform.vectors.count(),
        "  graph (Bolt)": f"{nodes} nodes, {edges} edges",
        "  archived texts (S3)": len(platform.cold.keys()),
        "  keys (Valkey)": platform.hot.count(),
    }
    if runner.runs:
        print(f"\n{'job':<16}{'runs':>5}{'seconds':>9}   what it did")
    for job in (j.name for j in schedules.JOBS):
        if job in runner.runs:
            numbers = ", ".join(f"{n:,} {name}" for name, n in runner.did[job].items() if n or name == "survivors")
            print(f"{job:<16}{runner.runs[job]:>5}{runner.seconds[job]:>9.1f}   {numbers}")
    print()
    for name, value in rows.items():
        print(f"{name:<24} {value}")
    for subject, question in QUESTIONS:
        print(f"\n{subject} asks: {question}")
        print_answer(ask(platform, subject, question))
    print(f"\n{seconds:.0f} s in all. The same in the Dagster UI: make ui, then http://127.0.0.1:3000")


if __name__ == "__main__":
    sys.exit(main())
