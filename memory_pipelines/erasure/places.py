"""What a place is, and who is looked for in it.

Belongs here: the types that all places share. Does not belong here: any one place (``landed``, ``derived``,
``relational``, ``online``), or the list of them (``registry``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from memory_pipelines.model import Owner, day_of, stable_hash
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, Lake, VectorStore
from memory_pipelines.stores.exclusion import Exclusion


@dataclass(frozen=True)
class Stores:
    """All that may hold something of a person. ``vectors``: every collection, also of former embedding models."""

    engine: sa.Engine
    lake: Lake
    vectors: Sequence[VectorStore]
    graph: GraphStore
    hot: HotStore
    cold: ColdStore
    exclusion: Exclusion


class KnownByKey(Owner):
    """An owner whose name is forgotten: ``subject`` is the key itself. Equal to the owner of that key."""

    __slots__ = ()

    @property
    def key(self) -> str:
        return self.subject

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owner) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def turn_key(tenant: str, turn_id: str) -> str:
    """The hash by which the ledger knows a turn id."""
    return stable_hash(tenant, turn_id)


def row_key(tenant: str, turn_id: str, content_hash: str) -> str:
    """The hash of one version of a turn."""
    return stable_hash(tenant, turn_id, content_hash)


@dataclass(frozen=True)
class Trace:
    """What only the landed turns tell of a person: hashes, since the ledger keeps it until the turns are gone.

    ``rows``: the versions of turns that go; ``turns``: their turn ids, as far as no other row bears them;
    ``conversations``: those in which nobody else spoke; ``days``: on which a row goes; ``around``: all days
    whose exchanges may be cut otherwise without it; ``lines``: lines of their texts.
    """

    rows: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    conversations: frozenset[str] = frozenset()
    days: frozenset[str] = frozenset()
    around: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()

    def __or__(self, other: "Trace") -> "Trace":
        return Trace(*(getattr(self, f.name) | getattr(other, f.name) for f in fields(self)))

    def as_json(self) -> dict[str, list[str]]:
        return {f.name: sorted(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Sequence[str]]) -> "Trace":
        return cls(**{name: frozenset(items) for name, items in value.items()})


@dataclass(frozen=True)
class Target:
    """Somebody who is looked for: everything of theirs, or what happened before ``until``."""

    owner: Owner
    trace: Trace = field(default_factory=Trace)
    until: datetime | None = None

    @property
    def key(self) -> str:
        return self.owner.key

    def counts(self, at: datetime | str | None) -> bool:
        """Whether something of that time (an instant or a day; None: unknown) is looked for."""
        if self.until is None:
            return True
        if at is None:
            return False
        return at < day_of(self.until) if isinstance(at, str) else at < self.until


class Place(Protocol):
    """One place where something of a person may lie. Both methods read the store anew."""

    @property
    def name(self) -> str: ...

    @property
    def found_by(self) -> str:
        """How an owner is found there, for the plan."""
        ...

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        """Owner key → rows, entries or objects, of those who have any."""
        ...

    def delete(self, stores: Stores, target: Target) -> None:
        """Remove all of one person's; safe to repeat. Nothing of anybody else changes."""
        ...


def tally(keys: Iterable[str]) -> dict[str, int]:
    """How often each key occurs."""
    result: dict[str, int] = {}
    for key in keys:
        result[key] = result.get(key, 0) + 1
    return result
