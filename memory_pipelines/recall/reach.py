"""The slice graph that one recall needs: from packs, else from the graph store.

Belongs here: where the graph comes from, and where it is entered. Does not belong here: activation (``ripple``).
"""

from collections.abc import Sequence

from memory_pipelines.model import Owner
from memory_pipelines.recall.adjacency import ENTITY, Adjacency
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.base import GraphEdge, GraphStore, Person
from memory_pipelines.stores.ripple import MAX_HOPS


def graph(store: GraphStore, persons: Sequence[Person], snapshot: Snapshot, anchors: Sequence[int]) -> Adjacency | None:
    """Edges round the anchors (rows), as far as activation may spread; None where there is nothing to spread over.

    Raises StoreUnavailableError; the store is not asked where every subject's pack has its graph."""
    if not anchors:
        return None
    versions = {person.owner: person.graph_version for person in persons}
    if all(pack.graph is not None or versions.get(pack.owner) is None for pack, _ in snapshot.parts):
        return snapshot.graph
    rows = [snapshot.rows[row] for row in anchors]
    own = {person.owner: {row.memory_id for row in rows if row.owner == person.owner} for person in persons}
    entered = {f"{ENTITY}{name}" for row in rows for name in row.entities} if len(persons) > 1 else set[str]()
    return _read(store, persons, snapshot, own, entered)


def _read(
    store: GraphStore,
    persons: Sequence[Person],
    snapshot: Snapshot,
    own: dict[Owner, set[str]],
    entered: set[str],
) -> Adjacency | None:
    """From the subject's own anchors; among linked subjects also from entities, so that it crosses from one graph into
    another through what both mention: with each round of reading one hop later."""
    edges: list[GraphEdge] = []
    known, fresh, asked = set[str](), entered, False
    for number in range(MAX_HOPS):
        found: set[str] = set()
        for person in persons:
            starts = fresh | (own[person.owner] if number == 0 else set())
            if person.graph_version is not None and starts:
                near, links = store.neighbourhood(person.owner, person.graph_version, sorted(starts), MAX_HOPS)
                edges += links
                found |= {node.node_id for node in near if node.node_id.startswith(ENTITY)}
                asked = True
        known |= fresh
        fresh = found - known
        if len(persons) == 1 or not fresh:
            break
    return Adjacency.of(edges, snapshot.by_memory) if asked else None
