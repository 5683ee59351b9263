"""The daily plan: which memories change their tier, which are deleted, and why.

Belongs here: the comparison of what a memory deserves with where it is; markers of what was deleted. Does not
belong here: carrying a plan out (``stores.publish`` moves, ``stores.accesses`` remembers the markers).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from memory_pipelines.lifecycle.tiers import Life, Profile, deletable, tier_of
from memory_pipelines.lifecycle.tiers import profile as life_profile
from memory_pipelines.model import MemoryType, Tier
from memory_pipelines.stores.authority import StoredMemory

DELETED = "deleted"
_COLDER = {Tier.HOT: 0, Tier.WARM: 1, Tier.COLD: 2}
_NO_HORIZONS: Mapping[str, timedelta] = MappingProxyType({})


class Reason(StrEnum):
    """Why a memory moves."""

    AGE = "age"
    LOW_SCORE = "low_score"
    ACCESSED = "accessed"
    PROTECTED = "protected"
    RULES = "rules"
    """Nothing of it calls for the tier that it is in: the profile, the horizon or its relations have changed."""


@dataclass(frozen=True, slots=True)
class Move:
    memory_id: str
    source: Tier
    target: Tier
    score: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Deletion:
    """``owner`` is the owner's key; ``turn_ids`` and ``claim`` are what a marker must hold."""

    memory_id: str
    owner: str
    turn_ids: tuple[str, ...]
    claim: str
    score: float


@dataclass(frozen=True)
class MovePlan:
    """Moves and deletions in order of memory ids; ``unmoved`` memories stay where they are."""

    moves: tuple[Move, ...]
    deletions: tuple[Deletion, ...]
    unmoved: int

    def summary(self) -> list[dict[str, str | int]]:
        """The dry run as a table: ``from``, ``to``, ``reason``, ``memories``; the largest groups first."""
        counts = Counter((m.source.value, m.target.value, m.reason.value) for m in self.moves)
        if self.deletions:
            counts[Tier.COLD.value, DELETED, Reason.AGE.value] = len(self.deletions)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [{"from": a, "to": b, "reason": why, "memories": n} for (a, b, why), n in ordered]


def plan_moves(
    memories: Iterable[StoredMemory],
    accesses: Mapping[str, Sequence[datetime]],
    related: Mapping[str, int],
    *,
    as_of: datetime,
    profile: str,
    horizons: Mapping[str, timedelta] = _NO_HORIZONS,
) -> MovePlan:
    """What the day at ``as_of`` changes for visible memories, of any owners, in any order.

    ``accesses`` and ``related`` by memory id (see ``scores``), ``horizons`` by owner key. Only a memory that is
    cold already is deleted. Expired ones are left out: publishing ends them.
    """
    ages = life_profile(profile)
    shown = sorted(
        (m for m in memories if m.expires_at is None or m.expires_at > as_of), key=lambda m: (m.memory_id, m.owner.key)
    )
    cited = {(m.owner.key, s) for m in shown if _is_fact(m) and is_current(m.valid_to, as_of) for s in m.slice_ids}
    moves: list[Move] = []
    deletions: list[Deletion] = []
    for memory in shown:
        owner, now = memory.owner.key, Tier(memory.tier)
        life = Life(
            memory_type=memory.memory_type,
            permanence=memory.permanence,
            current=is_current(memory.valid_to, as_of),
            cited=any((owner, s) in cited for s in memory.slice_ids),
            gate_score=memory.score,
            related=related.get(memory.memory_id, 0),
            occurred_at=memory.occurred_at,
            admitted_at=memory.admitted_at,
            accesses=accesses.get(memory.memory_id, ()),
            horizon=horizons.get(owner),
        )
        target = tier_of(life, as_of, ages)
        if now == target == Tier.COLD and deletable(life, as_of, ages):
            claim = claim_of(memory.memory_type, memory.predicate)
            deletions.append(Deletion(memory.memory_id, owner, memory.source_turn_ids, claim, life.score(as_of)))
        elif now != target:
            moves.append(
                Move(memory.memory_id, now, target, life.score(as_of), _reason(life, now, target, as_of, ages))
            )
    return MovePlan(tuple(moves), tuple(deletions), len(shown) - len(moves) - len(deletions))


def _reason(life: Life, now: Tier, target: Tier, as_of: datetime, ages: Profile) -> Reason:
    age = life.unaccessed(as_of)
    if _COLDER[target] > _COLDER[now]:
        by_score = target == Tier.COLD and age <= life.cold_age(ages)
        return Reason.LOW_SCORE if by_score else Reason.AGE
    if life.last_access(as_of) is not None and age <= life.cold_age(ages):
        return Reason.ACCESSED
    return Reason.PROTECTED if life.stays and target == Tier.WARM else Reason.RULES


def _is_fact(memory: StoredMemory) -> bool:
    return memory.memory_type == MemoryType.SEMANTIC


def is_current(valid_to: datetime | None, as_of: datetime) -> bool:
    """Whether a validity window that ends at ``valid_to`` is open at ``as_of``."""
    return valid_to is None or valid_to > as_of


def claim_of(memory_type: str, predicate: str | None) -> str:
    """What a marker remembers of a memory beside its turns; no value, since that is personal."""
    return f"{memory_type}:{predicate or ''}"


def is_marked(own_turn_ids: Iterable[str], claim: str, markers: Collection[tuple[str, str]]) -> bool:
    """Whether a memory inherits a marker from any of its own turns: it was deleted by age under some id."""
    return any((turn, claim) in markers for turn in own_turn_ids)
