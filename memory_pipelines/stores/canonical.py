"""The rows of a lake table in one form: exact schema, one order, one hash; and filters over them.

Belongs here: pure functions over Arrow tables that every lake adapter and every rebuild check
share. Does not belong here: reading or writing files.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.errors import IntegrityError, PermanentError
from memory_pipelines.model import canonical_json
from memory_pipelines.stores.base import Replaced, ReplaceRange
from memory_pipelines.tables import TableSpec


def conform(spec: TableSpec, rows: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows with the columns, order and types of the table's schema (plain strings, ``item`` lists).

    Raises IntegrityError if a column is missing, is not in the schema or cannot be cast without loss.
    """
    names = list(spec.schema.names if columns is None else columns)
    if set(rows.column_names) != set(names) or len(rows.column_names) != len(names):
        difference = sorted(set(rows.column_names) ^ set(names))
        raise IntegrityError(f"rows do not fit table {spec.name}: columns {difference}")
    try:
        return rows.select(names).cast(pa.schema([spec.schema.field(name) for name in names]))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wrong = [n for n in names if rows.schema.field(n).type != spec.schema.field(n).type]
        raise IntegrityError(f"rows do not fit table {spec.name}: types of {wrong}") from None


def ordered(spec: TableSpec, rows: pa.Table) -> pa.Table:
    """The rows sorted by key, then by every other flat column; nulls last."""
    if rows.num_rows < 2:
        return rows
    flat = [name for name in rows.column_names if not pa.types.is_nested(rows.schema.field(name).type)]
    names = [*spec.key, *(name for name in flat if name not in spec.key)]
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in names]))


def where_expression(spec: TableSpec, where: Sequence[tuple[str, str, object]]) -> pc.Expression | None:
    """One expression of all ``(column, operator, value)`` filters; None if there are none.

    A null passes no filter. Raises PermanentError for an unknown column or operator.
    """
    combined: pc.Expression | None = None
    for column, operator, value in where:
        kind, field = _kind(spec, column), pc.field(column)
        if operator == "in":
            values = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
            one = field.isin(pa.array([item for item in values if item is not None], kind))
        elif operator == "by":
            one = _by(spec, column, *value)  # type: ignore[misc]
        elif operator in ("=", ">=", "<", "<="):
            scalar = pa.scalar(value, kind)
            one = {
                "=": field == scalar,
                ">=": field >= scalar,
                "<": field < scalar,
                "<=": field <= scalar,
            }[operator]
        else:
            raise PermanentError(f"unknown filter operator {operator!r}")
        combined = one if combined is None else combined & one
    return combined


def _by(spec: TableSpec, column: str, other: str, values: Mapping[Any, Collection[Any]]) -> pc.Expression:
    """Rows whose value of ``other`` is a key of ``values``, and whose ``column`` is among what that key allows."""
    kind, allowed_kind = _kind(spec, other), _kind(spec, column)
    one = pc.scalar(False)
    for key, allowed in values.items():
        one |= (pc.field(other) == pa.scalar(key, kind)) & pc.field(column).isin(pa.array(allowed, allowed_kind))
    return one


def _kind(spec: TableSpec, column: str) -> pa.DataType:
    if column not in spec.schema.names:
        raise PermanentError(f"table {spec.name} has no column {column!r}")
    return spec.schema.field(column).type


def select(
    spec: TableSpec, rows: pa.Table, columns: Sequence[str] | None, where: Sequence[tuple[str, str, object]]
) -> pa.Table:
    """The named columns of the rows that pass all filters."""
    expression = where_expression(spec, where)
    kept = rows if expression is None else rows.filter(expression)
    return kept if columns is None else kept.select(known_columns(spec, columns))


def known_columns(spec: TableSpec, columns: Sequence[str]) -> list[str]:
    unknown = [name for name in columns if name not in spec.schema.names]
    if unknown:
        raise PermanentError(f"table {spec.name} has no columns {unknown}")
    return list(columns)


def matches(
    spec: TableSpec, rows: pa.Table, replace: Sequence[Replaced], partition: dict[str, int] | None
) -> pa.ChunkedArray:
    """One boolean per row: does a write with this ``replace`` and ``partition`` replace it? Never null."""
    known_columns(spec, [*(item.column for item in replace), *(partition or {})])
    hit = pa.chunked_array([pa.repeat(pa.scalar(True), rows.num_rows)])
    for item in replace:
        if isinstance(item, ReplaceRange):
            hit = pc.and_(hit, _in_range(rows[item.column], item))
            continue
        kind = spec.schema.field(item.column).type
        hit = pc.and_(hit, pc.is_in(rows[item.column], value_set=pa.array(item.values, pa.string()).cast(kind)))
    for column, value in (partition or {}).items():
        equal = pc.equal(rows[column], pa.scalar(value, spec.schema.field(column).type))
        hit = pc.and_(hit, pc.fill_null(equal, False))
    return hit


def _in_range(column: pa.ChunkedArray, item: ReplaceRange) -> pa.ChunkedArray:
    hit = pc.is_valid(column)
    if item.low is not None:
        hit = pc.and_(hit, pc.fill_null(pc.greater_equal(column, item.low), False))
    if item.high is not None:
        hit = pc.and_(hit, pc.fill_null(pc.less(column, item.high), False))
    return hit


def check_replaced(
    spec: TableSpec, rows: pa.Table, replace: Sequence[Replaced], partition: dict[str, int] | None
) -> None:
    """Every written row must itself be one that the write replaces, or a repeat would double it."""
    outside = rows.num_rows - (pc.sum(matches(spec, rows, replace, partition)).as_py() or 0)
    if outside:
        raise IntegrityError(f"{outside} rows for table {spec.name} lie outside of what their write replaces")


def canonical_rows(spec: TableSpec, table: pa.Table) -> pa.Table:
    """The distinct rows without bookkeeping columns, sorted by key and then by all columns.

    The columns of ``table`` must be those of the schema, with or without the bookkeeping ones.
    """
    rows, _ = _canonical(spec, table)
    return rows


def canonical_hash(spec: TableSpec, table: pa.Table) -> str:
    """128-bit hash of the canonical rows, 32 hex digits.

    Equal for equal canonical rows, whatever their order, repeats, chunks or dictionary encoding.
    """
    rows, flat = _canonical(spec, table)
    digest = hashlib.blake2b(digest_size=16)
    digest.update(canonical_json([[field.name, str(field.type)] for field in rows.schema]).encode())
    digest.update(b"%d;" % rows.num_rows)
    for name in rows.column_names:
        for part in _bytes(flat[name]):
            digest.update(b"%d:" % len(part))
            digest.update(part)
    return digest.hexdigest()


def _canonical(spec: TableSpec, table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The canonical rows, and the same rows with every column flat."""
    names = [name for name in spec.schema.names if name not in spec.bookkeeping]
    rows = conform(spec, table.select([name for name in table.column_names if name not in spec.bookkeeping]), names)
    flat = pa.table({name: _flat(rows[name]) for name in names})
    order = [*spec.key, *(name for name in names if name not in spec.key)]
    numbered = flat.append_column("", pa.array(np.arange(rows.num_rows)))
    first = numbered.group_by(order, use_threads=False).aggregate([("", "min")])
    unique_keys = first.group_by(list(spec.key)).aggregate([]).num_rows == first.num_rows
    sort_by = list(spec.key) if unique_keys else order
    taken = first["_min"].take(pc.sort_indices(first, sort_keys=[(name, "ascending") for name in sort_by]))
    return rows.take(taken), flat.take(taken)


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that sorts, groups and hashes: nested values as JSON, -0.0 as 0.0."""
    if pa.types.is_nested(column.type):
        return pa.chunked_array(
            [pa.array([None if v is None else canonical_json(v) for v in column.to_pylist()], pa.string())]
        )
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def _bytes(column: pa.ChunkedArray) -> tuple[bytes, ...]:
    """Validity, then values (for strings: lengths, then data); what a null hides does not count."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    valid = np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes()
    if pa.types.is_string(array.type):
        filled = array.fill_null("")
        lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False).tobytes()
        return valid, lengths, "".join(filled.to_pylist()).encode()
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    filled = array.fill_null(False) if pa.types.is_boolean(array.type) else array.fill_null(0)
    return valid, filled.to_numpy(zero_copy_only=False).tobytes()
