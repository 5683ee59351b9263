"""The relational stores on an in-memory SQLite, with in-memory stores beside them."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from suites.publish_world import DIMENSION, Stores

from memory_pipelines.stores import database
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.stores.relational import PostgresAuthority


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    engine = database.connect("sqlite://")
    yield engine
    engine.dispose()


@pytest.fixture
def stores(engine: sa.Engine) -> Stores:
    vectors = MemoryVectors()
    vectors.ensure(DIMENSION)
    return Stores(engine, PostgresAuthority(engine), vectors, MemoryGraph(), MemoryHot(), MemoryCold())
