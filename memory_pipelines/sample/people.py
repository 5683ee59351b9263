"""Who lives in the simulation, and the rhythm of weeks and seasons that all of them share.

Belongs here: drawing a person from the configuration. Does not belong here: what happens to one.
"""

import math
from dataclasses import dataclass
from random import Random

from memory_pipelines.model import stable_hash
from memory_pipelines.sample.config import DAY, Config
from memory_pipelines.sample.phrases import pick

ORIGINS = {
    "zh": ("wechat_mini", "ios", "android", "web_app", "phone"),
    "zh-Hant": ("line", "ios", "web_app", "phone"),
    "en": ("web_app", "ios", "android", "email", "phone"),
}
WEEKEND = (0.92, 0.88, 0.9, 0.92, 1.0, 1.22, 1.16)
"""Factor on the order rate from Monday to Sunday; mean 1."""
SEASON = 0.25
"""Amplitude of the yearly wave of orders, highest in early December."""


@dataclass(frozen=True, slots=True)
class Person:
    """One person of one tenant. Rates are means per day; ``anonymous_until`` is a time, see ``config.DAY``."""

    tenant: str
    key: str
    user_id: str
    device_id: str
    language: str
    offset_hours: int
    wakes: int
    order_rate: float
    visit_rate: float
    chat_rate: float
    sensitivity: float
    basket: float
    assistant: bool
    anonymous_until: int

    def subject(self, at: int) -> str:
        """Whom a row of that time names: the device until the login, then the user."""
        return f"d:{self.device_id}" if at < self.anonymous_until else f"u:{self.user_id}"


def random_of(config: Config, tenant: str, name: str) -> Random:
    """The person's own stream of random numbers: nobody else's life depends on it."""
    return Random(int(stable_hash("sample", config.seed, tenant, name), 16))


def draw(config: Config, tenant: str, number: int, rng: Random) -> Person:
    """The ``number``-th person of a tenant.

    User ids repeat between tenants on purpose: equal ids in two tenants are two persons.
    A quarter are heavy buyers; they complain more because they order more, which confounds every
    naive comparison of complainers with others.
    """
    language = _weighted(rng, config.languages)
    heavy = rng.random() < 0.25
    order_rate = 0.22 + 0.26 * rng.random() if heavy else 0.03 + 0.09 * rng.random()
    anonymous_until = config.begin
    if rng.random() < config.anonymous:
        # One in five of them never logs in.
        stretch = 1.0 if rng.random() < 0.2 else 0.1 + 0.5 * rng.random()
        anonymous_until = config.begin + int(stretch * config.days * DAY)
    user = stable_hash("user", config.seed, number)
    return Person(
        tenant=tenant,
        key=stable_hash("person", config.seed, tenant, number)[:12],
        user_id=f"c{user[:10]}",
        device_id=f"fp-{stable_hash('device', config.seed, tenant, number)[:16]}",
        language=language,
        offset_hours=8 if language != "en" else pick(rng, (-8, -6, -5, 0, 1)),
        wakes=6 + int(rng.random() * 4),
        order_rate=order_rate,
        visit_rate=0.12 + 0.9 * order_rate + 0.3 * rng.random(),
        chat_rate=0.02 + 0.13 * rng.random(),
        sensitivity=0.6 + 0.6 * rng.random(),
        basket=(60.0 if language != "en" else 25.0) * math.exp(1.2 * rng.random()),
        assistant=rng.random() < 0.8,
        anonymous_until=anonymous_until,
    )


class Calendar:
    """Factors on the order rate that are the same for everyone: day of the week and season."""

    MOST = max(WEEKEND) * (1 + SEASON) * 1.5
    """No rhythm ever exceeds this: the bound of thinning."""

    def __init__(self, config: Config) -> None:
        self.first = config.begin // DAY
        weekday = config.start.weekday()
        day_of_year = config.start.timetuple().tm_yday
        self.days = [
            WEEKEND[(weekday + i) % 7] * (1 + SEASON * math.cos(2 * math.pi * (day_of_year + i - 340) / 365.25))
            for i in range(config.days + 8)
        ]

    def rhythm(self, at: int, person: Person) -> float:
        """Day factor x 1.5 in the person's 16 waking hours (local time), 0 in the others."""
        local_hour = (at // 3600 + person.offset_hours) % 24
        if (local_hour - person.wakes) % 24 >= 16:
            return 0.0
        return 1.5 * self.days[at // DAY - self.first]

    def week_after(self, at: int) -> float:
        """Sum of the seven day factors that follow ``at``: expected orders at a rate of one a day."""
        day, rest = at // DAY - self.first, at % DAY / DAY
        return sum(self.days[day + 1 : day + 7]) + self.days[day] * (1 - rest) + self.days[day + 7] * rest


def _weighted(rng: Random, items: tuple[tuple[str, float], ...]) -> str:
    mark = rng.random() * sum(weight for _, weight in items)
    for name, weight in items:
        mark -= weight
        if mark < 0:
            return name
    return items[-1][0]
