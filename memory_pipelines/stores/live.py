"""Which vector collection is live: one transaction switches readers and publishers from one embedding model to another.

Belongs here: the rows of ``collections``, and a vector store that follows them. Does not belong here: filling a new
collection (``pipeline.reembed``), a server (``vectors``).

The switch is made while the caller holds every bucket, so a publisher that holds one works on one collection from
its first look to its commit. A reader asks for model and collection together, as ``pair`` gives them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from memory_pipelines.errors import MemoryPipelinesError, PermanentError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.models.base import Embedder
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import VectorCollection
from memory_pipelines.stores.base import Hit, Vector, VectorRow, VectorStore
from memory_pipelines.stores.statements import reading, translated

LIVE, BUILDING, FORMER = "live", "building", "former"
SETTING = "MEMORY_PIPELINES_EMBEDDER"

_TABLE = schema.collections


_IN_STATE = (
    sa.select(*(_TABLE.c[name] for name in VectorCollection.__dataclass_fields__), _TABLE.c.since)
    .where(_TABLE.c.state == sa.bindparam("as"))
    .order_by(_TABLE.c.collection)
)


class CollectionRegister:
    """The rows of ``collections``. Raises StoreUnavailableError where the database does not answer."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._reading = reading(engine)

    def live(self) -> VectorCollection | None:
        """The collection that is read; None before the first one."""
        found = self._in(LIVE)
        return found[0][0] if found else None

    def former(self) -> list[tuple[VectorCollection, datetime]]:
        """Collections that nobody starts to read any more, and since when."""
        return self._in(FORMER)

    def adopt(self, first: VectorCollection, at: datetime) -> VectorCollection:
        """Make the collection live unless one is; returns the live one."""
        with translated(), self._engine.begin() as connection:
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            row = asdict(first) | {"state": LIVE, "since": at}
            connection.execute(dialect.insert(_TABLE).values(row).on_conflict_do_nothing())
        live = self.live()
        assert live is not None, "adopted"
        return live

    def begin(self, fresh: VectorCollection, at: datetime) -> None:
        """Note that a collection is being built; one that was former is built anew."""
        with translated(), self._engine.begin() as connection:
            connection.execute(_TABLE.delete().where(_TABLE.c.collection == fresh.collection, _TABLE.c.state != LIVE))
            connection.execute(_TABLE.insert().values(**asdict(fresh), state=BUILDING, since=at))

    def switch(self, collection: str, at: datetime) -> None:
        """Make the collection that was built the live one. The caller holds every bucket.

        Raises PermanentError if it is not being built."""
        with translated(), self._engine.begin() as connection:
            connection.execute(_TABLE.update().where(_TABLE.c.state == LIVE).values(state=FORMER, since=at))
            built = (_TABLE.c.collection == collection, _TABLE.c.state == BUILDING)
            if connection.execute(_TABLE.update().where(*built).values(state=LIVE, since=at)).rowcount != 1:
                raise PermanentError(f"collection {collection} is not being built")

    def forget(self, collection: str) -> None:
        """Forget a collection that is not live."""
        with translated(), self._engine.begin() as connection:
            connection.execute(_TABLE.delete().where(_TABLE.c.collection == collection, _TABLE.c.state != LIVE))

    def _in(self, state: str) -> list[tuple[VectorCollection, datetime]]:
        with translated(), self._reading.connect() as connection:
            return [(VectorCollection(*row[:-1]), row[-1]) for row in connection.execute(_IN_STATE, {"as": state})]


class LiveVectors:
    """The live collection as a ``VectorStore``, asked for anew with each call; others are opened by name.

    ``wanted``: the collection of the settings' model, which becomes the first one; ``load``: a setting's model."""

    def __init__(
        self,
        register: CollectionRegister,
        open_collection: Callable[[str], VectorStore],
        load: Callable[[str], Embedder],
        wanted: Callable[[], VectorCollection],
        now: Callable[[], datetime],
    ) -> None:
        self._register = register
        self._open_collection = open_collection
        self._load = load
        self._wanted = wanted
        self._now = now
        self.capabilities: frozenset[str] = frozenset()
        self._last: VectorCollection | None = None
        self._opened: dict[str, VectorStore] = {}
        self._models: dict[str, Embedder] = {}

    def pair(
        self,
        live: VectorCollection | None = None,
        ask: Callable[[Callable[[], VectorCollection]], VectorCollection] = lambda found: found(),
    ) -> tuple[Embedder, VectorStore]:
        """The model of the live collection, and the collection. ``live``: as it was just read (None: the register is
        asked); ``ask``: runs the reading of the register; where that does not answer, what was live when it last did.

        Raises StoreUnavailableError where that model cannot be loaded: until the collection is embedded anew,
        nothing can be searched in it."""
        try:
            found = self._last = ask(self._found) if live is None else live
        except StoreUnavailableError:
            if self._last is None:
                raise
            found = self._last
        model = self._models.get(found.model_id)
        if model is None:
            try:
                model = self._load(found.embedder)
            except MemoryPipelinesError as error:
                raise StoreUnavailableError("vector", SETTING, f"its model {found.model_id}: {error}") from None
            if model.model_id != found.model_id:
                raise StoreUnavailableError("vector", SETTING, f"its model {found.model_id} is not there any more")
            self._models[found.model_id] = model
        return model, self.opened(found)

    def opened(self, collection: VectorCollection) -> VectorStore:
        """A collection, which is made if need be."""
        store = self._opened.get(collection.collection)
        if store is None:
            store = self._open_collection(collection.collection)
            store.ensure(collection.dimension)
            self._opened[collection.collection] = store
        return store

    def dropped(self, collection: VectorCollection) -> None:
        """Remove a collection that is not live any more."""
        self.opened(collection).drop()
        self._opened.pop(collection.collection).close()
        self._register.forget(collection.collection)

    def current(self) -> VectorStore:
        """The live collection itself."""
        store = self.opened(self._found())
        self.capabilities = store.capabilities
        return store

    def ensure(self, dimension: int) -> None:
        self.current().ensure(dimension)

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        self.current().upsert(rows)

    def delete(self, entry_ids: Collection[str]) -> None:
        self.current().delete(entry_ids)

    def search(self, owner: Owner, vector: Vector, limit: int, language: str | None = None) -> list[Hit]:
        return self.current().search(owner, vector, limit, language)

    def fetch(self, entry_ids: Collection[str]) -> dict[str, Vector]:
        return self.current().fetch(entry_ids)

    def entry_ids(self, owner: Owner) -> set[str]:
        return self.current().entry_ids(owner)

    def count(self) -> int:
        return self.current().count()

    def entries(self) -> Iterator[tuple[str, str]]:
        return self.current().entries()

    def drop(self) -> None:
        self.current().drop()
        self._opened.clear()

    def close(self) -> None:
        opened, self._opened = self._opened, {}
        for store in opened.values():
            store.close()

    def _found(self) -> VectorCollection:
        return self._register.live() or self._register.adopt(self._wanted(), self._now())
