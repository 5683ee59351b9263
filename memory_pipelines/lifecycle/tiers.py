"""Tiers by age: hot, warm, cold.

Belongs here: the table of ages and who is exempt from it. Does not belong here: access counts, which
arrive as ``last_access``.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_pipelines.errors import SettingError
from memory_pipelines.model import MemoryType, Permanence, Tier


@dataclass(frozen=True)
class Profile:
    """Ages without access after which a memory leaves a tier."""

    hot_to_warm: timedelta
    warm_to_cold: timedelta


PROFILES = {
    "assistant": Profile(timedelta(days=30), timedelta(days=90)),
    "commerce": Profile(timedelta(days=7), timedelta(days=30)),
}


def profile(name: str) -> Profile:
    if name not in PROFILES:
        raise SettingError(f"MEMORY_PIPELINES_PROFILE must be one of {', '.join(PROFILES)}")
    return PROFILES[name]


def tier_of(
    *,
    memory_type: str,
    permanence: str,
    current: bool,
    cited: bool,
    occurred_at: datetime,
    last_access: datetime | None,
    as_of: datetime,
    ages: Profile,
) -> Tier:
    """The tier that a memory deserves at ``as_of``.

    Unaccessed counts from the last access, else from when it occurred. Permanent memories, current facts
    and slices that a current fact cites (``cited``) never go cold.
    """
    age = as_of - (last_access or occurred_at)
    if age <= ages.hot_to_warm:
        return Tier.HOT
    exempt = permanence == Permanence.PERMANENT or cited or (memory_type == MemoryType.SEMANTIC and current)
    return Tier.WARM if exempt or age <= ages.warm_to_cold else Tier.COLD
