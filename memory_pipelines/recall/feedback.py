"""What becomes of recalled memories: used, brought up, denied, corrected; and what is hidden at once because of it.

Belongs here: what agents tell of memories, and what the person's next turn tells by rules (``denial``). Does not belong
here: what uses count for (``lifecycle``, ``quality``), reading (``reader``). The ledger is written first, then the hot
store's copy of the person.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from memory_pipelines.clock import Clock
from memory_pipelines.errors import InputError, StoreUnavailableError
from memory_pipelines.model import Owner, Role, known_subject
from memory_pipelines.recall.answer import Answer
from memory_pipelines.recall.buffer import Buffers
from memory_pipelines.recall.denial import Heard, heard
from memory_pipelines.recall.person import Subjects
from memory_pipelines.recall.ripple import Path
from memory_pipelines.recall.snapshot import dump_person
from memory_pipelines.recall.source import PERSON, TTL_SECONDS
from memory_pipelines.stores.authority import AccessKind, StoredMemory
from memory_pipelines.stores.base import HotStore
from memory_pipelines.stores.session import FeedbackLedger, NotedTurn

SUPPRESSED = timedelta(days=30)
RECENT = timedelta(minutes=30)
"""How long after an answer a turn may be about it."""
TOLD_LATELY = "told"
"""Ids of the last answer's memories, in the hot store."""
HIDES = (AccessKind.NEGATED, AccessKind.CORRECTED)
TOLD = (AccessKind.ECHO, *HIDES)
"""What an agent may tell of a memory."""


class Feedback:
    """Writes the ledger of uses. Safe to share between threads if the stores are."""

    def __init__(
        self, ledger: FeedbackLedger, hot: HotStore, subjects: Subjects, buffers: Buffers, clock: Clock
    ) -> None:
        self._ledger = ledger
        self._hot = hot
        self._subjects = subjects
        self._buffers = buffers
        self._clock = clock

    def used(self, answer: Answer) -> None:
        """Every item of the answer was presented at its ``as_of``; those that a ripple reached were activated."""
        presented = [item.memory for item in answer.items]
        activated = [item.memory for item in answer.items if any(map(_spread, item.reasons.paths))]
        self._record(presented, AccessKind.PRESENTED, answer.as_of)
        self._record(activated, AccessKind.ACTIVATED, answer.as_of)
        for owner in dict.fromkeys(memory.owner for memory in presented):
            self._put(owner, TOLD_LATELY, json.dumps([m.memory_id for m in presented if m.owner == owner]).encode())

    def tell(self, kind: AccessKind, memory_ids: Sequence[str], *, tenant: str, subject: str) -> None:
        """The person brought memories up (``ECHO``), denied (``NEGATED``) or corrected them. What was denied or
        corrected is in no answer from now on, with all that shares a turn with it, for 30 days.

        ``memory_ids``: as an answer names them, also of what was just noted. Raises InputError on an id that is none of
        the person's, StoreUnavailableError; then nothing is told."""
        at, owner = self._clock.now(), Owner(tenant, known_subject(subject))
        if kind not in TOLD:
            raise InputError(f"an agent tells {', '.join(TOLD)}")
        memories = self._found(owner, memory_ids, at)
        if missing := set(memory_ids) - {memory.memory_id for memory in memories}:
            raise InputError(f"{len(missing)} of the memories are none of this person's")
        self._tell(kind, memories, at)

    def heard(self, turns: Iterable[NotedTurn]) -> Heard:
        """Judge what the person said against what was presented in the half hour before each turn: denials and echoes
        are noted as if an agent had told them, at the turn's time. Raises StoreUnavailableError."""
        denied: set[str] = set()
        echoed: set[str] = set()
        for turn in turns:
            if turn.role != Role.USER:
                continue
            presented = self._ledger.presented(
                self._subjects.of(turn.owner, set()), turn.occurred_at - RECENT, turn.occurred_at
            )
            used = self._used(presented, turn) if presented else []
            verdict = heard(turn.text, used)
            self._tell(AccessKind.NEGATED, [m for m in used if m.memory_id in verdict.denied], turn.occurred_at)
            self._tell(AccessKind.ECHO, [m for m in used if m.memory_id in verdict.echoed], turn.occurred_at)
            denied |= {*verdict.denied}
            echoed |= {*verdict.echoed}
        return Heard(tuple(sorted(denied)), tuple(sorted(echoed - denied)))

    def _used(self, presented: Mapping[Owner, frozenset[str]], turn: NotedTurn) -> list[StoredMemory]:
        """The memories and noted turns behind what was presented, but for the turn itself; where the hot store has the
        last answer's ids, no others that share a turn with them."""
        found: list[StoredMemory] = []
        buffer = self._buffers.read(list(presented), turn.occurred_at, set())
        for owner, turns in presented.items():
            rows = () if buffer is None else buffer.rows
            noted = [row for row in rows if row.owner == owner and (turns - {turn.turn_id}) & {*row.source_turn_ids}]
            held = [*self._ledger.holding(owner, turns), *noted]
            lately = self._lately(owner)
            found += [memory for memory in held if memory.memory_id in lately] or held
        return found

    def _lately(self, owner: Owner) -> frozenset[str]:
        try:
            return frozenset(json.loads(self._hot.get(owner, TOLD_LATELY) or b"[]"))
        except (StoreUnavailableError, ValueError, TypeError):
            return frozenset()

    def _found(self, owner: Owner, memory_ids: Sequence[str], at: datetime) -> list[StoredMemory]:
        missing: set[str] = set()
        owners = self._subjects.of(owner, missing)
        if missing:
            raise StoreUnavailableError("relational", "MEMORY_PIPELINES_POSTGRES_URL", "no links")
        buffer = self._buffers.read(owners, at, missing)
        noted = [] if buffer is None else [row for row in buffer.rows if row.memory_id in memory_ids]
        return [*self._ledger.shown(owners, memory_ids), *noted]

    def _tell(self, kind: AccessKind, memories: Sequence[StoredMemory], at: datetime) -> None:
        self._record(memories, kind, at, None if kind not in HIDES else at + SUPPRESSED)
        if kind in HIDES:
            for owner in dict.fromkeys(memory.owner for memory in memories):
                self._copy(owner)

    def _record(
        self, memories: Sequence[StoredMemory], kind: AccessKind, at: datetime, until: datetime | None = None
    ) -> None:
        turns: dict[Owner, set[str]] = {}
        for memory in memories:
            turns.setdefault(memory.owner, set()).update(memory.source_turn_ids)
        for owner, ids in turns.items():
            self._ledger.tell(owner, ids, kind, at, until)

    def _copy(self, owner: Owner) -> None:
        """Where the authority is out of reach the copy says what is suppressed."""
        self._put(owner, PERSON, dump_person(self._ledger.person(owner)), TTL_SECONDS)

    def _put(self, owner: Owner, name: str, value: bytes, seconds: int = RECENT // timedelta(seconds=1)) -> None:
        """A copy; without the hot store there is none, and the ledger answers."""
        with suppress(StoreUnavailableError):
            self._hot.put(owner, name, value, seconds)


def _spread(path: Path) -> bool:
    """Whether a path leads to its end from another memory, not from itself."""
    return bool(path.hops)
