"""Another embedding model: its collection is built beside the live one, then takes its place at once.

Belongs here: the order of building, switching and dropping. Does not belong here: which collection is live
(``stores.live``), what a vector stands for (``projection``).

Recall and publishing go on with the live collection while the other is built. Only for the last look at what was
published meanwhile, and the switch, publishers wait; readers never do.
"""

from dataclasses import dataclass
from datetime import timedelta

from memory_pipelines.errors import IntegrityError
from memory_pipelines.models.base import Embedder
from memory_pipelines.pipeline.packs import pack_owners
from memory_pipelines.pipeline.rebuild import embed_into
from memory_pipelines.stores.base import VectorStore
from memory_pipelines.wiring import Platform

FORMER_KEPT = timedelta(minutes=10)
"""How long a former collection stays for those who began to search it."""


@dataclass(frozen=True)
class Reembedded:
    """``embedded``: vectors that were made; ``dropped``: former collections removed; ``collection``: the live one."""

    collection: str
    embedded: int
    dropped: int


def reembed(platform: Platform, former_kept: timedelta = FORMER_KEPT) -> Reembedded:
    """Make the settings' embedding model the live one. Killed, the next one goes on with what is embedded already.

    Nothing is embedded where that model is live; former collections are dropped in any case, once they are old
    enough. Raises IntegrityError if what was built is not what is visible."""
    wanted, register, live = platform.wanted(), platform.collections, platform.live_vectors
    register.adopt(wanted, platform.clock.now())  # where there is none yet
    embedded = 0
    now = register.live()
    if now is not None and now.collection != wanted.collection:
        register.begin(wanted, platform.clock.now())
        vectors, model = live.opened(wanted), platform.embedder
        embedded = _fill(platform, model, vectors)
        with platform.authority.publishing(*range(platform.settings.buckets)):
            for bucket in range(platform.settings.buckets):
                platform.publisher.recover(bucket)
            embedded += _fill(platform, model, vectors)
            if _held(vectors) != _shown(platform):
                raise IntegrityError(f"collection {wanted.collection} is not what is visible; it was not made live")
            register.switch(wanted.collection, platform.clock.now())
        with platform.exclusion.shared():
            pack_owners(platform)  # until then recall asks the collection
    return Reembedded(wanted.collection, embedded, drop_former(platform, former_kept))


def drop_former(platform: Platform, kept: timedelta = FORMER_KEPT) -> int:
    """Remove collections that have not been live for ``kept``; returns how many."""
    old = [c for c, since in platform.collections.former() if since <= platform.clock.now() - kept]
    for collection in old:
        platform.live_vectors.dropped(collection)
    return len(old)


def _fill(platform: Platform, model: Embedder, vectors: VectorStore) -> int:
    """Embed what is visible and not held, remove what is held and not visible. Safe beside an erasure."""
    with platform.exclusion.shared():
        held, shown = _held(vectors), _shown(platform)
        vectors.delete(held - shown)
        return embed_into(platform, model, vectors, shown - held)


def _held(vectors: VectorStore) -> set[str]:
    return {entry for entry, _ in vectors.entries()}


def _shown(platform: Platform) -> set[str]:
    return {entry for entries in platform.authority.routed("vector").values() for entry in entries}
