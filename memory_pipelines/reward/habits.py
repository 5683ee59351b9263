"""The habits of a person: how often, how regularly and when they act, as known at a moment.

Belongs here: features of the past alone, of any moment of anybody, and what is usual where little is known. Does not
belong here: the days around an event (``features``), what follows from habits (``controls``).

Nothing here has a currency: values count only against the person's own.
"""

import numpy as np

from memory_pipelines.reward.timeline import Floats
from memory_pipelines.reward.world import DAY, WEEK, Moments, World, third_of_day

HABITS = (
    "weekly_rate",
    "since_order_days",
    "orders_so_far",
    "orders_28",
    "orders_91",
    "gap_days",
    "last_gap_days",
    "gap_ratio",
    "tenure_days",
    "visits_28",
    "since_visit_days",
    "own_hours",
    "value_ratio",
)
"""``weekly_rate``: orders a week, shrunk; orders and visits in the 28 and 91 days before; ``gap_days``: mean days
between two orders so far, ``last_gap_days`` the newest, ``gap_ratio`` days since the last order over the mean;
``tenure_days``: since the person was first seen, 0 for a new one; ``own_hours``: share of own behaviour so far that
fell into this third of the day (UTC): low at night; ``value_ratio``: value of the orders of the 28 days before over
the person's mean. NaN: not known."""

PRIOR_WEEKS = 2.0
PRIOR_RATE = 0.5
"""A person's own rate is shrunk towards half an order a week as if seen for two weeks: most people order rarely."""


def own_rate(world: World, moments: Moments, kind: str = "order") -> Floats:
    """Events of a kind a week of each owner up to the moment, shrunk towards ``PRIOR_RATE``."""
    seen = world.kinds[kind].up_to(moments.owners, moments.at)
    rate: Floats = (seen + PRIOR_WEEKS * PRIOR_RATE) / (_tenure(world, moments) / WEEK + PRIOR_WEEKS)
    return rate


def habits(world: World, moments: Moments) -> dict[str, Floats]:
    """A column per name of ``HABITS``, a value per moment."""
    owners, at = moments.owners, moments.at
    orders, visits = world.kinds["order"], world.kinds["visit"]
    count = orders.up_to(owners, at).astype(np.float64)
    since, before_last = orders.last(owners, at) / DAY, orders.last(owners, at, 2) / DAY
    earliest = np.minimum(orders.first(owners), at)
    everything = world.anything.up_to(owners, at)
    month = at - 4 * WEEK
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.where(count > 1, ((at - earliest) / DAY - since) / (count - 1), np.nan)
        own_hours = world.thirds.up_to(owners * 3 + third_of_day(at), at) / everything
        mean_value = world.spend.total(owners, earliest - 1, at) / count
        value = world.spend.total(owners, month, at) / orders.total(owners, month, at)
        return {
            "weekly_rate": own_rate(world, moments),
            "since_order_days": since,
            "orders_so_far": count,
            "orders_28": orders.total(owners, month, at),
            "orders_91": orders.total(owners, at - 13 * WEEK, at),
            "gap_days": gap,
            "last_gap_days": before_last - since,
            "gap_ratio": since / np.maximum(gap, 1 / 24),
            "tenure_days": _tenure(world, moments) / DAY,
            "visits_28": visits.total(owners, month, at),
            "since_visit_days": visits.last(owners, at) / DAY,
            "own_hours": np.where(everything > 0, own_hours, np.nan),
            "value_ratio": np.where(mean_value > 0, value / mean_value, np.nan),
        }


def _tenure(world: World, moments: Moments) -> Floats:
    """Microseconds since the owner was first seen; 0 for one who was not yet."""
    first = np.minimum(world.anything.first(moments.owners), moments.at)
    tenure: Floats = np.maximum(0, moments.at - first).astype(np.float64)
    return tenure
