"""Wall and processor seconds of the pipeline's steps, whoever calls them.

Belongs here: timing the functions of ``memory_pipelines.pipeline`` in place, so that the library and Dagster
are measured by the same clock. Does not belong here: which steps are run.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_pipelines.pipeline import daily, derive, files

STEPS = {
    "land": "1 land and clean",
    "cut_days": "1 cut exchanges",
    "intents": "2 intent, action",
    "emotions": "3 emotion",
    "entities": "4 entities",
    "commit_days": "commit of days",
    "score_buckets": "5 decision impact",
    "merge_buckets": "6 event slices",
    "admit_buckets": "the gate",
    "link_buckets": "7 edges",
    "publish_buckets": "7 publish",
}
"""Function of the pipeline (for ``label_days`` the table it labels) → what its time is called."""
ONE_TO_SIX = tuple(STEPS.values())[:8]
GATE = STEPS["admit_buckets"]
PUBLISHING = tuple(STEPS.values())[9:]


@dataclass
class Spent:
    """Seconds. ``cpu``: this process, all threads; ``server_cpu``: the embedded servers with their children."""

    wall: float = 0.0
    cpu: float = 0.0
    server_cpu: float = 0.0

    @property
    def processor(self) -> float:
        return self.cpu + self.server_cpu

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.wall + other.wall, self.cpu + other.cpu, self.server_cpu + other.server_cpu)

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.wall - other.wall, self.cpu - other.cpu, self.server_cpu - other.server_cpu)


class Stopwatch:
    """Adds up what each step spends; ``servers`` says what the servers have used."""

    def __init__(self, servers: Callable[[], float]) -> None:
        self.steps: dict[str, Spent] = {name: Spent() for name in STEPS.values()}
        self._servers = servers

    def now(self) -> Spent:
        """The clocks at this moment; only differences mean something."""
        return Spent(time.perf_counter(), time.process_time(), self._servers())

    def total(self, *names: str) -> Spent:
        return sum((self.steps[name] for name in names), Spent())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Within this context every call of a step of the pipeline is timed."""
        places = [(m, n) for m in (files, daily, derive) for n in ("label_days", *STEPS) if hasattr(m, n)]
        plain = [(module, name, getattr(module, name)) for module, name in places]
        for module, name, function in plain:
            setattr(module, name, self._timed(name, function))
        try:
            yield
        finally:
            for module, name, function in plain:
                setattr(module, name, function)

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            step = STEPS[arguments[2].name if name == "label_days" else name]
            before = self.now()
            try:
                return function(*arguments, **named)
            finally:
                self.steps[step] += self.now() - before

        return timed


class ServerClock:
    """Processor seconds of a home's servers, which must be up, with their present and past children."""

    def __init__(self, home: Path) -> None:
        from memory_pipelines import local

        self._ids = [server.pid for server in local.status(home) if server.pid is not None]

    def __call__(self) -> float:
        ticks = sum(_ticks(pid, with_ended_children=True) for pid in self._ids)
        ticks += sum(_ticks(child) for pid in self._ids for child in _children(pid))
        return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int, *, with_ended_children: bool = False) -> int:
    """User and system time of one process from ``/proc``; 0 if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()  # after the name: state is the first
    return sum(int(field) for field in fields[11 : 15 if with_ended_children else 13])


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []
