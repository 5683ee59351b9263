"""Callers of the latency benchmark, and the parts that it times."""

import threading
from datetime import timedelta
from typing import Any

from benchmarks.latency.legs import PARTS, Parts
from benchmarks.latency.load import one_by_one, open_loop, percentiles, throughput
from memory_pipelines.recall import dense
from memory_pipelines.recall.reader import Recall


def test_every_call_that_is_due_is_made_once_by_one_of_the_callers() -> None:
    seen: list[tuple[int, int]] = []
    spent = open_loop(lambda number: seen.append((number, threading.get_ident())), 3, 400.0, 0.2)
    assert sorted(number for number, _ in seen) == list(range(len(spent)))
    assert len(spent) > 20
    assert threading.get_ident() not in {thread for _, thread in seen}
    assert min(spent) > 0


def test_a_call_that_finds_its_caller_busy_has_waited() -> None:
    hold = threading.Event()
    spent = open_loop(lambda number: hold.wait(timedelta(seconds=0.05).total_seconds()), 1, 200.0, 0.1)
    assert max(spent) > 3 * min(spent)


def test_throughput_and_single_calls_count_what_was_done() -> None:
    done: list[int] = []
    assert throughput(done.append, 2, 0.05) * 0.05 == len(done)
    assert len(set(done)) == len(done)
    assert len(one_by_one(lambda _: None, 5)) == 5
    assert percentiles([0.001, 0.002, 0.003])[0] == 2


def test_parts_are_timed_within_the_context_and_put_back() -> None:
    plain: tuple[Any, Any] = dense.search, Recall._answer
    parts = Parts()
    with parts.watching():
        assert (dense.search, Recall._answer) != plain
    assert (dense.search, Recall._answer) == plain
    parts.end_of_call()
    assert parts.spent == {name: [0.0] for name in PARTS}
