"""Filling stores by the publisher and reading them as recall does, with a clock beside.

Belongs here: what is done, in which order, and the figures as numbers. Does not belong here: persons (``people``),
servers (``site``), tables.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.stores.asking import AS_OF, Given, asked
from benchmarks.stores.meter import EMBED, Meter
from benchmarks.stores.people import Directions, Subject, state, subjects
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, VectorStore

if TYPE_CHECKING:
    from memory_pipelines.recall import Recall
    from memory_pipelines.stores.publish import OwnerState, Published, Publisher
    from memory_pipelines.stores.relational import PostgresAuthority

SEED = 7
BUCKETS = 8
PORTION = 20_000
"""Memories that are invented at a time, in ten batches of the publisher."""
CHANGED_SHARE = 0.01
READS = 200
TRIES = 10
AT = datetime(2026, 6, 1, tzinfo=UTC)
Clock = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Stores:
    """The adapters that a publisher writes through and a recall reads through."""

    authority: "PostgresAuthority"
    vectors: VectorStore
    graph: GraphStore
    hot: HotStore
    cold: ColdStore
    dimension: int


def run(
    stores: Stores,
    memories: int,
    *,
    servers: Clock = dict,
    most_seconds: float = float("inf"),
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Publish persons of ``memories`` together, publish changed ones, read. Figures by name; seconds are wall unless
    they say otherwise.

    ``servers``: processor seconds by store so far; the first publish begins no portion after ``most_seconds``."""
    everybody = subjects(memories, SEED)
    embed = Directions(stores.dimension, SEED)
    first, told = publish(stores, everybody, embed, servers, most_seconds=most_seconds, say=say)
    say(f"first publish: {json.dumps(told)}")  # not lost to what fails later
    count = max(1, round(CHANGED_SHARE * len(first)))
    some = sorted(Random(SEED).sample(first, count), key=lambda subject: subject.number)
    _, again = publish(stores, some, embed, servers, changed=True, say=say)
    grown = {subject.number for subject in some}
    whole = sum(subject.memories + (subject.number in grown) for subject in first)
    held = {"relational": stores.authority.counts()["memories"], "vectors": stores.vectors.count()}
    assert held["relational"] == whole, f"{whole} memories were published, {held['relational']} are visible"
    nodes, edges = stores.graph.count()
    sizes = sorted(subject.memories for subject in first)
    return {
        "asked": memories,
        "whole": len(first) == len(everybody),
        "persons": len(first),
        "memories": told["memories"],
        "largest": sizes[-1],
        "median_size": sizes[len(sizes) // 2],
        "held": held | {"nodes": nodes, "edges": edges},
        "first": told,
        "changed": again,
        "reads": reads(stores, first, embed),
    }


def publish(
    stores: Stores,
    people: Sequence[Subject],
    embed: Directions,
    servers: Clock,
    *,
    changed: bool = False,
    most_seconds: float = float("inf"),
    say: Callable[[str], None] = lambda text: None,
) -> tuple[list[Subject], dict[str, Any]]:
    """Publish the persons bucket by bucket; who was published, and the figures."""
    from memory_pipelines.stores.publish import Published, Publisher

    meter, total = Meter(), Published()
    publisher = Publisher(
        meter.over("authority", stores.authority),
        meter.over("vectors", stores.vectors),
        meter.over("graph", stores.graph),
        meter.over("hot", stores.hot),
        meter.over("cold", stores.cold),
        meter.timed(EMBED, embed),
    )
    done: list[Subject] = []
    units = {"nodes": 0, "edges": 0, "slice_turns": 0}
    wall = processor = 0.0
    unanswered = 0
    before, began = servers(), time.perf_counter()
    for bucket, portion in portions(people):
        if time.perf_counter() - began > most_seconds:
            say(f"stopped after {most_seconds:.0f} s")
            break
        states = [state(subject, SEED, changed=changed) for subject in portion]
        started, used = time.perf_counter(), time.process_time()
        done_now, late = _published(publisher, bucket, states)
        total.add(done_now)
        unanswered += late
        wall += time.perf_counter() - started
        processor += time.process_time() - used
        done += portion
        _count(units, states)
        say(f"bucket {bucket}: {total.shown} memories shown after {wall:.1f} s")
    used_by = {role: after - before[role] for role, after in servers().items()}
    figures = {
        "memories": total.shown,
        "vectors": total.vectors,
        "texts": total.archived,
        "graphs": total.graphs,
        "persons": total.owners,
        "seconds": wall - meter.seconds[EMBED],
        "processor_seconds": processor,
        "server_processor_seconds": used_by,
        "calls": {n: {"seconds": meter.seconds[n], "calls": meter.calls[n]} for n in sorted(meter.seconds)},
        "batch": spread(meter.batches),
        "unanswered": unanswered,
    }
    return done, figures | units


def _published(publisher: "Publisher", bucket: int, states: "Sequence[OwnerState]") -> "tuple[Published, int]":
    """As a job does it: a store that does not answer in time is tried again. And how often that was; what a failed try
    had committed is not counted again."""
    from memory_pipelines.errors import StoreUnavailableError

    for late in range(TRIES):
        try:
            return publisher.publish(bucket, states, AT), late
        except StoreUnavailableError:
            continue
    return publisher.publish(bucket, states, AT), TRIES


def portions(people: Sequence[Subject]) -> Iterator[tuple[int, list[Subject]]]:
    """The persons of one bucket after the other, so many at a time as have a portion's memories."""
    for bucket in range(BUCKETS):
        part: list[Subject] = []
        for subject in people:
            if subject.owner.bucket(BUCKETS) == bucket:
                part.append(subject)
                if sum(one.memories for one in part) >= PORTION:
                    yield bucket, part
                    part = []
        if part:
            yield bucket, part


def _count(units: dict[str, int], states: "Sequence[OwnerState]") -> None:
    for one in states:
        units["nodes"] += len(one.nodes)
        units["edges"] += len(one.edges)
        units["slice_turns"] += len(one.slices)


def reads(stores: Stores, people: Sequence[Subject], embed: Directions) -> dict[str, Any]:
    """Recalls and the calls of one, of persons drawn by how much they have: median and 95th percentile in milliseconds.

    A recall's query has its vector already; there is no pack, so all is read from the stores."""
    from memory_pipelines.errors import StoreUnavailableError
    from memory_pipelines.recall.dense import OVERFETCH
    from memory_pipelines.recall.legs import DEPTH
    from memory_pipelines.recall.pack import dump
    from memory_pipelines.recall.snapshot import Snapshot
    from memory_pipelines.recall.source import hot_name
    from memory_pipelines.stores.base import cold_key

    chosen = Random(SEED).choices(people, [subject.memories for subject in people], k=READS)
    clock = _Readings()
    settled = _settled(stores, chosen[0], embed)
    recall = _recall(stores)
    known: set[Subject] = set()
    rows = joined = unanswered = 0
    for subject, query in zip(chosen, asked(len(chosen), SEED), strict=True):
        owner = subject.owner
        ask = partial(recall.recall, query, tenant=owner.tenant, subject=owner.subject, as_of=AS_OF)
        for name in ("recall, again",) if subject in known else ("recall, the person's first", "recall, again"):
            clock.call(name, ask)
        known.add(subject)
        person = clock.call("authority.head", stores.authority.head, owner, AS_OF).persons[0]
        visible = clock.call("authority.visible", stores.authority.visible, owner)
        [vector] = embed(["a question"])
        try:
            clock.call("vectors.search", stores.vectors.search, owner, vector, OVERFETCH * DEPTH)
        except StoreUnavailableError:
            unanswered += 1
        if person.graph_version is not None:
            joined += len(clock.call("graph.edges", stores.graph.edges, owner, person.graph_version))
        name, value = hot_name(person.epoch), dump(Snapshot(owner, visible).parts[0][0])
        clock.call("hot.put", stores.hot.put, owner, name, value, 3600)
        assert clock.call("hot.get", stores.hot.get, owner, name) == value
        cold = next((memory for memory in visible if memory.tier == "cold"), None)
        if cold is not None:
            text = clock.call("cold.get", stores.cold.get, cold_key(owner, cold.entry_id))
            assert text is not None, "an archived text is missing"
        rows += len(visible)
    sizes = {"mean_rows_read": rows / len(chosen), "mean_edges_read": joined / len(chosen)}
    waits = {"seconds_until_a_search_was_answered": settled, "searches_not_answered": unanswered}
    return {name: spread(times) for name, times in clock.seconds.items()} | sizes | waits


def _settled(stores: Stores, subject: Subject, embed: Directions) -> float:
    """Seconds until the vector store answers a search again: it may be building indexes of what was just written."""
    from memory_pipelines.errors import StoreUnavailableError

    began = time.perf_counter()
    [vector] = embed(["a question"])
    for _ in range(READS):
        try:
            stores.vectors.search(subject.owner, vector, 1)
            break
        except StoreUnavailableError:
            continue
    return time.perf_counter() - began


def _recall(stores: Stores) -> "Recall":
    """A reader without packs."""
    from memory_pipelines.clock import SystemClock
    from memory_pipelines.recall import Recall
    from memory_pipelines.settings import Settings

    adapters = (stores.authority, stores.vectors, stores.graph, stores.hot, stores.cold)
    return Recall(*adapters, Given(stores.dimension, SEED), SystemClock(), Settings().token_budget)


class _Readings:
    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def call(self, name: str, read: Callable[..., Any], *arguments: Any) -> Any:
        began = time.perf_counter()
        answer = read(*arguments)
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        return answer


@dataclass(frozen=True)
class Spread:
    """Of ``n`` times in seconds."""

    n: int
    median: float
    p95: float
    most: float


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    if not seconds:
        return asdict(Spread(0, 0.0, 0.0, 0.0))
    middle, high, most = np.quantile(seconds, (0.5, 0.95, 1.0)).tolist()
    return asdict(Spread(len(seconds), middle, high, most))
