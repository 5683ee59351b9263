"""What holds of one person, and since when: the truth about facts and memories.

Belongs here: values with their windows, the rows of ``truth/facts`` and ``truth/memories``. Does
not belong here: what is said (``memory_talk``, ``group_talk``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_pipelines.sample.config import DAY
from memory_pipelines.sample.emit import Log
from memory_pipelines.sample.rows import FACTS, MEMORIES, Said, stamp

PERMANENCE = {"meeting_time": "long", "pet": "long", "delivery_address": "long"}
"""Facts that are no preference, health or identity fact; all others are ``permanent``."""


@dataclass(slots=True)
class Held:
    """One value of a single-valued predicate, in event time."""

    predicate: str
    value: str
    said: Said
    until: int | None = None
    ended_by: str | None = None
    successor: Said | None = None


@dataclass
class Book:
    """The facts that ``user_id`` has stated about themself; written by ``log``."""

    log: Log
    user_id: str
    facts: list[Held] = field(default_factory=list)
    current: dict[str, Held] = field(default_factory=dict)

    def hold(self, predicate: str, value: str, said: Said, why: str = "change") -> None:
        """From that turn on the predicate has this value; the one before ends there."""
        before = self.current.get(predicate)
        if before is not None:
            before.until, before.ended_by, before.successor = said.at, why, said
            self._overtake(before.said, said)
        held = Held(predicate, value, said)
        self.facts.append(held)
        self.current[predicate] = held

    def _overtake(self, before: Said, said: Said) -> None:
        """Perhaps what was said before reaches the log only after what replaces it."""
        log = self.log
        if log.config.out_of_order and before.record != said.record and log.rng.random() < log.config.out_of_order:
            newer = log.records[said.record].arrived
            log.delay(before.record, newer + 3600 + int(40 * DAY * log.rng.random() ** 2))

    def _out_of_order(self, held: Held) -> bool:
        """Whether the statement reaches the log after the one that replaces it."""
        records, after = self.log.records, held.successor
        return after is not None and records[held.said.record].arrived > records[after.record].arrived

    def tell_truth(self) -> None:
        """Write every fact with its window, and the memory that should come of it."""
        for held in self.facts:
            said = held.said
            window = {
                "valid_from": stamp(said.at),
                "valid_to": None if held.until is None else stamp(held.until),
                "current": held.until is None,
            }
            ends = {"ended_by": held.ended_by, "out_of_order": self._out_of_order(held), "turn_id": said.row_id}
            claim = {"predicate": held.predicate, "value": held.value}
            self.log.truth(FACTS, {"subject": said.subject, "person": f"u:{self.user_id}"} | claim | window | ends)
            self.remember(
                [said], "semantic", PERMANENCE.get(held.predicate, "permanent"), held.predicate, held.value, held.until
            )

    def remember(
        self, said: Sequence[Said], kind: str, permanence: str, about: str, value: str | None, until: int | None = None
    ) -> None:
        """A memory that should exist, made from these turns of one subject."""
        self.log.truth(
            MEMORIES,
            {
                "subject": said[0].subject,
                "person": f"u:{self.user_id}",
                "type": kind,
                "permanence": permanence,
                "about": about,
                "value": value,
                "occurred_at": stamp(said[0].at),
                "valid_to": None if until is None else stamp(until),
                "turn_ids": [one.row_id for one in said],
            },
        )
