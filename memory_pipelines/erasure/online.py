"""What the stores beside the lake and PostgreSQL hold of a person.

Belongs here: vectors, graphs, copies in the hot store, archived texts. Does not belong here: what of it
readers may see (PostgreSQL says so).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipelines.erasure.places import Stores, Target
from memory_pipelines.model import Owner
from memory_pipelines.stores.base import cold_key


def _whole(targets: Sequence[Target]) -> list[Target]:
    """Those of whom everything is looked for: these stores know no time of their entries."""
    return [target for target in targets if target.until is None]


def _counted(targets: Sequence[Target], numbers: Sequence[int]) -> dict[str, int]:
    return {target.key: n for target, n in zip(targets, numbers, strict=True) if n}


@dataclass(frozen=True)
class Vectors:
    """Entries of every collection."""

    name: str = "vectors"
    found_by: str = "owner"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        whole = _whole(targets)
        return _counted(whole, [sum(len(v.entry_ids(target.owner)) for v in stores.vectors) for target in whole])

    def delete(self, stores: Stores, target: Target) -> None:
        for collection in stores.vectors:
            collection.delete(collection.entry_ids(target.owner))


@dataclass(frozen=True)
class Graphs:
    """Versions of the person's graph; a version goes whole, with nodes and edges."""

    name: str = "graph"
    found_by: str = "owner"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        whole = _whole(targets)
        return _counted(whole, [len(stores.graph.versions(target.owner)) for target in whole])

    def delete(self, stores: Stores, target: Target) -> None:
        for version in sorted(stores.graph.versions(target.owner)):
            stores.graph.drop(target.owner, version)


@dataclass(frozen=True)
class HotValues:
    """Copies of rows and packs."""

    name: str = "hot"
    found_by: str = "owner in the key"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        whole = _whole(targets)
        return _counted(whole, [stores.hot.held(target.owner) for target in whole])

    def delete(self, stores: Stores, target: Target) -> None:
        stores.hot.wipe(target.owner)


@dataclass(frozen=True)
class ColdObjects:
    """Archived texts."""

    name: str = "cold"
    found_by: str = "owner in the key"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        whole = _whole(targets)
        return _counted(whole, [len(stores.cold.keys(cold_prefix(target.owner))) for target in whole])

    def delete(self, stores: Stores, target: Target) -> None:
        stores.cold.delete(stores.cold.keys(cold_prefix(target.owner)))


def cold_prefix(owner: Owner) -> str:
    """What the keys of all of an owner's objects begin with."""
    return cold_key(owner, "").removesuffix(".json.gz")
