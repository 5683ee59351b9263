"""Seconds of every call of a store, whoever calls it, and of every batch of a publisher.

Belongs here: timing the ports in place. Does not belong here: what is called.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

BEGINS, ENDS = "authority.pointers", "authority.finish"
"""The first and the last call of a batch that writes (``stores.publish``)."""
EMBED = "embed"


class Meter:
    """Adds up by ``store.method``. ``batches``: seconds of each, without what the stand-in for embedding took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.batches: list[float] = []
        self._began = 0.0

    def over(self, role: str, store: Any) -> Any:
        """The store, whose calls are timed."""
        return _Timed(self, role, store)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            if name == BEGINS:
                self._began = began - self.seconds[EMBED]
            try:
                return function(*arguments, **named)
            finally:
                ended = time.perf_counter()
                self.seconds[name] += ended - began
                self.calls[name] += 1
                if name == ENDS:
                    self.batches.append(ended - self.seconds[EMBED] - self._began)

        return call


class _Timed:
    def __init__(self, meter: Meter, role: str, store: Any) -> None:
        self._meter, self._role, self._store = meter, role, store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._meter.timed(f"{self._role}.{name}", found) if callable(found) else found
