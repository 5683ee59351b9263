"""What will happen to one person, and when.

Belongs here: time, sleep, Poisson processes. Does not belong here: what happens (``life``, ``company``).
"""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from memory_pipelines.sample.config import DAY, Config
from memory_pipelines.sample.people import Calendar, Person

MOST_UP = 1.25
"""Upper bound of all active effects together."""

Step = Callable[[int], None]


class Agenda:
    """Steps in the order of their time, until the simulation ends."""

    def __init__(self, config: Config, person: Person, calendar: Calendar, rng: Random) -> None:
        self.config = config
        self.person = person
        self.calendar = calendar
        self.rng = rng
        self.heap: list[tuple[int, int, Step]] = []
        self.planned = 0

    def run(self) -> None:
        """Take every step; steps plan others."""
        while self.heap and self.heap[0][0] < self.config.end:
            at, _, step = heappop(self.heap)
            step(at)
        self.heap.clear()  # steps hold the life that holds this: without the cycle it is gone at once

    def plan(self, at: int, step: Step) -> None:
        self.planned += 1
        heappush(self.heap, (at, self.planned, step))

    def later(self, at: int, low_hours: float, high_hours: float, step: Step) -> None:
        gap = int(3600 * (low_hours + (high_hours - low_hours) * self.rng.random()))
        self.plan(self.awake(at + gap), step)

    def awake(self, at: int) -> int:
        """The time itself, or 8 hours later where the person sleeps."""
        asleep = at < self.config.end and not self.calendar.rhythm(at, self.person)
        return at + 8 * 3600 if asleep else at

    def next(self, at: int, rate: float, step: Step) -> None:
        """Plan the next candidate of a Poisson process whose intensity never exceeds rate x the bounds."""
        gap = -math.log(1.0 - self.rng.random()) / (rate * Calendar.MOST * MOST_UP)
        self.plan(at + 1 + int(gap * DAY), step)

    def accepted(self, at: int, factor: float) -> bool:
        """Thinning: keep a candidate with the share that its intensity has of the bound."""
        return self.rng.random() * Calendar.MOST * MOST_UP < self.calendar.rhythm(at, self.person) * factor
