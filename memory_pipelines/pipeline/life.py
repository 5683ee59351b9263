"""The life of memories over the stores: the daily plan of tiers, and what publishing must know of the past.

Belongs here: reading accesses, markers and graph degrees, carrying the plan out. Does not belong here: scores,
ages (``lifecycle``), or the protocol of publishing (``stores.publish``).
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from memory_pipelines.erasure.requests import HIDDEN, requests
from memory_pipelines.lifecycle.plan import MovePlan, plan_moves
from memory_pipelines.lifecycle.scores import access_times, related_nodes
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.projection import insight_memories, owner_states
from memory_pipelines.stores.publish import Published
from memory_pipelines.tables import EDGES, MEMORIES, REFLECTIONS, SLICES
from memory_pipelines.wiring import Platform


@dataclass(frozen=True)
class Past:
    """What happened to memories since they were admitted: the arguments that ``owner_states`` takes for it."""

    accesses: dict[str, tuple[datetime, ...]]
    related: dict[str, int]
    admitted: dict[str, datetime]
    markers: dict[str, frozenset[tuple[str, str]]]


def past_of(platform: Platform, bucket: int, owners: Collection[str]) -> Past:
    """The past of the owners' memories."""
    where: list[tuple[str, str, object]] = [("bucket", "=", bucket), ("owner", "in", sorted(owners))]
    uses = platform.accesses.by_owner(owners)
    accesses = {}
    memories = platform.lake.read(MEMORIES, columns=["owner", "memory_id", "own_turn_ids"], where=where)
    for row in memories.to_pylist():
        if row["owner"] in uses:
            accesses[row["memory_id"]] = access_times(row["own_turn_ids"], uses[row["owner"]])
    return Past(
        accesses,
        related_nodes(platform.lake.read(EDGES, where=where)),
        platform.authority.admitted(owners),
        platform.accesses.markers(owners),
    )


def publish_owners(platform: Platform, bucket: int, owners: Collection[str], as_of: datetime) -> Published:
    """Publish the whole state of owners as their derived rows and their past have it at ``as_of``.

    Somebody whose erasure is under way is left out: nothing of them may be shown again."""
    hidden = {request.key for request in requests(platform.erasure_stores.engine, HIDDEN)}
    owners = [owner for owner in owners if owner not in hidden]
    where: list[tuple[str, str, object]] = [("bucket", "=", bucket), ("owner", "in", sorted(owners))]
    past = past_of(platform, bucket, owners)
    states = owner_states(
        owners,
        memories=pa.concat_tables([platform.lake.read(MEMORIES, where=where), _insights(platform, where, as_of)]),
        edges=platform.lake.read(EDGES, where=where),
        slices=platform.lake.read(SLICES, where=where),
        known=platform.authority.people(owners),
        as_of=as_of,
        profile=platform.settings.profile,
        accesses=past.accesses,
        related=past.related,
        admitted=past.admitted,
        markers=past.markers,
    )
    return platform.publisher.publish(bucket, states, platform.clock.now())


def _insights(platform: Platform, where: list[tuple[str, str, object]], as_of: datetime) -> pa.Table:
    """Insights of reflections that hold at ``as_of``, as MEMORIES rows."""
    return insight_memories(platform.lake.read(REFLECTIONS, where=where), as_of, platform.settings.model_set)


@dataclass(frozen=True)
class Moved:
    """A day's plan and what carrying it out did."""

    plan: MovePlan
    published: Published


@uses_lake
def plan_tiers(platform: Platform, as_of: datetime) -> tuple[MovePlan, dict[int, set[str]]]:
    """The dry run: moves and deletions at ``as_of``, and the owners that they concern by bucket."""
    memories = [m for owner in platform.authority.owners() for m in platform.authority.visible(owner)]
    by_bucket: dict[int, set[str]] = defaultdict(set)
    for memory in memories:
        by_bucket[memory.owner.bucket(platform.settings.buckets)].add(memory.owner.key)
    accesses: dict[str, tuple[datetime, ...]] = {}
    related: dict[str, int] = {}
    for bucket, owners in sorted(by_bucket.items()):
        past = past_of(platform, bucket, owners)
        accesses |= past.accesses
        related |= past.related
    plan = plan_moves(memories, accesses, related, as_of=as_of, profile=platform.settings.profile)
    changed = {m.memory_id for m in plan.moves} | {d.memory_id for d in plan.deletions}
    concerned: dict[int, set[str]] = defaultdict(set)
    for memory in memories:
        if memory.memory_id in changed:
            concerned[memory.owner.bucket(platform.settings.buckets)].add(memory.owner.key)
    return plan, concerned


@uses_lake
def move_tiers(platform: Platform, as_of: datetime) -> Moved:
    """Carry the day's plan out: markers of deletions first, so that nothing comes back, then publish."""
    plan, concerned = plan_tiers(platform, as_of)
    for deletion in plan.deletions:
        platform.accesses.mark_deleted(deletion.owner, deletion.turn_ids, deletion.claim, as_of)
    total = Published()
    for bucket, owners in sorted(concerned.items()):
        total.add(publish_owners(platform, bucket, owners, as_of))
    return Moved(plan, total)


def ends_of_days(start: datetime, end: datetime) -> list[datetime]:
    """The ends of the UTC days from ``start`` to ``end``, both midnights."""
    return [start + timedelta(days=n) for n in range(1, (end - start).days + 1)]
