"""Turns for the tests of step 1: one builder, and the cut of one day as a day job reads it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.model import day_of, days_between, iso, shift_day, stable_hash
from memory_pipelines.slices.exchanges import REACH, Cut, cut_exchanges, needs_earlier
from memory_pipelines.tables import EXCHANGES, QUARANTINE, TURNS, TableSpec

Row = dict[str, Any]
DAY = "2024-05-17"
NOON = datetime(2024, 5, 17, 12, tzinfo=UTC)
BUCKETS = 8


def turn(
    name: str,
    minutes: float = 0.0,
    role: str = "user",
    subject: str | None = "u:ann",
    *,
    text: str | None = None,
    session: str | None = "s1",
    conversation: str = "c1",
    tenant: str = "acme",
    position: int = 0,
    file: str = "f1",
    edited: datetime | None = None,
    clock: str | None = None,
    origin: str | None = "web_app",
) -> Row:
    """A landed turn ``minutes`` after noon of ``DAY``; ``name`` is its id and, by default, its text."""
    at = NOON + timedelta(minutes=minutes)
    text = name if text is None else text
    return {
        "tenant": tenant,
        "turn_id": name,
        "conversation_id": conversation,
        "session_id": session,
        "subject": subject,
        "role": role,
        "occurred_at": at,
        "text": text,
        "origin": origin,
        "edited_at": edited,
        "vector_clock": clock,
        "content_hash": stable_hash(conversation, session, subject, role, iso(at), text),
        "file_id": file,
        "position": position,
        "day": day_of(at),
    }


def reply(name: str, minutes: float, subject: str | None = None, **fields: Any) -> Row:
    return turn(name, minutes, "agent", subject, **fields)


def table(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=TURNS.schema)


def all_days(rows: Sequence[Row]) -> list[str]:
    """All days on which the rows can have an effect."""
    days = [row["day"] for row in rows]
    return days_between(shift_day(min(days), -4), shift_day(max(days), 4)) if days else [DAY]


def cut(rows: Sequence[Row], days: Sequence[str] | None = None) -> Cut:
    return cut_exchanges(table(rows), days or all_days(rows), BUCKETS)


def cut_day(rows: Sequence[Row], day: str) -> Cut:
    """The cut of one day from the days around it, as a day job reads them."""
    first, last = shift_day(day, -REACH), shift_day(day, REACH)
    near = [row for row in rows if first <= row["day"] <= last]
    while needs_earlier(table(near), first):
        first = shift_day(first, -1)
        near += [row for row in rows if row["day"] == first]
    here = {(row["tenant"], row["turn_id"]) for row in near}
    elsewhere = [r for r in rows if not first <= r["day"] <= last and (r["tenant"], r["turn_id"]) in here]
    return cut_exchanges(table([*near, *elsewhere]), [day], BUCKETS)


def shown(made: Cut) -> list[tuple[list[str], list[str]]]:
    """(own, all) turn ids of each exchange, in order of start and subject."""
    rows = sorted(made.exchanges.to_pylist(), key=lambda r: (r["started_at"], r["subject"], r["exchange_id"]))
    return [(row["own_turn_ids"], row["turn_ids"]) for row in rows]


def content(spec: TableSpec, rows: pa.Table, day: str | None = None) -> list[str]:
    """The rows without bookkeeping, sorted; of one day where it is given."""
    kept = [row for row in rows.to_pylist() if day in (None, row["day"])]
    return sorted(repr({k: v for k, v in row.items() if k not in spec.bookkeeping}) for row in kept)


def day_content(made: Cut, day: str) -> tuple[list[str], list[str], dict[str, int]]:
    """All that a cut says of one day."""
    exchanges, lost = content(EXCHANGES, made.exchanges, day), content(QUARANTINE, made.conflicts, day)
    return exchanges, lost, made.counts[day].as_dict()
