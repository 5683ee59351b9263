"""How long rows, training and scoring take of a million events.

Belongs here: made-up events and behaviour of the wanted size, and the clock. Does not belong here: whether scores are
right (``simulator``).

Protocol: events of so many people at random times of a year, four behaviour events for each, a fifth of them orders;
in the second run one person has all of them. Each step is timed once, wall and processor seconds of this process.
"""

import resource
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from memory_pipelines.model import bucket_of, stable_hash
from memory_pipelines.reward.fit import fit
from memory_pipelines.reward.labels import event_features, reward_events
from memory_pipelines.tables import BEHAVIOUR, TIME

T = TypeVar("T")

START = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 365
PER_EVENT = 4
KINDS = ("order", "visit", "visit", "visit", "coupon")
INTENTS = ("logistics_complaint", "refund_request", "praise", "product_inquiry", "greeting")
CATEGORIES = ("fact", "task", "fact", "inquiry", "chit_chat")


@dataclass(frozen=True)
class Step:
    name: str
    events: int
    wall: float
    processor: float

    @property
    def per_second(self) -> int:
        return round(self.events / self.wall)


def run(events: int, people: int) -> Iterator[Step]:
    """The steps, each as it ends."""
    said, done = tables(events, people)
    as_of = START + timedelta(days=DAYS + 8)
    rows, step = _timed("training rows: features, controls, labels", events, lambda: reward_events(said, done, as_of))
    yield step
    if people > 1:
        model, step = _timed("training", events, lambda: fit(rows))
        yield step
    features, step = _timed("features for scoring", events, lambda: event_features(said, done, as_of)[1])
    yield step
    if people > 1:
        yield _timed("scoring", events, lambda: model.predict(features))[1]


def peak_memory() -> float:
    """Of this process, in GB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


def tables(events: int, people: int) -> tuple[pa.Table, pa.Table]:
    """Labelled exchanges and behaviour at random; people who complain order half as much for a week."""
    draw = np.random.default_rng(7)
    owners = [stable_hash("speed", number) for number in range(people)]
    said_by, at = draw.integers(0, people, events), _times(draw, events)
    intent = draw.integers(0, len(INTENTS), events)
    said = pa.table(
        {
            **_who(owners, said_by),
            "exchange_id": [f"e{number}" for number in range(events)],
            "occurred_at": at,
            "intent": np.array(INTENTS)[intent],
            "category": np.array(CATEGORIES)[intent],
            "emotion_score": np.round(draw.uniform(-1, 1, events), 4),
        }
    )
    count = events * PER_EVENT
    kind, by = np.array(KINDS)[draw.integers(0, len(KINDS), count)], draw.integers(0, people, count)
    names = [f"b{number}" for number in range(count)]
    filled: dict[str, Any] = {
        **_who(owners, by),
        "event_id": names,
        "kind": kind,
        "occurred_at": _times(draw, count),
        "value": np.round(draw.uniform(5, 100, count), 2),
        "dwell_seconds": np.round(draw.uniform(5, 300, count), 1),
        "bounce": draw.random(count) < 0.3,
        "content_hash": names,
    }
    columns = [
        pa.array(filled[field.name], field.type) if field.name in filled else pa.nulls(count, field.type)
        for field in BEHAVIOUR.schema
    ]
    return said, pa.table(columns, schema=BEHAVIOUR.schema)


def _who(owners: list[str], by: np.ndarray[Any, Any]) -> dict[str, pa.Array]:
    key = pa.array(owners).take(pa.array(by))
    bucket = pa.array([bucket_of(owner, 8) for owner in owners], pa.int32()).take(pa.array(by))
    return {"tenant": pa.array(["speed"]).take(pa.array(np.zeros(len(by), int))), "subject": key, "owner": key} | {
        "bucket": bucket
    }


def _times(draw: np.random.Generator, count: int) -> pa.Array:
    first = int(START.timestamp()) * 1_000_000
    return pa.array(first + draw.integers(0, DAYS * 86_400 * 1_000_000, count), pa.int64()).cast(TIME)


def _timed(name: str, events: int, step: Callable[[], T]) -> tuple[T, Step]:
    wall, processor = time.perf_counter(), time.process_time()
    result = step()
    spent = time.perf_counter() - wall, time.process_time() - processor
    return result, Step(name, events, round(spent[0], 2), round(spent[1], 2))


def print_steps(title: str, steps: Iterable[Step]) -> None:
    print(f"\n== {title}", flush=True)
    for step in steps:
        seconds = f"{step.wall:7.1f} s wall {step.processor:7.1f} s processor"
        print(f"{step.name:42} {seconds} {step.per_second:10,} events/s", flush=True)
    print(f"peak memory of the process {peak_memory()} GB", flush=True)
