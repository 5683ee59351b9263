"""Deadlines, breakers and threads of their own, without a store."""

import threading
from collections.abc import Iterator

import pytest

from memory_pipelines.errors import PermanentError, StoreUnavailableError
from memory_pipelines.recall.guard import (
    FAILURES,
    FIRST_REST,
    LONGEST_REST,
    Breaker,
    Guard,
    Late,
    Workers,
    unguarded,
)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hanging calls wait for."""
    gate = threading.Event()
    yield gate
    gate.set()


def down() -> None:
    raise StoreUnavailableError("graph", "A_SETTING", "refused")


def refused() -> None:
    raise PermanentError("no such thing")


def make(deadline: float = 0.05, first: float = 0.05, **options: object) -> Guard:
    return Guard("graph", "A_SETTING", deadline, first, **options)  # type: ignore[arg-type]


def test_a_call_returns_and_raises_what_it_did_in_a_thread_of_its_own() -> None:
    workers = Workers("w")
    assert workers.run(lambda: threading.current_thread().name, 5) == "w"
    for error in (KeyError("k"), TimeoutError("its own"), SystemExit(3)):
        with pytest.raises(type(error)) as raised:
            workers.run(lambda error=error: _raise(error), 5)  # type: ignore[misc]
        assert raised.value is error


def _raise(error: BaseException) -> None:
    raise error


def test_a_thread_is_used_again_and_more_are_started_up_to_the_bound(gate: threading.Event) -> None:
    workers = Workers("w", most=3)
    assert len({workers.run(threading.get_ident, 5) for _ in range(20)}) == 1
    for _ in range(3):
        with pytest.raises(Late) as late:
            workers.run(gate.wait, 0.01)
        assert late.value.thread is not None
    with pytest.raises(Late) as late:
        workers.run(lambda: "never begun", 0.01)
    assert late.value.thread is None, "all three hang"
    gate.set()
    assert workers.run(lambda: "free again", 5) == "free again"


def test_many_callers_get_their_own_answers() -> None:
    workers = Workers("w", most=4)
    found: dict[int, int] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.__setitem__(n, workers.run(lambda: n * n, 20)))  # type: ignore[misc]
        for n in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n * n for n in range(50)}


def test_a_breaker_opens_rests_probes_and_closes() -> None:
    now = Time()
    breaker = Breaker(now)
    assert [breaker.failed() for _ in range(FAILURES)] == [False] * (FAILURES - 1) + [True]
    assert not breaker.allows()
    now.now += FIRST_REST
    assert [breaker.allows(), breaker.allows()] == [True, False], "one probe"
    assert breaker.failed() is False, "it was open"
    rests = []
    for _ in range(8):
        began = now.now
        while not breaker.allows():
            now.now += 0.5
        rests.append(now.now - began)
        breaker.failed()
    assert rests[0] == 2 * FIRST_REST
    assert rests[-1] == LONGEST_REST
    now.now += LONGEST_REST
    assert breaker.allows()
    breaker.answered()
    assert breaker.allows()
    assert breaker.allows()
    assert not breaker.failed(), "it begins to count anew"


def test_a_hung_store_costs_its_deadline_and_then_nothing(gate: threading.Event) -> None:
    now, opened, left = Time(), threading.Event(), list[int]()
    guard = make(now=now, opens=opened.set, overdue=left.append)
    calls = []

    def hang() -> None:
        calls.append(1)
        gate.wait()

    for _ in range(FAILURES):
        with pytest.raises(StoreUnavailableError, match=r"not within 0\.05 s"):
            guard(hang)
    assert opened.wait(5)
    for _ in range(100):
        with pytest.raises(StoreUnavailableError, match="a moment ago"):
            guard(hang)
    assert len(calls) == len(left) == FAILURES
    gate.set()
    now.now += FIRST_REST
    assert guard(lambda: "well") == guard(lambda: "well") == "well"


def test_one_store_hangs_and_another_answers(gate: threading.Event) -> None:
    hung, well = make(), make(deadline=5)
    for _ in range(40):
        with pytest.raises(StoreUnavailableError):
            hung(gate.wait)
        assert well(lambda: 1) == 1


def test_the_first_call_may_take_longer(gate: threading.Event) -> None:
    guard = make(deadline=0.001, first=30)
    timer = threading.Timer(0.1, gate.set)
    timer.start()
    assert guard(gate.wait)
    slow = threading.Event()
    with pytest.raises(StoreUnavailableError, match=r"0\.001"):
        guard(lambda: slow.wait(0.3))


def test_a_store_that_says_it_is_down_opens_the_breaker_and_a_refusal_does_not() -> None:
    guard = make(deadline=5, now=Time())
    for _ in range(9):
        with pytest.raises(PermanentError):
            guard(refused)
    for _ in range(FAILURES):
        with pytest.raises(StoreUnavailableError, match="refused"):
            guard(down)
    with pytest.raises(StoreUnavailableError, match="a moment ago"):
        guard(lambda: 1)


def test_a_guarded_store_is_opened_by_its_first_call_and_again_if_that_failed() -> None:
    tries = []

    def opened() -> dict[str, int]:
        tries.append(1)
        if len(tries) == 1:
            down()
        return {"a": 1}

    store = make(deadline=5).of(opened)
    assert not tries
    with pytest.raises(StoreUnavailableError):
        store.get("a")
    assert store.get("a") == 1
    assert unguarded(lambda: 7) == 7
