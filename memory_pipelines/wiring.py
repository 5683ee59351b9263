"""The composition root of the library: settings become stores, models and a recall.

Belongs here: which adapter serves which port. Does not belong here: what is done with them. A store
without a URL is served by its embedded server, which is started if need be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memory_pipelines.clock import Clock, SystemClock
from memory_pipelines.errors import MemoryPipelinesError, SettingError
from memory_pipelines.settings import PREFIX, Settings
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, Lake, VectorStore

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from memory_pipelines.erasure.places import Stores
    from memory_pipelines.models.base import Embedder
    from memory_pipelines.recall import Recall
    from memory_pipelines.stores.accesses import AccessLog
    from memory_pipelines.stores.exclusion import Exclusion
    from memory_pipelines.stores.keyring import KeyRing
    from memory_pipelines.stores.ledger import Ledger
    from memory_pipelines.stores.links import IdentityLinks
    from memory_pipelines.stores.publish import Publisher
    from memory_pipelines.stores.registry import ModelRegistry
    from memory_pipelines.stores.relational import PostgresAuthority
    from memory_pipelines.stores.tasks import TaskList

EMBEDDED = {
    "postgres": "postgres_url",
    "arcadedb": "neo4j_url",
    "milvus": "milvus_url",
    "valkey": "redis_url",
    "ministack": "s3_url",
}
"""Embedded server → the setting that names a real one instead."""
COLLECTIONS = "memories_"
"""What the names of vector collections begin with; the embedding model's id follows."""
CLOSED = ("graph", "hot", "cold")


@dataclass
class Platform:
    """Settings with everything built from them, each part on first use. Close it, or use it in a ``with``."""

    settings: Settings
    clock: Clock
    unfilled: Settings | None = None

    @property
    def given(self) -> Settings:
        """The settings as they were given, without what embedded servers filled in."""
        return self.settings if self.unfilled is None else self.unfilled

    @cached_property
    def lake(self) -> Lake:
        from memory_pipelines.stores.lake import DeltaLake

        return DeltaLake(self.settings.lake_location, self._lake_options())

    def _lake_options(self) -> dict[str, str]:
        settings = self.settings
        if not settings.lake_location.startswith("s3://"):
            return {}
        options = {
            "AWS_REGION": settings.s3_region,
            "aws_conditional_put": "etag",
        }
        if settings.s3_access_key:  # else the machine's own role
            options["AWS_ACCESS_KEY_ID"] = settings.s3_access_key
            options["AWS_SECRET_ACCESS_KEY"] = settings.s3_secret_key
        if settings.s3_url:
            options |= {"AWS_ENDPOINT_URL": settings.s3_url, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}
            options |= {"AWS_ALLOW_HTTP": "true"} if settings.s3_url.startswith("http://") else {}
        return options

    @cached_property
    def engine(self) -> "Engine":
        """The relational store's connections."""
        from memory_pipelines.stores import database

        return database.connect(self.settings.postgres_url)

    @cached_property
    def ledger(self) -> "Ledger":
        from memory_pipelines.stores.ledger import Ledger

        ledger = Ledger(self.engine)
        ledger.fix_buckets(self.settings.buckets)
        return ledger

    @cached_property
    def authority(self) -> "PostgresAuthority":
        from memory_pipelines.stores.relational import PostgresAuthority

        return PostgresAuthority(self.engine)

    @cached_property
    def accesses(self) -> "AccessLog":
        from memory_pipelines.stores.accesses import AccessLog

        return AccessLog(self.engine)

    @cached_property
    def links(self) -> "IdentityLinks":
        from memory_pipelines.stores.links import IdentityLinks

        return IdentityLinks(self.engine)

    @cached_property
    def keyring(self) -> "KeyRing":
        from memory_pipelines.stores.keyring import KeyRing
        from memory_pipelines.stores.masterkey import MasterKeySource

        return KeyRing(self.engine, MasterKeySource(self.settings))

    @cached_property
    def registry(self) -> "ModelRegistry":
        from memory_pipelines.stores.registry import ModelRegistry

        return ModelRegistry(self.engine)

    @cached_property
    def tasks(self) -> "TaskList":
        from memory_pipelines.stores.tasks import TaskList

        return TaskList(self.engine)

    @cached_property
    def exclusion(self) -> "Exclusion":
        from memory_pipelines.stores.exclusion import Exclusion

        return Exclusion(self.engine)

    @cached_property
    def erasure_stores(self) -> "Stores":
        from memory_pipelines.erasure.places import Stores

        vectors = [self.vectors, *self.former_vectors]
        return Stores(self.engine, self.lake, vectors, self.graph, self.hot, self.cold, self.exclusion)

    @cached_property
    def embedder(self) -> "Embedder":
        from memory_pipelines.models.embeddings import load_embedder

        return load_embedder(self.settings)

    @cached_property
    def vectors(self) -> VectorStore:
        """The collection of the embedding model in use."""
        from memory_pipelines.stores.vectors import MilvusVectors

        model = "".join(c if c.isalnum() else "_" for c in self.embedder.model_id)
        store = MilvusVectors(self.settings.milvus_url, self.settings.milvus_token, f"{COLLECTIONS}{model}")
        store.ensure(self.embedder.dimension)
        return store

    @cached_property
    def former_vectors(self) -> Sequence[VectorStore]:
        """The collections of other embedding models: they may still hold a person."""
        from memory_pipelines.stores.vectors import MilvusVectors

        return self.vectors.beside(COLLECTIONS) if isinstance(self.vectors, MilvusVectors) else ()

    @cached_property
    def graph(self) -> GraphStore:
        from memory_pipelines.stores.graph import Neo4jGraph

        settings = self.settings
        store = Neo4jGraph(settings.neo4j_url, settings.neo4j_user, settings.neo4j_password, settings.neo4j_database)
        store.ensure()
        return store

    @cached_property
    def hot(self) -> HotStore:
        from memory_pipelines.stores.hot import RedisHot

        return RedisHot(self.settings.redis_url)

    @cached_property
    def cold(self) -> ColdStore:
        from memory_pipelines.stores.cold import S3Cold

        settings = self.settings
        store = S3Cold(
            settings.s3_url, settings.s3_bucket, settings.s3_access_key, settings.s3_secret_key, settings.s3_region
        )
        store.ensure()
        return store

    @cached_property
    def publisher(self) -> "Publisher":
        from memory_pipelines.stores.publish import Publisher
        from memory_pipelines.stores.vault import untagged

        return Publisher(
            self.authority,
            self.vectors,
            self.graph,
            self.hot,
            self.cold,
            lambda texts: list(self.embedder.encode([untagged(text) for text in texts])),
        )

    @cached_property
    def recall(self) -> "Recall":
        from memory_pipelines.recall import Recall

        return Recall(
            self.authority,
            self.vectors,
            self.graph,
            self.hot,
            self.cold,
            self.embedder,
            self.clock,
            self.settings.token_budget,
            links=self.links,
            vault=self.keyring,
        )

    def close(self) -> None:
        """Close what was opened; embedded servers go on running. What is asked for afterwards is opened anew."""
        given = ("settings", "clock", "unfilled")
        built = {name: self.__dict__.pop(name) for name in list(self.__dict__) if name not in given}
        for store in (built.get("vectors"), *built.get("former_vectors", ()), *(built.get(n) for n in CLOSED)):
            if store is not None:
                store.close()
        if "engine" in built:
            built["engine"].dispose()

    def __enter__(self) -> "Platform":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def connect(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    progress: Callable[[str], None] | None = None,
) -> Platform:
    """A platform for ``settings`` (default: from the environment). Starts the embedded servers it needs.

    Raises SettingError where a server is neither named nor installed.
    """
    settings = Settings.load() if settings is None else settings
    return Platform(with_endpoints(settings, progress), clock or SystemClock(), unfilled=settings)


def with_endpoints(settings: Settings, progress: Callable[[str], None] | None = None) -> Settings:
    """The settings with every empty store URL filled in by an embedded server."""
    needed = [server for server, name in EMBEDDED.items() if not getattr(settings, name)]
    if not needed:
        return settings
    try:
        import memory_pipelines.local  # noqa: F401
    except ImportError:
        names = ", ".join(PREFIX + EMBEDDED[server].upper() for server in needed)
        raise SettingError(f"set {names}, or install memory-pipelines[local] for embedded servers") from None
    return replace(settings, **_found(settings, needed, progress))


def _found(settings: Settings, servers: list[str], progress: Callable[[str], None] | None) -> dict[str, Any]:
    """Where embedded servers answer, as settings; those that do not run are started."""
    from memory_pipelines import local

    found = local.up(settings.home_path, only=servers, progress=progress).settings()
    groups = tuple(EMBEDDED[server].removesuffix("url") for server in servers)
    return {name: value for name, value in found.items() if name.startswith(groups)}


def with_running(settings: Settings) -> Settings:
    """The settings with the URLs of those embedded servers that run now; none is started."""
    needed = [server for server, name in EMBEDDED.items() if not getattr(settings, name)]
    try:
        from memory_pipelines import local
    except ImportError:
        return settings
    running = [server.name for server in local.status(settings.home_path) if server.running and server.name in needed]
    return replace(settings, **_found(settings, running, None)) if running else settings


def ledger_engine(settings: Settings) -> "Engine | None":
    """The relational store, to read only, if it answers and holds a ledger; nothing is started or created."""
    from memory_pipelines.stores import database

    if not settings.postgres_url:
        return None
    try:
        return database.reader(settings.postgres_url)
    except MemoryPipelinesError:
        return None
