"""What people do in 7 days when nothing has happened: expected orders.

Belongs here: control moments, and what like people order after them. Does not belong here: labels of events
(``labels``), habits themselves (``habits``).

*Control moments* are ordinary visits and orders of the same people, one per person and day at most, chosen by hash,
with nothing but idle talk in the 7 days before, so that no event is at work. They are conditioned on the past alone:
what follows a control may be anything, as after an event. Being visits and orders, they come as often to busy people
as events do.

    expected = own rate · what controls of the rate class make of it · what trees read from the habits · season

Like people are people with a like rate of orders; with ``ENOUGH`` controls, trees (a Poisson regression on the habits,
offset by the class) tell those who have just begun, come at intervals, or have gone silent from one another. A person's
own controls never decide what is expected of them: each of ``FOLDS`` parts of the people is judged by the others. The
season is the ratio of seen to usual orders of all controls of the same week, and of the same day within it, so that a
holiday counts for the windows that hold it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.model import stable_hash
from memory_pipelines.reward.habits import HABITS, habits, own_rate
from memory_pipelines.reward.timeline import Floats, Ints
from memory_pipelines.reward.world import DAY, FOLDS, WEEK, Moments, World, orders_after

if TYPE_CHECKING:
    import lightgbm

ORDINARY = ("order", "visit")
"""Kinds of behaviour whose moments are controls."""
RATE_EDGES = (0.25, 0.375, 0.5, 0.625, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Borders of the classes of own orders a week."""
MIN_CONTROLS = 30
"""A rate class with fewer controls tells nothing of itself."""
ENOUGH = 2_000
"""With fewer controls the classes alone are used."""
MOST_CONTROLS = 200_000
"""Trees learn from so many at most, evenly taken."""
SEASON_PRIOR = 50.0
"""The season of a week, and of a day, is shrunk towards 1 as if by this many expected orders."""
ROUNDS = 80
PARAMETERS: dict[str, Any] = {
    "objective": "poisson",
    "learning_rate": 0.08,
    "num_leaves": 15,
    "min_data_in_leaf": 100,
    "lambda_l2": 20.0,
    "feature_fraction": 0.8,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 7,
    "verbose": -1,
}
FLOOR = 1e-3
"""Least usual orders of a class, for the logarithm."""
CONTEXT = ("orders_7", "visits_7", "cancels_28", "refunds_28")
COLUMNS = (*HABITS, *CONTEXT)


def control_moments(world: World) -> Moments:
    """Ordinary visits and orders: of one person and day the one with the smallest hash of its id.

    Where identity links join subjects, each has the behaviour of all: one stands for the person."""
    rows = world.behaviour
    rows = rows.filter(pc.is_in(rows.column("kind"), value_set=pa.array(ORDINARY)))
    owners = np.asarray(rows.column("code").to_numpy(), dtype=np.int64)
    at = np.asarray(rows.column("at").to_numpy(), dtype=np.int64)
    quiet = world.disturbed.total(owners, at - WEEK, at) == 0
    quiet &= world.persons[owners] == owners
    quiet &= world.kinds["churn"].up_to(owners, at) == 0
    owners, at = owners[quiet], at[quiet]
    ids = rows.column("event_id").filter(pa.array(quiet)).to_pylist()
    draw = np.array([int(stable_hash("control", name)[:15], 16) for name in ids], dtype=np.int64)
    day = at // DAY
    order = np.lexsort((at, draw, day, owners))
    owners, at, day = owners[order], at[order], day[order]
    first = np.ones(len(at), dtype=bool)
    first[1:] = (owners[1:] != owners[:-1]) | (day[1:] != day[:-1])
    return Moments(owners[first], at[first])


@dataclass(frozen=True)
class Usual:
    """What is usual after a moment, apart from the season, for each part of the people as the others show it.

    ``classes``: orders over own rate by part and rate class; ``boosters``: one a part, or none."""

    classes: Floats
    boosters: tuple["lightgbm.Booster", ...]

    def orders(self, world: World, moments: Moments) -> Floats:
        """Orders of 7 days, of each moment, learned without the moment's owner; NaN: too few controls altogether."""
        base = self._base(world, moments)
        if not self.boosters or not len(moments):
            return base
        columns, factor = _columns(world, moments), np.ones(len(moments))
        for fold, booster in enumerate(self.boosters):
            own = world.folds[moments.owners] == fold
            if own.any():
                factor[own] = np.exp(booster.predict(columns[own], raw_score=True, num_threads=1))
        return base * factor

    def _base(self, world: World, moments: Moments) -> Floats:
        rate = own_rate(world, moments)
        base: Floats = rate * self.classes[world.folds[moments.owners], np.searchsorted(RATE_EDGES, rate)]
        return base


def learn_usual(world: World, controls: Moments, seen: Floats) -> Usual:
    """From ``control_moments`` whose 7 days are known, and the orders seen in them."""
    folds = world.folds[controls.owners]
    plain = Usual(_classes(own_rate(world, controls), folds, seen), ())
    base = plain.orders(world, controls)
    known = np.flatnonzero(~np.isnan(base))
    if len(known) < ENOUGH:
        return plain
    known = known[:: -(-len(known) // MOST_CONTROLS)]
    some = Moments(controls.owners[known], controls.at[known])
    columns, offset = _columns(world, some), np.log(np.maximum(base[known], FLOOR))
    boosters = tuple(_boosted(columns, seen[known], offset, folds[known] != fold) for fold in range(FOLDS))
    return Usual(plain.classes, boosters)


def _classes(rate: Floats, folds: Ints, seen: Floats) -> Floats:
    """Orders over own rate, for each part by the others; a class with too few controls is taken for the nearest that
    has enough."""
    size = len(RATE_EDGES) + 1
    place = folds * size + np.searchsorted(RATE_EDGES, rate)
    own = [np.bincount(place, w, FOLDS * size).reshape(FOLDS, size) for w in (np.ones(len(rate)), rate, seen)]
    number, usual, orders = (part.sum(axis=0) - part for part in own)
    ratios = np.full((FOLDS, size), np.nan)
    for fold in range(FOLDS):
        enough = np.flatnonzero(number[fold] >= MIN_CONTROLS)
        if len(enough):
            nearest = enough[np.abs(np.arange(size)[:, None] - enough).argmin(axis=1)]
            ratios[fold] = (orders[fold] / np.maximum(usual[fold], FLOOR))[nearest]
    return ratios


def _boosted(columns: Floats, seen: Floats, offset: Floats, rows: NDArray[np.bool_]) -> "lightgbm.Booster":
    import lightgbm

    data = lightgbm.Dataset(columns[rows], seen[rows], init_score=offset[rows], feature_name=list(COLUMNS))
    return lightgbm.train(PARAMETERS, data, ROUNDS)


def _columns(world: World, moments: Moments) -> Floats:
    owners, at = moments.owners, moments.at
    found = habits(world, moments) | {
        "orders_7": world.kinds["order"].total(owners, at - WEEK, at),
        "visits_7": world.kinds["visit"].total(owners, at - WEEK, at),
        "cancels_28": world.kinds["cancel"].total(owners, at - 4 * WEEK, at),
        "refunds_28": world.kinds["refund"].total(owners, at - 4 * WEEK, at),
    }
    # plus one: LightGBM keeps zero apart from the smallest number beside it, and a control is the moment of its order
    return np.column_stack([found[name] for name in COLUMNS]) + 1.0


def expected_orders(world: World, moments: Moments, now: int) -> Floats:
    """Orders that like people make in the 7 days after an ordinary moment of the same days; NaN: too few controls.

    Only controls whose 7 days had ended at ``now`` (microseconds) count."""
    controls = known_controls(world, now)
    seen = orders_after(world, controls)
    usual = learn_usual(world, controls, seen)
    expected: Floats = usual.orders(world, moments)
    return expected * season(controls, seen, usual.orders(world, controls), moments.at)


def known_controls(world: World, now: int) -> Moments:
    """``control_moments`` whose 7 days had ended at ``now``."""
    controls = control_moments(world)
    past = controls.at + WEEK <= now
    return Moments(controls.owners[past], controls.at[past])


def season(controls: Moments, seen: Floats, usual: Floats, at: Ints) -> Floats:
    """Seen over usual orders after the controls of each moment's calendar week, and of its day within that week, both
    shrunk towards 1."""
    known = ~np.isnan(usual)
    week = _ratio(controls.at[known] // WEEK, seen[known], usual[known])
    usual_of_week = usual[known] * week(controls.at[known] // WEEK)
    day = _ratio(controls.at[known] // DAY, seen[known], usual_of_week)
    factor: Floats = week(at // WEEK) * day(at // DAY)
    return factor


def _ratio(places: Ints, seen: Floats, usual: Floats) -> Any:
    """Place → Σ seen / Σ usual there, shrunk; 1 where nothing is known."""
    known, index = np.unique(places, return_inverse=True)
    above = np.bincount(index, seen, len(known)) + SEASON_PRIOR
    below = np.bincount(index, usual, len(known)) + SEASON_PRIOR

    def at(asked: Ints) -> Floats:
        if not len(known):
            return np.ones(len(asked))
        found = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return np.where(known[found] == asked, (above / below)[found], 1.0)

    return at
