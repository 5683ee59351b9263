"""Latency of a recall: ``python -m benchmarks.latency [--sizes 1000 10000] [--callers 1 8 32] [--through packs]``.

Belongs here: the protocol, the tables. Does not belong here: callers (``load``), parts (``legs``).

Protocol: one person a size (``benchmarks.stores.people``: half Chinese, half English, 3.6 edges a memory, a memory in
20 cold), published by the product's publisher into embedded servers that are started for it, packs made by the job's
function. Vectors of memories and queries are random directions of the shipped embedder's dimension: a query's vector is
given, no model runs. The reader is the product's own, with the session buffer (empty) and the threads that keep
deadlines, but none ends. The stores are measured before there is a pack: a reader would take that from the hot store.
200 queries in turn, of the words that memories are made of. The whole recall is timed, with the reads of PostgreSQL
and what becomes of it, up to the answer with reasons. *In process*: the person was recalled before, but a memory may
be told for the first time; *again*: all were told before. *From the hot store*, *from PostgreSQL*: each recall is the
first of a new reader. Open loop: calls are due at random at half of the throughput that as many callers have, and
waiting counts. One process, one run.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.latency.legs import PARTS, Parts
from benchmarks.latency.load import PERCENTILES, one_by_one, open_loop, percentiles, throughput
from benchmarks.machine import describe, line
from benchmarks.stores.asking import AS_OF, Given, asked
from benchmarks.stores.people import Subject, state
from benchmarks.stores.site import embedded_platform
from memory_pipelines.pipeline.packs import pack_owners
from memory_pipelines.recall import Recall
from memory_pipelines.recall.source import hot_name
from memory_pipelines.wiring import Platform

SEED = 7
QUERIES = 200
NO_BUDGET = 1_000_000
UNHURRIED = {f"deadline_{store}": 600.0 for store in ("relational", "vector", "graph", "hot", "cold")}
"""Settings: an answer is waited for, however long it takes, so that all is in it."""
FIRST_CALLS = 20
"""Recalls by new readers: each loads the pack."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000], help="memories of each person")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 32], help="callers at once")
    parser.add_argument("--through", nargs="+", choices=("packs", "stores"), default=["packs", "stores"])
    parser.add_argument("--queries", type=int, default=QUERIES, help="of each figure of one caller")
    parser.add_argument("--pack-bytes", type=int, help="budget of a pack; default: the setting's")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each open loop, and of each throughput")
    chosen = parser.parse_args(argv)
    print(line(describe()), flush=True)
    changed: dict[str, Any] = {} if chosen.pack_bytes is None else {"pack_bytes": chosen.pack_bytes}
    with embedded_platform(**UNHURRIED, **changed) as platform:
        shipped = platform.embedder
        platform.__dict__["embedder"] = Given(shipped.dimension, SEED, shipped.model_id, shipped.digest)
        queries = asked(chosen.queries, SEED)
        for size in chosen.sizes:
            person = _publish(platform, size)
            if "stores" in chosen.through:  # before there is a pack: a reader would take it from the hot store
                told = _best(platform, "stores", person, queries)
                _measure(platform, "stores", person, queries, chosen.callers, chosen.seconds)
            _pack(platform, person)
            if "stores" in chosen.through:
                _agreement(told, _best(platform, "packs", person, queries))
            if "packs" in chosen.through:
                _measure(platform, "packs", person, queries, chosen.callers, chosen.seconds)
    print(f"load after {[round(x, 2) for x in os.getloadavg()]}")
    return 0


def reader(platform: Platform, way: str, budget: int | None = None) -> Recall:
    """A new reader that has recalled nobody yet; ``budget``: other than the setting's."""
    return platform.reader(token_budget=budget, packed=way == "packs")


def _publish(platform: Platform, size: int) -> Subject:
    person = Subject(size, size)
    platform.publisher.publish(
        person.owner.bucket(platform.settings.buckets), [state(person, SEED)], platform.clock.now()
    )
    print(f"\n{size:,} memories", flush=True)
    return person


def _pack(platform: Platform, person: Subject) -> None:
    done = pack_owners(platform, [person.owner.key])
    print(f"the pack has {done.bytes / 1e6:.2f} MB, {done.left_out} memories left out", flush=True)


def _best(platform: Platform, way: str, person: Subject, queries: Sequence[str]) -> list[set[str]]:
    """The best 15 of each query, without a token budget."""
    recall = reader(platform, way, NO_BUDGET)
    return [{i.memory.memory_id for i in _ask(recall, person, query).items} for query in queries]


def _agreement(stores: Sequence[set[str]], packs: Sequence[set[str]]) -> None:
    shares = [
        len(one & other) / len(one) if one else float(not other) for one, other in zip(stores, packs, strict=True)
    ]
    print(f"best 15 through the stores that the pack gives too: {np.mean(shares):.4f} (n = {len(shares)})", flush=True)


def _ask(recall: Recall, person: Subject, query: str) -> Any:
    return recall.recall(query, tenant=person.owner.tenant, subject=person.owner.subject, as_of=AS_OF)


def _measure(
    platform: Platform, way: str, person: Subject, queries: Sequence[str], callers: Sequence[int], seconds: float
) -> None:
    recall = reader(platform, way)

    def call(number: int) -> object:
        return _ask(recall, person, queries[number % len(queries)])

    call(0)
    print(f"{way}, ms at percentiles {PERCENTILES}, one caller, {len(queries)} recalls")
    _row("in process", one_by_one(call, len(queries)))
    _row("in process, the same queries again", one_by_one(call, len(queries)))
    _row("in process, again, processor time of the caller", one_by_one(call, len(queries), time.thread_time))
    parts = Parts()

    def watched(number: int) -> None:
        call(number)
        parts.end_of_call()

    with parts.watching():
        one_by_one(watched, len(queries))
    for name in PARTS:
        _row(f"  {name}", parts.spent[name])
    for name, prepare in _firsts(platform, way, person):
        _row(f"{name} ({FIRST_CALLS} recalls)", _first_calls(platform, way, person, queries, prepare))
    for count in callers:
        most = throughput(call, count, seconds)
        spent = open_loop(call, count, most / 2, seconds)
        _row(f"{count} callers, open loop at {most / 2:.0f}/s (n = {len(spent)}); throughput {most:.0f}/s", spent)


def _firsts(platform: Platform, way: str, person: Subject) -> list[tuple[str, Callable[[], object]]]:
    """Where a new reader finds the person, and what makes it so."""
    if way == "stores":
        return [("rows from PostgreSQL", lambda: platform.hot.delete(person.owner))]
    epoch = platform.authority.person(person.owner).epoch
    body = platform.packs.get(person.owner, epoch)
    if body is None:
        return []
    return [
        ("from the hot store", lambda: platform.hot.put(person.owner, hot_name(epoch), body, 600)),
        ("from PostgreSQL", lambda: platform.hot.delete(person.owner)),
    ]


def _first_calls(
    platform: Platform, way: str, person: Subject, queries: Sequence[str], prepare: Callable[[], object]
) -> list[float]:
    spent = []
    for number in range(FIRST_CALLS):
        prepare()
        recall, query = reader(platform, way), queries[number % len(queries)]
        begun = time.perf_counter()
        _ask(recall, person, query)
        spent.append(time.perf_counter() - begun)
    return spent


def _row(name: str, spent: Sequence[float]) -> None:
    print(f"  {name:<62}" + "".join(f"{value:9.2f}" for value in percentiles(spent)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
