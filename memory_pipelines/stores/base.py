"""Ports: what the library asks of each store, whatever server answers.

Belongs here: protocols and the small row types that cross them. Does not belong here: a driver, what the one authority
says of memories and persons (``authority``).
Every method is safe to repeat (same call, same state). A server that does not answer raises
``StoreUnavailableError``; a request that can never work raises a ``PermanentError``.
Scores: higher is better, everywhere.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memory_pipelines.model import Owner, stable_hash
from memory_pipelines.stores.authority import UNUSED, Use
from memory_pipelines.tables import TableSpec

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One vector of one version of a memory. ``entry_id`` = ``<memory_id>.<version>``; no text."""

    entry_id: str
    owner: Owner
    vector: Vector
    language: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class Hit:
    """``score`` is cosine similarity in [-1, 1], higher is nearer."""

    entry_id: str
    score: float


@dataclass(frozen=True, slots=True)
class GraphNode:
    """``node_id``: a memory id, or ``entity:<canonical>``; ``kind``: slice, fact or entity.

    ``weight`` is decision impact (0 for entities); ``label`` an intent, predicate or canonical name.
    """

    node_id: str
    kind: str
    label: str
    weight: float
    occurred_at: datetime | None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """Undirected for activation; ``weight`` in (0, 1]."""

    source: str
    target: str
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class Graph:
    """One version of one owner's graph, whole."""

    owner: Owner
    version: str
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]


class VectorStore(Protocol):
    """Dense vectors by owner. Eventually every write is visible to a search of the same client.

    A collection belongs to one embedding model; the adapter is built for one ``collection``.
    ``capabilities`` names what the server can do: ``sparse`` and ``hybrid`` go beyond the port; without ``upsert`` a
    row is replaced by a delete and an insert.
    """

    capabilities: frozenset[str]

    def ensure(self, dimension: int) -> None:
        """Create the collection, its index and its partition key unless they exist.

        Raises IntegrityError if it exists with another dimension."""

    def upsert(self, rows: Sequence[VectorRow]) -> None: ...
    def delete(self, entry_ids: Collection[str]) -> None: ...
    def search(self, owner: Owner, vector: Vector, limit: int, language: str | None = None) -> list[Hit]:
        """The owner's nearest entries (of ``language``, if given), best first; never another owner's or tenant's.

        A vector of zeros scores 0 or is left out."""
        ...

    def fetch(self, entry_ids: Collection[str]) -> dict[str, Vector]:
        """The stored vectors of those entries that exist."""
        ...

    def entry_ids(self, owner: Owner) -> set[str]: ...
    def count(self) -> int: ...
    def entries(self) -> Iterator[tuple[str, str]]:
        """(entry id, owner key) of everything that is held, for audits."""
        ...

    def drop(self) -> None:
        """Remove the collection whole; a later ``ensure`` makes an empty one."""
        ...

    def close(self) -> None: ...


class GraphStore(Protocol):
    """One graph per owner and version; a version is complete or is not asked for.

    Holds ids, labels, numbers, times and canonical names: no verbatim text.
    """

    capabilities: frozenset[str]

    def ensure(self) -> None:
        """Create constraints and indexes unless they exist."""

    def write(self, graphs: Sequence[Graph]) -> None:
        """Write whole versions beside the others, in UNWIND batches of at most 100 rows, which the graphs share."""
        ...

    def drop(self, owner: Owner, version: str) -> None:
        """Remove one version whole."""
        ...

    def versions(self, owner: Owner) -> set[str]: ...
    def all_versions(self) -> set[tuple[str, str]]:
        """(owner key, version) of every graph that is held, for audits."""
        ...

    def nodes(self, owner: Owner, version: str) -> list[GraphNode]:
        """Every node of a version, by id; empty for an unknown version."""
        ...

    def edges(self, owner: Owner, version: str) -> list[GraphEdge]:
        """Every edge of a version, by source, target and kind; empty for an unknown version."""
        ...

    def activations(
        self,
        owner: Owner,
        version: str,
        anchors: Mapping[str, float],
        as_of: datetime,
        hidden: Collection[str] = (),
        uses: Mapping[str, Use] = UNUSED,
    ) -> dict[str, float]:
        """Activation in (0, 1] by memory id, of memories that had occurred at ``as_of`` and are not ``hidden``.

        ``anchors``: match in [0, 1] by memory id; the best five that may take part count. The formula is that of
        ``recall.ripple``; ``uses`` by memory id, of those that were used."""
        ...

    def count(self) -> tuple[int, int]:
        """(nodes, edges) of all owners and versions."""
        ...

    def close(self) -> None: ...


class HotStore(Protocol):
    """A cache by owner that may lose anything at any time. Keys of one owner share a slot."""

    def get(self, owner: Owner, name: str) -> bytes | None: ...
    def put(self, owner: Owner, name: str, value: bytes, ttl_seconds: int) -> None: ...
    def delete(self, owner: Owner) -> None:
        """Forget all names of the owner."""
        ...

    def held(self, owner: Owner) -> int:
        """Values kept of the owner, with those that ``delete`` only hid; walks the whole key space."""
        ...

    def wipe(self, owner: Owner) -> None:
        """``delete`` that leaves nothing hidden either; walks the whole key space."""
        ...

    def count(self) -> int: ...
    def close(self) -> None: ...


class ColdStore(Protocol):
    """Objects by key under the bucket of the settings; a put is atomic, the last one wins."""

    def ensure(self) -> None:
        """Create the bucket unless it exists."""

    def put(self, key: str, value: bytes) -> None: ...
    def archive(self, objects: Mapping[str, bytes]) -> None:
        """Put each of the objects and read it back, several at a time.

        Raises TransientError if one does not come back as it was given; others may have been put then."""
        ...

    def get(self, key: str) -> bytes | None: ...
    def delete(self, keys: Iterable[str]) -> None: ...
    def keys(self, prefix: str = "") -> set[str]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Replace:
    """Which rows a write replaces: those whose ``column`` lies in ``values``. Atomic with the write."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplaceRange:
    """Rows whose ``column`` is text of at least ``low`` and below ``high``; None: without that bound."""

    column: str
    low: str | None
    high: str | None


Replaced = Replace | ReplaceRange


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did: the version it read and the one it made, files before and after."""

    before: int
    after: int
    files_before: int
    files_after: int


class Lake(Protocol):
    """Versioned tables. A write is one atomic version; a reader sees whole versions only."""

    def write(
        self, table: TableSpec, rows: pa.Table, replace: Sequence[Replaced], partition: dict[str, int] | None = None
    ) -> int:
        """Replace the rows that match all of ``replace`` (and ``partition``) by ``rows``; returns the version.

        Repeating a write leaves the same rows. ``partition`` narrows it to partition values."""
        ...

    def read(
        self,
        table: TableSpec,
        *,
        columns: Sequence[str] | None = None,
        where: Sequence[tuple[str, str, object]] = (),
        version: int | None = None,
    ) -> pa.Table:
        """Rows that pass all ``(column, operator, value)`` filters (``=``, ``>=``, ``<``, ``<=``, ``in``, ``by``).

        ``by``: the value is another column and, by its values, those that the column may have.

        A table that was never written is empty, with the right schema."""
        ...

    def version(self, table: TableSpec) -> int:
        """The newest version, -1 before the first write."""
        ...

    def compact(self, table: TableSpec, most_files: int) -> "Compacted | None":
        """Join the files of each partition that has more than ``most_files``, rows in the order of ``sort_by``.

        A version of its own with the same rows; None where nothing is to be done, or a writer was faster."""
        ...

    def vacuum(self, table: TableSpec, keep: timedelta) -> int:
        """Remove files that no version younger than ``keep`` needs; returns how many. Safe beside writers."""
        ...

    def purge(self, table: TableSpec) -> None:
        """Remove all that the newest version does not need: older versions, files of killed writers, old log.

        Only while nobody else reads or writes (``stores.exclusion``): beside a writer it corrupts the table."""
        ...

    def stored(self, table: TableSpec) -> Iterator[tuple[str, bytes]]:
        """Every file that is kept of a table, referenced or not: path below the table, content."""
        ...


def cold_key(owner: Owner, entry_id: str) -> str:
    """Key under which the cold store keeps a memory's text: gzip of UTF-8 JSON ``{"text": ...}``."""
    return f"{stable_hash(owner.tenant)}/{owner.key}/{entry_id}.json.gz"
