"""Ports of the one authority: which memories are visible, and where a person stands.

Belongs here: what readers ask of it, and the row types of the answers; how a memory was used. Does not belong here: the
stores that follow it (``base``), what is said between two recalls (``session``), a driver. Errors are as in ``base``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from memory_pipelines.model import Owner


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """One version of a memory as the authority shows it. Times are aware UTC; scores in [0, 1].

    ``entry_id`` = ``<memory_id>.<version>`` is the id under which vectors know it. ``text`` is empty
    for a cold memory (its ``summary`` is the one-line entry). ``valid_to`` is None while current.
    """

    memory_id: str
    version: str
    owner: Owner
    memory_type: str
    permanence: str
    term: str
    summary: str
    text: str
    language: str
    predicate: str
    value: str
    structured: str
    confidence: float
    trust: float
    score: float
    decision_impact: float
    intent: str
    entities: tuple[str, ...]
    slice_ids: tuple[str, ...]
    source_turn_ids: tuple[str, ...]
    stores: tuple[str, ...]
    occurred_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    admitted_at: datetime
    tier: str
    path: str
    model_set: str
    accessed_at: datetime | None = None
    """When it was last presented or brought up, as of the last night; None: never."""
    activations: int = 0
    """Disjoint 7-day windows in which it was presented five times or more, 2 at most."""

    @property
    def entry_id(self) -> str:
        return f"{self.memory_id}.{self.version}"


@dataclass(frozen=True, slots=True)
class Person:
    """Which state of a subject is published.

    ``epoch`` grows with every commit; ``graph_version`` names the visible graph (None: none yet);
    ``suppressed`` are memory ids that no leg may use; ``packed``: whether there is a pack of the epoch.
    """

    owner: Owner
    epoch: int
    graph_version: str | None
    suppressed: frozenset[str]
    packed: bool = False


@dataclass(frozen=True, slots=True)
class VectorCollection:
    """A collection and the model whose vectors it holds; ``embedder`` is the setting that names the model."""

    collection: str
    embedder: str
    model_id: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Head:
    """Where a person stands, as of one moment.

    ``persons``: the subject that was asked for, then the devices whose memories are theirs as well, by subject;
    ``marks``: of those with turns in the journal (``session.Journal.marks``); ``live``: the vector collection that is
    searched (None: there is none yet)."""

    persons: tuple[Person, ...]
    marks: Mapping[Owner, str] = field(default_factory=dict)
    live: VectorCollection | None = None


class Authority(Protocol):
    """Reads of the one authority: which version of which memory is visible."""

    def head(self, owner: Owner, as_of: datetime) -> Head:
        """All that a recall asks first. ``as_of``: suppressions of noted turns that ended by then do not count."""
        ...

    def person(self, owner: Owner) -> Person: ...
    def visible(self, owner: Owner) -> list[StoredMemory]:
        """All committed memories of the owner, newest ``occurred_at`` first."""
        ...


class Packs(Protocol):
    """Where the jobs keep the packs of persons, one a subject."""

    def get(self, owner: Owner, epoch: int) -> bytes | None:
        """The subject's pack, if it is of the epoch."""
        ...


class Links(Protocol):
    """Which subjects are one person, as it stands now: a link or its undoing acts on the next read."""

    def linked(self, owner: Owner) -> tuple[Owner, ...]:
        """The owner first, then the devices whose memories are theirs as well; all of one tenant."""
        ...

    def seen(self, device: Owner, user: Owner, at: datetime) -> None:
        """Note that a recall of the user could use the device's memories; the first time stands."""
        ...


class AccessKind(StrEnum):
    """What an agent did with a memory."""

    PRESENTED = "presented"
    """It was part of an answer's prompt."""
    ACTIVATED = "activated"
    """A ripple reached it; nobody need have seen it."""
    ECHO = "echo"
    """The person brought it up."""
    NEGATED = "negated"
    """The person denied it."""
    CORRECTED = "corrected"
    """The person said how it really is."""


@dataclass(frozen=True, slots=True)
class Use:
    """How a memory was used; as ``StoredMemory`` has it."""

    accessed_at: datetime | None = None
    activations: int = 0


NEVER = Use()
UNUSED: Mapping[str, Use] = MappingProxyType({})
