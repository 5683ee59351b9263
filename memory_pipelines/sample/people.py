"""Who lives in the simulation, and the rhythm of weeks and seasons that all of them share.

Belongs here: drawing a person from the configuration. Does not belong here: what happens to one.
"""

import math
from dataclasses import dataclass
from random import Random
from typing import Any

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
    """One person of one tenant. Rates are means per day; times are seconds, see ``config.DAY``.

    ``second_device`` is used too from ``second_from`` on. ``guests`` are user ids of others who
    exist in this person's life alone: they write in the same group, and where ``shares_device`` is
    set the first of them uses the person's device too.
    """

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
    second_device: str = ""
    second_from: int = 0
    guests: tuple[str, ...] = ()
    in_group: bool = False
    shares_device: bool = False

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
    more = _company(config, tenant, number, anonymous_until)
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
        **more,
    )


def _company(config: Config, tenant: str, number: int, anonymous_until: int) -> dict[str, Any]:
    """Devices and people around a person. From numbers of its own, so that the life stays what it is without."""
    rng = random_of(config, tenant, f"{number}/company")
    marks = [rng.random() for _ in range(5)]
    in_group = marks[0] < config.groups
    shares_device = marks[1] < config.shared_devices
    more: dict[str, Any] = {"in_group": in_group, "shares_device": shares_device}
    if in_group or shares_device:
        count = 1 + int(3 * marks[2]) if in_group else 1
        names = (stable_hash("guest", config.seed, tenant, number, i) for i in range(count))
        more["guests"] = tuple(f"g{name[:10]}" for name in names)
    second_from = max(config.begin, anonymous_until) + int(0.5 * marks[4] * config.days * DAY)
    if marks[3] < config.second_devices and second_from < config.end:
        device = stable_hash("second device", config.seed, tenant, number)
        more |= {"second_device": f"fp-{device[:16]}", "second_from": second_from}
    return more


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
