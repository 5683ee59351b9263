"""Tiers: hot, warm, cold, and when a cold memory may be deleted.

Belongs here: the table of ages, who is exempt from it, what a memory deserves at one instant. Does not belong
here: the comparison with the tier that it is in (``plan``), the score's formula (``scores``).
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_pipelines.errors import SettingError
from memory_pipelines.lifecycle.scores import score
from memory_pipelines.model import INSTANT, MemoryType, Permanence, Tier

COLD_BELOW = 0.3
"""A memory with a lower score leaves the hot tier for the cold one, without its time in the warm one."""


@dataclass(frozen=True)
class Profile:
    """Ages without access after which a memory leaves a tier; a cold one is deleted below ``delete_below`` only."""

    hot_to_warm: timedelta
    warm_to_cold: timedelta
    cold_to_delete: timedelta
    delete_below: float


PROFILES = {
    "assistant": Profile(timedelta(days=30), timedelta(days=90), timedelta(days=365), 0.2),
    "commerce": Profile(timedelta(days=7), timedelta(days=30), timedelta(days=180), 0.3),
}


def profile(name: str) -> Profile:
    """The ages of a profile; SettingError where there is none of that name."""
    if name not in PROFILES:
        raise SettingError(f"MEMORY_PIPELINES_PROFILE must be one of {', '.join(PROFILES)}")
    return PROFILES[name]


@dataclass(frozen=True, slots=True)
class Life:
    """What the rules of a memory's life look at.

    ``current``: its validity window is open. ``cited``: it is a slice that a current fact cites. ``horizon``
    replaces the warm → cold age of an episodic memory; None: the profile's.
    """

    memory_type: str
    permanence: str
    current: bool
    cited: bool
    gate_score: float
    related: int
    occurred_at: datetime
    admitted_at: datetime
    accesses: Collection[datetime] = ()
    horizon: timedelta | None = None

    @property
    def lasts(self) -> bool:
        """Permanent memories and current facts are exempt from decay, archive and deletion."""
        fact = self.memory_type == MemoryType.SEMANTIC and self.current
        return self.permanence == Permanence.PERMANENT or fact

    @property
    def stays(self) -> bool:
        """Never cold and never deleted: what lasts, and slices that a current fact cites."""
        return self.lasts or (self.memory_type == MemoryType.EPISODIC and self.cited)

    def last_access(self, as_of: datetime) -> datetime | None:
        """The last access until ``as_of``; None without one."""
        return max((at for at in self.accesses if at <= as_of), default=None)

    def unaccessed(self, as_of: datetime) -> timedelta:
        """Time since the last access, else since it occurred."""
        return as_of - (self.last_access(as_of) or self.occurred_at)

    def cold_age(self, ages: Profile) -> timedelta:
        """The age without access after which it is cold, whatever its score."""
        if self.horizon is not None and self.memory_type == MemoryType.EPISODIC:
            return self.horizon
        return ages.warm_to_cold

    def score(self, as_of: datetime) -> float:
        """Its score at ``as_of`` in [0, 1]."""
        return score(
            self.gate_score,
            self.accesses,
            self.related,
            admitted_at=self.admitted_at,
            as_of=as_of,
            decays=not self.lasts,
        )


def tier_of(life: Life, as_of: datetime, ages: Profile) -> Tier:
    """The tier that a memory deserves at ``as_of``."""
    age = life.unaccessed(as_of)
    if age <= ages.hot_to_warm:
        return Tier.HOT
    if life.stays:
        return Tier.WARM
    return Tier.COLD if age > life.cold_age(ages) or life.score(as_of) < COLD_BELOW else Tier.WARM


def deletable(life: Life, as_of: datetime, ages: Profile) -> bool:
    """Whether the table lets a cold memory be deleted: old since its last use, old since its admission, low score."""
    if life.stays:
        return False
    idle = min(life.unaccessed(as_of), as_of - life.admitted_at)
    return idle > ages.cold_to_delete and life.score(as_of) < ages.delete_below


def next_move(occurred_at: datetime, last_access: datetime | None, as_of: datetime, ages: Profile) -> datetime | None:
    """When a memory that nobody accesses next outgrows a tier; None if it has outgrown all by ``as_of``."""
    edges = ((last_access or occurred_at) + age for age in (ages.hot_to_warm, ages.warm_to_cold))
    return next((edge + INSTANT for edge in edges if edge >= as_of), None)
