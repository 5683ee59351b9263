"""Weekly reflections over the stores.

Belongs here: reading a person's memories, one call into ``reflection``, writing insights and follow-ups.
Does not belong here: what is reflected (``reflection``).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from memory_pipelines.model import Owner
from memory_pipelines.pipeline.life import publish_owners
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.projection import INSIGHT
from memory_pipelines.reflection import Reflection, load_writer, reflect, to_table
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.base import Replace
from memory_pipelines.tables import REFLECTIONS
from memory_pipelines.wiring import Platform


@dataclass(frozen=True)
class Week:
    """What a week's run made: ``skipped`` counts persons whom nothing new concerned."""

    persons: int
    skipped: int
    insights: int
    tasks: int
    by_kind: dict[str, int]
    by_path: dict[str, int]
    problems: dict[str, int]
    tokens: int
    money: float


@uses_lake
def reflect_week(platform: Platform, week: date) -> Week:
    """Reflect on the week that begins on Monday ``week``, for every person with memories. Safe to repeat."""
    writer = load_writer(platform.settings)
    reflections: list[Reflection] = []
    memories: dict[Owner, list[StoredMemory]] = defaultdict(list)
    told: set[str] = set()
    for memory in platform.authority.everything_visible():
        if not memory.predicate.startswith(INSIGHT):  # no reflection on reflections
            memories[memory.owner].append(memory)
        elif json.loads(memory.structured)["week"] == week.isoformat():
            told.add(memory.owner.key)  # what was said of this week may not be said again
    by_bucket: dict[int, list[Reflection]] = defaultdict(list)
    for owner, own in sorted(memories.items(), key=lambda item: item[0].key):
        bucket = owner.bucket(platform.settings.buckets)
        made = reflect(own, week, owner=owner, bucket=bucket, writer=writer)
        if made.insights or made.problems:
            reflections.append(made)
            by_bucket[bucket].append(made)
    for bucket in range(platform.settings.buckets):
        rows = to_table(by_bucket.get(bucket, []))
        known = platform.lake.read(REFLECTIONS, columns=["week"], where=[("bucket", "=", bucket)])
        if rows.num_rows or week.isoformat() in known["week"].to_pylist():
            platform.lake.write(REFLECTIONS, rows, [Replace("week", (week.isoformat(),))], {"bucket": bucket})
    platform.tasks.replace_week(week.isoformat(), [task for made in reflections for task in _tasks(made)])
    told.update(made.owner.key for made in reflections if made.insights)
    if told:
        publish_owners(platform, told, _shown_from(platform, week))
    cost = None if writer is None else writer.cost
    return Week(
        persons=len(memories),
        skipped=len(memories) - len(reflections),
        insights=sum(len(made.insights) for made in reflections),
        tasks=sum(len(made.tasks) for made in reflections),
        by_kind=dict(sorted(Counter(i.kind for made in reflections for i in made.insights).items())),
        by_path=dict(sorted(Counter(made.path for made in reflections).items())),
        problems=dict(sorted(Counter(p for made in reflections for p in made.problems).items())),
        tokens=0 if cost is None else cost.tokens_in + cost.tokens_out,
        money=0.0 if cost is None else cost.money,
    )


def _shown_from(platform: Platform, week: date) -> datetime:
    """The instant at which insights are published: the week's end, or how far logs have landed if that is later."""
    end = datetime.combine(week + timedelta(days=7), datetime.min.time(), UTC)
    manifest = platform.ledger.manifest()
    return end if manifest is None else max(end, manifest.landed_through)


def _tasks(made: Reflection) -> list[dict[str, object]]:
    return [
        {
            "task_id": task.task_id,
            "owner": task.owner.key,
            "week": made.week.isoformat(),
            "kind": "follow_up",
            "text": task.text,
            "due_at": task.due_at,
            "done": False,
        }
        for task in made.tasks
    ]


def mondays(keys: Sequence[str]) -> list[date]:
    """Partition keys of weeks (any day of them) as their Mondays."""
    days = (date.fromisoformat(key) for key in keys)
    return [day - timedelta(days=day.weekday()) for day in days]
