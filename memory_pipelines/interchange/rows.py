"""Rows of relational tables as lines of JSON, rows of lake tables as Parquet.

Belongs here: both forms and back. Does not belong here: where files lie (``folder``), which tables (``backup``).
"""

import base64
import gzip
import io
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from memory_pipelines.model import iso
from memory_pipelines.stores.base import Lake
from memory_pipelines.tables import TableSpec

ROWS = 20_000
"""Rows of a file of a relational table."""


def lines(connection: sa.Connection, table: sa.Table) -> Iterator[tuple[bytes, int]]:
    """A table's rows, some to a file: (gzip of JSON lines, rows)."""
    query = sa.select(table).order_by(*table.primary_key)
    found = iter(connection.execution_options(yield_per=1000).execute(query).mappings())
    while part := list(islice(found, ROWS)):
        text = "".join(json.dumps(_plain(table, row), ensure_ascii=False, sort_keys=True) + "\n" for row in part)
        yield gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0), len(part)


def rows_of(table: sa.Table, content: bytes) -> list[dict[str, Any]]:
    """The rows of one file of a table."""
    text = gzip.decompress(content).decode("utf-8", "surrogatepass")
    return [_typed(table, json.loads(line)) for line in text.split("\n") if line]


def _plain(table: sa.Table, row: sa.RowMapping) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for column in table.columns:
        value = row[column.name]
        if isinstance(value, datetime):
            value = iso(value)
        elif isinstance(value, bytes):
            value = base64.b64encode(value).decode()
        values[column.name] = value
    return values


def _typed(table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for column in table.columns:
        if column.name not in row:  # a column of a later schema: its default
            continue
        value = row[column.name]
        if value is not None and isinstance(column.type, sa.LargeBinary):
            value = base64.b64decode(value)
        elif value is not None and isinstance(column.type, sa.types.TypeDecorator):
            value = datetime.fromisoformat(value)
        values[column.name] = value
    return values


def parts(lake: Lake, spec: TableSpec, version: int | None) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """The rows of a version of a lake table: (values of the first partition column, rows)."""
    if not spec.partition_by:
        rows = lake.read(spec, version=version)
        if rows.num_rows:
            yield {}, rows
        return
    column = spec.partition_by[0]
    values = lake.read(spec, columns=[column], version=version)[column].unique().to_pylist()
    for value in sorted(values):
        yield {column: value}, lake.read(spec, where=[(column, "=", value)], version=version)


def parquet(rows: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd")
    return sink.getvalue()


def table(spec: TableSpec, content: bytes) -> pa.Table:
    """The rows of a file; columns of a later schema are null."""
    import pyarrow.parquet as pq

    rows = pq.read_table(io.BytesIO(content))
    for name in spec.schema.names:
        if name not in rows.column_names:
            rows = rows.append_column(spec.schema.field(name), pa.nulls(rows.num_rows, spec.schema.field(name).type))
    return rows.select(spec.schema.names)
