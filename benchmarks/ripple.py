"""The ripple over a person's graph: by one Cypher statement, and by reading all edges and computing from them.

    python -m benchmarks.ripple [--servers embedded|real] [--sizes 1000 10000] [--calls 5]

Belongs here: the protocol, one table. Does not belong here: either computation.

Protocol: one person a size (``benchmarks.stores.people``: 3.6 edges a memory), its graph alone written by the product's
adapter into servers that are started for it; five anchors, the newest memories, each with a match of .9; the instant is
after the last memory. One call of each kind comes first and is not counted. Wall time, one caller, the median.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from benchmarks.machine import describe, line
from benchmarks.stores.asking import AS_OF
from benchmarks.stores.people import Subject, state
from benchmarks.stores.site import Site, embedded, real
from memory_pipelines.pipeline.ripples import EQUAL
from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.ripple import Field, Ripple
from memory_pipelines.stores.base import Graph
from memory_pipelines.stores.ripple import MAX_ANCHORS

SEED = 7
MATCH = 0.9
SITES: dict[str, Callable[[], AbstractContextManager[Site]]] = {"embedded": embedded, "real": real}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ripple", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--servers", choices=sorted(SITES), default="embedded")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000], help="memories of each person")
    parser.add_argument("--calls", type=int, default=5, help="of each kind")
    chosen = parser.parse_args(argv)
    print(line(describe()), flush=True)
    with SITES[chosen.servers]() as site:
        print(f"{site.servers['graph']}, milliseconds, median of {chosen.calls}")
        print(f"{'memories':>9}{'edges':>8}{'reached':>9}{'statement':>11}{'all edges read':>16}{'computed':>10}")
        for size in chosen.sizes:
            edges, reached, *spent = measure(site, size, chosen.calls)
            print(f"{size:>9}{edges:>8}{reached:>9}{spent[0]:>11.0f}{spent[1]:>16.0f}{spent[2]:>10.0f}", flush=True)
    return 0


def measure(site: Site, size: int, calls: int) -> tuple[int, int, float, float, float]:
    """Edges, memories reached; milliseconds of the statement, of reading, of computing.

    Raises AssertionError where the two ways differ."""
    published = state(Subject(size, size), SEED)
    owner, version, store = published.owner, "v1", site.stores.graph
    store.write([Graph(owner, version, published.nodes, published.edges)])
    memories = sorted((node for node in published.nodes if node.occurred_at is not None), key=lambda n: n.node_id)
    newest = sorted(memories, key=lambda node: str(node.occurred_at), reverse=True)[:MAX_ANCHORS]
    anchors = {node.node_id: MATCH for node in newest}
    ids = [node.node_id for node in memories]
    position = {name: row for row, name in enumerate(ids)}
    impact = np.array([node.weight for node in memories])
    since = np.array([int(node.occurred_at.timestamp() * 1e6) for node in memories if node.occurred_at])
    everything, unused = np.ones(len(ids), dtype=bool), np.zeros(len(ids), dtype=np.int64)

    def computed() -> dict[str, float]:
        web = Adjacency.of(edges, position).among(everything)
        return Ripple(anchors, Field(ids, position, impact, since, unused, web), AS_OF).activation

    edges = store.edges(owner, version)
    told, own = store.activations(owner, version, anchors, AS_OF), computed()
    apart = max(abs(told.get(name, 0.0) - own.get(name, 0.0)) for name in told.keys() | own.keys())
    assert apart <= EQUAL, f"the two ways differ by {apart}"
    return (
        len(edges),
        len(own),
        _median(lambda: store.activations(owner, version, anchors, AS_OF), calls),
        _median(lambda: store.edges(owner, version), calls),
        _median(computed, calls),
    )


def _median(call: Callable[[], object], calls: int) -> float:
    spent = []
    for _ in range(calls):
        begun = time.perf_counter()
        call()
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent) * 1e3


if __name__ == "__main__":
    sys.exit(main())
