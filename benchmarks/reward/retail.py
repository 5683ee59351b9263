"""A real shop's orders and cancellations (the public set Online Retail): what is expected, and what really follows.

Belongs here: reading the set as behaviour, the two protocols. Does not belong here: any model.

*Order within 7 days.* Asked of every customer who has bought before, each Monday, and of every purchase (one a customer
and day). Learned from moments whose 7 days had ended at the cut, asked of all later ones whose 7 days end within the
data; AUC of the orders that ``reward.controls`` expects. Beside it LightGBM with default settings on recency, frequency
and value.

*Cancellations.* Expected and observed orders in the 7 days after each cancellation (one a customer and day), and after
as many purchases without a cancellation in the 7 days before, matched by rate class and week. What is expected of a
customer is learned from others. A fall is 1 − Σ observed / Σ expected, with an interval of 95 % by resampling
customers. A method that finds a fall after ordinary purchases finds chance.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

from memory_pipelines.model import Owner, stable_hash
from memory_pipelines.reward.controls import RATE_EDGES, control_moments, expected_orders, learn_usual
from memory_pipelines.reward.evaluate import weighted_auc
from memory_pipelines.reward.features import rule_40
from memory_pipelines.reward.habits import own_rate
from memory_pipelines.reward.labels import LEAST_EXPECTED
from memory_pipelines.reward.timeline import Floats
from memory_pipelines.reward.world import DAY, WEEK, Moments, World, build_world, orders_after, unique_behaviour
from memory_pipelines.tables import BEHAVIOUR, TIME

FILE = "online_retail_before_2011-07-15.csv.gz"
TEST_SHARE = 0.25
"""Of the time, the last part is asked about."""
RESAMPLES = 1000


def read(folder: Path) -> pa.Table:
    """BEHAVIOUR rows: one order or cancellation an invoice with a known customer and a positive value."""
    kept = ["InvoiceNo", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID"]
    with gzip.open(folder / "online_retail" / FILE, "rb") as stream:
        types = {"InvoiceNo": pa.string(), "CustomerID": pa.string(), "InvoiceDate": pa.string()}
        rows = csv.read_csv(stream, convert_options=csv.ConvertOptions(include_columns=kept, column_types=types))
    rows = rows.filter(pc.greater(pc.utf8_length(pc.fill_null(rows["CustomerID"], "")), 0))
    value = pc.multiply(pc.cast(rows["Quantity"], pa.float64()), pc.cast(rows["UnitPrice"], pa.float64()))
    rows = rows.append_column("value", value)
    invoices = rows.group_by(["InvoiceNo", "CustomerID"]).aggregate([("value", "sum"), ("InvoiceDate", "min")])
    made = []
    for row in invoices.to_pylist():
        cancelled = row["InvoiceNo"].startswith("C")
        total = -row["value_sum"] if cancelled else row["value_sum"]
        if total <= 0:
            continue
        owner = Owner("shop", f"u:{row['CustomerID'].removesuffix('.0')}")
        at = datetime.fromisoformat(row["InvoiceDate_min"]).replace(tzinfo=UTC)
        made.append(
            dict.fromkeys(BEHAVIOUR.schema.names)
            | {"tenant": owner.tenant, "subject": owner.subject, "owner": owner.key, "bucket": owner.bucket(8)}
            | {"event_id": row["InvoiceNo"], "kind": "cancel" if cancelled else "order", "occurred_at": at}
            | {"value": round(total, 2), "content_hash": stable_hash(row["InvoiceNo"]), "day": f"{at:%Y-%m-%d}"}
        )
    return pa.Table.from_pylist(made, schema=BEHAVIOUR.schema)


# ---- order within 7 days


@dataclass(frozen=True)
class Within:
    """``auc`` by method; ``base``: share of moments that were followed by an order."""

    train: int
    test: int
    base: float
    auc: dict[str, float]


def order_within_a_week(behaviour: pa.Table) -> dict[str, Within]:
    end = _end(behaviour)
    world, _ = build_world(_events([]), unique_behaviour(behaviour, end))
    asked = {"Mondays": _mondays(world, behaviour), "purchases": control_moments(world)}
    return {name: _within(world, moments, _micros(_cut(behaviour)), _micros(end)) for name, moments in asked.items()}


def _mondays(world: World, behaviour: pa.Table) -> Moments:
    """Each Monday 0:00 (UTC) of every customer from the first order on."""
    times = pc.min_max(behaviour["occurred_at"]).as_py()
    first, last = _micros(times["min"]), _micros(times["max"])
    mondays = np.arange((first // WEEK + 2) * WEEK - 3 * DAY, last, WEEK)  # 1970-01-01 was a Thursday
    owners = np.repeat(np.arange(world.owners), len(mondays))
    moments = Moments(owners, np.tile(mondays, world.owners))
    known = world.kinds["order"].up_to(moments.owners, moments.at) > 0
    return Moments(moments.owners[known], moments.at[known])


def _within(world: World, moments: Moments, cut: int, end: int) -> Within:
    past, later = moments.at + WEEK <= cut, (moments.at >= cut) & (moments.at + WEEK <= end)
    train, test = (Moments(moments.owners[part], moments.at[part]) for part in (past, later))
    seen, bought = orders_after(world, train), orders_after(world, test) > 0
    scores = {
        "expected orders": learn_usual(world, train, seen).orders(world, test),
        "LightGBM default on recency, frequency, value": _default(
            _simple(world, train), seen > 0, _simple(world, test)
        ),
    }
    auc = {name: round(weighted_auc(score, bought, np.ones(len(test))) or 0.0, 4) for name, score in scores.items()}
    return Within(len(train), len(test), round(float(bought.mean()), 4), auc)


def _simple(world: World, moments: Moments) -> Floats:
    """Recency, frequency and value, and the weekday."""
    owners, at = moments.owners, moments.at
    orders = world.kinds["order"]
    spent = world.spend.total(owners, at - 52 * WEEK, at)
    columns = [
        *(orders.total(owners, at - weeks * WEEK, at) for weeks in (1, 4, 13, 52)),
        orders.last(owners, at, 2) / DAY,
        (at - orders.first(owners)) / DAY,
        spent,
        ((at // DAY + 3) % 7).astype(np.float64),
    ]
    return np.column_stack(columns)


def _default(features: Floats, target: NDArray[np.bool_], asked: Floats) -> Floats:
    import lightgbm

    settings = {"objective": "binary", "verbose": -1, "deterministic": True, "num_threads": 1, "seed": 7}
    booster = lightgbm.train(settings, lightgbm.Dataset(features, target.astype(int)), 100)
    return np.asarray(booster.predict(asked), dtype=np.float64)


# ---- cancellations against matched purchases


@dataclass(frozen=True)
class Fall:
    """``fall`` with its interval; ``rule``: share where the 40 % rule fires; ``label``: mean counterfactual label."""

    rows: int
    expected: float
    observed: float
    fall: float
    low: float
    high: float
    label: float
    rule: float


def cancellations(behaviour: pa.Table) -> dict[str, Fall]:
    end = _end(behaviour)
    rows = unique_behaviour(behaviour, end)
    cancelled = rows.filter(pc.equal(rows["kind"], "cancel")).sort_by("occurred_at")
    seen: set[tuple[str, str]] = set()
    events = []
    for row in cancelled.to_pylist():
        if (row["owner"], row["day"]) not in seen:
            seen.add((row["owner"], row["day"]))
            events.append(row)
    world, moments = build_world(_events(events), rows)
    now = _micros(end)
    closed = moments.at + WEEK <= now
    moments = Moments(moments.owners[closed], moments.at[closed])
    controls = control_moments(world)
    closed = controls.at + WEEK <= now
    controls = Moments(controls.owners[closed], controls.at[closed])

    def place(found: Moments) -> NDArray[np.int64]:
        return found.at // (4 * 7 * DAY) * 100 + np.searchsorted(RATE_EDGES, own_rate(world, found))

    chosen = _matched(place(moments), place(controls))
    matched = Moments(controls.owners[chosen], controls.at[chosen])
    return {
        name: _fall(world, found, expected_orders(world, found, now))
        for name, found in (("cancellations", moments), ("matched purchases", matched))
    }


def _matched(wanted: NDArray[np.int64], offered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of ``offered``: per place as many as are wanted there, or all there are; drawn by a fixed seed."""
    generator = np.random.default_rng(7)
    order = generator.permutation(len(offered))
    left = dict(zip(*(part.tolist() for part in np.unique(wanted, return_counts=True)), strict=True))
    chosen = []
    for position in order.tolist():
        where = int(offered[position])
        if left.get(where, 0):
            left[where] -= 1
            chosen.append(position)
    return np.array(sorted(chosen), dtype=np.int64)


def _fall(world: World, moments: Moments, expected: Floats) -> Fall:
    known = ~np.isnan(expected)
    found = Moments(moments.owners[known], moments.at[known])
    expected, observed = expected[known], orders_after(world, found)
    before = world.kinds["order"].total(found.owners, found.at - WEEK, found.at)
    rule = rule_40(before, observed, np.zeros(len(found), dtype=bool))
    label = np.clip((expected - observed) / np.maximum(expected, LEAST_EXPECTED), 0, 1)
    low, high = _interval(found.owners, lambda sums: 1 - sums[1] / sums[0], expected, observed)
    return Fall(
        len(found),
        round(float(expected.mean()), 3),
        round(float(observed.mean()), 3),
        round(float(1 - observed.sum() / expected.sum()), 3),
        round(low, 3),
        round(high, 3),
        round(float(label.mean()), 3),
        round(float(rule.mean()), 3),
    )


def _interval(owners: NDArray[np.int64], figure: Callable[[Floats], float], *values: Floats) -> tuple[float, float]:
    """The middle 95 % of a figure of sums over resampled owners."""
    _, place = np.unique(owners, return_inverse=True)
    size = int(place.max()) + 1
    sums = np.stack([np.bincount(place, value, size) for value in values])
    generator = np.random.default_rng(7)
    found = [figure(sums[:, generator.integers(0, size, size)].sum(axis=1)) for _ in range(RESAMPLES)]
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def _events(rows: list[dict[str, object]]) -> pa.Table:
    """Cancellations as the events that labels are made for."""
    schema = pa.schema(
        {
            "owner": pa.string(),
            "occurred_at": TIME,
            "exchange_id": pa.string(),
            "category": pa.string(),
            "intent": pa.string(),
            "emotion_score": pa.float64(),
        }
    )
    constant = {"category": "task", "intent": "cancel_order", "emotion_score": 0.0}
    made = [
        {"owner": r["owner"], "occurred_at": r["occurred_at"], "exchange_id": r["event_id"]} | constant for r in rows
    ]
    return pa.Table.from_pylist(made, schema=schema)


def _end(behaviour: pa.Table) -> datetime:
    last: datetime = pc.max(behaviour["occurred_at"]).as_py()
    return last + timedelta(microseconds=1)


def _cut(behaviour: pa.Table) -> datetime:
    times = pc.min_max(behaviour["occurred_at"]).as_py()
    span: timedelta = times["max"] - times["min"]
    cut: datetime = times["min"] + span * (1 - TEST_SHARE)
    return cut


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def print_figures(asked: dict[str, Within], falls: dict[str, Fall]) -> None:
    for moments, within in asked.items():
        print(f"\n== Online Retail, order within 7 days, {moments}: {within.train} train, {within.test} asked")
        print(f"followed by an order: {within.base:.1%}")
        for name, auc in within.auc.items():
            print(f"  AUC {auc:.4f}  {name}")
    print("\n== Online Retail, the 7 days after")
    for name, found in falls.items():
        print(
            f"{name:18} {found.rows:5} expected {found.expected:.3f} observed {found.observed:.3f} orders, fall"
            f" {found.fall:+.3f} [{found.low:+.3f}, {found.high:+.3f}], mean label {found.label:.3f},"
            f" 40 % rule fires {found.rule:.1%}"
        )
