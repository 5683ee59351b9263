"""Migrations of the relational schema, run by Alembic when somebody connects.

Belongs here: bringing a database to the newest schema, one revision a module of ``versions``. Does not belong here:
the tables as they are now (``schema``); a revision never uses them, it says what it changes. The formats of the other
stores are ``stores.formats``.

An empty database gets the newest tables at once; a test compares them with those that the revisions make.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memory_pipelines.errors import IntegrityError
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import upsert

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

NEWEST = "8"
"""The revision that the tables of ``schema`` are at: to know it needs no Alembic, whose import takes a while."""
BASELINE = "2"
"""The schema that databases without a note of Alembic's have; they note it in ``schema_version``."""


def bring_up(connection: sa.Connection, setting: str) -> None:
    """Create the tables, or migrate older ones, in the caller's transaction: all of it, or nothing.

    Raises IntegrityError if the tables are a newer version's, or nobody's."""
    found = current(connection)
    if found == NEWEST:
        return
    if found is None:
        schema.metadata.create_all(connection)
        upsert(connection, schema.alembic_version, [{"version_num": NEWEST}], update=())
        return
    if found not in known():
        raise IntegrityError(_other(setting, found))
    _upgrade(connection, found)


def demand_newest(connection: sa.Connection, setting: str) -> None:
    """For those who may change nothing. Raises IntegrityError if the tables are not the newest ones."""
    found = current(connection)
    if found != NEWEST:
        raise IntegrityError(_other(setting, found))


def current(connection: sa.Connection) -> str | None:
    """The revision of the tables; None where there are none."""
    table = schema.alembic_version
    inspector = sa.inspect(connection)
    if inspector.has_table(table.name):
        noted: str | None = connection.execute(sa.select(table.c.version_num)).scalar_one_or_none()
        return noted
    if not inspector.has_table("schema_version"):
        return None
    before = connection.execute(sa.text("SELECT max(version) FROM schema_version")).scalar_one_or_none()
    return None if before is None else str(before)


@cache
def known() -> dict[str, Any]:
    """Revision → its module, oldest first."""
    revisions: Iterable[Any] = reversed(list(_scripts().walk_revisions()))
    return {script.revision: script.module for script in revisions}


@cache
def _scripts() -> "ScriptDirectory":
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "memory_pipelines.stores:migrations")
    return ScriptDirectory.from_config(config)


def _upgrade(connection: sa.Connection, found: str) -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    context = MigrationContext.configure(connection)
    if found == BASELINE and not sa.inspect(connection).has_table(schema.alembic_version.name):
        context.stamp(_scripts(), BASELINE)
    later = list(known())[list(known()).index(found) + 1 :]
    with Operations.context(context):
        for revision in later:
            known()[revision].upgrade()
    context.stamp(_scripts(), later[-1])


def _other(setting: str, found: str | None) -> str:
    return f"the database of {setting} has schema {found}, this version needs {NEWEST}"
