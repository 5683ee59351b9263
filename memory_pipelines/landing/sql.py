"""Rows of a SQL table, incrementally by a column that grows, such as an id or the time of the last change.

Belongs here: reading pages of a table, and how far it was read. Does not belong here: files (``sources``), what rows
mean (``normalise``). Memory holds one page. The password stays in the environment variable that holds the URL.
"""

import json
import os
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Dict
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from memory_pipelines.errors import InputError, StoreUnavailableError
from memory_pipelines.landing.land import CHUNK_CHARACTERS
from memory_pipelines.landing.mapping import Mapping
from memory_pipelines.landing.readers import RawRow
from memory_pipelines.model import canonical_json, stable_hash
from memory_pipelines.stores.notes import Watermark

FORMAT = "sql"
PIECE = 1_000
"""Rows that the driver fetches at a time."""
CONNECT_SECONDS = 10
MOST_EDGE = 10_000
"""Rows with just the last value that are remembered; of more the rest is read again, and found to be duplicates."""

_PARSE: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "Decimal": Decimal,
}


@dataclass(frozen=True)
class SqlTable:
    """A table to read. ``variable`` names the environment variable with the database's SQLAlchemy URL; ``by`` is the
    column that grows."""

    variable: str
    table: str
    by: str

    @property
    def name(self) -> str:
        """What the ledger and messages call it."""
        return f"sql:{self.variable}/{self.table}"

    @property
    def file_id(self) -> str:
        """Its identity in the ledger; another URL in the variable is the same table, moved."""
        return stable_hash("sql", self.variable, self.table, self.by)

    def pages(
        self, after: Watermark | None, first: int, size: int, mapping: Mapping | None
    ) -> Iterator[tuple[list[RawRow], Watermark]]:
        """The rows from a watermark on, in the column's order, in runs of at most ``size``, each with the watermark
        after it.

        ``first``: position of the first row. Rows whose column is null are not read (see ``without``).
        Raises InputError (no such variable, table or column, or one without an order), StoreUnavailableError."""
        value = None if after is None else _load(after.value)
        edge: set[str] = set() if after is None else set(after.edge)
        read_before = frozenset(edge)
        with self._connected() as (connection, table):
            by = table.c[self.by]
            query = sa.select(table).where(by.is_not(None) if value is None else by >= value)
            ties = [column for column in table.primary_key.columns if column is not by]
            found = connection.execution_options(stream_results=True, max_row_buffer=PIECE).execute(
                query.order_by(by, *ties)
            )
            began, rows, characters = value, list[RawRow](), 0
            for row in found.mappings():
                raw = _raw(row)
                known = stable_hash(raw)
                if row[by] == began and known in read_before:
                    continue
                if row[by] != value:
                    value, edge = row[by], set()
                if len(edge) < MOST_EDGE:
                    edge.add(known)
                rows.append(_parsed(raw, first, mapping))
                first += 1
                characters += len(raw)
                if len(rows) == size or characters >= CHUNK_CHARACTERS:
                    yield rows, Watermark(_dump(value), frozenset(edge))
                    rows, characters = [], 0
            if rows:
                yield rows, Watermark(_dump(value), frozenset(edge))

    def without(self) -> int:
        """How many rows have no value in the column, and are never read."""
        with self._connected() as (connection, table):
            counted = sa.select(sa.func.count()).select_from(table).where(table.c[self.by].is_(None))
            return int(connection.execute(counted).scalar_one())

    @contextmanager
    def _connected(self) -> Iterator[tuple[sa.Connection, sa.Table]]:
        url = os.environ.get(self.variable, "")
        if not url:
            raise InputError(f"the environment variable {self.variable} holds no SQLAlchemy URL")
        with _translated(self.name):
            engine = _engine(url, self.variable)
        try:
            with _translated(self.name), engine.connect() as connection:
                schema, _, name = self.table.rpartition(".")
                table = sa.Table(name, sa.MetaData(), schema=schema or None, autoload_with=connection)
                if self.by not in table.c:
                    raise InputError(f"{self.name} has no column {self.by}")
                connection.rollback()
                yield connection, table
        finally:
            engine.dispose()


def _engine(url: str, variable: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        options: dict[str, Any] = {"hide_parameters": True}
        if parsed.get_backend_name() == "postgresql" and "connect_timeout" not in parsed.query:
            options["connect_args"] = {"connect_timeout": CONNECT_SECONDS}
        return sa.create_engine(parsed, **options)
    except (sa.exc.ArgumentError, ImportError, ValueError):
        raise InputError(
            f"{variable} must be a SQLAlchemy URL such as postgresql+psycopg://user@host/database"
        ) from None


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """The driver's errors without their texts: those may quote a row or the URL."""
    try:
        yield
    except sa.exc.NoSuchTableError:
        raise InputError(f"{name}: there is no such table") from None
    except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
        raise StoreUnavailableError(name, name.removeprefix("sql:").partition("/")[0], type(error).__name__) from None
    except sa.exc.SQLAlchemyError as error:
        raise InputError(f"{name} cannot be read ({type(getattr(error, 'orig', None) or error).__name__})") from None


def _load(value: Dict[str, str]) -> Any:
    return _PARSE[value["type"]](value["value"])


def _dump(value: Any) -> dict[str, str]:
    kind = type(value).__name__
    if kind not in _PARSE:
        raise InputError(f"a column of {kind} tells no order to go on by")
    return {"type": kind, "value": value.isoformat() if isinstance(value, date) else str(value)}


def _raw(row: Any) -> str:
    return canonical_json({name: _plain(value) for name, value in row.items()})


def _plain(value: Any) -> Any:
    """A column's value as JSON knows it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict | list):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)


def _parsed(raw: str, position: int, mapping: Mapping | None) -> RawRow:
    row = json.loads(raw)
    return RawRow(position, row if mapping is None else mapping.apply(row), raw)
