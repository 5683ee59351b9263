"""The writing side of the online module: what was just said, and who logs in.

Belongs here: ``note`` and ``identify``. Does not belong here: what rows become (``prepare`` is passed in), or reading
(``reader``, ``buffer``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memory_pipelines.clock import Clock
from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Owner, known_subject
from memory_pipelines.recall.buffer import Buffers
from memory_pipelines.recall.denial import Heard
from memory_pipelines.recall.feedback import Feedback
from memory_pipelines.stores.session import Journal, Logins, NotedTurn

Row = Mapping[str, Any]


class Prepared(Protocol):
    """What rows became: turns to be noted, and how many were noise, by rule."""

    @property
    def turns(self) -> tuple[NotedTurn, ...]: ...
    @property
    def filtered(self) -> dict[str, int]: ...


Prepare = Callable[[Sequence[Row], Owner, datetime], Prepared]


@dataclass(frozen=True, slots=True)
class Noted:
    """What became of noted rows. ``turn_ids``: of those that were kept; ``new``: how many were not noted before (and
    are not of before an erasure); ``filtered``: noise by rule; ``missing``: stores whose copy is behind, or that did
    not tell what was presented; ``denied`` and ``echoed``: memories of the answers before, by what the person said."""

    turn_ids: tuple[str, ...]
    new: int
    filtered: Mapping[str, int]
    missing: tuple[str, ...]
    denied: tuple[str, ...] = ()
    echoed: tuple[str, ...] = ()


class Session:
    """Notes turns and logins. Safe to share between threads if the stores are."""

    def __init__(
        self,
        journal: Journal,
        logins: Logins,
        buffers: Buffers,
        prepare: Prepare,
        clock: Clock,
        feedback: Feedback | None = None,
    ) -> None:
        """``feedback``: judges what the person says against the answers before (None: nobody does)."""
        self._feedback = feedback
        self._journal = journal
        self._logins = logins
        self._buffers = buffers
        self._prepare = prepare
        self._clock = clock

    def note(self, turns: Sequence[Row], *, tenant: str, subject: str) -> Noted:
        """Keep what was just said in a dialogue with the subject; it can be recalled at once, until a memory holds it.

        ``turns``: rows as in a log (``role``, ``occurred_at``, ``text``; ``session_id``, ``origin``, ``turn_id`` and
        the others if there are). What the person says is judged against the answers of the half hour before: what it
        denies is hidden for 30 days. A call that failed may be repeated: a turn is noted once, and landed once, also
        beside the same row in a log. Raises InputError on a row that no log could hold or that names somebody else,
        StoreUnavailableError where the journal does not answer; then nothing is noted."""
        at, owner = self._clock.now(), Owner(tenant, known_subject(subject))
        prepared = self._prepare(turns, owner, at)
        new = self._journal.append(prepared.turns, at)
        missing: set[str] = set()
        heard = Heard()
        try:
            heard = Heard() if self._feedback is None else self._feedback.heard(prepared.turns)
            self._buffers.refresh(owner, at, missing)
        except StoreUnavailableError:  # it is written: the next recall reads it
            missing.add("relational")
        ids = tuple(turn.turn_id for turn in prepared.turns)
        return Noted(ids, new, prepared.filtered, tuple(sorted(missing)), heard.denied, heard.echoed)

    def identify(self, device: str, user: str, *, tenant: str) -> None:
        """The user (``u:...``) has logged in on the device (``d:...``): from the next recall on its memories, and what
        was just said on it, are theirs. Raises PermanentError on other subjects, StoreUnavailableError."""
        self._logins.link(Owner(tenant, device), Owner(tenant, user), self._clock.now())

    def part(self, device: str, user: str, *, tenant: str) -> None:
        """It was somebody else: as if the login had never been."""
        self._logins.unlink(Owner(tenant, device), Owner(tenant, user), self._clock.now())
