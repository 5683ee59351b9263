"""The life of memories over the stores: the daily plan of tiers, and what publishing must know of the past.

Belongs here: reading accesses, markers and graph degrees, carrying the plan out. Does not belong here: scores,
ages (``lifecycle``), or the protocol of publishing (``stores.publish``).
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.erasure.requests import HIDDEN, requests
from memory_pipelines.lifecycle.plan import MovePlan, plan_moves
from memory_pipelines.lifecycle.scores import (
    Denials,
    access_times,
    denials,
    presented_times,
    related_nodes,
    use_of,
)
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.owned import placed, rows_of
from memory_pipelines.pipeline.packs import pack_owners
from memory_pipelines.projection import INSIGHT, SLICE_COLUMNS, insight_memories, owner_states
from memory_pipelines.stores.authority import StoredMemory, Use
from memory_pipelines.stores.publish import OwnerState, Published
from memory_pipelines.tables import EDGES, MEMORIES, REFLECTIONS, SLICES
from memory_pipelines.wiring import Platform

NIGHT = timedelta(days=1)


@dataclass(frozen=True)
class Past:
    """What happened to memories since they were admitted: the arguments that ``owner_states`` takes for it."""

    accesses: dict[str, tuple[datetime, ...]]
    related: dict[str, int]
    admitted: dict[str, datetime]
    markers: dict[str, frozenset[tuple[str, str]]]
    denials: dict[str, Denials]
    presented: dict[str, tuple[datetime, ...]]

    def use(self, memory_id: str, as_of: datetime) -> Use:
        return use_of(self.accesses.get(memory_id, ()), self.presented.get(memory_id, ()), as_of)


def past_of(platform: Platform, owners: Collection[str], memories: pa.Table, edges: pa.Table) -> Past:
    """The past of the owners' memories; ``memories`` and ``edges`` are their derived rows."""
    uses = platform.accesses.by_owner(owners)
    accesses, presented, denied = {}, {}, {}
    for row in memories.select(["owner", "memory_id", "own_turn_ids"]).to_pylist():
        if row["owner"] in uses:
            of_turns = row["own_turn_ids"], uses[row["owner"]]
            accesses[row["memory_id"]] = access_times(*of_turns)
            presented[row["memory_id"]] = presented_times(*of_turns)
            if (found := denials(*of_turns)) is not None:
                denied[row["memory_id"]] = found
    return Past(
        accesses,
        related_nodes(edges),
        platform.authority.admitted(owners),
        platform.accesses.markers(owners),
        denied,
        presented,
    )


@dataclass
class Shown(Published):
    """What a publish did, and the ``packs`` that were made of it; ``left_out``: memories of whom the stores keep what
    did not fit."""

    packs: int = 0
    pack_bytes: int = 0
    left_out: int = 0


def publish_owners(
    platform: Platform, owners: Collection[str], as_of: datetime, memories: pa.Table | None = None
) -> Shown:
    """Publish the whole state of owners as their derived rows and their past have it at ``as_of``; make their packs.

    ``memories``: all MEMORIES rows of theirs, where the caller has read them.
    Somebody whose erasure is under way is left out: nothing of them may be shown again."""
    hidden = {request.key for request in requests(platform.engine, HIDDEN)}
    owners = sorted(owner for owner in owners if owner not in hidden)
    where = rows_of(placed(owners, platform.settings.buckets))
    if memories is None:
        memories = platform.lake.read(MEMORIES, where=where)
    memories = memories.filter(pc.is_in(memories["owner"], value_set=pa.array(owners, pa.string())))
    edges = platform.lake.read(EDGES, where=where)
    past = past_of(platform, owners, memories, edges)
    states = owner_states(
        owners,
        memories=pa.concat_tables([memories, _insights(platform, where, as_of)]),
        edges=edges,
        slices=platform.lake.read(SLICES, columns=SLICE_COLUMNS, where=where),
        known=platform.authority.people(owners),
        as_of=as_of,
        profile=platform.settings.profile,
        accesses=past.accesses,
        related=past.related,
        admitted=past.admitted,
        markers=past.markers,
        denials=past.denials,
        presented=past.presented,
    )
    by_bucket: dict[int, list[OwnerState]] = defaultdict(list)
    for state in states:
        by_bucket[state.owner.bucket(platform.settings.buckets)].append(state)
    total = Shown()
    for number, part in sorted(by_bucket.items()):
        total.add(platform.publisher.publish(number, part, platform.clock.now()))
    done = pack_owners(platform, owners)
    total.packs, total.pack_bytes, total.left_out = done.packs, done.bytes, done.left_out
    return total


def _insights(platform: Platform, where: list[tuple[str, str, object]], as_of: datetime) -> pa.Table:
    """Insights of reflections that hold at ``as_of``, as MEMORIES rows."""
    return insight_memories(platform.lake.read(REFLECTIONS, where=where), as_of, platform.settings.model_set)


def _shown(platform: Platform) -> tuple[list[StoredMemory], Past]:
    """Everything that is visible, with its past."""
    memories = platform.authority.everything_visible()
    owners = sorted({memory.owner.key for memory in memories})
    columns = ["owner", "memory_id", "own_turn_ids"]
    return memories, past_of(platform, owners, platform.lake.read(MEMORIES, columns=columns), platform.lake.read(EDGES))


@uses_lake
def plan_tiers(platform: Platform, as_of: datetime) -> MovePlan:
    """The dry run: moves and deletions at ``as_of``."""
    memories, past = _shown(platform)
    return plan_moves(memories, past.accesses, past.related, as_of=as_of, profile=platform.settings.profile)


@uses_lake
def move_tiers(platform: Platform, nights: Sequence[datetime]) -> list[MovePlan]:
    """Carry out the plan of each night in turn; returns the plans.

    Markers of deletions are written first, so that nothing comes back; then the owners are published, also those of
    whom something is over.
    """
    for bucket in sorted({batch.bucket for batch in platform.authority.open_batches()}):
        platform.publisher.publish(bucket, [], platform.clock.now())  # ends what a killed run has left
    memories, past = _shown(platform)
    plans = []
    for as_of in nights:
        plan = plan_moves(memories, past.accesses, past.related, as_of=as_of, profile=platform.settings.profile)
        for deletion in plan.deletions:
            platform.accesses.mark_deleted(deletion.owner, deletion.turn_ids, deletion.claim, as_of)
        changed = {m.memory_id for m in plan.moves} | {d.memory_id for d in plan.deletions}
        changed |= {name for name, denied in past.denials.items() if denied.rate(as_of) != denied.rate(as_of - NIGHT)}
        changed |= {m.memory_id for m in memories if Use(m.accessed_at, m.activations) != past.use(m.memory_id, as_of)}
        concerned = {m.owner.key for m in memories if m.memory_id in changed or _is_over(m, as_of)}
        if concerned:
            publish_owners(platform, concerned, as_of)
            memories = platform.authority.everything_visible()  # a night of the past brings back what is over by now
        platform.ledger.note_night(as_of)
        plans.append(plan)
    pack_owners(platform)  # also those whose job was killed before it came to that
    return plans


def _is_over(memory: StoredMemory, as_of: datetime) -> bool:
    """Whether a memory is not to be shown any more: it has expired, or is an insight of the past."""
    end = memory.valid_to if memory.predicate.startswith(INSIGHT) else memory.expires_at
    return end is not None and end <= as_of


def ends_of_days(start: datetime, end: datetime) -> list[datetime]:
    """The ends of the UTC days from ``start`` to ``end``, both midnights."""
    return [start + timedelta(days=n) for n in range(1, (end - start).days + 1)]
