"""The one clock. Nothing else in the library asks what time it is.

Event time is the log's; ``as_of`` is an argument. A clock is only for *admitted at*, for ledgers
and for a recall to which no ``as_of`` was given.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Says what time it is, as an aware UTC datetime."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True)
class FixedClock:
    """Always the same instant: tests and replays."""

    instant: datetime

    def now(self) -> datetime:
        return self.instant
