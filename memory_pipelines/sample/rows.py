"""What a log is made of: streams, verdicts, rows and turns.

Belongs here: the names and small types that every part of the simulator shares. Does not belong
here: making any of it.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from memory_pipelines.sample.config import DAY
from memory_pipelines.sample.personal import Planted

DIALOGUES = "dialogues"
ASSISTANT = "assistant"
BEHAVIOUR = "behaviour"
ARCHIVE = "archive"
EVENTS = "truth/events"
FACTS = "truth/facts"
EXPECTED = "truth/expected"
QUESTIONS = "truth/questions"
CAUSES = "truth/causes"
MEMORIES = "truth/memories"
IDENTITY = "truth/identity"
PERSONAL = "truth/personal"
EDITS = "truth/edits"

REMEMBER = "remember"
SHORT = "short"
FORGET = "forget"
FILTER = "filter"
QUARANTINE = "quarantine"
DUPLICATE = "duplicate"

BEHAVIOUR_COLUMNS = (
    "event_id", "user_id", "device_id", "kind", "occurred_at", "value", "dwell_seconds", "bounce", "reference",
)  # fmt: skip


class Record(NamedTuple):
    """One row of one stream. ``arrived`` (seconds since 1970) orders the files and names their month;
    ``row`` is a mapping, or text where the row itself is broken; truth has streams ``truth/...``."""

    tenant: str
    stream: str
    arrived: int
    row: dict[str, Any] | str


class Line(NamedTuple):
    """A turn to be said. ``expected`` and ``kind`` are empty for the other side's turns.

    ``planted`` is the personal value in it; ``guest`` the user id of a speaker who is not the person.
    """

    role: str
    text: str
    expected: str = ""
    kind: str = ""
    planted: Planted | None = None
    guest: str = ""


class Said(NamedTuple):
    """A written turn of the person's own."""

    row_id: str
    at: int
    line: Line
    subject: str
    record: int
    """Position of its record in the log, for what arrives later than it should."""


class Written(NamedTuple):
    """A row of a session as it was first written; ``record`` is its position in the log."""

    row_id: str
    at: int
    subject: str
    record: int


class Seat(NamedTuple):
    """Where a session is held: on which device, and whether the person has logged in there."""

    device: str
    logged_out: bool = False


@dataclass(slots=True)
class Order:
    """One order with the slots that its story is told with."""

    number: str
    value: float
    slots: dict[str, object]
    event_id: str
    at: int
    events: list["Event"] = field(default_factory=list)
    """What came of it so far, in order."""


@dataclass(slots=True)
class Event:
    """A slice-worthy event, completed with its feedback once the life is known."""

    kind: str
    at: int
    said: list[Said]
    order: str | None
    effect: float = 0.0
    direction: str = "none"
    compensated: bool | None = None
    repeat: int = 1


def stamp(at: int, offset_hours: int = 0) -> str:
    """RFC 3339, in UTC (``Z``) or with the offset."""
    day, second = divmod(at + offset_hours * 3600, DAY)
    zone = f"{offset_hours:+03}:00" if offset_hours else "Z"
    return f"{_date(day)}T{_clock(second)}{zone}"


@cache
def _clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


@cache
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()
