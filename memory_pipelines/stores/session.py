"""Ports of the session layer: what was just said, who logged in, what became of recalled memories.

Belongs here: the journal's row and what is asked of it, of logins and of the ledger of uses. Does not belong here:
tables (``journal``, ``links``, ``feedback``), or what is done with a noted turn (``recall``, ``landing.journal``).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memory_pipelines.model import Owner
from memory_pipelines.stores.authority import AccessKind, Person, StoredMemory


@dataclass(frozen=True, slots=True)
class NotedTurn:
    """One turn as noted: cleaned, with tokens for sensitive values. Times are aware UTC.

    ``owner``: whose buffer it is in, the subject that the turn names (``subject``), else the one that was talked to;
    ``turn_id`` and ``content_hash`` are those that the same row of a log gets; ``vector_clock`` is JSON.
    ``position`` counts up over the journal (0: not written yet); ``known``: a published slice holds the turn.
    """

    owner: Owner
    turn_id: str
    conversation_id: str
    session_id: str | None
    subject: str | None
    role: str
    occurred_at: datetime
    text: str
    origin: str | None
    edited_at: datetime | None
    vector_clock: str | None
    content_hash: str
    position: int = 0
    known: bool = False


@dataclass(frozen=True, slots=True)
class MarkedTurns:
    """Turns of one owner in event-time order, and the mark that they have; no turns: an empty one."""

    mark: str
    turns: list[NotedTurn]


class Journal(Protocol):
    """What was noted, in the order in which it was written; rows are only added until they are landed and old."""

    def append(self, turns: Sequence[NotedTurn], at: datetime) -> int:
        """Write turns, all or none; returns how many are new. The same content of a turn is written once, and
        nothing of an erased person from before the erasure."""
        ...

    def marks(self, owners: Collection[Owner], as_of: datetime) -> dict[Owner, str]:
        """A text by owner that changes whenever ``latest`` would answer otherwise; owners without a turn are left out.

        ``as_of``: suppressions that ended by then do not count."""
        ...

    def latest(self, owner: Owner, most: int, as_of: datetime) -> MarkedTurns:
        """The owner's latest turns that are not suppressed, and the mark of all of them, as of one moment."""
        ...

    def end(self) -> int:
        """A position up to which every row is committed: none appears below it later. 0 while there is no row."""
        ...

    def rows(self, after: int, end: int) -> Iterator[NotedTurn]:
        """The rows with positions in (after, end], in order."""
        ...

    def trim(self, end: int, before: datetime) -> int:
        """Remove rows up to a position that occurred before an instant; returns how many."""
        ...


class Logins(Protocol):
    """Who logs in where. Every call is one write; repeated, it changes nothing."""

    def link(self, device: Owner, user: Owner, at: datetime) -> None: ...
    def unlink(self, device: Owner, user: Owner, at: datetime) -> None: ...


class FeedbackLedger(Protocol):
    """What became of recalled memories, by turn ids: whatever shares a turn inherits it."""

    def tell(
        self, owner: Owner, turn_ids: Collection[str], kind: AccessKind, at: datetime, until: datetime | None = None
    ) -> None:
        """Note a use of memories with these turns; with ``until`` also that those of them that are the owner's own are
        suppressed so long. One write; the same again changes nothing."""
        ...

    def presented(self, owners: Collection[Owner], since: datetime, until: datetime) -> dict[Owner, frozenset[str]]:
        """The turns of what was presented in [since, until]; owners without any are left out."""
        ...

    def holding(self, owner: Owner, turn_ids: Collection[str]) -> list[StoredMemory]:
        """The owner's visible memories with any of these turns."""
        ...

    def shown(self, owners: Collection[Owner], memory_ids: Collection[str]) -> list[StoredMemory]:
        """Those of the memories that are visible, and one of the owners'."""
        ...

    def person(self, owner: Owner) -> Person: ...
