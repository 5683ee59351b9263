"""The records of one person: rows of the log, the truth, and what should become of each row.

Belongs here: collecting them. Does not belong here: what rows look like (``emit``), rows that are exported again
(``exports``), files (``write``).
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from memory_pipelines.sample.config import Config
from memory_pipelines.sample.people import Person
from memory_pipelines.sample.phrases import Phrases
from memory_pipelines.sample.rows import EXPECTED, Record


@dataclass
class Records:
    """Collects one person's records; whoever adds to them draws from ``rng``."""

    config: Config
    person: Person
    phrases: Phrases
    rng: Random
    records: list[Record] = field(default_factory=list)

    def truth(self, stream: str, row: dict[str, Any]) -> None:
        self.records.append(Record(self.person.tenant, stream, 0, {"tenant": self.person.tenant} | row))

    def expect(
        self, stream: str, row_id: str | None, at: int, expected: str, kind: str, subject: str | None = None
    ) -> None:
        """Say what should become of a row; ``row_id`` is None where the row is too broken to have one."""
        tenant = self.person.tenant
        row = {
            "tenant": tenant,
            "stream": stream,
            "row_id": row_id,
            "subject": subject or self.person.subject(at),
            "expected": expected,
            "kind": kind,
        }
        self.records.append(Record(tenant, EXPECTED, 0, row))

    def delay(self, record: int, arrived: int) -> bool:
        """Let a record reach the log later than it did; False where that is after the simulation."""
        known = self.records[record]
        if not known.arrived < arrived < self.config.end:
            return False
        self.records[record] = known._replace(arrived=arrived)
        return True
