"""The graph store: Neo4j 5, or the embedded ArcadeDB over Bolt, through the neo4j driver.

Belongs here: the one Cypher text that runs on both (no ``SHORTEST``, no full-text or vector index,
no implicit grouping), batches and the driver's errors. Does not belong here: activation (``stores.ripple``).
Values are parameters always; labels and relationship types come from fixed lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import EPOCH, Owner, micros
from memory_pipelines.stores import checks, ripple, tls
from memory_pipelines.stores.authority import UNUSED, Use
from memory_pipelines.stores.base import Graph, GraphEdge, GraphNode

if TYPE_CHECKING:
    import neo4j

BATCH = 100
TOGETHER = 10
"""Batches that are one transaction: a commit costs more than a batch."""
DROP_BATCH = 1000
CONNECT_SECONDS = 5.0
READ_RETRY_SECONDS = 1.0
WRITE_RETRY_SECONDS = 5.0
SETTING = "MEMORY_PIPELINES_NEO4J_URL"
LABELS = ("Memory", "Entity")
TYPES = {kind: kind.upper() for kind in checks.EDGE_KINDS}
KINDS = {name: kind for kind, name in TYPES.items()}

WRITE_NODES = """
UNWIND $rows AS row
MERGE (n:{label} {{uid: row.uid}})
SET n.node_id = row.node_id, n.owner = row.owner, n.tenant = row.tenant, n.version = row.version,
    n.kind = row.kind, n.label = row.label, n.weight = row.weight, n.occurred_at = row.occurred_at
"""
WRITE_EDGES = """
UNWIND $rows AS row
MATCH (a:{source} {{uid: row.source}})
MATCH (b:{target} {{uid: row.target}})
MERGE (a)-[r:{type}]->(b)
SET r.weight = row.weight
"""
NODES = """
MATCH (n:{label} {{owner: $owner}}) WHERE n.version = $version
RETURN collect([n.node_id, n.kind, n.label, n.weight, n.occurred_at]) AS nodes
"""
EDGES = """
MATCH (a:{label} {{owner: $owner}})-[r]->(b) WHERE a.version = $version
RETURN collect(a.node_id) AS source, collect(b.node_id) AS target, collect(type(r)) AS type, collect(r.weight) AS weight
"""
DROP = """
MATCH (n:{label} {{owner: $owner}}) WHERE n.version = $version
WITH n LIMIT $limit
DETACH DELETE n
RETURN count(*) AS dropped
"""

T = TypeVar("T")


class Neo4jGraph:
    """Nodes ``Memory`` and ``Entity`` by ``uid`` = ``<owner key>:<version>:<node id>``; one graph a version.

    ``occurred_at`` is microseconds since 1970 in UTC. Writes are managed transactions: a transient
    error is retried by the driver (a read for 1 s, a write for 5 s), then raised as StoreUnavailableError.
    """

    capabilities: frozenset[str] = frozenset()

    def __init__(self, url: str, user: str, password: str, database: str = "neo4j", ca_file: str = "") -> None:
        self._url = url
        self._ca_file = ca_file
        self._auth = (user, password)
        self._database = database
        self._connected: neo4j.Driver | None = None

    def ensure(self) -> None:
        for label in LABELS:
            name = label.lower()
            self._write(f"CREATE CONSTRAINT {name}_uid IF NOT EXISTS FOR (n:{label}) REQUIRE n.uid IS UNIQUE")
            self._write(f"CREATE INDEX {name}_owner IF NOT EXISTS FOR (n:{label}) ON (n.owner)")

    def write(self, graphs: Sequence[Graph]) -> None:
        good = [checks.graph(one) for one in graphs]
        queries: dict[str, list[dict[str, Any]]] = {WRITE_NODES.format(label=label): [] for label in LABELS}
        for one in good:
            for node in one.nodes:
                queries[WRITE_NODES.format(label=_label(node))].append(_node_row(one, node))
        for one in good:
            label_of = {node.node_id: _label(node) for node in one.nodes}
            for edge in one.edges:
                source, target = label_of[edge.source], label_of[edge.target]
                query = WRITE_EDGES.format(source=source, type=TYPES[edge.kind], target=target)
                queries.setdefault(query, []).append(_edge_row(one, edge))
        batches = [(query, rows) for query, found in queries.items() for rows in _batches(found)]
        for start in range(0, len(batches), TOGETHER):
            self._ask(WRITE_RETRY_SECONDS, partial(_written, batches=batches[start : start + TOGETHER]))

    def drop(self, owner: Owner, version: str) -> None:
        checks.version(version)
        for label in LABELS:
            dropped = DROP_BATCH
            while dropped == DROP_BATCH:  # fewer were the last
                [record] = self._write(DROP.format(label=label), owner=owner.key, version=version, limit=DROP_BATCH)
                dropped = int(record["dropped"])

    def versions(self, owner: Owner) -> set[str]:
        query = "MATCH (n:{label} {{owner: $owner}}) RETURN DISTINCT n.version AS version"
        return self._read(
            lambda tx: {
                str(record["version"])
                for label in LABELS
                for record in tx.run(query.format(label=label), owner=owner.key)
            }
        )

    def all_versions(self) -> set[tuple[str, str]]:
        query = "MATCH (n:{label}) RETURN DISTINCT n.owner AS owner, n.version AS version"
        return self._read(
            lambda tx: {
                (str(record["owner"]), str(record["version"]))
                for label in LABELS
                for record in tx.run(query.format(label=label))
            }
        )

    def nodes(self, owner: Owner, version: str) -> list[GraphNode]:
        records = self._of_version(NODES, owner, version)
        return sorted((_node(*row) for record in records for row in record["nodes"]), key=lambda node: node.node_id)

    def edges(self, owner: Owner, version: str) -> list[GraphEdge]:
        records = self._of_version(EDGES, owner, version)
        columns = ("source", "target", "type", "weight")
        found = (row for record in records for row in zip(*(record[name] for name in columns), strict=True))
        edges = [GraphEdge(source, target, KINDS[name], float(weight)) for source, target, name, weight in found]
        return sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind))

    def _of_version(self, query: str, owner: Owner, version: str) -> list[neo4j.Record]:
        """One record a label, of lists: a record a node or an edge costs several times as much to transfer."""
        asked = {"owner": owner.key, "version": checks.version(version)}
        return self._read(lambda tx: [tx.run(query.format(label=label), asked).single(strict=True) for label in LABELS])

    def activations(
        self,
        owner: Owner,
        version: str,
        anchors: Mapping[str, float],
        as_of: datetime,
        hidden: Collection[str] = (),
        uses: Mapping[str, Use] = UNUSED,
    ) -> dict[str, float]:
        """One statement; what it costs is in docs/benchmarks.md."""
        asked = ripple.parameters(_uid(owner, checks.version(version), ""), anchors, as_of, hidden, uses)
        return self._read(lambda tx: dict(tx.run(ripple.ACTIVATIONS, asked).single(strict=True)["active"]))

    def count(self) -> tuple[int, int]:
        def ask(tx: neo4j.ManagedTransaction) -> tuple[int, int]:
            nodes = [tx.run(f"MATCH (n:{label}) RETURN count(n) AS n").single(strict=True)["n"] for label in LABELS]
            edges = [tx.run(f"MATCH ()-[r:{t}]->() RETURN count(r) AS n").single(strict=True)["n"] for t in KINDS]
            return sum(map(int, nodes)), sum(map(int, edges))

        return self._read(ask)

    def close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            connected.close()

    def _write(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """One query in a managed write transaction of its own; its records."""
        return self._ask(
            WRITE_RETRY_SECONDS,
            lambda session: session.execute_write(lambda tx: tx.run(query, parameters).data()),
        )

    def _read(self, work: Callable[[neo4j.ManagedTransaction], T]) -> T:
        """The work in one managed read transaction."""
        return self._ask(READ_RETRY_SECONDS, lambda session: session.execute_read(work))

    def _ask(self, retry_seconds: float, work: Callable[[neo4j.Session], T]) -> T:
        """The work's result; the driver's errors leave as the library's, without their texts."""
        import neo4j
        from neo4j import exceptions

        # the driver takes a web address for another protocol of its own
        if not self._url.startswith(("bolt", "neo4j")):
            raise SettingError(f"{SETTING} is no URL of a Bolt server")
        try:
            if self._connected is None:
                url = self._url
                trust: dict[str, Any] = {}
                if self._ca_file and "+s://" in url:  # the driver takes an authority with a plain scheme alone
                    url = url.replace("+s://", "://")
                    authority = neo4j.TrustCustomCAs(tls.authority(self._ca_file))
                    trust = {"encrypted": True, "trusted_certificates": authority}
                self._connected = neo4j.GraphDatabase.driver(
                    url,
                    auth=self._auth,
                    connection_timeout=CONNECT_SECONDS,
                    connection_acquisition_timeout=2 * CONNECT_SECONDS,
                    notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
                    **trust,
                )
            with self._connected.session(database=self._database, max_transaction_retry_time=retry_seconds) as session:
                return work(session)
        except exceptions.AuthError:
            raise SettingError("the graph store refuses MEMORY_PIPELINES_NEO4J_USER and ..._PASSWORD") from None
        except (exceptions.ConfigurationError, ValueError):
            raise SettingError(f"{SETTING} is no URL of a Bolt server") from None
        except exceptions.Neo4jError as error:
            if error.code == "Neo.ClientError.Database.DatabaseNotFound":
                raise SettingError("the graph store has no database MEMORY_PIPELINES_NEO4J_DATABASE") from None
            if error.is_retryable():
                raise StoreUnavailableError("graph", SETTING, str(error.code)) from None
            raise PermanentError(f"the graph store refuses a request ({error.code})") from None
        except exceptions.DriverError as error:
            if refused := tls.distrusted("graph", error):
                raise refused from None
            raise StoreUnavailableError("graph", SETTING, type(error).__name__) from None


def _written(session: neo4j.Session, batches: Sequence[tuple[str, list[dict[str, Any]]]]) -> None:
    """The queries, each over its rows, in one managed write transaction."""

    def work(tx: neo4j.ManagedTransaction) -> None:
        for query, rows in batches:
            tx.run(query, rows=rows).consume()

    session.execute_write(work)


def _node(node_id: str, kind: str, label: str, weight: float, at: int | None) -> GraphNode:
    occurred_at = None if at is None else EPOCH + timedelta(microseconds=at)
    return GraphNode(node_id, kind, label, float(weight), occurred_at)


def _node_row(graph: Graph, node: GraphNode) -> dict[str, Any]:
    at = node.occurred_at
    return {
        "uid": _uid(graph.owner, graph.version, node.node_id),
        "owner": graph.owner.key,
        "tenant": graph.owner.tenant,
        "version": graph.version,
        "node_id": node.node_id,
        "kind": node.kind,
        "label": node.label,
        "weight": float(node.weight),
        "occurred_at": None if at is None else micros(at),
    }


def _edge_row(graph: Graph, edge: GraphEdge) -> dict[str, Any]:
    source, target = (_uid(graph.owner, graph.version, end) for end in (edge.source, edge.target))
    return {"source": source, "target": target, "weight": float(edge.weight)}


def _uid(owner: Owner, version: str, node_id: str) -> str:
    return f"{owner.key}:{version}:{node_id}"


def _label(node: GraphNode) -> str:
    return "Entity" if node.kind == checks.ENTITY else "Memory"


def _batches(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]
