"""What every reader yields, and the bounds that hold for all of them.

Belongs here: ``RawRow`` and its verbatim form. Does not belong here: any one format.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import Any, BinaryIO, TypeVar

from memory_pipelines.landing.mapping import Mapping

T = TypeVar("T")

LINE_LIMIT = 16 << 20
"""Longest line of text, or record of a CSV file: a 1 MB message must reach quarantine, not stop the file."""
TRUNCATED = 4096
"""How much of a record beyond its limit is kept for quarantine."""


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as read: ``row`` is None and ``error`` a reason where it cannot be parsed.

    ``raw``: of a row that was parsed, the JSON of its fields before any mapping; else the text as it was read.
    """

    position: int
    row: dict[str, Any] | None
    raw: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a reader may know beside the bytes: the user's mapping and the file's name (its path, if known)."""

    mapping: Mapping
    name: str = ""


def beginning(items: Iterator[T], count: int, size: Callable[[T], int]) -> list[T]:
    """Up to ``count`` items, fewer if they are long: what a reader may hold to learn how a file is written."""
    taken, total = list[T](), 0
    for item in islice(items, count):
        taken.append(item)
        total += size(item)
        if total >= LINE_LIMIT:
            break
    return taken


Reader = Callable[[BinaryIO, Context], Iterator[RawRow]]
Record = dict[str, Any] | RawRow
"""Fields of a row, or a row that could not be parsed, whose position is not yet known."""


def unreadable(raw: str, error: str) -> RawRow:
    """A record that cannot be parsed; ``numbered`` gives its position."""
    return RawRow(-1, None, raw, error)


def numbered(records: Iterator[Record]) -> Iterator[RawRow]:
    """Rows with positions that count all records, readable or not."""
    for position, record in enumerate(records):
        if isinstance(record, RawRow):
            yield RawRow(position, None, record.raw, record.error)
        else:
            yield RawRow(position, record, verbatim(record), None)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


verbatim: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, default=_plain).encode
"""The JSON of a row's fields."""
