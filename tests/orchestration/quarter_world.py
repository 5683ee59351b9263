"""A small log lived through: a platform in memory that Dagster's jobs run on, and death at any change."""

import copy
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as sa
from pipeline_world import QUIET, Killed, cut, derive_all, in_memory, state

from assets.partitions import bucket_keys
from jobs.schedules import range_tags
from memory_pipelines.clock import FixedClock
from memory_pipelines.definitions import build_defs
from memory_pipelines.model import stable_hash
from memory_pipelines.pipeline import files
from memory_pipelines.sample import Config, write_sample
from memory_pipelines.settings import Settings
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.fakes import MemoryHot
from memory_pipelines.tables import REFLECTIONS, REWARD_EVENTS
from memory_pipelines.wiring import Platform
from resources.platform import PlatformResource

SPRING = Config(seed=2, subjects=12, days=130, tenants=("default",), demo=False)
"""From March to the 8th of July 2024. Of so few persons some 40 events are held out, so that chance decides whether a
reward model is promoted: with this seed it is, by a wide margin."""
TOWN = replace(SPRING, seed=6, subjects=40)
"""Enough persons for a model that is better than the rules."""
QUARTER = "2024-07-01"
WEEKS_OF_JUNE = ("2024-06-03", "2024-06-24")
"""Mondays of the first and the last."""
SECRET = "of the tests"
LANDED = datetime(2024, 7, 9, tzinfo=UTC)
"""How far the log of that spring has landed."""
SENTENCES = (
    "I am allergic to peanuts, please remember that.",
    "My name is Alice Harper.",
    "My order 88123 with SF Express has not arrived, I want to complain. This is the third time!",
)

TABLES = (
    schema.models,
    schema.promotions,
    schema.reflection_tasks,
    schema.markers,
    schema.accesses,
    schema.tombstones,
)
COUNTED = {"promotion_id"}
"""Columns that a database numbers as it likes."""


def write_spring(folder: Path, config: Config = SPRING) -> Path:
    write_sample(folder, config)
    return folder


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def said(user: str, at: datetime, *texts: str) -> list[dict[str, Any]]:
    """A conversation that a person begins; the agent answers each sentence."""
    rows = []
    for number, text in enumerate(texts):
        for role, content in (("user", text), ("agent", "We will look into it right away.")):
            seconds = 60 * number + (role == "agent") * 20
            rows.append(
                {
                    "conversation_id": f"c-{user}-{at:%Y%m%d}",
                    "turn_id": f"{user}-{at:%Y%m%d}-{number}-{role}",
                    "user_id": user,
                    "role": role,
                    "occurred_at": (at + timedelta(seconds=seconds)).isoformat(),
                    "text": content,
                }
            )
    return rows


def land(platform: Platform, *paths: Path) -> None:
    """Land and derive by the library: quicker than by Dagster."""
    files.land(platform, paths)
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)


# ---- through Dagster


@dataclass
class Life:
    """A platform that every run and every tick gets, and an instance that remembers them."""

    platform: Platform
    instance: dg.DagsterInstance

    def run(
        self,
        job: str,
        partition: str | None = None,
        last: str | None = None,
        *,
        check: bool = True,
        config: dict[str, Any] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """A run of a job; of the partitions from ``partition`` to ``last``, if it has some; with its asset's config."""
        tags = range_tags(partition, last) if partition and last else {}
        definition = build_defs().resolve_job_def(job)
        return definition.execute_in_process(
            instance=self.instance,
            partition_key=None if last else partition or None,
            tags=tags,
            run_config=QUIET | ({} if config is None else {"ops": {_asset_of(definition): {"config": config}}}),
            raise_on_error=check,
        )

    def tick(self, sensor: str) -> list[dict[str, str]]:
        """One evaluation of a sensor: the tags of the runs that it asks for."""
        defs = build_defs()
        resources = {"memory": PlatformResource(home="", now="")}
        with dg.build_sensor_context(instance=self.instance, definitions=defs, resources=resources) as context:
            requests = defs.get_repository_def().get_sensor_def(sensor).evaluate_tick(context).run_requests or []
        return [{k: v for k, v in request.tags.items() if k in range_tags("", "")} for request in requests]

    def derive(self) -> None:
        """What waits for the day and bucket jobs."""
        for tags in self.tick("touched_days"):
            self.run("day_job", *tags.values())
        for tags in self.tick("touched_buckets"):
            self.run("bucket_job", *tags.values())

    def memories(self) -> dict[str, StoredMemory]:
        return {m.memory_id: m for m in self.platform.authority.everything_visible()}


def _asset_of(job: dg.JobDefinition) -> str:
    """The only asset of a job."""
    (key,) = job.asset_layer.selected_asset_keys
    return key.to_python_identifier()


def told(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    """Metadata of an asset's materialisation; of a range the last one's."""
    materialised = result.asset_materializations_for_node(asset)
    return {name: value.value for name, value in materialised[-1].metadata.items()}


def checks(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


@contextmanager
def living(platform: Platform) -> Iterator[Life]:
    """``platform`` as the one that Dagster's resource opens."""
    opened = PlatformResource.open
    platform.__dict__["close"] = lambda: None
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("bucket", bucket_keys(platform.settings.buckets))
        PlatformResource.open = lambda self: platform  # type: ignore[method-assign]
        try:
            yield Life(platform, instance)
        finally:
            PlatformResource.open = opened  # type: ignore[method-assign]


def copied(platform: Platform, **settings: Any) -> Platform:
    """The same content in stores of its own."""
    fresh = in_memory(certificate_secret=SECRET, **settings)
    with platform.engine.connect() as old, fresh.engine.connect() as new:
        source, target = old.connection.driver_connection, new.connection.driver_connection
        assert isinstance(source, sqlite3.Connection)
        assert isinstance(target, sqlite3.Connection)
        target.deserialize(source.serialize())
    stores = {name: copy.deepcopy(getattr(platform, name)) for name in ("lake", "vectors", "graph", "cold")}
    fresh.__dict__.update(stores, hot=MemoryHot(fresh.clock))
    return fresh


def settings_of(environment: dict[str, str], like: Settings) -> Settings:
    """Settings as the environment has them, with the models and buckets of ``like``."""
    return Settings.load(
        environment,
        home=like.home,
        embedder=like.embedder,
        buckets=like.buckets,
        certificate_secret=like.certificate_secret,
    )


def clock(platform: Platform, at: datetime) -> None:
    platform.clock = FixedClock(at)
    for part in ("recall", "session", "feedback"):
        platform.__dict__.pop(part, None)


# ---- death


WRITES = {
    "lake": ("write", "purge"),
    "vectors": ("upsert", "delete"),
    "graph": ("write", "drop"),
    "hot": ("put", "delete", "wipe"),
    "cold": ("put", "archive", "delete"),
}
BUILT = ("publisher", "recall", "erasure_stores")
"""Parts of a platform that keep its stores."""


@contextmanager
def dying(platform: Platform, number: int = 0) -> Iterator[list[str]]:
    """Before change ``number`` of stores or database the process dies; yields the names of the changes so far."""
    calls: list[str] = []

    def change(name: str) -> None:
        calls.append(name)
        if len(calls) == number:
            raise Killed

    def execute(connection: sa.Connection, _: Any, statement: str, *__: Any) -> None:
        if not statement.startswith(("SELECT", "PRAGMA")):
            connection.info.setdefault("writes", []).append(" ".join(statement.split()[:3]))

    def commit(connection: sa.Connection) -> None:
        if written := connection.info.pop("writes", None):
            change(f"commit of {written[-1]}")

    def rollback(connection: sa.Connection) -> None:
        connection.info.pop("writes", None)

    whole = {name: getattr(platform, name) for name in WRITES}
    listeners: dict[str, Callable[..., None]] = {
        "before_cursor_execute": execute,
        "commit": commit,
        "rollback": rollback,
    }
    for event, listener in listeners.items():
        sa.event.listen(platform.engine, event, listener)
    platform.__dict__.update({name: _Mortal(name, store, change) for name, store in whole.items()})
    _forget(platform)
    try:
        yield calls
    finally:
        platform.__dict__.update(whole)
        _forget(platform)
        for event, listener in listeners.items():
            sa.event.remove(platform.engine, event, listener)


def _forget(platform: Platform) -> None:
    for name in BUILT:
        platform.__dict__.pop(name, None)


@dataclass(frozen=True)
class _Mortal:
    name: str
    store: Any
    change: Callable[[str], None]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name not in WRITES[self.name]:
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.change(f"{self.name}.{name}")
            return found(*arguments, **named)

        return counted


# ---- what is compared


def life_state(platform: Platform) -> dict[str, Any]:
    """``state``, with all that the jobs of this file write."""
    result = state(platform)
    for spec in (REFLECTIONS, REWARD_EVENTS):
        result[spec.name] = canonical_hash(spec, platform.lake.read(spec))
    for table in TABLES:
        columns = [column for column in table.c if column.name not in COUNTED]
        with platform.engine.connect() as connection:
            rows = sorted(repr([*row]) for row in connection.execute(sa.select(*columns)))
        result[table.name] = (len(rows), stable_hash(*rows))
    return result


def state_is_whole(life: Life) -> bool:
    found = life_state(life.platform)
    return set(found["unfinished"]) == {0} and found["balance"] == 0
