"""Stores under contract: every port by its in-memory fake and by the embedded server.

A server is shared by the session, so each test has tenants of its own.
"""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, Lake, VectorStore

DIMENSION = 8
BOTH = ["fake", pytest.param("embedded", marks=pytest.mark.embedded)]
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


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test of this session uses."""
    return f"tenant {next(_numbers)}"


@pytest.fixture
def owner(tenant: str) -> Owner:
    return Owner(tenant, "u:1")


@pytest.fixture(scope="session")
def milvus(embedded: Settings) -> Iterator[VectorStore]:
    from memory_pipelines.stores.vectors import MilvusVectors

    store = MilvusVectors(embedded.milvus_url, embedded.milvus_token, "contract")
    store.ensure(DIMENSION)
    yield store
    store.close()


@pytest.fixture(scope="session")
def bolt(embedded: Settings) -> Iterator[GraphStore]:
    from memory_pipelines.stores.graph import Neo4jGraph

    store = Neo4jGraph(embedded.neo4j_url, embedded.neo4j_user, embedded.neo4j_password, embedded.neo4j_database)
    store.ensure()
    yield store
    store.close()


@pytest.fixture(params=BOTH)
def vector_store(request: pytest.FixtureRequest) -> VectorStore:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryVectors

        store = MemoryVectors()
        store.ensure(DIMENSION)
        return store
    return request.getfixturevalue("milvus")


@pytest.fixture(params=BOTH)
def graph_store(request: pytest.FixtureRequest) -> GraphStore:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryGraph

        return MemoryGraph()
    return request.getfixturevalue("bolt")


@pytest.fixture(params=BOTH)
def hot_store(request: pytest.FixtureRequest) -> Iterator[HotStore]:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryHot

        yield MemoryHot()
    else:
        from memory_pipelines.stores.hot import RedisHot

        store = RedisHot(request.getfixturevalue("embedded").redis_url)
        yield store
        store.close()


@pytest.fixture(params=BOTH)
def cold_store(request: pytest.FixtureRequest) -> Iterator[ColdStore]:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryCold

        yield MemoryCold()
    else:
        from memory_pipelines.stores.cold import S3Cold

        at = request.getfixturevalue("embedded")
        bucket = f"contract-{next(_numbers)}"
        store = S3Cold(at.s3_url, bucket, at.s3_access_key, at.s3_secret_key, at.s3_region)
        store.ensure()
        yield store
        store.close()


@pytest.fixture(params=["fake", "disk", pytest.param("s3", marks=pytest.mark.embedded)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "fake":
        from memory_pipelines.stores.fakes import MemoryLake

        return MemoryLake()
    from memory_pipelines.stores.lake import DeltaLake

    if request.param == "disk":
        return DeltaLake(str(tmp_path / "lake"))
    from memory_pipelines.stores.cold import S3Cold

    at = request.getfixturevalue("embedded")
    bucket = f"lake-{next(_numbers)}"
    S3Cold(at.s3_url, bucket, at.s3_access_key, at.s3_secret_key, at.s3_region).ensure()
    options = {
        "AWS_ENDPOINT_URL": at.s3_url,
        "AWS_ACCESS_KEY_ID": at.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": at.s3_secret_key,
        "AWS_REGION": at.s3_region,
        "AWS_ALLOW_HTTP": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "aws_conditional_put": "etag",
    }
    return DeltaLake(f"s3://{bucket}/lake", options)
