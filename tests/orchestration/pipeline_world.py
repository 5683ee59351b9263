"""The whole pipeline on small logs: on in-memory stores in a second, on embedded servers through Dagster."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from assets.partitions import bucket_key
from jobs.schedules import day_ranges, range_tags
from memory_pipelines import local
from memory_pipelines.clock import FixedClock
from memory_pipelines.definitions import build_defs
from memory_pipelines.landing.sources import log_files
from memory_pipelines.model import days_between, stable_hash
from memory_pipelines.pipeline import audit, daily, derive, files
from memory_pipelines.sample import Config, write_sample
from memory_pipelines.settings import Settings
from memory_pipelines.slices.emotion.score import label_emotions
from memory_pipelines.slices.entities.find import label_entities
from memory_pipelines.slices.intent.predict import label_intents
from memory_pipelines.stores import database, schema
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryLake, MemoryVectors
from memory_pipelines.tables import (
    BEHAVIOUR,
    DECISIONS,
    EDGES,
    EMOTIONS,
    ENTITIES,
    EXCHANGES,
    IMPACTS,
    INTENTS,
    MEMORIES,
    QUARANTINE,
    SLICES,
    TURNS,
    TableSpec,
)
from memory_pipelines.wiring import Platform, connect

NOW = datetime(2025, 1, 1, tzinfo=UTC)
EMBEDDER = "hash"
BUCKETS = 2
LAYERS = (
    TURNS,
    BEHAVIOUR,
    QUARANTINE,
    EXCHANGES,
    INTENTS,
    EMOTIONS,
    ENTITIES,
    IMPACTS,
    SLICES,
    DECISIONS,
    MEMORIES,
    EDGES,
)
LABELS: tuple[tuple[TableSpec, daily.Step], ...] = (
    (INTENTS, label_intents),
    (EMOTIONS, label_emotions),
    (ENTITIES, label_entities),
)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


# ---- logs

MONTH = Config(subjects=5, days=30, broken=0.03, duplicates=0.06, late=0.5, midnight=0.2, sessionless=0.4)
WEEKS = Config(subjects=2, days=12, broken=0.03, duplicates=0.06, midnight=0.2)


def write_logs(folder: Path, config: Config) -> list[Path]:
    """A simulated log with turns that were edited, also onto another day, and ids with two contents."""
    write_sample(folder, config)
    start = datetime(config.start.year, config.start.month, config.start.day, tzinfo=UTC)
    rows = [
        _turn(start, 1, 23.98, "user", "h1", "我的订单 20240301888 还没有到，顺丰一直不更新"),
        _turn(start, 2, 0.01, "agent", "h2", "抱歉，我们马上为您查询"),
        _turn(start, 2, 0.02, "user", "h3", "再不到我就取消订单了"),
        _turn(start, 2, 0.02, "user", "h3", "再不到我就退款", edited_at=start.replace(hour=9).isoformat()),
        _turn(start, 4, 8.0, "user", "h4", "I am allergic to peanuts, please remember that"),
        _turn(start, 3, 8.0, "user", "h4", "I am allergic to shrimp, please remember that"),
        _turn(start, 4, 8.01, "agent", "h5", "Noted."),
        _turn(start, 4, 9.0, "user", None, "Where is my parcel?"),
        _turn(start, 4, 9.5, "user", None, "Where is my parcel?"),
    ]
    extra = folder / "logs" / config.tenants[0] / "history.jsonl"
    extra.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return log_files(folder)


def _turn(
    start: datetime, day: int, hour: float, role: str, turn: str | None, text: str, edited_at: str | None = None
) -> dict[str, Any]:
    seconds = round(start.timestamp()) + (day - 1) * 86_400 + round(hour * 3_600)
    row = {
        "conversation_id": "c-history",
        "user_id": "person-0815" if role == "user" else None,
        "turn_id": turn,
        "role": role,
        "text": text,
        "occurred_at": seconds,
        "edited_at": edited_at,
    }
    return {name: value for name, value in row.items() if value is not None}


def split_logs(logs: Sequence[Path], into: Path, count: int, rng: random.Random | None = None) -> list[Path]:
    """The same rows in ``count`` times as many files: in runs, or with ``rng`` each row in any file of its stream."""
    for source in logs:
        lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
        head = [lines.pop(0)] if source.suffix == ".csv" else []
        parts: list[list[str]] = [[] for _ in range(count)]
        for number, line in enumerate(lines):
            parts[rng.randrange(count) if rng else number * count // len(lines)].append(line)
        for number, part in enumerate(parts):
            if part:
                folder = into / source.parent.name
                folder.mkdir(parents=True, exist_ok=True)
                target = folder / f"{source.stem}-{number}{source.suffix}"
                target.write_text("".join(head + part), encoding="utf-8")
    return log_files(into)


# ---- the library on in-memory stores


def in_memory(**settings: Any) -> Platform:
    """A platform without a server."""
    chosen = {"home": "unused", "embedder": EMBEDDER, "buckets": BUCKETS} | settings
    platform = Platform(Settings(**chosen), FixedClock(NOW))
    vectors = MemoryVectors()
    vectors.ensure(platform.embedder.dimension)
    stores = {
        "lake": MemoryLake(),
        "engine": database.connect("sqlite://"),
        "vectors": vectors,
        "graph": MemoryGraph(),
        "hot": MemoryHot(platform.clock),
        "cold": MemoryCold(),
    }
    platform.__dict__.update(stores)  # where cached properties keep what they have built
    return platform


def cut(platform: Platform, days: Collection[str]) -> None:
    """Steps 1-4, as the day job does them."""
    daily.cut_days(platform, days)
    for spec, step in LABELS:
        daily.label_days(platform, days, spec, step)
    daily.commit_days(platform, days)


def derive_all(platform: Platform) -> None:
    """Steps 5-7 of what is touched."""
    if buckets := platform.ledger.touched_buckets():
        derive.derive_buckets(platform, buckets)


def clean_run(logs: Sequence[Path], **settings: Any) -> Platform:
    """What everything else is compared with: all files, all days at once, one derivation."""
    platform = in_memory(**settings)
    files.land(platform, logs)
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)
    return platform


def main_job(platform: Platform, logs: Sequence[Path]) -> None:
    """What waits, in the order of the jobs: landing, days in ranges, buckets."""
    files.land(platform, logs)
    for first, last in day_ranges(list(platform.ledger.touched_days())):
        cut(platform, days_between(first, last))
    derive_all(platform)


class Killed(BaseException):
    """The process died here: no handler may see it."""


CHANGES = {
    "lake": {"write"},
    "ledger": {
        "begin_file",
        "chunk_landed",
        "end_file",
        "note_source",
        "source_failed",
        "reopen",
        "readmitted",
        "announce",
        "announced_written",
        "days_written",
        "commit_days",
        "begin_derivation",
        "end_derivation",
    },
    "authority": {"prepare", "commit", "finish", "roll_back"},
    "vectors": {"upsert", "delete"},
    "graph": {"write", "drop"},
    "hot": {"put", "delete"},
    "cold": {"put", "archive", "delete"},
}
"""By part of the platform: the calls that change something, each atomic."""


@contextmanager
def dying_at(platform: Platform, number: int) -> Iterator[list[str]]:
    """The platform's changes are counted, and before change ``number`` it dies; yields their names so far."""
    calls: list[str] = []
    whole = {part: getattr(platform, part) for part in CHANGES}
    platform.__dict__.update({part: _Mortal(part, store, calls, number) for part, store in whole.items()})
    platform.__dict__.pop("publisher", None)
    try:
        yield calls
    finally:
        platform.__dict__.update(whole)
        platform.__dict__.pop("publisher", None)


@dataclass(frozen=True)
class _Mortal:
    part: str
    store: Any
    calls: list[str]
    number: int

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name not in CHANGES[self.part]:
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls.append(f"{self.part}.{name}")
            if len(self.calls) == self.number:
                raise Killed
            return found(*arguments, **named)

        return counted


# ---- what is compared


def layers(platform: Platform) -> dict[str, str]:
    """Hash of the canonical rows of every layer."""
    return {spec.name: canonical_hash(spec, platform.lake.read(spec)) for spec in LAYERS}


def published(platform: Platform) -> dict[str, Any]:
    """What readers see and what the stores hold, over all owners."""
    owners = platform.authority.owners()
    shown = [
        (owner.key, m.memory_id, m.version, str(m.tier)) for owner in owners for m in platform.authority.visible(owner)
    ]
    vectors = sorted(entry for owner in owners for entry in platform.vectors.entry_ids(owner))
    return {
        "shown": stable_hash(*map(repr, sorted(shown))),
        "shown memories": len(shown),
        "graph versions": stable_hash(*map(repr, sorted(platform.authority.graphs().items()))),
        "vectors": (len(vectors), stable_hash(*vectors)),  # a server's own count may lag behind a delete
        "graph": platform.graph.count(),
        "cold": stable_hash(*sorted(platform.cold.keys())),
        "unfinished": [len(platform.authority.open_batches()), *audit.store_differences(platform).values()],
    }


def state(platform: Platform) -> dict[str, Any]:
    """All of it, with what is left to do and what is not accounted for."""
    return {
        **layers(platform),
        **published(platform),
        "waiting": (list(platform.ledger.touched_days()), platform.ledger.touched_buckets()),
        "balance": audit.accounts(platform).balance,
        "accounts": audit.accounts(platform).as_dict(),
    }


# ---- through Dagster on embedded servers


_PROCESS = """
import sys
from pathlib import Path
from pipeline_world import House
house = House(Path(sys.argv[1]))
with house.instance() as instance:
    print("begins", flush=True)
    house.main_job(instance)
"""


@dataclass
class House:
    """One home with its servers; ``reset`` makes it empty while they go on running."""

    home: Path

    @property
    def settings(self) -> Settings:
        return Settings(home=str(self.home), embedder=EMBEDDER, buckets=BUCKETS)

    @property
    def environment(self) -> dict[str, str]:
        """What a process of this home needs, instead of arguments."""
        return {
            "MEMORY_PIPELINES_HOME": str(self.home),
            "MEMORY_PIPELINES_EMBEDDER": EMBEDDER,
            "MEMORY_PIPELINES_BUCKETS": str(BUCKETS),
        }

    @property
    def inbox(self) -> Path:
        return self.settings.inbox_path

    def platform(self) -> Platform:
        return connect(self.settings, clock=FixedClock(NOW))

    def definitions(self) -> dg.Definitions:
        return build_defs(home=str(self.home), now=NOW.isoformat())

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """The home's Dagster instance, on disk."""
        folder = self.home / "dagster"
        folder.mkdir(exist_ok=True)
        with dg.DagsterInstance.local_temp(str(folder)) as instance:
            yield instance

    def reset(self, config: Config | None = None) -> list[Path]:
        """Empty all stores, then write the log of ``config`` into the inbox."""
        local.up(self.home)
        platform = self.platform()
        _clear(platform)
        schema.metadata.drop_all(database.connect(platform.settings.postgres_url))
        platform.close()
        for name in ("lake", "inbox", "dagster"):
            shutil.rmtree(self.home / name, ignore_errors=True)
        return [] if config is None else write_logs(self.inbox / "sample", config)

    def run(
        self, job: str, instance: dg.DagsterInstance, tags: dict[str, str] | None = None, *, check: bool = True
    ) -> Any:
        """One run of a job in this process; without ``check`` a failure is returned, not raised."""
        definition = self.definitions().resolve_job_def(job)
        return definition.execute_in_process(instance=instance, tags=tags or {}, run_config=QUIET, raise_on_error=check)

    def process(self) -> subprocess.Popen[str]:
        """``main_job`` on the home's instance in a process of its own, which says when it begins."""
        here = Path(__file__).resolve().parent
        path = os.pathsep.join([str(here.parents[1]), str(here)])
        return subprocess.Popen(
            [sys.executable, "-c", _PROCESS, str(self.home)],
            env=os.environ | self.environment | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def lake_version(self, spec: TableSpec) -> int:
        with self.platform() as platform:
            return platform.lake.version(spec)

    def main_job(self, instance: dg.DagsterInstance | None = None) -> dict[str, Any]:
        """Everything that waits, as the sensors would launch it; the state after it."""
        instance = instance or dg.DagsterInstance.ephemeral()
        with self.platform() as platform:
            if files.unlanded(platform, files.inbox(platform)):
                self.run("land_logs", instance)
            for first, last in day_ranges(list(platform.ledger.touched_days())):
                self.run("day_job", instance, range_tags(first, last))
            if buckets := platform.ledger.touched_buckets():
                self.run("bucket_job", instance, range_tags(bucket_key(min(buckets)), bucket_key(max(buckets))))
            return state(platform)


def _clear(platform: Platform) -> None:
    """Remove whatever the stores hold, also what no authority names."""
    from neo4j import GraphDatabase
    from pymilvus import MilvusClient
    from redis import Redis

    client = MilvusClient(uri=platform.settings.milvus_url, dedicated=True)
    for collection in client.list_collections():
        client.drop_collection(collection)
    client.close()
    with Redis.from_url(platform.settings.redis_url) as redis:
        redis.flushall()
    settings = platform.settings
    with GraphDatabase.driver(settings.neo4j_url, auth=(settings.neo4j_user, settings.neo4j_password)) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n", database_=settings.neo4j_database)
    platform.cold.delete(platform.cold.keys())
