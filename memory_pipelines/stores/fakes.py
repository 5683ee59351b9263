"""In-memory stores: the ports' meaning without a server, for tests and dry runs.

Belongs here: complete implementations that pass the same contract suite as the servers. Does not
belong here: failure injection or recorded answers.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.clock import Clock, SystemClock
from memory_pipelines.errors import IntegrityError, TransientError
from memory_pipelines.model import Owner, impact_label, stable_hash
from memory_pipelines.stores import canonical, checks, ripple
from memory_pipelines.stores.authority import NEVER, UNUSED, Use
from memory_pipelines.stores.base import Compacted, Graph, GraphEdge, GraphNode, Hit, Replaced, Vector, VectorRow
from memory_pipelines.stores.vault import Secret, token
from memory_pipelines.tables import TableSpec


class MemoryVectors:
    """Exact cosine search over a dict."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._dimension: int | None = None
        self._rows: dict[str, VectorRow] = {}

    def ensure(self, dimension: int) -> None:
        if self._dimension not in (None, dimension):
            raise IntegrityError(f"the collection has dimension {self._dimension}, not {dimension}")
        self._dimension = dimension

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        if not rows:
            return
        if self._dimension is None:
            raise IntegrityError("the collection does not exist; call ensure first")
        self._rows |= checks.vector_rows(rows, self._dimension)

    def delete(self, entry_ids: Collection[str]) -> None:
        for entry_id in checks.entry_ids(entry_ids):
            self._rows.pop(entry_id, None)

    def search(self, owner: Owner, vector: Vector, limit: int, language: str | None = None) -> list[Hit]:
        if self._dimension is None or limit <= 0:
            return []
        query = _unit(checks.vector(vector, self._dimension))
        hits = [
            Hit(row.entry_id, float(query @ _unit(row.vector)))
            for row in self._rows.values()
            if row.owner == owner and language in (None, row.language)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.entry_id))[:limit]

    def fetch(self, entry_ids: Collection[str]) -> dict[str, Vector]:
        return {i: self._rows[i].vector for i in checks.entry_ids(entry_ids) if i in self._rows}

    def entry_ids(self, owner: Owner) -> set[str]:
        return {row.entry_id for row in self._rows.values() if row.owner == owner}

    def count(self) -> int:
        return len(self._rows)

    def entries(self) -> Iterator[tuple[str, str]]:
        yield from sorted((row.entry_id, row.owner.key) for row in self._rows.values())

    def drop(self) -> None:
        self._dimension = None
        self._rows = {}

    def close(self) -> None:
        """Nothing to release."""


def _unit(vector: Vector) -> NDArray[np.float64]:
    """In 64 bits: what is equally near is so to the last of the digits that count."""
    array = np.asarray(vector, dtype=np.float64)
    norm = float(np.linalg.norm(array))
    return array / norm if norm else array


class MemoryGraph:
    """Nodes and edges in dicts, one graph per owner and version."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], dict[str, GraphNode]] = {}
        self._edges: dict[tuple[str, str], dict[tuple[str, str, str], GraphEdge]] = {}

    def ensure(self) -> None:
        """Nothing to create."""

    def write(self, graphs: Sequence[Graph]) -> None:
        for one in [checks.graph(one) for one in graphs]:
            if one.nodes:
                name = (one.owner.key, one.version)
                self._nodes.setdefault(name, {}).update({n.node_id: n for n in one.nodes})
                self._edges.setdefault(name, {}).update({(e.source, e.target, e.kind): e for e in one.edges})

    def drop(self, owner: Owner, version: str) -> None:
        checks.version(version)
        self._nodes.pop((owner.key, version), None)
        self._edges.pop((owner.key, version), None)

    def versions(self, owner: Owner) -> set[str]:
        return {version for candidate, version in self._nodes if candidate == owner.key}

    def all_versions(self) -> set[tuple[str, str]]:
        return set(self._nodes)

    def nodes(self, owner: Owner, version: str) -> list[GraphNode]:
        held = self._nodes.get((owner.key, checks.version(version)), {})
        return [held[node_id] for node_id in sorted(held)]

    def edges(self, owner: Owner, version: str) -> list[GraphEdge]:
        held = self._edges.get((owner.key, checks.version(version)), {})
        return [held[key] for key in sorted(held)]

    def activations(
        self,
        owner: Owner,
        version: str,
        anchors: Mapping[str, float],
        as_of: datetime,
        hidden: Collection[str] = (),
        uses: Mapping[str, Use] = UNUSED,
    ) -> dict[str, float]:
        """Walks of at most three hops, hop by hop."""
        name = (owner.key, checks.version(version))
        nodes = {
            node_id: node
            for node_id, node in self._nodes.get(name, {}).items()
            if node.kind == checks.ENTITY
            or (node.occurred_at is not None and node.occurred_at <= as_of and node_id not in hidden)
        }
        near = _near(nodes, self._edges.get(name, {}).values())
        able = [anchor for anchor, match in anchors.items() if match > 0 and anchor in nodes]
        left = dict.fromkeys(nodes, 1.0)
        for anchor in sorted(able, key=lambda one: (-anchors[one], one))[: ripple.MAX_ANCHORS]:
            for reached, product in _walked(anchor, nodes, near).items():
                use = uses.get(reached, NEVER)
                age = as_of - (use.accessed_at or nodes[reached].occurred_at or as_of)
                fresh = max(ripple.LEAST_FRESH, ripple.DAILY ** max(0.0, age / timedelta(days=1)))
                weight = min(1.0, nodes[reached].weight + ripple.WINDOW_BONUS * use.activations)
                left[reached] *= 1 - anchors[anchor] * product * weight * fresh
        return {node_id: 1 - share for node_id, share in left.items() if share < 1}

    def count(self) -> tuple[int, int]:
        return sum(map(len, self._nodes.values())), sum(map(len, self._edges.values()))

    def close(self) -> None:
        """Nothing to release."""


def _near(nodes: Mapping[str, GraphNode], edges: Iterable[GraphEdge]) -> dict[str, dict[str, float]]:
    """Weights of neighbours among the nodes, without entities that only one memory mentions."""
    near: dict[str, dict[str, float]] = {node_id: {} for node_id in nodes}
    for edge in edges:
        for one, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if one != other and one in nodes and other in nodes:
                near[one][other] = max(edge.weight, near[one].get(other, 0.0))
    alone = {node_id for node_id, node in nodes.items() if node.kind == checks.ENTITY and len(near[node_id]) < 2}
    return {one: {other: w for other, w in by.items() if other not in alone} for one, by in near.items()}


def _walked(anchor: str, nodes: Mapping[str, GraphNode], near: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The best product with its decay by memory."""
    best: dict[str, float] = {}
    reached = {anchor: 1.0}
    for hops in range(ripple.MAX_HOPS + 1):
        following: dict[str, float] = {}
        for one, product in reached.items():
            decay = math.exp(-hops * ripple.RATES[impact_label(nodes[one].weight)])
            best[one] = max(product * decay, best.get(one, 0.0))
            leaving = product / math.sqrt(len(near[one])) if hops else product
            for other, weight in near[one].items():
                ends = {other: weight}
                if nodes[other].kind == checks.ENTITY:
                    root = math.sqrt(len(near[other]))
                    ends = {end: weight * last / root for end, last in near[other].items()}
                for end, joined in ends.items():
                    following[end] = max(leaving * joined, following.get(end, 0.0))
        reached = following
    return best


class MemoryHot:
    """A dict whose values expire by the given clock."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._values: dict[tuple[Owner, str], tuple[bytes, float]] = {}

    def get(self, owner: Owner, name: str) -> bytes | None:
        value, expires = self._values.get((owner, name), (None, 0.0))
        return value if expires > self._clock.now().timestamp() else None

    def put(self, owner: Owner, name: str, value: bytes, ttl_seconds: int) -> None:
        expires = self._clock.now().timestamp() + checks.ttl(ttl_seconds)
        self._values[(owner, name)] = (bytes(value), expires)

    def delete(self, owner: Owner) -> None:
        self._values = {key: value for key, value in self._values.items() if key[0] != owner}

    def held(self, owner: Owner) -> int:
        return sum(key[0] == owner for key in self._values)

    def wipe(self, owner: Owner) -> None:
        self.delete(owner)

    def count(self) -> int:
        now = self._clock.now().timestamp()
        return sum(expires > now for _, expires in self._values.values())

    def close(self) -> None:
        """Nothing to release."""


class MemoryCold:
    """Objects in a dict."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def ensure(self) -> None:
        """Nothing to create."""

    def put(self, key: str, value: bytes) -> None:
        checks.object_keys([key])
        self._objects[key] = bytes(value)

    def archive(self, objects: Mapping[str, bytes]) -> None:
        for key, value in objects.items():
            self.put(key, value)
            if self.get(key) != value:
                raise TransientError("the cold store does not give back what it was given")

    def get(self, key: str) -> bytes | None:
        checks.object_keys([key])
        return self._objects.get(key)

    def delete(self, keys: Iterable[str]) -> None:
        for key in checks.object_keys(list(keys)):
            self._objects.pop(key, None)

    def keys(self, prefix: str = "") -> set[str]:
        return {key for key in self._objects if key.startswith(prefix)}

    def close(self) -> None:
        """Nothing to release."""


class MemoryLake:
    """Every version of every table, as Arrow tables."""

    def __init__(self) -> None:
        self._versions: dict[str, list[pa.Table | None]] = {}

    def write(
        self, table: TableSpec, rows: pa.Table, replace: Sequence[Replaced], partition: dict[str, int] | None = None
    ) -> int:
        fresh = canonical.conform(table, rows)
        canonical.check_replaced(table, fresh, replace, partition)
        old = self.read(table)
        kept = old.filter(pc.invert(canonical.matches(table, old, replace, partition)))
        versions = self._versions.setdefault(table.name, [])
        versions.append(canonical.ordered(table, pa.concat_tables([kept, fresh])))
        return len(versions) - 1

    def read(
        self,
        table: TableSpec,
        *,
        columns: Sequence[str] | None = None,
        where: Sequence[tuple[str, str, object]] = (),
        version: int | None = None,
    ) -> pa.Table:
        versions = self._versions.get(table.name, [])
        if not versions or (version is not None and version < 0):
            rows = table.schema.empty_table()
        else:
            rows = versions[-1] if version is None else next(iter(versions[version : version + 1]), None)
        if rows is None:
            raise IntegrityError(f"table {table.name} has no version {version}")
        return canonical.select(table, rows, columns, where)

    def version(self, table: TableSpec) -> int:
        return len(self._versions.get(table.name, [])) - 1

    def compact(self, table: TableSpec, most_files: int) -> Compacted | None:
        return None  # a version is one table

    def vacuum(self, table: TableSpec, keep: timedelta) -> int:
        return 0

    def purge(self, table: TableSpec) -> None:
        versions = self._versions.get(table.name, [])
        versions[:-1] = [None] * (len(versions) - 1)

    def stored(self, table: TableSpec) -> Iterator[tuple[str, bytes]]:
        import pyarrow.parquet as pq

        for number, rows in enumerate(self._versions.get(table.name, [])):
            if rows is not None:
                sink = pa.BufferOutputStream()
                pq.write_table(rows, sink)
                yield f"{number}.parquet", sink.getvalue().to_pybytes()


class MemoryVault:
    """Values by owner and token, in the clear: the tokens are a hash that anybody could make."""

    def __init__(self) -> None:
        self._values: dict[Owner, dict[str, str]] = {}

    def keep(self, secrets: Collection[Secret]) -> dict[Secret, str]:
        made = {s: token(s.kind, bytes.fromhex(stable_hash(s.owner.key, s.kind, s.value))) for s in secrets}
        for secret, name in made.items():
            self._values.setdefault(secret.owner, {})[name] = secret.value
        return made

    def reveal(self, wanted: Mapping[Owner, Collection[str]]) -> dict[Owner, dict[str, str]]:
        return {
            owner: {name: known[name] for name in names if name in known}
            for owner, names in wanted.items()
            for known in [self._values.get(owner, {})]
        }
