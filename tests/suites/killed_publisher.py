"""A process that publishes to real servers and is killed for good at one call: run by the contract test of crashes.

Reads ``{"settings": {...}, "world": n, "call": "vectors.upsert", "after": true}`` from standard input.
"""

import json
import os
import signal
import sys
from typing import Any, NoReturn

from suites import adapters
from suites.publish_world import DIMENSION, LATER, Faults, Stores, world

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database
from memory_pipelines.stores.relational import PostgresAuthority

COLLECTION = "publish_suite"


def open_stores(settings: Settings) -> Stores:
    """The adapters of all servers."""
    engine = database.connect(settings.postgres_url, ca_file=settings.ca_file)
    vectors = adapters.vectors(settings, COLLECTION)
    vectors.ensure(DIMENSION)
    graph = adapters.graph(settings)
    graph.ensure()
    cold = adapters.cold(settings, "publish-suite")
    cold.ensure()
    return Stores(engine, PostgresAuthority(engine), vectors, graph, adapters.hot(settings), cold)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def main(order: dict[str, Any]) -> None:
    stores, at = open_stores(Settings(**order["settings"])), world(order["world"])
    call = {order["call"]: _die}
    stores.publish(at.bucket, at.new, LATER, Faults(ended=call) if order["after"] else Faults(meanwhile=call))


if __name__ == "__main__":
    main(json.load(sys.stdin))
