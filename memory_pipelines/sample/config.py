"""What a simulation is made from.

Belongs here: the frozen configuration, its checks and its named sizes. Does not belong here: how
any of it is used.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Self

DAY = 86_400
"""Seconds of a day; the simulator counts time in whole seconds since 1970, UTC."""

TURNS_PER_PERSON, TURNS_PER_PERSON_DAY = 17.0, 0.84
"""Mean dialogue rows, archived rows and assistant messages of one person under ``RICH``: so many in any
time (facts are told once, however short it is), and so many more a day; fitted to 3, 10, ..., 400 days."""

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
    "personal",
    "corrections",
    "out_of_order",
    "overlaps",
    "second_exports",
    "edits",
    "offline",
    "groups",
    "second_devices",
    "shared_devices",
    "logged_out",
)
RICH: dict[str, Any] = {
    "personal": 0.06,
    "corrections": 0.2,
    "out_of_order": 0.25,
    "overlaps": 0.02,
    "second_exports": 0.03,
    "edits": 0.01,
    "offline": 0.02,
    "groups": 0.1,
    "second_devices": 0.2,
    "shared_devices": 0.06,
    "logged_out": 0.05,
}
"""Shares of what only simulations of a chosen size hold; the small sample is without."""


@dataclass(frozen=True)
class Config:
    """One simulation: equal configurations give byte-identical files.

    Shares of noise are in [0, 1]. Heart-beats, tracking events, automatic replies, system rows,
    duplicates and broken rows are extra rows per true customer-service turn; ``markup`` and
    ``emoji`` are shares of turns; ``sessionless`` and ``midnight`` (crosses midnight UTC) of
    customer-service sessions, ``late`` of those in the last two days of a month; ``anonymous`` is
    the share of persons who begin as a device and log in later.

    ``personal`` is the share of sessions in which somebody gives a number or password away;
    ``corrections`` of told facts put right on a later day; ``out_of_order`` of changes and
    corrections whose older statement arrives after them; ``overlaps`` of sessions and behaviour
    events exported once more, ``second_exports`` of sessions that the archive exports too, ``edits``
    of turns sent too early and edited; ``offline`` of conversations and events that reach the log
    days late; ``groups``, ``second_devices`` and ``shared_devices`` of persons; ``logged_out`` of
    sessions held without login on a device that was logged in before.
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
    personal: float = 0.0
    corrections: float = 0.0
    out_of_order: float = 0.0
    overlaps: float = 0.0
    second_exports: float = 0.0
    edits: float = 0.0
    offline: float = 0.0
    groups: float = 0.0
    second_devices: float = 0.0
    shared_devices: float = 0.0
    logged_out: float = 0.0
    rich: bool = False
    """The wide phrase book, values that change more than once, workflows, and ``login`` events."""

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
        if not self.rich and any(getattr(self, name) for name in RICH):
            raise ValueError(f"a simulation with any of {', '.join(RICH)} must be rich")

    @classmethod
    def sample(cls) -> Self:
        """The demo data: 120 persons, 100 days, about 10,000 turns."""
        return cls()

    @classmethod
    def sized(cls, turns: int, seed: int = 7, days: int = 100, tenants: int = 2) -> Self:
        """As many persons as give roughly ``turns`` rows and messages, with all that ``RICH`` adds.

        Within 15 % from some 200 persons and 3 days on. Raises ValueError for fewer than one tenant or day.
        """
        if days < 1:
            raise ValueError("days must be at least 1")
        names = ("default", "acme", *(f"tenant-{number}" for number in range(3, tenants + 1)))[: max(0, tenants)]
        subjects = max(1, round(turns / (TURNS_PER_PERSON + days * TURNS_PER_PERSON_DAY)))
        base = cls(seed=seed, days=days, subjects=subjects, tenants=names, rich=True)
        return replace(base, **RICH)

    @property
    def rows_of_a_day(self) -> int:
        """Roughly how many log rows a day has over all tenants; only how files are made depends on it."""
        return max(1, round((self.subjects + 2) * (TURNS_PER_PERSON / self.days + TURNS_PER_PERSON_DAY + 0.6)))

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
