"""What every adapter refuses, whatever server answers, so that fakes and servers refuse the same.

Belongs here: checks of arguments that cross a port. Does not belong here: talking to a store.
All raise a ``PermanentError``; messages name positions and limits, never values.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from memory_pipelines.errors import IntegrityError, PermanentError
from memory_pipelines.stores.base import Graph, Vector, VectorRow

ENTRY_ID = re.compile(r"[A-Za-z0-9._:-]{1,96}")
OBJECT_KEY_BYTES = 1024
VERSION = re.compile(r"[A-Za-z0-9._-]{1,64}")
EDGE_KINDS = ("mentions", "evidence", "causes", "next", "same_topic", "similar")
"""``mentions`` joins a memory and an entity; the others join two memories."""
ENTITY = "entity"


def entry_ids(ids: Iterable[str]) -> list[str]:
    """The ids without repeats, sorted; 1 to 96 of ``A-Z a-z 0-9 . _ : -``, so that no filter can be injected."""
    found = sorted(set(ids))
    if not all(ENTRY_ID.fullmatch(entry_id) for entry_id in found):
        raise PermanentError("an entry id must be 1 to 96 letters, digits, dots, colons, dashes or underscores")
    return found


def vector(value: Vector, dimension: int) -> Vector:
    """The vector as float32 of shape (dimension,), finite."""
    array = np.asarray(value, dtype=np.float32)
    if array.shape != (dimension,):
        raise IntegrityError(f"a vector of shape {array.shape} for a collection of dimension {dimension}")
    if not np.isfinite(array).all():
        raise IntegrityError("a vector with NaN or infinity")
    return array


def vector_rows(rows: Sequence[VectorRow], dimension: int) -> dict[str, VectorRow]:
    """Rows by entry id, the last of equal ids; all of the right dimension."""
    by_id = {row.entry_id: row for row in rows}
    entry_ids(by_id)
    for row in by_id.values():
        vector(row.vector, dimension)
    return by_id


def graph(value: Graph) -> Graph:
    """The graph with nodes by id and edges by (source, target, kind), the last of equal keys, sorted.

    Every edge has a known kind, a weight in (0, 1] and both ends among the nodes.
    """
    version(value.version)
    by_id = {node.node_id: node for node in value.nodes}
    by_key = {(edge.source, edge.target, edge.kind): edge for edge in value.edges}
    for edge in by_key.values():
        if edge.kind not in EDGE_KINDS:
            raise PermanentError(f"an edge of unknown kind; known: {', '.join(EDGE_KINDS)}")
        if not 0 < edge.weight <= 1:
            raise PermanentError("an edge whose weight is not in (0, 1]")
        if edge.source not in by_id or edge.target not in by_id:
            raise IntegrityError("an edge whose end is not among the nodes of its version")
        ends = sum(by_id[end].kind == ENTITY for end in (edge.source, edge.target))
        if ends != (1 if edge.kind == "mentions" else 0):
            raise PermanentError("`mentions` joins a memory and an entity, other edges join two memories")
    nodes, edges = [by_id[key] for key in sorted(by_id)], [by_key[key] for key in sorted(by_key)]
    return replace(value, nodes=nodes, edges=edges)


def version(value: str) -> str:
    """A version of a graph: no colon, since node keys are ``<owner>:<version>:<node id>``."""
    if not VERSION.fullmatch(value):
        raise PermanentError("a graph version must be 1 to 64 letters, digits, dots, dashes or underscores")
    return value


def ttl(seconds: int) -> int:
    if seconds <= 0:
        raise PermanentError("a time to live must be positive")
    return seconds


def object_keys(keys: Collection[str]) -> list[str]:
    """The keys without repeats, sorted; 1 to 1,024 bytes, no control characters, no ``.`` or ``..`` step."""
    found = sorted(set(keys))
    for key in found:
        if not 0 < len(key.encode("utf-8", "surrogatepass")) <= OBJECT_KEY_BYTES:
            raise PermanentError(f"an object key must have 1 to {OBJECT_KEY_BYTES} bytes")
        if any(ord(char) < 32 or ord(char) == 127 for char in key):
            raise PermanentError("an object key must not hold control characters")
        if any(step in ("", ".", "..") for step in key.split("/")):
            raise PermanentError("an object key must not hold an empty, `.` or `..` step")
    return found
