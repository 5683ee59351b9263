"""The form in which the stores beside PostgreSQL keep things, by number: what another version wrote is never misread.

Belongs here: the numbers, and comparing them. Does not belong here: the relational schema (``migrations``).

A number grows when what is stored can no longer be read as before. Vector, graph and cold store are then made again
(``memory-pipelines stores rebuild``), a lake table is derived or landed anew. A column that a lake table gains needs no
number: it is null in old rows.
"""

import sqlalchemy as sa

from memory_pipelines.errors import IntegrityError
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated, upsert

FORMATS = {"lake": 1, "vector": 1, "graph": 1, "cold": 1}
_PREFIX = "format."


def fix(engine: sa.Engine) -> None:
    """Note the formats on first use. Raises IntegrityError where a store was written in another one."""
    table = schema.counters
    with translated(), engine.begin() as connection:
        rows = [{"name": f"{_PREFIX}{store}", "value": number} for store, number in FORMATS.items()]
        upsert(connection, table, rows, update=())
        found = connection.execute(sa.select(table).where(table.c.name.startswith(_PREFIX))).all()
    for name, number in found:
        store = name.removeprefix(_PREFIX)
        if FORMATS.get(store) != number:
            raise IntegrityError(f"the {store} store has format {number}, this version writes {FORMATS.get(store)}")
