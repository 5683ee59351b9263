"""The ripple as the graph store computes it, beside the one that recall computes.

Belongs here: both for one person and the same anchors. Does not belong here: the statement (``stores.ripple``), the
formula in memory (``recall.ripple``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from memory_pipelines.errors import InputError
from memory_pipelines.model import Owner
from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.ripple import Field, Ripple
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.authority import Use
from memory_pipelines.wiring import Platform

EQUAL = 1e-9
"""Further apart are two activations that are not the same."""


@dataclass(frozen=True)
class Reached:
    """A memory with its activation; 0 where it is not reached."""

    memory_id: str
    summary: str
    in_store: float
    in_memory: float

    @property
    def apart(self) -> float:
        return abs(self.in_store - self.in_memory)


def both(platform: Platform, owner: Owner, anchors: Mapping[str, float], as_of: datetime) -> list[Reached]:
    """Strongest first. ``anchors``: match in [0, 1] by memory id; one that the graph does not hold takes no part.

    Empty for a person without a graph. Raises InputError for an id that is no memory of the person,
    StoreUnavailableError."""
    person = platform.authority.person(owner)
    snapshot = Snapshot(owner, platform.authority.visible(owner))
    if unknown := sum(name not in snapshot.by_memory for name in anchors):
        raise InputError(f"{unknown} of the memories are none of this person's")
    if person.graph_version is None:
        return []
    usable = snapshot.usable(as_of, person.suppressed)
    ids = snapshot.memory_ids
    hidden = [ids[row] for row in np.flatnonzero(~usable).tolist()]
    uses = {row.memory_id: Use(row.accessed_at, row.activations) for row in snapshot.rows if row.accessed_at}
    in_store = platform.graph.activations(owner, person.graph_version, anchors, as_of, hidden, uses)

    nodes = {node.node_id for node in platform.graph.nodes(owner, person.graph_version)}
    held = {name: match for name, match in anchors.items() if name in nodes}
    edges = platform.graph.edges(owner, person.graph_version)
    web = Adjacency.of(edges, snapshot.by_memory).among(usable)
    field = Field(ids, snapshot.by_memory, snapshot.impact, snapshot.since, snapshot.activations, web)
    in_memory = Ripple(held, field, as_of).activation

    found = [
        Reached(name, snapshot.sentence(snapshot.by_memory[name]), in_store.get(name, 0.0), in_memory.get(name, 0.0))
        for name in in_store.keys() | in_memory.keys()
        if name in snapshot.by_memory
    ]
    return sorted(found, key=lambda one: (-one.in_store, one.memory_id))
