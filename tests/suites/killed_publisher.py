"""A process that publishes to real servers and is killed for good at one call: run by the contract test of crashes.

Reads ``{"settings": {...}, "world": n, "call": "vectors.upsert", "after": true}`` from standard input.
"""

import json
import os
import signal
import sys
from typing import Any, NoReturn

from suites.publish_world import DIMENSION, LATER, Faults, Stores, world

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database
from memory_pipelines.stores.relational import PostgresAuthority

COLLECTION = "publish_suite"


def open_stores(settings: Settings) -> Stores:
    """The adapters of all servers."""
    from memory_pipelines.stores.cold import S3Cold
    from memory_pipelines.stores.graph import Neo4jGraph
    from memory_pipelines.stores.hot import RedisHot
    from memory_pipelines.stores.vectors import MilvusVectors

    engine = database.connect(settings.postgres_url)
    vectors = MilvusVectors(settings.milvus_url, settings.milvus_token, COLLECTION)
    vectors.ensure(DIMENSION)
    graph = Neo4jGraph(settings.neo4j_url, settings.neo4j_user, settings.neo4j_password, settings.neo4j_database)
    graph.ensure()
    cold = S3Cold(settings.s3_url, "publish-suite", settings.s3_access_key, settings.s3_secret_key, settings.s3_region)
    cold.ensure()
    return Stores(engine, PostgresAuthority(engine), vectors, graph, RedisHot(settings.redis_url), cold)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def main(order: dict[str, Any]) -> None:
    stores, at = open_stores(Settings(**order["settings"])), world(order["world"])
    call = {order["call"]: _die}
    stores.publish(at.bucket, at.new, LATER, Faults(ended=call) if order["after"] else Faults(meanwhile=call))


if __name__ == "__main__":
    main(json.load(sys.stdin))
