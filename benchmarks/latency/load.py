"""Callers: one after the other as fast as answers come, or at a rate that does not wait for them.

Belongs here: schedules, threads, percentiles. Does not belong here: what is called.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from random import Random

import numpy as np

PERCENTILES = (50, 95, 99)

Call = Callable[[int], object]
"""Called with the number of the call."""


def one_by_one(call: Call, calls: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Seconds of each call by a clock, one caller."""
    spent = []
    for number in range(calls):
        begun = clock()
        call(number)
        spent.append(clock() - begun)
    return spent


def throughput(call: Call, callers: int, seconds: float) -> float:
    """Calls a second of so many callers, each of whom calls again as soon as there is an answer."""
    end, done = time.perf_counter() + seconds, [0] * callers

    def work(caller: int) -> None:
        while time.perf_counter() < end:
            call(caller + callers * done[caller])
            done[caller] += 1

    _together(work, callers)
    return sum(done) / seconds


def open_loop(call: Call, callers: int, rate: float, seconds: float, seed: int = 7) -> list[float]:
    """Seconds from the moment when each call was due to its answer.

    Calls are due at random moments (exponential gaps) at ``rate`` a second, whether or not earlier ones are answered:
    one that finds all callers busy waits, and its waiting counts."""
    draw, due, at = Random(seed), [], 0.0
    while (at := at + draw.expovariate(rate)) < seconds:
        due.append(at)
    waiting: queue.SimpleQueue[tuple[int, float] | None] = queue.SimpleQueue()
    spent: list[float] = []
    begun = time.perf_counter()

    def schedule() -> None:
        for number, moment in enumerate(due):
            time.sleep(max(0.0, begun + moment - time.perf_counter()))
            waiting.put((number, begun + moment))
        for _ in range(callers):
            waiting.put(None)

    def work(_: int) -> None:
        while (found := waiting.get()) is not None:
            call(found[0])
            spent.append(time.perf_counter() - found[1])

    clock = threading.Thread(target=schedule)
    clock.start()
    _together(work, callers)
    clock.join()
    return spent


def percentiles(spent: Sequence[float]) -> list[float]:
    """Milliseconds at :data:`PERCENTILES`."""
    return [float(value) * 1e3 for value in np.percentile(spent, PERCENTILES)]


def _together(work: Callable[[int], None], callers: int) -> None:
    threads = [threading.Thread(target=work, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
