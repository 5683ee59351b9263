"""Stores under contract: every port by its in-memory fake, by the embedded server and by the real one.

A server is shared by the session, so each test has tenants of its own. Tests on real servers are marked ``servers``.
"""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from suites import adapters

from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, Lake, VectorStore

DIMENSION = 8
SERVED = [pytest.param("embedded", marks=pytest.mark.embedded), pytest.param("real", marks=pytest.mark.servers)]
EVERY = ["fake", *SERVED]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def embedded() -> Iterator[Settings]:
    """Settings of all embedded servers, started for this session in a folder of their own."""
    from memory_pipelines import local

    # not below pytest's own folder: PostgreSQL's user must be able to reach it
    with tempfile.TemporaryDirectory(prefix="mp-contract-") as folder:
        home = Path(folder) / "home"
        try:
            yield Settings(home=str(home), **local.up(home).settings())
        finally:
            local.down(home)


@pytest.fixture(scope="session", params=SERVED)
def served(request: pytest.FixtureRequest) -> Settings:
    """Settings of running servers, embedded or real."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test of this session uses."""
    return f"tenant {next(_numbers)}"


@pytest.fixture
def owner(tenant: str) -> Owner:
    return Owner(tenant, "u:1")


def _vectors(at: Settings) -> Iterator[VectorStore]:
    store = adapters.vectors(at, "contract")
    store.ensure(DIMENSION)
    yield store
    store.close()


def _graph(at: Settings) -> Iterator[GraphStore]:
    store = adapters.graph(at)
    store.ensure()
    yield store
    store.close()


@pytest.fixture(scope="session")
def embedded_vectors(embedded: Settings) -> Iterator[VectorStore]:
    yield from _vectors(embedded)


@pytest.fixture(scope="session")
def real_vectors(real: Settings) -> Iterator[VectorStore]:
    yield from _vectors(real)


@pytest.fixture(scope="session")
def embedded_graph(embedded: Settings) -> Iterator[GraphStore]:
    yield from _graph(embedded)


@pytest.fixture(scope="session")
def real_graph(real: Settings) -> Iterator[GraphStore]:
    yield from _graph(real)


@pytest.fixture
def bolt(served: Settings, request: pytest.FixtureRequest) -> GraphStore:
    """The graph store of ``served``."""
    return request.getfixturevalue("real_graph" if served.ca_file else "embedded_graph")


@pytest.fixture(params=EVERY)
def vector_store(request: pytest.FixtureRequest) -> VectorStore:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryVectors

        store = MemoryVectors()
        store.ensure(DIMENSION)
        return store
    return request.getfixturevalue(f"{request.param}_vectors")


@pytest.fixture(params=EVERY)
def graph_store(request: pytest.FixtureRequest) -> GraphStore:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryGraph

        return MemoryGraph()
    return request.getfixturevalue(f"{request.param}_graph")


@pytest.fixture(params=EVERY)
def hot_store(request: pytest.FixtureRequest) -> Iterator[HotStore]:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryHot

        yield MemoryHot()
    else:
        store = adapters.hot(request.getfixturevalue(request.param))
        yield store
        store.close()


@pytest.fixture(params=EVERY)
def cold_store(request: pytest.FixtureRequest) -> Iterator[ColdStore]:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryCold

        yield MemoryCold()
    else:
        store = adapters.cold(request.getfixturevalue(request.param), f"contract-{next(_numbers)}")
        store.ensure()
        yield store
        store.close()


@pytest.fixture(params=["fake", "disk", *SERVED])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """In memory, on disk, on an S3 server."""
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryLake

        return MemoryLake()
    if request.param == "disk":
        from memory_pipelines.stores.lake import DeltaLake

        return DeltaLake(str(tmp_path / "lake"))
    return adapters.lake(request.getfixturevalue(request.param), f"lake-{next(_numbers)}")
