"""JSON lines: one object a line.

Belongs here: lines of JSON. Does not belong here: documents that go over lines (``json_documents``).
"""

import json
from collections.abc import Iterator
from typing import BinaryIO

from memory_pipelines.landing.readers.lines import decode, split_lines
from memory_pipelines.landing.readers.rows import Context, RawRow


def read_json_lines(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each non-empty line; its position is its number, from 0."""
    for position, (line, too_long) in enumerate(split_lines(stream)):
        if too_long:
            yield RawRow(position, None, line.decode("utf-8", "replace"), "line_too_long")
        elif not line.isspace():
            yield _row(position, line)


def _row(position: int, line: bytes) -> RawRow:
    text = decode(line)
    if text is None:
        return RawRow(position, None, line.decode("latin-1"), "unknown_encoding")
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return RawRow(position, None, text, "malformed_json")
    if isinstance(row, dict):
        return RawRow(position, row, text)
    return RawRow(position, None, text, "not_an_object")
