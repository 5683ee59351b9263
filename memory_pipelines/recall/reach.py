"""The slice graph that one recall needs: from packs, else from the graph store.

Belongs here: where the graph comes from, and how long it is kept. Does not belong here: activation (``ripple``).

A subject's graph is read whole: one query that the store answers from its index of owners. Activation spreads over most
of it anyway, and a version of a graph never changes, so it is read once for the rows that it belongs to.
"""

from collections.abc import Sequence

from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.pack import Pack
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.authority import Person
from memory_pipelines.stores.base import GraphStore


def graph(store: GraphStore, persons: Sequence[Person], snapshot: Snapshot) -> Adjacency | None:
    """The graph over the snapshot's rows, of all subjects together; None where none of them has one.

    Raises StoreUnavailableError; the store is not asked where every subject's pack has its graph."""
    visible = {person.owner: person.graph_version for person in persons}
    versions = tuple(visible.get(pack.owner) for pack, _ in snapshot.parts)
    held = snapshot.graph
    if held is None or held[0] != versions:
        held = snapshot.graph = versions, _whole(store, snapshot, versions)
    return held[1]


def _whole(store: GraphStore, snapshot: Snapshot, versions: Sequence[str | None]) -> Adjacency | None:
    graphs = [(_of(store, pack, version), at) for (pack, at), version in zip(snapshot.parts, versions, strict=True)]
    if len(graphs) == 1:
        return graphs[0][0]
    found = [(graph, at) for graph, at in graphs if graph is not None]
    return Adjacency.joined(found) if found else None


def _of(store: GraphStore, pack: Pack, version: str | None) -> Adjacency | None:
    """One subject's graph, over the rows of its pack."""
    if pack.graph is not None or version is None:
        return pack.graph
    return Adjacency.of(store.edges(pack.owner, version), {name: i for i, name in enumerate(pack.columns.memory_ids)})
