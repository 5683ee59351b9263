"""Features of the reward model: what a person did in the 7 days before and after an event.

Belongs here: which features there are and how each is read from behaviour. Does not belong here: what is learned
from them (``fit``) or the outcome that they shall explain (``labels``).

The window before an event at t is (t − 7 d, t], the one after is (t, t + 7 d). Until the latter has closed, every
feature of it is NaN, so a provisional row is exactly what was known at t and no row changes once it is final.
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.model import INSTANT, WINDOW, stable_hash
from memory_pipelines.reward.timeline import Floats, Ints, Timeline, codes, floats, micros
from memory_pipelines.tables import TIME

WEEK = WINDOW // INSTANT
DAY = WEEK // 7
HOUR = DAY // 24
NEAR = 2 * HOUR

COUNTED = ("order", "visit", "coupon", "refund", "cancel")
"""Kinds of behaviour with a timeline of their own; ``churn`` ends a person's life as a customer."""
AROUND = ("orders", "spend", "visits", "dwell", "bounce", "coupons", "refunds", "cancels", "contacts", "repeats")
"""Of either window: numbers of events, sum of order values, mean dwell seconds and share of bounces among visits (NaN
without visits), exchanges, and exchanges of the same intent; the event itself is one of those before."""
BEFORE = tuple(f"before_{name}" for name in AROUND)
ONLY_AFTER = (
    "churned",
    "compensated",
    "repurchase_days",
    "habit_change",
    "visit_change",
    "rule_40",
    "beside",
)
AFTER = (*(f"after_{name}" for name in AROUND), *ONLY_AFTER)
MOMENT = ("since_order_days", "weekly_rate", "rate_change", "emotion", "intent", "hour", "weekday")
NAMES = (*BEFORE, *MOMENT, *AFTER)
"""The order of ``reward_events.features``. ``repurchase_days`` is NaN where nobody bought again within the window
(censored); changes compare a week with the person's own rate; ``beside`` counts other exchanges but idle ones from 7
days before to ``NEAR`` after; ``intent`` is ``intent_code``; ``hour`` and ``weekday`` (Monday 0) are in UTC."""

PRIOR_WEEKS = 2.0
PRIOR_RATE = 0.5
"""A person's own rate is shrunk towards half an order a week as if seen for two weeks: most people order rarely."""
IDLE = ("chit_chat", "inquiry", "transient_reasoning")
"""Categories of talk without consequence: it does not disturb an ordinary moment."""
FALL = 0.4
"""A rule of thumb: orders that fall by 40 % mean a high impact, unless compensated and resumed."""


@dataclass(frozen=True)
class World:
    """Timelines of everybody's behaviour and exchanges before ``as_of``; owners are codes below ``owners``."""

    owners: int
    kinds: dict[str, Timeline]
    spend: Timeline
    dwell: Timeline
    dwelt: Timeline
    bounce: Timeline
    bounced: Timeline
    anything: Timeline
    contacts: Timeline
    serious: Timeline
    """Exchanges of any category but ``IDLE``."""
    behaviour: pa.Table
    """Rows with ``code`` and ``at``: each event once, none at or after ``as_of``."""


@dataclass(frozen=True)
class Moments:
    """Where to look: owner codes and times, of events or of controls."""

    owners: Ints
    at: Ints

    def __len__(self) -> int:
        return len(self.at)


def intent_code(intent: str) -> int:
    """A stable code below 2^32 of any intent: the list of intents may grow without a change of old codes."""
    return int(stable_hash("intent", intent)[:8], 16)


def unique_behaviour(behaviour: pa.Table, as_of: datetime) -> pa.Table:
    """Behaviour before ``as_of``; of rows with one owner and event id the smallest content hash counts, once."""
    rows = behaviour.filter(pc.field("occurred_at") < pa.scalar(as_of, TIME))
    rows = rows.sort_by([(name, "ascending") for name in ("owner", "event_id", "content_hash")])
    return _first_of_each(rows, ("owner", "event_id"))


def unique_events(events: pa.Table, as_of: datetime) -> pa.Table:
    """Events before ``as_of`` in order of (owner, time, id), each exchange once."""
    rows = events.filter(pc.field("occurred_at") < pa.scalar(as_of, TIME))
    rest = sorted(set(rows.column_names) - {"owner", "exchange_id"})
    rows = rows.sort_by([(name, "ascending") for name in ("owner", "exchange_id", *rest)])
    rows = _first_of_each(rows, ("owner", "exchange_id"))
    return rows.sort_by([(name, "ascending") for name in ("owner", "occurred_at", "exchange_id")])


def _first_of_each(rows: pa.Table, key: tuple[str, str]) -> pa.Table:
    if rows.num_rows < 2:
        return rows
    same = np.ones(rows.num_rows - 1, dtype=bool)
    for name in key:
        column = rows.column(name)
        same &= pc.equal(column.slice(1), column.slice(0, rows.num_rows - 1)).to_numpy()
    return rows.filter(pa.array(np.concatenate(([True], ~same))))


def build_world(events: pa.Table, behaviour: pa.Table) -> tuple[World, Moments]:
    """Timelines of ``unique_events`` and ``unique_behaviour`` rows, and the moments of the events."""
    (event_owners, owners), count = codes([events.column("owner"), behaviour.column("owner")])
    at, event_at = micros(behaviour.column("occurred_at")), micros(events.column("occurred_at"))
    kind = behaviour.column("kind").to_numpy()
    value, dwell = floats(behaviour.column("value")), floats(behaviour.column("dwell_seconds"))
    bounce = floats(behaviour.column("bounce"))

    def line(mask: NDArray[np.bool_], values: Floats | None = None) -> Timeline:
        return Timeline(owners[mask], at[mask], count, None if values is None else values[mask])

    visit, order = kind == "visit", kind == "order"
    dwelt, bounced = visit & ~np.isnan(dwell), visit & ~np.isnan(bounce)
    serious = ~pc.is_in(events.column("category"), value_set=pa.array(IDLE)).to_numpy()
    world = World(
        owners=count,
        kinds={name: line(kind == name) for name in (*COUNTED, "churn")},
        spend=line(order & ~np.isnan(value), value),
        dwell=line(dwelt, dwell),
        dwelt=line(dwelt),
        bounce=line(bounced, bounce),
        bounced=line(bounced),
        anything=line(np.ones(len(at), dtype=bool)),
        contacts=Timeline(event_owners, event_at, count),
        serious=Timeline(event_owners[serious], event_at[serious], count),
        behaviour=behaviour.append_column("code", pa.array(owners)).append_column("at", pa.array(at)),
    )
    return world, Moments(event_owners, event_at)


def own_rate(world: World, moments: Moments, kind: str = "order") -> Floats:
    """Events of a kind a week of each owner up to the moment, shrunk towards ``PRIOR_RATE``."""
    seen = world.kinds[kind].up_to(moments.owners, moments.at)
    weeks = np.maximum(0.0, (moments.at - np.minimum(world.anything.first(moments.owners), moments.at)) / WEEK)
    rate: Floats = (seen + PRIOR_WEEKS * PRIOR_RATE) / (weeks + PRIOR_WEEKS)
    return rate


def orders_after(world: World, moments: Moments) -> Floats:
    """Orders in the 7 days after each moment, however many of these days are known."""
    return world.kinds["order"].total(moments.owners, moments.at, moments.at + WEEK - 1)


def _change(seen: Floats, usual: Floats) -> Floats:
    """Of a week's count against the usual one, in (-1, 1)."""
    change: Floats = (seen - usual) / (seen + usual + 1)
    return change


def rule_40(before: Floats, after: Floats, compensated: NDArray[np.bool_]) -> Floats:
    """The rule of thumb: 1 where orders fell by 40 % or more, unless compensated and bought again; else 0."""
    fell = (before > 0) & (after <= (1 - FALL) * before)
    return np.where(fell & ~(compensated & (after > 0)), 1.0, 0.0)


def feature_matrix(world: World, moments: Moments, events: pa.Table, closed: NDArray[np.bool_]) -> Floats:
    """One row per event, columns as ``NAMES``, 4 digits; NaN: not known, or not known yet."""
    owners, at = moments.owners, moments.at
    intents = events.column("intent").combine_chunks().dictionary_encode()
    intent_index = np.asarray(intents.indices.to_numpy(), dtype=np.int64)
    names = intents.dictionary.to_pylist()
    pair = owners * max(1, len(names)) + intent_index
    same = Timeline(pair, at, world.owners * max(1, len(names)))
    found: dict[str, Floats] = {}
    for prefix, first, last in (("before", at - WEEK, at), ("after", at, at + WEEK - 1)):
        visits = world.kinds["visit"].total(owners, first, last)
        with np.errstate(invalid="ignore", divide="ignore"):
            dwell = world.dwell.total(owners, first, last) / world.dwelt.total(owners, first, last)
            bounce = world.bounce.total(owners, first, last) / world.bounced.total(owners, first, last)
        values = {
            "orders": world.kinds["order"].total(owners, first, last),
            "spend": world.spend.total(owners, first, last),
            "visits": visits,
            "dwell": dwell,
            "bounce": bounce,
            "coupons": world.kinds["coupon"].total(owners, first, last),
            "refunds": world.kinds["refund"].total(owners, first, last),
            "cancels": world.kinds["cancel"].total(owners, first, last),
            "contacts": world.contacts.total(owners, first, last),
            "repeats": same.total(pair, first, last),
        }
        found |= {f"{prefix}_{name}": column for name, column in values.items()}
    serious = (~pc.is_in(events.column("category"), value_set=pa.array(IDLE)).to_numpy()).astype(np.float64)
    rate = own_rate(world, moments)
    before, after = found["before_orders"], found["after_orders"]
    repurchase = world.kinds["order"].next(owners, at) / DAY
    compensated = found["after_coupons"] > 0
    found |= {
        "since_order_days": world.kinds["order"].last(owners, at) / DAY,
        "weekly_rate": rate,
        "rate_change": _change(before, rate),
        "emotion": floats(events.column("emotion_score")),
        "intent": np.array([intent_code(name) for name in names], dtype=np.float64)[intent_index],
        "hour": (at // HOUR % 24).astype(np.float64),
        "weekday": ((at // DAY + 3) % 7).astype(np.float64),  # 1970-01-01 was a Thursday
        "churned": world.kinds["churn"].total(owners, at, at + WEEK - 1),
        "compensated": compensated.astype(np.float64),
        "repurchase_days": np.where(repurchase < WEEK / DAY, repurchase, np.nan),
        "habit_change": _change(after, rate),
        "visit_change": _change(found["after_visits"], own_rate(world, moments, "visit")),
        "rule_40": rule_40(before, after, compensated),
        "beside": world.serious.total(owners, at - WEEK, at + NEAR) - serious,
    }
    matrix = np.column_stack([found[name] for name in NAMES])
    matrix[np.ix_(~closed, np.isin(NAMES, AFTER))] = np.nan
    return np.round(matrix, 4)
