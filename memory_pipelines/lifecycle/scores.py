"""The score of a memory: what the gate gave it, its use, its relations, and time.

Belongs here: the formula, the uses that count as access or as denial, the count of relations. Does not belong here:
what follows from a score (``tiers``, ``plan``).
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from memory_pipelines.stores.authority import AccessKind, Use
from memory_pipelines.stores.ripple import MOST_WINDOWS

MONTH = timedelta(days=30.4375)
DAY = timedelta(days=1)
DAYS = 7
MONTHLY_DECAY = 0.95
ACCESS_BONUS, ACCESS_BONUS_MOST = 0.1, 0.3
RELATION_BONUS, RELATION_BONUS_MOST = 0.05, 0.3

ACCESS_KINDS = frozenset({AccessKind.PRESENTED, AccessKind.ECHO})
"""Uses that count as access: shown to an agent, or brought up by the person. What a ripple merely activated is
not: a neighbourhood would keep itself alive. A denial is none either."""

Uses = Mapping[str, Sequence[tuple[datetime, str]]]
"""Of one owner: turn id → (when, kind) of each use."""


def score(
    gate_score: float,
    accesses: Collection[datetime],
    related_nodes: int,
    *,
    admitted_at: datetime,
    as_of: datetime,
    decays: bool = True,
) -> float:
    """The score in [0, 1] at ``as_of``, rounded to 4 digits: the mean of seven daily values, the last at ``as_of``.

    A day's value, at the instant t, is

        min(1, gate_score + min(.1 · n, .3) + min(.05 · related_nodes, .3)) · .95 ^ months

    where *n* is the number of distinct accesses until t since ever, and *months* the time from the last of them,
    else from ``admitted_at``, to t in months of 30.4375 days (a fraction; 0 where t is before the admission).
    ``decays=False`` (permanent memories, current facts): months are 0. Accesses after t do not count.
    """
    relation = min(RELATION_BONUS * related_nodes, RELATION_BONUS_MOST)
    values = []
    for back in range(DAYS):
        at = as_of - back * DAY
        seen = {access for access in accesses if access <= at}
        base = min(1.0, gate_score + min(ACCESS_BONUS * len(seen), ACCESS_BONUS_MOST) + relation)
        since = at - max(seen, default=admitted_at)
        months = max(0.0, since / MONTH) if decays else 0.0
        values.append(base * math.pow(MONTHLY_DECAY, months))
    return round(sum(values) / DAYS, 4)


def access_times(turn_ids: Iterable[str], uses: Uses) -> tuple[datetime, ...]:
    """When a memory with these turns was accessed, earliest first.

    A memory inherits the uses of any turn that it shares; one use of several of its turns is one access.
    """
    times = {at for turn in turn_ids for at, kind in uses.get(turn, ()) if kind in ACCESS_KINDS}
    return tuple(sorted(times))


WINDOW = timedelta(days=7)
LEAST_PRESENTED = 5


def presented_times(turn_ids: Iterable[str], uses: Uses) -> tuple[datetime, ...]:
    """When a memory with these turns was presented to an agent, earliest first; inherited like its accesses."""
    return tuple(sorted({at for turn in turn_ids for at, kind in uses.get(turn, ()) if kind == AccessKind.PRESENTED}))


def use_of(accesses: Sequence[datetime], presented: Sequence[datetime], as_of: datetime) -> Use:
    """The last access until ``as_of``, and the windows until then in which the memory was presented five times or
    more, 2 at most. A window is seven days from a presentation on; the next one begins after it.

    ``accesses`` and ``presented`` are in order of time."""
    shown = presented[: bisect_right(presented, as_of)]
    windows = first = 0
    while windows < MOST_WINDOWS and first + LEAST_PRESENTED <= len(shown):
        within = bisect_left(shown, shown[first] + WINDOW, first)
        full = within - first >= LEAST_PRESENTED
        windows += full
        first = within if full else first + 1
    before = bisect_right(accesses, as_of)
    return Use(accesses[before - 1] if before else None, windows)


DENIALS = frozenset({AccessKind.NEGATED, AccessKind.CORRECTED})
LAST_USES, LEAST_USES = 10, 3


@dataclass(frozen=True, slots=True)
class Denials:
    """When a memory that was ever denied was presented, and when it was denied, earliest first."""

    presented: tuple[datetime, ...]
    denied: tuple[datetime, ...]

    def rate(self, as_of: datetime) -> float:
        """The share of the last 10 uses until ``as_of`` that were denied; 0 of fewer than 3.

        A use is a presentation; a denial is of the latest one before it, and a use of its own where there is none."""
        uses = [at for at in self.presented if at <= as_of]
        denied = set()
        for at in self.denied:
            if at <= as_of:
                before = bisect_right(uses, at)
                denied.add(uses[before - 1] if before else at)
        last = sorted({*uses, *denied})[-LAST_USES:]
        return len(denied.intersection(last)) / len(last) if len(last) >= LEAST_USES else 0.0


def denials(turn_ids: Iterable[str], uses: Uses) -> Denials | None:
    """The denials of a memory with these turns, inherited like its accesses; None if there are none."""
    found = {use for turn in turn_ids for use in uses.get(turn, ())}
    denied = {at for at, kind in found if kind in DENIALS}
    presented = {at for at, kind in found if kind == AccessKind.PRESENTED}
    return Denials(tuple(sorted(presented)), tuple(sorted(denied))) if denied else None


def related_nodes(edges: pa.Table) -> dict[str, int]:
    """Node id → number of distinct other nodes, memories or entities, on EDGES rows with it."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for source, target in zip(edges["source"].to_pylist(), edges["target"].to_pylist(), strict=True):
        if source != target:
            neighbours[source].add(target)
            neighbours[target].add(source)
    return {node: len(others) for node, others in neighbours.items()}
