"""What a simulation is made from.

Belongs here: the frozen configuration, its checks and its named sizes. Does not belong here: how
any of it is used.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Self

DAY = 86_400
"""Seconds of a day; the simulator counts time in whole seconds since 1970, UTC."""

TURNS_PER_PERSON_DAY = 0.867
"""Mean dialogue rows and assistant messages of one person and day under the default shares; measured."""

SHARES = (
    "heartbeats",
    "tracking",
    "automatic_replies",
    "system_rows",
    "duplicates",
    "broken",
    "late",
    "markup",
    "emoji",
    "sessionless",
    "midnight",
    "anonymous",
)


@dataclass(frozen=True)
class Config:
    """One simulation: equal configurations give byte-identical files.

    Shares of noise are in [0, 1]. Heart-beats, tracking events, automatic replies, system rows,
    duplicates and broken rows are extra rows per true customer-service turn; ``markup`` and
    ``emoji`` are shares of turns; ``sessionless`` and ``midnight`` (crosses midnight UTC) of
    customer-service sessions, ``late`` of those in the last two days of a month; ``anonymous`` is
    the share of persons who begin as a device and log in later.
    """

    seed: int = 7
    subjects: int = 120
    """Persons over all tenants; the two demo persons come on top."""
    days: int = 100
    start: date = date(2024, 3, 1)
    tenants: tuple[str, ...] = ("default", "acme")
    """The first tenant has about 80 % of the persons; its rows do not name it."""
    languages: tuple[tuple[str, float], ...] = (("zh", 0.55), ("zh-Hant", 0.05), ("en", 0.4))
    demo: bool = True
    """Whether ``u:zh-demo`` and ``u:en-demo`` live in the first tenant."""
    heartbeats: float = 0.06
    tracking: float = 0.05
    automatic_replies: float = 0.05
    system_rows: float = 0.04
    duplicates: float = 0.02
    broken: float = 0.006
    late: float = 0.2
    markup: float = 0.05
    emoji: float = 0.06
    sessionless: float = 0.12
    midnight: float = 0.03
    anonymous: float = 0.15

    def __post_init__(self) -> None:
        """Raise ValueError for sizes, names or shares that mean nothing."""
        if self.days < 1 or self.subjects < 0:
            raise ValueError("days must be at least 1 and subjects at least 0")
        if not self.tenants or len(set(self.tenants)) != len(self.tenants):
            raise ValueError("tenants must be named, and each once")
        if any(not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", tenant) for tenant in self.tenants):
            raise ValueError("a tenant's name becomes a folder: letters, digits, - and _ only")
        if any(name not in ("zh", "zh-Hant", "en") for name, _ in self.languages):
            raise ValueError("languages are zh, zh-Hant and en")
        if not sum(weight for _, weight in self.languages) > 0 or min(w for _, w in self.languages) < 0:
            raise ValueError("language weights must be positive")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1]")

    @classmethod
    def sample(cls) -> Self:
        """The demo data: 120 persons, 100 days, about 10,000 turns."""
        return cls()

    @classmethod
    def sized(cls, turns: int, seed: int = 7, days: int = 100) -> Self:
        """As many persons as give roughly ``turns`` rows and messages: within 15 % from 10,000 on."""
        return cls(seed=seed, days=days, subjects=max(1, round(turns / (days * TURNS_PER_PERSON_DAY))))

    @cached_property
    def begin(self) -> int:
        """First second of the simulation, since 1970 in UTC."""
        return int(datetime(self.start.year, self.start.month, self.start.day, tzinfo=UTC).timestamp())

    @cached_property
    def end(self) -> int:
        """First second after the simulation."""
        return self.begin + self.days * DAY

    def persons_of(self, position: int) -> int:
        """How many persons the tenant at ``position`` has; the counts of all tenants add up to ``subjects``."""
        others = len(self.tenants) - 1
        if not others:
            return self.subjects
        shared = self.subjects // 5
        if position == 0:
            return self.subjects - shared
        return shared // others + (1 if position <= shared % others else 0)
