"""What happens to rows on their way into files: exported again, exported by two systems, edited.

Belongs here: copies and versions of rows that were said once. Does not belong here: the noise of a
session (``emit``), what is said.
"""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from memory_pipelines.sample.config import DAY
from memory_pipelines.sample.phrases import pick
from memory_pipelines.sample.records import Records
from memory_pipelines.sample.rows import (
    ARCHIVE,
    BEHAVIOUR,
    DIALOGUES,
    DUPLICATE,
    EDITS,
    QUARANTINE,
    Line,
    Record,
    Written,
    stamp,
)

ARCHIVE_ROLES = {"user": "customer", "agent": "staff", "system": "system"}
"""The archive's names for roles."""
SHORTEST_EDIT = 12
"""A turn below this many characters is not worth an edit."""


def export(log: Records, written: list[Written], lines: list[Line]) -> str:
    """Perhaps export a session once more, or edit one of its turns; the id of the edited turn, or ``""``.

    One fate a session: a copy of an edited turn would be a third version of it.
    """
    config, rng = log.config, log.rng
    mark = rng.random()
    if mark < config.overlaps:
        _overlap(log, written)
    elif mark < config.overlaps + config.second_exports:
        _archive(log, written)
    elif mark < config.overlaps + config.second_exports + config.edits * len(lines):
        return _edit(log, written, lines)
    return ""


def export_event(log: Records, row: dict[str, Any], arrived: int) -> None:
    """Perhaps export a behaviour event once more."""
    again = _again(arrived)
    if log.rng.random() < log.config.overlaps and again < log.config.end:
        log.records.append(Record(log.person.tenant, BEHAVIOUR, again, row))
        subject = f"u:{row['user_id']}" if row["user_id"] else f"d:{row['device_id']}"
        log.expect(BEHAVIOUR, row["event_id"], arrived, DUPLICATE, "overlap", subject)


def _overlap(log: Records, written: list[Written]) -> None:
    """The next export reaches back: the same rows once more, byte for byte, in a later file.

    Rows without ids are left out: in one file two equal ones are two turns.
    """
    for item in written:
        record = log.records[item.record]
        again = _again(record.arrived)
        if isinstance(record.row, dict) and "turn_id" in record.row and again < log.config.end:
            log.records.append(record._replace(arrived=again))
            log.expect(DIALOGUES, item.row_id, item.at, DUPLICATE, "overlap", item.subject)


def _archive(log: Records, written: list[Written]) -> None:
    """Another system exports the session too: equal turns under other names of columns and roles."""
    for item in written:
        record = log.records[item.record]
        if not isinstance(record.row, dict) or record.arrived + 3600 >= log.config.end:
            continue
        row = {name: value for name, value in record.row.items() if name not in ("occurred_at", "origin", "role")}
        row |= {"role": ARCHIVE_ROLES[record.row["role"]], "timestamp": item.at * 1000}
        log.records.append(Record(record.tenant, ARCHIVE, record.arrived + 3600, row))
        log.expect(ARCHIVE, item.row_id, item.at, DUPLICATE, "second_export", item.subject)


def _edit(log: Records, written: list[Written], lines: list[Line]) -> str:
    """A turn sent too early, then edited; now and then the edit reaches the log first."""
    rng = log.rng
    fit = [
        item
        for item, line in zip(written, lines, strict=True)
        if line.role == "user" and line.planted is None and _editable(log.records[item.record].row)
    ]
    if not fit:
        return ""
    item = pick(rng, tuple(fit))
    record = log.records[item.record]
    assert isinstance(record.row, dict)  # _editable
    full = str(record.row["text"])
    short = full[: int(len(full) * (0.4 + 0.4 * rng.random()))].rstrip()
    edited_at = item.at + 20 + int(280 * rng.random())
    later = record.row | {"edited_at": stamp(edited_at)}
    log.records[item.record] = record._replace(row=record.row | {"text": short})
    log.records.append(record._replace(arrived=record.arrived + edited_at - item.at, row=later))
    if rng.random() < 0.3:
        log.delay(item.record, record.arrived + DAY)
    log.expect(DIALOGUES, item.row_id, item.at, QUARANTINE, "edited", item.subject)
    log.truth(
        EDITS,
        {
            "stream": DIALOGUES,
            "row_id": item.row_id,
            "subject": item.subject,
            "before": short,
            "after": full,
            "edited_at": stamp(edited_at),
        },
    )
    return item.row_id


def _editable(row: dict[str, Any] | str) -> bool:
    """Whether the row has an id of its own and plain text that can be cut."""
    if isinstance(row, str) or "turn_id" not in row:
        return False
    text = row["text"]
    return len(text) >= SHORTEST_EDIT and "<" not in text and "&" not in text


def _again(arrived: int) -> int:
    """When rows come once more: with the next month's export in its last five days, else a day later."""
    return _next_month(arrived // DAY) if _next_month(arrived // DAY) - arrived < 5 * DAY else arrived + DAY


@cache
def _next_month(day: int) -> int:
    """First second of the month after that day's."""
    later = datetime.fromtimestamp(day * DAY, UTC).replace(day=1) + timedelta(days=32)
    return int(later.replace(day=1).timestamp())
