"""Where the stores run: embedded servers, or the real ones that the tests start.

Belongs here: starting them, their processor time and their files. Does not belong here: what is done with the stores.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.stores.measure import Stores
from benchmarks.workplace import temporary_home

if TYPE_CHECKING:
    from memory_pipelines.settings import Settings
    from memory_pipelines.wiring import Platform

TESTS = Path(__file__).parents[2] / "tests"
ROLES = {
    "relational": ("postgres", "postgresql"),
    "vectors": ("milvus",),
    "graph": ("arcadedb", "neo4j"),
    "hot": ("valkey", "redis"),
    "cold": ("ministack", "versitygw"),
}
"""Store → what its servers are called."""


@dataclass(frozen=True)
class Site:
    """Running stores. ``servers``: names, by store; the other two have a number a store at the moment of the call."""

    stores: Stores
    servers: Mapping[str, str]
    processor_seconds: Callable[[], dict[str, float]]
    disk_mb: Callable[[], dict[str, float]]


@contextmanager
def embedded_platform(**changed: Any) -> Iterator["Platform"]:
    """A platform over the servers that come in wheels, in a home of its own; ``changed``: settings."""
    from memory_pipelines.settings import Settings
    from memory_pipelines.wiring import connect

    with temporary_home() as home, connect(replace(Settings.load({}), home=str(home), **changed)) as platform:
        yield platform


@contextmanager
def embedded() -> Iterator[Site]:
    """The servers that come in wheels."""
    from memory_pipelines import local

    with embedded_platform() as platform:
        found = [server for server in local.status(platform.settings.home_path) if server.pid is not None]
        yield _site(platform, {s.name: (s.name, s.pid, s.folder) for s in found})


@contextmanager
def real() -> Iterator[Site]:
    """Those of ``make test-servers``, with TLS and passwords. Exits with one line a server that cannot be had."""
    import psutil

    from memory_pipelines.wiring import connect

    sys.path.insert(0, str(TESTS))  # as their own command has it: no package of the product knows them
    try:
        together = importlib.import_module("servers.together")
    finally:
        sys.path.remove(str(TESTS))
    with tempfile.TemporaryDirectory(prefix="mp-bench-") as home:
        try:
            with together.running(home, lambda text: print(text, file=sys.stderr, flush=True)) as servers:
                settings: Settings = servers.settings
                with connect(settings) as platform:
                    found = {s.name: (f"{s.name} {s.version}", s.process.pid) for s in servers.running}
                    yield _site(
                        platform,
                        {name: (title, pid, Path(psutil.Process(pid).cwd())) for name, (title, pid) in found.items()},
                    )
        except together.cache.CannotBeHad as missing:
            sys.exit(f"cannot be had: {missing}")


def _site(platform: "Platform", servers: Mapping[str, Any]) -> Site:
    dimension = platform.embedder.dimension
    platform.vectors.ensure(dimension)
    stores = Stores(
        platform.authority, platform.vectors, platform.graph, platform.hot, platform.cold, dimension=dimension
    )
    chosen = {role: servers[name] for role, names in ROLES.items() for name in names if name in servers}
    return Site(
        stores,
        {role: title for role, (title, _, _) in chosen.items()},
        lambda: {role: _processor(pid) for role, (_, pid, _) in chosen.items()},
        lambda: {role: _megabytes(folder) for role, (_, _, folder) in chosen.items()},
    )


def _processor(pid: int) -> float:
    """User and system seconds of a process and of all below it, with those of their children that have ended."""
    import psutil

    top = psutil.Process(pid)
    spent = 0.0
    for process in (top, *top.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:  # by now it counts among its parent's ended children
            continue
        spent += used.user + used.system + used.children_user + used.children_system
    return spent


def _megabytes(folder: Path) -> float:
    """What the files below a folder hold; one that goes away meanwhile holds nothing."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() and not file.is_symlink() else 0
        except OSError:
            continue
    return total / 1e6
