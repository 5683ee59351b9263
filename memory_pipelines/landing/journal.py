"""The journal of what agents note: rows into it as a log's rows would be landed, and out of it into the lake.

Belongs here: what a noted turn becomes, and landing the journal from where the last run stopped. Does not belong here:
the table (``stores.journal``), the session buffer (``recall.buffer``), the rules of step 1 (passed in as ``clean``).

A turn is cleaned, and its sensitive values are replaced, before it is noted, so landing changes it no more. Its id and
the hash of its content are made from the text as it was said: the same row in a log is the same turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.errors import InputError
from memory_pipelines.landing.land import CHUNK_ROWS, Clean, Lander, land_chunk, take
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.readers import RawRow
from memory_pipelines.model import Owner, Role, day_of, stable_hash
from memory_pipelines.stores.notes import ChunkCounts, LandingLedger, Watermark
from memory_pipelines.stores.session import Journal, NotedTurn
from memory_pipelines.tables import TURNS

NAME = FORMAT = "journal"
FILE_ID = stable_hash("journal")
"""As the ledger knows the journal: one file that grows for ever."""
SKEW = timedelta(minutes=1)
"""How far ahead an agent's clock may be; what was said later than that has no time that can be right."""
MOST_TURNS = 1_000
"""Of one call."""
KEPT = timedelta(days=10)
"""How long a landed turn stays: a day longer than any session buffer shows it."""

_NAMES = ("user_id", "device_id")


@dataclass(frozen=True)
class Prepared:
    """Turns to be noted; ``filtered``: how many of those said were noise, by the rule that says so."""

    turns: tuple[NotedTurn, ...]
    filtered: dict[str, int]


def prepare(said: Sequence[Mapping[str, Any]], owner: Owner, at: datetime, clean: Clean) -> Prepared:
    """Rows of a dialogue with ``owner`` (the fields of a log's row) as turns, at ``at``.

    A person's row without ``user_id`` and ``device_id`` is the owner's own. Raises InputError, and nothing is noted, on
    a row that landing would quarantine, that names somebody else, or of another tenant."""
    if len(said) > MOST_TURNS:
        raise InputError(f"at most {MOST_TURNS} turns can be noted at once")
    normalise = Normaliser(FILE_ID, owner.tenant, 1, at + SKEW)
    rows = []
    for number, row in enumerate(said):
        kind, made = normalise(RawRow(number, _addressed(row, owner), ""))
        if kind != "turn":
            raise InputError(f"turn {number} cannot be noted: {made.get('reason', 'it is no turn')}")
        if made["tenant"] != owner.tenant or made["subject"] not in (owner.subject, None):
            raise InputError(f"turn {number} cannot be noted: it names another subject")
        rows.append(made)
    turns, filtered = clean(pa.Table.from_pylist(rows, schema=TURNS.schema))
    return Prepared(tuple(_noted(owner, row) for row in turns.to_pylist()), filtered)


def _addressed(row: Mapping[str, Any], owner: Owner) -> dict[str, Any]:
    said = dict(row)
    if not (said.get("conversation_id") or said.get("session_id")):
        said["conversation_id"] = owner.subject
    if said.get("role") == Role.USER and not any(said.get(name) for name in _NAMES):
        kind, _, name = owner.subject.partition(":")
        said["user_id" if kind == "u" else "device_id"] = name
    return said


def _noted(owner: Owner, row: Mapping[str, Any]) -> NotedTurn:
    left_out = {"tenant", "file_id", "position", "day"}
    return NotedTurn(owner=owner, **{name: value for name, value in row.items() if name not in left_out})


def land_journal(
    journal: Journal, at: datetime, *, ledger: LandingLedger, lander: Lander, chunk_rows: int = CHUNK_ROWS
) -> ChunkCounts:
    """Land what was noted since the last time; killed, the next call goes on from there. What is landed, and old at
    ``at``, leaves the journal."""
    progress = ledger.begin_file(FILE_ID, NAME, 0, file_format=FORMAT)
    ledger.reopen(FILE_ID)
    lander = replace(lander, clean=lambda turns: (turns, {}), normalise=lambda raw: ("turn", dict(raw.row or {})))
    number, end = progress.chunks, journal.end()
    landed = []
    noted = _rows(journal, landed_to(ledger), end)
    while rows := take(noted, chunk_rows):
        mark = Watermark({"type": "int", "value": str(rows[-1].position)}, frozenset())
        first = number == progress.chunks
        landed.append(land_chunk(ledger, lander, FILE_ID, number, rows, resumed=first, watermark=mark))
        number += 1
    ledger.end_file(FILE_ID)
    journal.trim(end, at - KEPT)
    return ChunkCounts.total(landed)


def landed_to(ledger: LandingLedger) -> int:
    """The position up to which the journal is landed."""
    mark = ledger.watermark(FILE_ID)
    return 0 if mark is None else int(mark.value["value"])


def _rows(journal: Journal, after: int, end: int) -> Iterator[RawRow]:
    for turn in journal.rows(after, end):
        row = {
            "tenant": turn.owner.tenant,
            "file_id": FILE_ID,
            "position": turn.position,
            "day": day_of(turn.occurred_at),
        }
        named = (name for name in TURNS.schema.names if name not in row)
        yield RawRow(turn.position, row | {name: getattr(turn, name) for name in named}, turn.text)
