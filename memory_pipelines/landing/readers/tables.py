"""Tables: CSV, whatever its delimiter, and Parquet.

Belongs here: cutting a table into rows. Does not belong here: what a column means (``mapping``, ``normalise``).
"""

import csv
import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from memory_pipelines.errors import InputError
from memory_pipelines.landing.readers.lines import decode_anyhow, split_lines
from memory_pipelines.landing.readers.rows import LINE_LIMIT, TRUNCATED, Context, RawRow, verbatim

DELIMITERS = ",;\t|"


class _TooLongError(Exception):
    """A record beyond the limit; what was taken of it is in ``_Lines.taken``."""


class _Lines:
    """Decoded lines with their ends for the CSV parser; ``taken`` are those of the record in the making."""

    def __init__(self, stream: BinaryIO) -> None:
        self._parts = self._split(stream)
        self.taken: list[str] = []
        self._size = 0

    def _split(self, stream: BinaryIO) -> Iterator[tuple[str, bool]]:
        for line, too_long in split_lines(stream):
            text = decode_anyhow(line)
            if "\r" in text:  # a lone CR ends a line as well
                for part in io.StringIO(text, newline=""):
                    yield part, too_long
            else:
                yield text, too_long

    def peek(self) -> str | None:
        """The first line, which stays to be read; None if there is none, or none that could be a header."""
        first = next(self._parts, None)
        if first is None or first[1]:
            return None
        self._parts = _chain(first, self._parts)
        return first[0]

    def clear(self) -> None:
        self.taken.clear()
        self._size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        part, too_long = next(self._parts)
        self.taken.append(part)
        self._size += len(part)
        if too_long or self._size > LINE_LIMIT:
            raise _TooLongError
        return part


def _chain(first: tuple[str, bool], rest: Iterator[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    yield first
    yield from rest


def read_csv(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Rows under a header; the delimiter is the one that cuts the header most. Positions count from 1, the header is 0.

    Raises InputError where the header cannot be read.
    """
    lines = _Lines(stream)
    first = lines.peek()
    if first is None:
        if lines.taken or next(iter(lines._parts), None) is not None:
            raise InputError("the header is too long")
        return
    csv.field_size_limit(LINE_LIMIT)
    rows = csv.reader(lines, delimiter=_delimiter(first))
    try:
        header = _names(next(rows))
    except (csv.Error, _TooLongError):
        raise InputError("the header cannot be read") from None
    position = 0
    while True:
        position += 1
        lines.clear()
        try:
            fields = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield RawRow(position, None, "".join(lines.taken), "malformed_csv")
            continue
        except _TooLongError:
            yield RawRow(position, None, "".join(lines.taken)[:TRUNCATED], "line_too_long")
            continue
        if not fields:
            continue
        if len(fields) != len(header):
            yield RawRow(position, None, "".join(lines.taken), "wrong_number_of_columns")
        else:
            row: dict[str, Any] = {k: v or None for k, v in zip(header, fields, strict=True)}
            yield RawRow(position, row, verbatim(row))


def _delimiter(header: str) -> str:
    return max(DELIMITERS, key=lambda d: len(next(csv.reader([header], delimiter=d), [])))


def _names(header: list[str]) -> list[str]:
    """Column names, each once: the second ``a`` is ``a_2``, an empty one ``column_<number>``."""
    names: dict[str, None] = {}
    for number, given in enumerate(header, 1):
        name = given.strip() or f"column_{number}"
        candidate, count = name, 1
        while candidate in names:
            count += 1
            candidate = f"{name}_{count}"
        names[candidate] = None
    return list(names)


def read_parquet(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Rows of a Parquet file; ``stream`` must be seekable. Raises InputError where the file is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    position = 0
    try:
        for batch in pq.ParquetFile(stream).iter_batches(batch_size=10_000):
            for row, readable in _values(_in_microseconds(batch)):
                raw = verbatim(row)
                yield RawRow(position, row, raw) if readable else RawRow(position, None, raw, "unreadable_value")
                position += 1
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and (error.errno is not None or re.search("AWS Error|curlCode", str(error))):
            raise  # the stream failed, not the file
        raise InputError("the Parquet file is damaged") from None


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
