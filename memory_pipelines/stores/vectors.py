"""The vector store: Milvus 2.3 or later, or the embedded milvus-lite server, through pymilvus.

Belongs here: the collection's schema, filters, batches and the driver's errors. Does not belong
here: embedding, or fusing hits with other legs. A vector carries ids and times, no text.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from memory_pipelines.errors import IntegrityError, PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner, micros, stable_hash
from memory_pipelines.stores import checks, tls
from memory_pipelines.stores.base import Hit, Vector, VectorRow

BATCH = 1000
UNFLUSHED_MOST = 500
"""milvus-lite scans unflushed rows in Python: 10,000 of them made a search 350 ms, flushed 9 ms."""
MOST_ROWS = 16_384
"""What Milvus returns at most for one search or query."""
PARTITIONS = 16
SETTING = "MEMORY_PIPELINES_MILVUS_URL"
READ_SECONDS = 10.0
"""Of what recall waits for; it has deadlines of its own besides."""
JOB_SECONDS = 60.0
"""Of what only jobs wait for. A server that had just taken a million vectors in did not answer within READ_SECONDS."""
LITE = "milvus_lite"
NOT_LOADED = 101
UNAVAILABLE = (1, 2, 3, 4, 5, 8, 9)
"""Milvus's codes for: not ready, unreachable, memory, requests, internal, rate limit, write denied."""
REFUSED = (16, 1800)

T = TypeVar("T")

CHANNEL = {
    "grpc.keepalive_time_ms": 300_000,
    "grpc.use_local_subchannel_pool": 1,
}
"""A server breaks off a connection that is pinged more often than every 5 minutes, as the driver would; and one that
is shared with other clients of the process would wait in gRPC's back-off after a restart of the server."""
BREADTH, MOST_EF = 4, 32_768
"""Neighbours looked at for each that is asked for: of one person's 400 nearest among 6,000, once as many miss 6 %, four
times as many .1 %. Recall computes with all of them, so what is missing changes more than the last places."""


class MilvusVectors:
    """One collection of one embedding model: HNSW (M 16, efConstruction 100, ef four times the limit) over cosines.

    Connects on first use; ``capabilities`` is empty until then. Reads are strongly consistent: a
    search sees every earlier write. A collection that does not exist is empty to readers. Owner and
    tenant are stored as hashes.
    """

    def __init__(self, url: str, token: str = "", collection: str = "memories", ca_file: str = "") -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,254}", collection):
            raise SettingError("a vector collection is named by letters, digits and underscores")
        self._url = url
        self._token = token
        self._ca_file = ca_file
        self._collection = collection
        self.capabilities: frozenset[str] = frozenset()
        self._lite = False
        self._unflushed = 0
        self._client: Any = None
        self._dimension: int | None = None

    def ensure(self, dimension: int) -> None:
        if self._known_dimension() is None:
            try:
                self._ask(lambda client: self._create(client, dimension))
            except PermanentError:
                # another process may have created it in the meantime
                if self._known_dimension() is None:
                    raise
        found = self._known_dimension()
        if found != dimension:
            raise IntegrityError(f"collection {self._collection} has dimension {found}, not {dimension}")

    def _create(self, client: Any, dimension: int) -> None:
        from pymilvus import DataType

        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("entry_id", DataType.VARCHAR, is_primary=True, max_length=96)
        schema.add_field("owner", DataType.VARCHAR, max_length=32, is_partition_key=True)
        schema.add_field("tenant", DataType.VARCHAR, max_length=32)
        schema.add_field("language", DataType.VARCHAR, max_length=16)
        schema.add_field("occurred_at", DataType.INT64)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
        index = client.prepare_index_params()
        index.add_index("vector", index_type="HNSW", metric_type="COSINE", params={"M": 16, "efConstruction": 100})
        client.create_collection(
            self._collection,
            schema=schema,
            index_params=index,
            num_partitions=PARTITIONS,
            consistency_level="Strong",
            timeout=JOB_SECONDS,
        )

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        if not rows:
            return
        dimension = self._known_dimension()
        if dimension is None:
            raise IntegrityError(f"collection {self._collection} does not exist; call ensure first")
        good = list(checks.vector_rows(rows, dimension).values())
        for start in range(0, len(good), BATCH):
            data = [
                {
                    "entry_id": row.entry_id,
                    "owner": row.owner.key,
                    "tenant": _tenant(row.owner),
                    "language": row.language,
                    "occurred_at": micros(row.occurred_at),
                    "vector": checks.vector(row.vector, dimension),
                }
                for row in good[start : start + BATCH]
            ]
            write = _upsert if "upsert" in self.capabilities else _replace
            self._ask(partial(write, collection=self._collection, data=data))
        self._unflushed += len(good)
        if self._lite and self._unflushed >= UNFLUSHED_MOST:
            self._ask(lambda client: client.flush(self._collection, timeout=JOB_SECONDS))
            self._unflushed = 0

    def delete(self, entry_ids: Collection[str]) -> None:
        ids = checks.entry_ids(entry_ids)
        if not ids or self._known_dimension() is None:
            return
        for start in range(0, len(ids), BATCH):
            self._ask(partial(_delete, collection=self._collection, ids=ids[start : start + BATCH]))

    def search(self, owner: Owner, vector: Vector, limit: int, language: str | None = None) -> list[Hit]:
        dimension = self._known_dimension()
        if dimension is None or limit <= 0:
            return []
        query = checks.vector(vector, dimension)
        limit = min(limit, MOST_ROWS)
        found = self._ask(
            lambda client: client.search(
                self._collection,
                [query],
                anns_field="vector",
                filter=_of(owner) if language is None else f"{_of(owner)} and {_in(language)}",
                limit=limit,
                search_params={"metric_type": "COSINE", "params": {"ef": min(BREADTH * limit, MOST_EF)}},
                consistency_level="Strong",
                timeout=READ_SECONDS,
            )
        )
        hits = [Hit(str(hit.id), float(hit.distance)) for hit in found[0]]
        return sorted(hits, key=lambda hit: (-hit.score, hit.entry_id))

    def fetch(self, entry_ids: Collection[str]) -> dict[str, Vector]:
        ids = checks.entry_ids(entry_ids)
        if not ids or self._known_dimension() is None:
            return {}
        found: dict[str, Vector] = {}
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            for row in self._ask(partial(_fetch, collection=self._collection, ids=part)):
                found[str(row["entry_id"])] = np.asarray(row["vector"], dtype=np.float32)
        return found

    def entry_ids(self, owner: Owner) -> set[str]:
        if self._known_dimension() is None:
            return set()
        rows = self._ask(lambda client: self._query(client, _of(owner), "entry_id", limit=MOST_ROWS))
        if len(rows) < MOST_ROWS:
            return {str(row["entry_id"]) for row in rows}
        return {entry for (entry,) in self._ask(lambda client: self._iterate(client, _of(owner), ["entry_id"]))}

    def count(self) -> int:
        if self._known_dimension() is None:
            return 0
        return int(self._ask(lambda client: self._query(client, "", "count(*)"))[0]["count(*)"])

    def entries(self) -> Iterator[tuple[str, str]]:
        if self._known_dimension() is not None:
            rows = self._ask(lambda client: self._iterate(client, 'entry_id != ""', ["entry_id", "owner"]))
            yield from ((entry, owner) for entry, owner in rows)

    def drop(self) -> None:
        self._ask(lambda client: client.drop_collection(self._collection, timeout=JOB_SECONDS))
        self._dimension = None

    def beside(self, prefix: str) -> list["MilvusVectors"]:
        """The other collections of this server whose names begin with ``prefix``: those of former embedding models."""
        names = sorted(self._ask(lambda client: client.list_collections(timeout=READ_SECONDS)))
        others = [name for name in names if name.startswith(prefix) and name != self._collection]
        return [MilvusVectors(self._url, self._token, name, self._ca_file) for name in others]

    def close(self) -> None:
        client, self._client, self._dimension = self._client, None, None
        if client is not None:
            client.close()

    def _query(self, client: Any, condition: str, field: str, **options: int) -> Any:
        return client.query(
            self._collection,
            filter=condition,
            output_fields=[field],
            consistency_level="Strong",
            timeout=JOB_SECONDS,
            **options,
        )

    def _iterate(self, client: Any, condition: str, fields: list[str]) -> list[tuple[str, ...]]:
        """Fields of all rows under a condition; without the limit of a query, but several times as slow a row."""
        found: list[tuple[str, ...]] = []
        pages = client.query_iterator(
            self._collection,
            filter=condition,
            output_fields=fields,
            batch_size=BATCH,
            consistency_level="Strong",
            timeout=JOB_SECONDS,
        )
        while page := pages.next():
            found += [tuple(str(row[name]) for name in fields) for row in page]
        pages.close()
        return found

    def _known_dimension(self) -> int | None:
        """The collection's dimension, asked once a connection; None while it does not exist."""
        if self._dimension is None:
            self._dimension = self._ask(self._open)
        return self._dimension

    def _open(self, client: Any) -> int | None:
        if not client.has_collection(self._collection, timeout=READ_SECONDS):
            return None
        client.load_collection(self._collection, timeout=JOB_SECONDS)
        fields = client.describe_collection(self._collection, timeout=READ_SECONDS)["fields"]
        return next(int(field["params"]["dim"]) for field in fields if field["name"] == "vector")

    def _ask(self, request: Callable[[Any], T]) -> T:
        """The request's answer; the driver's errors leave as the library's.

        A broken connection is dropped, so that the next request makes a new one; a collection that
        a restarted server has not loaded is loaded, and the request repeated once.
        """
        import grpc  # type: ignore[import-untyped]
        from pymilvus import MilvusClient
        from pymilvus.exceptions import ConnectionConfigException, MilvusException

        for last in (False, True):
            try:
                if self._client is None:
                    trusted = self._ca_file and self._url.startswith("https://")
                    trust = {"server_pem_path": tls.authority(self._ca_file)} if trusted else {}
                    self._client = MilvusClient(
                        self._url,
                        token=self._token,
                        timeout=READ_SECONDS,
                        dedicated=True,
                        grpc_options=CHANNEL,
                        **trust,
                    )
                    version = str(self._client.get_server_version(timeout=READ_SECONDS))
                    self.capabilities = _capabilities(version)
                    self._lite = version.startswith(LITE)
                if last:
                    self._client.load_collection(self._collection, timeout=JOB_SECONDS)
                return request(self._client)
            except ConnectionConfigException:
                raise SettingError(f"{SETTING} is no URL of a Milvus server") from None
            except (MilvusException, grpc.RpcError) as error:
                code = getattr(error, "code", None)
                if code == NOT_LOADED and not last:
                    continue
                if code in REFUSED or tls.mentioned("unauthenticated", error):
                    raise SettingError("the vector store refuses MEMORY_PIPELINES_MILVUS_TOKEN") from None
                if isinstance(code, int) and code not in UNAVAILABLE:
                    raise PermanentError(f"the vector store refuses a request (Milvus code {code})") from None
                self.close()
                if refused := tls.distrusted("vector", error):
                    raise refused from None
                raise StoreUnavailableError("vector", SETTING, type(error).__name__) from None
        raise AssertionError("unreachable")


def _capabilities(version: str) -> frozenset[str]:
    """Sparse vectors by BM25 and hybrid search came with Milvus 2.5; milvus-lite has all.

    Until 2.3.10 an upsert chose the partition by another field than the partition key, and no search found the row."""
    if version.startswith(LITE):
        return frozenset({"sparse", "hybrid", "upsert"})
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", version)
    number = tuple(map(int, found.groups())) if found else (0, 0, 0)
    since = {"upsert": (2, 3, 10), "sparse": (2, 5, 0), "hybrid": (2, 5, 0)}
    return frozenset(name for name, first in since.items() if number >= first)


def _upsert(client: Any, collection: str, data: list[dict[str, Any]]) -> None:
    client.upsert(collection, data, timeout=JOB_SECONDS)


def _replace(client: Any, collection: str, data: list[dict[str, Any]]) -> None:
    """What an upsert is, in two requests: a reader in between misses the rows that are replaced."""
    _delete(client, collection, [row["entry_id"] for row in data])
    client.insert(collection, data, timeout=JOB_SECONDS)


def _delete(client: Any, collection: str, ids: list[str]) -> None:
    client.delete(collection, ids=ids, timeout=JOB_SECONDS)


def _fetch(client: Any, collection: str, ids: list[str]) -> Any:
    return client.get(
        collection, ids=ids, output_fields=["entry_id", "vector"], consistency_level="Strong", timeout=JOB_SECONDS
    )


def _tenant(owner: Owner) -> str:
    return stable_hash("tenant", owner.tenant)


def _of(owner: Owner) -> str:
    """Rows of one owner; both values are hex, so nothing can be injected."""
    return f'owner == "{owner.key}" and tenant == "{_tenant(owner)}"'


def _in(language: str) -> str:
    if not re.fullmatch(r"[A-Za-z-]{1,16}", language):
        raise IntegrityError("a language is named by letters and hyphens, 16 at most")
    return f'language == "{language}"'
