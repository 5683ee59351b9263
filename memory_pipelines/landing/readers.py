"""Readers: a file becomes a stream of raw rows, each with its position and its verbatim form.

Belongs here: file formats and encodings. Does not belong here: what a row means
(``normalise``). A reader never raises for a broken row; it yields it with ``error`` set, so that
nothing is lost. Memory does not grow with the file.
"""

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from memory_pipelines.errors import InputError

FIELD_LIMIT = 16 << 20
"""Longest CSV field in characters: a 1 MB message must reach quarantine, not stop the file."""


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as read: ``row`` is None and ``error`` a reason where it cannot be parsed."""

    position: int
    row: dict[str, Any] | None
    raw: str
    error: str | None = None


def _decode(line: bytes) -> str | None:
    """UTF-8, else GB18030 (a superset of GBK), else None."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def _json_lines(stream: BinaryIO) -> Iterator[RawRow]:
    for position, line in enumerate(stream):
        if position == 0:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line.strip():
            continue
        text = _decode(line)
        if text is None:
            yield RawRow(position, None, line.decode("latin-1"), "unknown_encoding")
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            yield RawRow(position, None, text, "malformed_json")
            continue
        if isinstance(row, dict):
            yield RawRow(position, row, text)
        else:
            yield RawRow(position, None, text, "not_an_object")


def _text_lines(stream: BinaryIO, taken: list[str]) -> Iterator[str]:
    """Lines with their ends, each decoded by itself; each is noted in ``taken``."""
    for number, line in enumerate(stream):
        if number == 0:
            line = line.removeprefix(codecs.BOM_UTF8)
        text = _decode(line)
        if text is None:  # a byte that fits no encoding must reach quarantine, not stop the file
            text = line.decode("utf-8", "surrogateescape")
        for part in io.StringIO(text, newline=""):  # a lone CR ends a line as well
            taken.append(part)
            yield part


def _csv(stream: BinaryIO) -> Iterator[RawRow]:
    csv.field_size_limit(FIELD_LIMIT)
    taken: list[str] = []
    rows = csv.reader(_text_lines(stream, taken))
    header = next(rows, None)
    if header is None:
        return
    position = 0
    while True:
        position += 1
        taken.clear()
        try:
            fields = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield RawRow(position, None, "".join(taken), "malformed_csv")
            continue
        if not fields:
            continue
        raw = json.dumps(fields, ensure_ascii=False)
        if len(fields) != len(header):
            yield RawRow(position, None, raw, "wrong_number_of_columns")
        else:
            yield RawRow(position, {k: v or None for k, v in zip(header, fields, strict=True)}, raw)


def _parquet(stream: BinaryIO) -> Iterator[RawRow]:
    import pyarrow.parquet as pq

    position = 0
    for batch in pq.ParquetFile(stream).iter_batches(batch_size=10_000):
        for row, readable in _values(_in_microseconds(batch)):
            raw = json.dumps(row, ensure_ascii=False, default=_plain)
            yield RawRow(position, row, raw) if readable else RawRow(position, None, raw, "unreadable_value")
            position += 1


def _in_microseconds(batch: Any) -> Any:
    """Python's times know no nanoseconds: they are cut off."""
    import pyarrow as pa

    for i, kind in enumerate(batch.schema.types):
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            column = batch.column(i).cast(pa.timestamp("us", kind.tz), safe=False)
            batch = batch.set_column(i, batch.schema.names[i], column)
    return batch


def _values(batch: Any) -> list[tuple[dict[str, Any], bool]]:
    """Each row, and whether all of it can be read: a string may be no UTF-8, a time beyond the year 9999."""
    try:
        return [(row, True) for row in batch.to_pylist()]
    except (ValueError, OverflowError):
        return [_cells(batch, i) for i in range(batch.num_rows)]


def _cells(batch: Any, i: int) -> tuple[dict[str, Any], bool]:
    row: dict[str, Any] = {}
    readable = True
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            row[name] = column[i].as_py()
        except (ValueError, OverflowError):
            readable = False
            cell = column[i]
            stored = cell.as_buffer().to_pybytes() if hasattr(cell, "as_buffer") else getattr(cell, "value", None)
            row[name] = stored.decode("latin-1") if isinstance(stored, bytes) else stored
    return row, readable


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _openai_messages(stream: BinaryIO) -> Iterator[RawRow]:
    """One conversation a line: ``{"id", "user", "created_at", "messages": [...]}``.

    A message without a time of its own takes no other's: it is yielded without one.
    """
    position = 0
    for line in _json_lines(stream):
        row = line.row
        if row is None:
            yield RawRow(position, None, line.raw, line.error)
            position += 1
            continue
        messages = row.get("messages")
        if not isinstance(messages, list):
            yield RawRow(position, None, line.raw, "no_messages")
            position += 1
            continue
        for message in messages:
            raw = json.dumps(message, ensure_ascii=False)
            if not isinstance(message, dict):
                yield RawRow(position, None, raw, "not_an_object")
            else:
                yield RawRow(position, _message_row(row, message), raw)
            position += 1


def _message_row(conversation: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):  # content parts: keep the text ones
        content = "\n".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    return {
        "tenant": conversation.get("tenant"),
        "conversation_id": conversation.get("id"),
        "session_id": conversation.get("id"),
        "user_id": conversation.get("user"),
        "turn_id": message.get("id"),
        "role": message.get("role"),
        "text": content or "",  # a message that only calls a tool says nothing: step 1 counts it as empty
        "occurred_at": message.get("created_at"),
        "origin": conversation.get("origin", "assistant"),
    }


READERS: dict[str, Callable[[BinaryIO], Iterator[RawRow]]] = {
    "jsonl": _json_lines,
    "csv": _csv,
    "parquet": _parquet,
    "openai_messages": _openai_messages,
}


SUFFIXES = frozenset({".csv", ".parquet", ".pq", ".jsonl", ".ndjson"})


def detect_format(path: Path) -> str:
    """Format by file name, and for JSON lines by the first row. Raises InputError for anything else, or unreadable."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return "csv"
    if suffix in {".parquet", ".pq"}:
        return "parquet"
    if suffix in {".jsonl", ".ndjson"}:
        try:
            with path.open("rb") as stream:
                first = next((r.row for r in _json_lines(stream) if r.row is not None), None)
        except OSError as error:
            raise InputError(f"cannot read {path.name}: {error.strerror}") from None
        return "openai_messages" if first is not None and "messages" in first else "jsonl"
    raise InputError(f"no reader for {path.suffix or 'a file without suffix'}; known: {', '.join(READERS)}")


def read_rows(path: Path, file_format: str | None = None) -> Iterator[RawRow]:
    """Stream the rows of ``path``. Raises InputError where the file itself cannot be read."""
    name = file_format or detect_format(path)
    if name not in READERS:
        raise InputError(f"unknown format {name}; known: {', '.join(READERS)}")
    try:
        with path.open("rb") as stream:
            yield from READERS[name](stream)
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or 'it is damaged'}") from None
    except Exception as error:
        if isinstance(error, csv.Error) or type(error).__module__.startswith("pyarrow"):
            raise InputError(f"{path.name} is no readable {name} file") from None
        raise
