"""Readers: a file becomes a stream of raw rows, each with its position and its verbatim form.

Belongs here: file formats and encodings, one module each. Does not belong here: what a row means
(``normalise``), where files are (``sources``). A reader never raises for a broken row; it yields it with
``error`` set, so that nothing is lost. Memory does not grow with the file: what bounds it is the longest line,
record or element that may be.
"""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from memory_pipelines.errors import InputError
from memory_pipelines.landing.mapping import NO_MAPPING, Mapping
from memory_pipelines.landing.readers.archive import read_zip
from memory_pipelines.landing.readers.chatgpt import read_chatgpt
from memory_pipelines.landing.readers.detect import HEAD, SUFFIXES, detect_format
from memory_pipelines.landing.readers.intercom import read_intercom
from memory_pipelines.landing.readers.irc import read_irc
from memory_pipelines.landing.readers.json_documents import read_json
from memory_pipelines.landing.readers.json_lines import read_json_lines
from memory_pipelines.landing.readers.langchain import read_langchain
from memory_pipelines.landing.readers.openai import read_openai_messages
from memory_pipelines.landing.readers.rows import Context, RawRow, Reader
from memory_pipelines.landing.readers.slack import read_slack
from memory_pipelines.landing.readers.tables import read_csv, read_parquet
from memory_pipelines.landing.readers.whatsapp import read_whatsapp
from memory_pipelines.landing.readers.zendesk import read_zendesk

__all__ = [
    "HEAD", "READERS", "SUFFIXES", "Context", "RawRow", "Reader", "detect_format", "parse_again", "read_rows",
]  # fmt: skip

READERS: dict[str, Reader] = {
    "jsonl": read_json_lines,
    "json": read_json,
    "csv": read_csv,
    "parquet": read_parquet,
    "openai_messages": read_openai_messages,
    "chatgpt": read_chatgpt,
    "langchain": read_langchain,
    "whatsapp": read_whatsapp,
    "slack": read_slack,
    "intercom": read_intercom,
    "zendesk": read_zendesk,
    "irc": read_irc,
    "zip": read_zip,
}
_UNDECODED = "unknown_encoding"


def read_rows(
    stream: BinaryIO, file_format: str, mapping: Mapping | None = None, *, name: str = ""
) -> Iterator[RawRow]:
    """Stream the rows of a file, with the mapping applied.

    ``name``: the file's name, at best its path within the source's folder: logs of chats take the conversation, and
    IRC the day, from it. ``stream`` is read forward once; that of Parquet must be seekable.
    Raises InputError where the stream as a whole cannot be read; an OSError of the stream goes through.
    """
    if file_format not in READERS:
        raise InputError(f"unknown format {file_format}; known: {', '.join(READERS)}")
    context = Context(mapping or NO_MAPPING, re.sub(r"\.(?:gz|zst)$", "", name))
    try:
        for row in READERS[file_format](stream, context):
            yield row if mapping is None else _mapped(row, mapping)
    except InputError as error:
        raise InputError(f"no readable {file_format} file: {error}") from None
    except EOFError:
        raise InputError("it is cut off") from None


def parse_again(
    raw: str, reason: str, file_format: str, mapping: Mapping | None = None, *, position: int = 0
) -> RawRow:
    """A quarantined row for normalisation, from what was kept of it: the fields that were read, or the text read anew.

    ``error`` is set again where it still cannot be parsed; so it is of what can only be read within its file.
    """
    if reason == _UNDECODED and "\\ud" not in raw.lower() and all(char <= "\xff" for char in raw):
        return _read_alone(raw.encode("latin-1"), raw, reason, file_format, mapping, position)
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError):
        row = None
    if isinstance(row, dict) and reason not in _OF_READERS:
        return _mapped(RawRow(position, row, raw), mapping)
    return _read_alone(raw.encode("utf-8", "surrogateescape"), raw, reason, file_format, mapping, position)


_OF_READERS = frozenset(
    {"malformed_json", "not_an_object", "no_messages", "malformed_csv", "wrong_number_of_columns", "malformed_line"}
    | {"line_too_long", "record_too_long", "cut_off", "damaged_member", "unreadable_value", _UNDECODED}
)
"""Reasons that readers give; with any other one the fields were read."""


def _read_alone(data: bytes, raw: str, reason: str, file_format: str, mapping: Mapping | None, position: int) -> RawRow:
    if file_format not in ("csv", "parquet", "zip"):  # of those a row alone says nothing
        rows = [row for row in read_rows(io.BytesIO(data), file_format, mapping) if row.row is not None]
        if len(rows) == 1:
            return replace(rows[0], position=position)
    return RawRow(position, None, raw, reason)


def _mapped(row: RawRow, mapping: Mapping | None) -> RawRow:
    if mapping is None or row.row is None:
        return row
    return RawRow(row.position, mapping.apply(row.row), row.raw)
