"""Statements over any table of the relational store: many rows at once, and the driver's errors as the library's.

Belongs here: what every module that writes rows needs. Does not belong here: a table (``schema``).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.stores import tls

ROWS_PER_STATEMENT = 5_000
DISK_FULL = "53100"
"""PostgreSQL's code."""

T = TypeVar("T")


@contextmanager
def translated(setting: str = "MEMORY_PIPELINES_POSTGRES_URL") -> Iterator[None]:
    """The driver's errors as the library's, without their texts: those may quote a row.

    Raises StoreUnavailableError, SettingError on refused credentials, PermanentError on a refused statement or a full
    disk.
    """
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        cause = getattr(error, "orig", None) or error
        if "authentication failed" in str(cause):
            raise SettingError(f"the relational store refuses the user or password of {setting}") from None
        if refused := tls.distrusted("relational", cause):
            raise refused from None
        if getattr(cause, "sqlstate", None) == DISK_FULL:
            raise PermanentError(f"the disk of the relational store is full; make room, see {setting}") from None
        raise StoreUnavailableError("relational", setting, type(cause).__name__) from None
    except (sa.exc.SQLAlchemyError, UnicodeError) as error:
        reason = type(getattr(error, "orig", None) or error).__name__
        raise PermanentError(f"the relational store refuses a statement ({reason})") from None


def reading(engine: sa.Engine) -> sa.Engine:
    """The engine for reads of one statement: on PostgreSQL without a transaction, which takes two round trips more."""
    return engine.execution_options(isolation_level="AUTOCOMMIT") if engine.dialect.name == "postgresql" else engine


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in runs short enough for one statement."""
    for start in range(0, len(items), ROWS_PER_STATEMENT):
        yield items[start : start + ROWS_PER_STATEMENT]


def among(connection: sa.Connection, column: sa.ColumnElement[Any], values: Sequence[str]) -> sa.ColumnElement[bool]:
    """``column IN values``, for thousands of them: as parameters they take longer to send than the rows to find, and so
    do arrays, so they are one JSON text."""
    return column.in_(sa.select(texts_in(connection, sa.literal(list(values), sa.JSON())).c.value))


def texts_in(connection: sa.Connection, array: sa.ColumnElement[Any]) -> sa.TableValuedAlias:
    """The texts of a JSON array as rows of one column, ``value``."""
    each = sa.func.json_array_elements_text if connection.dialect.name == "postgresql" else sa.func.json_each
    return each(array).table_valued("value")


def upsert(
    connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]], update: Sequence[str] | None = None
) -> None:
    """Insert rows; on a known key set ``update`` columns (default all others; empty: leave the old row)."""
    if not rows:
        return
    key = [column.name for column in table.primary_key]
    names = [n for n in rows[0] if n not in key] if update is None else list(update)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table)
    if names:
        statement = statement.on_conflict_do_update(
            index_elements=key, set_={name: statement.excluded[name] for name in names}
        )
    else:
        statement = statement.on_conflict_do_nothing(index_elements=key)
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        connection.execute(statement, list(rows[start : start + ROWS_PER_STATEMENT]))


def insert_new(
    connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]], column: sa.Column[Any]
) -> set[Any]:
    """Insert the rows whose key is not known, all in one statement; returns their values of a column."""
    if not rows:
        return set()
    if connection.dialect.name != "postgresql":
        statement: Any = sqlite.insert(table).on_conflict_do_nothing().returning(column)
        return set(connection.execute(statement, list(rows)).scalars())
    columns = [table.c[name] for name in rows[0]]  # arrays of columns: a tenth of the time of a list of rows
    arrays = [sa.cast(sa.literal([row[c.name] for row in rows], sa.ARRAY(c.type)), sa.ARRAY(c.type)) for c in columns]
    found = sa.func.unnest(*arrays).table_valued(*(c.name for c in columns)).render_derived()
    statement = postgresql.insert(table).from_select([c.name for c in columns], sa.select(found))
    return set(connection.execute(statement.on_conflict_do_nothing().returning(column)).scalars())
