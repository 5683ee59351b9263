"""What the parts of a recall take, measured where they are called.

Belongs here: which functions are which part. Does not belong here: any of them.
"""

import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PARTS = {
    "person and rows": (("source", "Source.find"),),
    "bm25": (("bm25", "Bm25.score"),),
    "dense": (("dense", "search"),),
    "facts": (("facts", "leg"), ("facts", "superseded")),
    "time": (("times", "span"), ("times", "leg")),
    "ripple": (("reader", "Recall._ripple"),),
    "fusion": (("fusion", "blend"), ("fusion", "with_legs"), ("fusion", "weighed")),
    "selection": (("selection", "select"),),
    "items": (("reader", "Recall._answer"),),
}
"""Part → functions of ``memory_pipelines.recall``, by module and name; parts do not call each other, but that BM25 of
facts counts as both."""


class Parts:
    """Seconds by part, of the calls of one thread."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {name: [] for name in PARTS}
        self._now: dict[str, float] = dict.fromkeys(PARTS, 0.0)
        self._thread = threading.get_ident()

    def end_of_call(self) -> None:
        """The call is over: what each part took of it is noted."""
        for name in PARTS:
            self.spent[name].append(self._now[name])
            self._now[name] = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Within this context the parts are timed."""
        plain = []
        for name, places in PARTS.items():
            for module, path in places:
                holder: Any = importlib.import_module(f"memory_pipelines.recall.{module}")
                *owners, function = path.split(".")
                for owner in owners:
                    holder = getattr(holder, owner)
                plain.append((holder, function, getattr(holder, function)))
                setattr(holder, function, self._timed(name, getattr(holder, function)))
        try:
            yield
        finally:
            for holder, function, before in plain:
                setattr(holder, function, before)

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                if threading.get_ident() == self._thread:
                    self._now[name] += time.perf_counter() - begun

        return timed
