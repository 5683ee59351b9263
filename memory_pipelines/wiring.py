"""The composition root of the library: settings become stores, models and a recall.

Belongs here: which adapter serves which port. Does not belong here: what is done with them, where a store without a
URL is served (``endpoints``).
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from memory_pipelines.clock import Clock, SystemClock
from memory_pipelines.endpoints import with_endpoints
from memory_pipelines.errors import SettingError
from memory_pipelines.settings import PREFIX, Settings
from memory_pipelines.stores.authority import VectorCollection
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, Lake, Vector, VectorStore

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Engine

    from memory_pipelines.erasure.places import Stores
    from memory_pipelines.models.base import Embedder
    from memory_pipelines.recall import Feedback, Recall, Session
    from memory_pipelines.recall.buffer import Buffers
    from memory_pipelines.recall.guard import Guards
    from memory_pipelines.stores.accesses import AccessLog
    from memory_pipelines.stores.exclusion import Exclusion
    from memory_pipelines.stores.journal import TurnJournal
    from memory_pipelines.stores.keyring import KeyRing
    from memory_pipelines.stores.ledger import Ledger
    from memory_pipelines.stores.links import IdentityLinks
    from memory_pipelines.stores.live import CollectionRegister, LiveVectors
    from memory_pipelines.stores.packs import PackShelf
    from memory_pipelines.stores.publish import Publisher
    from memory_pipelines.stores.registry import ModelRegistry
    from memory_pipelines.stores.relational import PostgresAuthority
    from memory_pipelines.stores.tasks import TaskList

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
            if settings.ca_file and not options.get("AWS_ALLOW_HTTP") and not os.environ.get("SSL_CERT_FILE"):
                # Delta's client has no option for it
                raise SettingError(f"the lake trusts SSL_CERT_FILE: set it as well, to the file of {PREFIX}CA_FILE")
        return options

    @cached_property
    def engine(self) -> "Engine":
        """The relational store's connections."""
        from memory_pipelines.stores import database

        return database.connect(self.settings.postgres_url, ca_file=self.settings.ca_file)

    @cached_property
    def ledger(self) -> "Ledger":
        from memory_pipelines.stores import formats
        from memory_pipelines.stores.ledger import Ledger

        ledger = Ledger(self.engine)
        ledger.fix_buckets(self.settings.buckets)
        formats.fix(self.engine)
        return ledger

    @cached_property
    def authority(self) -> "PostgresAuthority":
        from memory_pipelines.stores.relational import PostgresAuthority

        return PostgresAuthority(self.engine, lambda: self.clock.now())

    @cached_property
    def accesses(self) -> "AccessLog":
        from memory_pipelines.stores.accesses import AccessLog

        return AccessLog(self.engine)

    @cached_property
    def packs(self) -> "PackShelf":
        from memory_pipelines.stores.packs import PackShelf

        return PackShelf(self.engine)

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

        return Stores(self.engine, self.lake, self.all_vectors, self.graph, self.hot, self.cold, self.exclusion)

    @cached_property
    def embedder(self) -> "Embedder":
        from memory_pipelines.models.embeddings import load_embedder

        return load_embedder(self.settings)

    @cached_property
    def vectors(self) -> VectorStore:
        """The live collection: that of the embedding model in use, also while another one is being built."""
        return self.live_vectors

    @cached_property
    def live_vectors(self) -> "LiveVectors":
        from memory_pipelines.stores.live import LiveVectors

        return LiveVectors(self.collections, self.collection, self.load_embedder, self.wanted, self.clock.now)

    @cached_property
    def collections(self) -> "CollectionRegister":
        from memory_pipelines.stores.live import CollectionRegister

        return CollectionRegister(self.engine)

    def wanted(self) -> VectorCollection:
        """The collection of the settings' embedding model, which is not live before it is built."""
        model = "".join(c if c.isalnum() else "_" for c in self.embedder.model_id)
        named = self.embedder.model_id, self.embedder.dimension
        return VectorCollection(f"{COLLECTIONS}{model}", self.settings.embedder, *named)

    def load_embedder(self, setting: str) -> "Embedder":
        """The embedding model that a setting names."""
        from memory_pipelines.models.embeddings import load_embedder

        wanted = self.settings.embedder
        return self.embedder if setting == wanted else load_embedder(replace(self.settings, embedder=setting))

    def collection(self, name: str) -> VectorStore:
        """A collection of the vector store by name."""
        from memory_pipelines.stores.vectors import MilvusVectors

        settings = self.settings
        return MilvusVectors(settings.milvus_url, settings.milvus_token, name, settings.ca_file)

    @cached_property
    def all_vectors(self) -> Sequence[VectorStore]:
        """Every collection, whoever's: also those of other models may hold a person."""
        from memory_pipelines.stores.live import LiveVectors
        from memory_pipelines.stores.vectors import MilvusVectors

        if not isinstance(self.vectors, LiveVectors):
            return (self.vectors,)
        live = self.vectors.current()
        return (live, *live.beside(COLLECTIONS)) if isinstance(live, MilvusVectors) else (live,)

    @cached_property
    def graph(self) -> GraphStore:
        from memory_pipelines.stores.graph import Neo4jGraph

        settings = self.settings
        user, password, database = settings.neo4j_user, settings.neo4j_password, settings.neo4j_database
        store = Neo4jGraph(settings.neo4j_url, user, password, database, settings.ca_file)
        store.ensure()
        return store

    @cached_property
    def hot(self) -> HotStore:
        from memory_pipelines.stores.hot import RedisHot

        return RedisHot(self.settings.redis_url, self.settings.ca_file)

    @cached_property
    def cold(self) -> ColdStore:
        store = self.bucket(self.settings.s3_bucket)
        store.ensure()
        return store

    def bucket(self, name: str) -> ColdStore:
        """A bucket of the cold store's server."""
        from memory_pipelines.stores.cold import S3Cold

        settings = self.settings
        keys = settings.s3_access_key, settings.s3_secret_key
        return S3Cold(settings.s3_url, name, *keys, settings.s3_region, settings.ca_file)

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
            lambda texts: self.encode([untagged(text) for text in texts]),
        )

    def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Passages as vectors for the live collection."""
        return list(self.searched()[0].encode(texts))

    def searched(self) -> tuple["Embedder", VectorStore]:
        """What a query is embedded by, and where its vector is looked for."""
        from memory_pipelines.stores.live import LiveVectors

        live = self.vectors
        return live.pair() if isinstance(live, LiveVectors) else (self.embedder, live)

    def _searched_online(self, live: VectorCollection | None) -> tuple["Embedder", VectorStore]:
        """The same while the relational store may not answer. ``live``: the live collection, where it was just read."""
        from memory_pipelines.stores.live import LiveVectors

        store = self.vectors
        return store.pair(live, self.guards.relational) if isinstance(store, LiveVectors) else (self.embedder, store)

    def clean(self, turns: "pa.Table") -> tuple["pa.Table", dict[str, int]]:
        """Step 1 of TURNS rows: readable text, noise dropped and counted by rule, tokens for sensitive fields; their
        values are in the key ring before the rows are written anywhere."""
        from memory_pipelines.slices.clean import clean_turns
        from memory_pipelines.slices.sensitive import hide_sensitive

        cleaned = clean_turns(turns)
        return hide_sensitive(cleaned.turns, self.keyring), cleaned.filtered

    @cached_property
    def journal(self) -> "TurnJournal":
        from memory_pipelines.stores.journal import TurnJournal

        return TurnJournal(self.engine)

    @cached_property
    def guards(self) -> "Guards":
        """What keeps a store that does not answer from holding up what agents ask and tell."""
        from memory_pipelines.recall.guard import Guards

        return Guards.of(self.settings, overdue=self._cut, opens=self._reconnect_graph)

    def _cut(self, thread: int) -> None:
        """Let go of the relational store's connection that a thread waits on."""
        from memory_pipelines.stores import leases

        if "engine" in self.__dict__:
            leases.cut(self.engine, thread)

    def _reconnect_graph(self) -> None:
        """Its driver waits without end: closing it lets go of what hangs."""
        if "graph" in self.__dict__:
            self.graph.close()

    @cached_property
    def buffers(self) -> "Buffers":
        from memory_pipelines.recall.buffer import Buffers

        guards = self.guards
        return Buffers(guards.relational.of(lambda: self.journal), guards.hot.of(lambda: self.hot))

    @cached_property
    def session(self) -> "Session":
        """What agents tell: turns as they are said, and logins."""
        from memory_pipelines.landing.journal import prepare
        from memory_pipelines.recall import Session

        relational = self.guards.relational
        return Session(
            relational.of(lambda: self.journal),
            relational.of(lambda: self.links),
            self.buffers,
            lambda turns, owner, at: prepare(turns, owner, at, self.clean),
            self.clock,
            self.feedback,
        )

    @cached_property
    def feedback(self) -> "Feedback":
        """What became of recalled memories."""
        from memory_pipelines.recall import Feedback
        from memory_pipelines.recall.person import Subjects
        from memory_pipelines.stores.feedback import UseLedger

        guards = self.guards
        uses = guards.relational.of(lambda: UseLedger(self.engine, self.authority))
        subjects = Subjects(guards.relational.of(lambda: self.links))
        return Feedback(uses, guards.hot.of(lambda: self.hot), subjects, self.buffers, self.clock)

    @cached_property
    def recall(self) -> "Recall":
        """Reads memories."""
        return self.reader()

    def reader(self, *, token_budget: int | None = None, packed: bool = True) -> "Recall":
        """A reader that has recalled nobody yet. Each store is opened by the first recall, and one that cannot be is
        missing in its answer. ``token_budget``: None is the setting's; ``packed``: whether it reads packs."""
        from memory_pipelines.recall import Recall

        guards = self.guards
        return Recall(
            guards.relational.of(lambda: self.authority),
            guards.vector.of(lambda: self.vectors),
            guards.graph.of(lambda: self.graph),
            guards.hot.of(lambda: self.hot),
            guards.cold.of(lambda: self.cold),
            self.embedder,
            self.clock,
            token_budget or self.settings.token_budget,
            links=guards.relational.of(lambda: self.links),
            vault=guards.relational.of(lambda: self.keyring),
            searched=self._searched_online,
            buffers=self.buffers,
            packs=guards.relational.of(lambda: self.packs) if packed else None,
            guard=guards.vector,
        )

    def close(self) -> None:
        """Close what was opened; embedded servers go on running. What is asked for afterwards is opened anew."""
        given = ("settings", "clock", "unfilled")
        built = {name: self.__dict__.pop(name) for name in list(self.__dict__) if name not in given}
        for store in (built.get("vectors"), *built.get("all_vectors", ()), *(built.get(n) for n in CLOSED)):
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
