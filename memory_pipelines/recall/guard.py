"""What keeps a slow or broken store from holding up an answer: a deadline, a circuit breaker and threads of its own.

Belongs here: running a store's call so that its caller waits no longer than it may. Does not belong here: what an
answer is without that store (``reader``, ``source``), or which deadline (settings).

A call that is overdue is left behind: its thread goes on until the driver gives up. Threads are bounded per store, so
a store that hangs takes no thread of another, and its breaker keeps later calls from waiting for it.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar, cast

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.settings import PREFIX, Settings

WORKERS = 16
"""Threads per store."""
FAILURES = 2
"""Calls in a row without an answer that open the breaker."""
FIRST_REST, LONGEST_REST = 1.0, 30.0
"""Seconds for which an open breaker refuses: doubled each time that the probe after it fails."""

T = TypeVar("T")
S = TypeVar("S")


class Late(Exception):
    """No answer in time. ``thread``: the thread that still waits for one; None: none was free."""

    def __init__(self, thread: int | None) -> None:
        super().__init__()
        self.thread = thread


class Workers:
    """Daemon threads that are started as they are needed: an interpreter that ends waits for none of them."""

    def __init__(self, name: str, most: int = WORKERS) -> None:
        self._name = name
        self._slots = threading.Semaphore(most)
        self._work: SimpleQueue[tuple[Callable[[], Any], Future[Any], list[int]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def run(self, work: Callable[[], T], seconds: float) -> T:
        """What ``work`` returns or raises. Raises Late after ``seconds``, also where no thread was free so long."""
        until = time.monotonic() + seconds
        if not self._slots.acquire(timeout=seconds):
            raise Late(None)
        future: Future[T] = Future()
        thread: list[int] = []
        with self._lock:
            starts = self._idle == 0
            self._idle -= not starts
        self._work.put((work, future, thread))
        if starts:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        try:
            return future.result(max(0.0, until - time.monotonic()))
        except TimeoutError:
            if future.done():  # it was the work's own
                raise
            raise Late(thread[0] if thread else None) from None

    def _serve(self) -> None:
        while True:
            work, future, thread = self._work.get()
            thread.append(threading.get_ident())
            try:
                result = work()
            except BaseException as error:
                self._ready()
                future.set_exception(error)
            else:
                self._ready()
                future.set_result(result)
            del work, future

    def _ready(self) -> None:
        with self._lock:
            self._idle += 1
        self._slots.release()


class Breaker:
    """Closed: calls pass. Open: they are refused until a rest is over; then one passes, to see."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._failures = 0
        self._rest = FIRST_REST
        self._until: float | None = None

    def allows(self) -> bool:
        """Whether a call may pass now; it has to end in ``answered`` or ``failed``."""
        with self._lock:
            if self._until is None:
                return True
            if self._now() < self._until:
                return False
            self._until = self._now() + self._rest  # others wait for what becomes of this one
            return True

    def answered(self) -> None:
        with self._lock:
            self._failures, self._rest, self._until = 0, FIRST_REST, None

    def failed(self) -> bool:
        """Note a call without an answer; whether the breaker has opened with it."""
        with self._lock:
            self._failures += 1
            if self._failures < FAILURES:
                return False
            if self._failures > FAILURES:
                self._rest = min(2 * self._rest, LONGEST_REST)
            opens = self._until is None
            self._until = self._now() + self._rest
            return opens


class Guard:
    """Runs the calls of one store.

    ``deadline``: seconds that a call may take; ``first``: the first one, while connections are opened and models
    loaded; ``overdue``: told the thread of a call that is left behind; ``opens``: called when the breaker opens."""

    def __init__(
        self,
        store: str,
        setting: str,
        deadline: float,
        first: float,
        *,
        overdue: Callable[[int], object] | None = None,
        opens: Callable[[], None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._setting = setting
        self._deadline = deadline
        self._seconds = max(first, deadline)
        self._overdue = overdue
        self._opens = opens
        self._workers = Workers(f"recall-{store}")
        self._breaker = Breaker(now)

    def __call__(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises. Raises StoreUnavailableError where it takes too long, or lately did."""
        if not self._breaker.allows():
            raise self._unavailable("it did not answer a moment ago")
        seconds, self._seconds = self._seconds, self._deadline
        try:
            result = self._workers.run(work, seconds)
        except Late as late:
            if late.thread is not None and self._overdue is not None:
                self._overdue(late.thread)
            self._failed()
            raise self._unavailable(f"not within {seconds:g} s") from None
        except StoreUnavailableError:
            self._failed()
            raise
        except Exception:  # a refusal is an answer
            self._breaker.answered()
            raise
        self._breaker.answered()
        return result

    def of(self, opened: Callable[[], S]) -> S:
        """A store whose every method is run by the guard, and which is opened by the first of them."""
        return cast(S, _Guarded(opened, self))

    def _failed(self) -> None:
        if self._breaker.failed() and self._opens is not None:
            threading.Thread(target=self._opens, name=f"recall-{self._store}-reset", daemon=True).start()

    def _unavailable(self, why: str) -> StoreUnavailableError:
        return StoreUnavailableError(self._store, self._setting, why)


class Run(Protocol):
    """Runs a call, guarded or not."""

    def __call__(self, work: Callable[[], T]) -> T: ...


def unguarded(work: Callable[[], T]) -> T:
    """A guard that guards nothing."""
    return work()


@dataclass(frozen=True)
class _Guarded:
    opened: Callable[[], Any]
    guard: "Guard"

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            return self.guard(lambda: getattr(self.opened(), name)(*arguments, **named))

        return call


@dataclass(frozen=True)
class Guards:
    """One guard per store."""

    relational: Guard
    vector: Guard
    graph: Guard
    hot: Guard
    cold: Guard

    @classmethod
    def of(cls, settings: Settings, *, overdue: Callable[[int], object], opens: Callable[[], None]) -> "Guards":
        """With the deadlines of the settings. ``overdue``: cuts off the relational store's connection that a thread
        waits on; ``opens``: makes the graph store connect anew."""
        first = settings.deadline_first

        def guard(store: str, setting: str, seconds: float, **hooks: Any) -> Guard:
            return Guard(store, f"{PREFIX}{setting}_URL", seconds, first, **hooks)

        return cls(
            guard("relational", "POSTGRES", settings.deadline_relational, overdue=overdue),
            guard("vector", "MILVUS", settings.deadline_vector),
            guard("graph", "NEO4J", settings.deadline_graph, opens=opens),
            guard("hot", "REDIS", settings.deadline_hot),
            guard("cold", "S3", settings.deadline_cold),
        )
