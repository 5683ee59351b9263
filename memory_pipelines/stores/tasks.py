"""Follow-ups of weekly reflections, in the relational store.

Belongs here: their rows. Does not belong here: what is proposed (``reflection``). Owners are owner keys.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated, upsert


class TaskList:
    """Tasks by owner, over an engine of ``database.connect``."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def replace_week(self, week: str, tasks: Sequence[dict[str, Any]]) -> None:
        """Make ``tasks`` the open ones that the reflection of a week proposed; done ones stay, and stay done."""
        table = schema.reflection_tasks
        kept = {task["task_id"] for task in tasks}
        with translated(), self._engine.begin() as connection:
            stale = sa.select(table.c.task_id).where(table.c.week == week, table.c.done.is_(False))
            gone = [task_id for task_id in connection.execute(stale).scalars() if task_id not in kept]
            if gone:
                connection.execute(table.delete().where(table.c.task_id.in_(gone)))
            upsert(connection, table, list(tasks), update=("text", "due_at"))

    def open_tasks(self, owner: str) -> list[dict[str, Any]]:
        """An owner's tasks that are not done, the next due first."""
        table = schema.reflection_tasks
        query = sa.select(table).where(table.c.owner == owner, table.c.done.is_(False))
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(query.order_by(table.c.due_at, table.c.task_id)).mappings().all()
        return [dict(row) for row in rows]

    def finish(self, task_id: str) -> None:
        """A task is done; an unknown one is no error, since its week may have been reflected anew."""
        table = schema.reflection_tasks
        with translated(), self._engine.begin() as connection:
            connection.execute(table.update().where(table.c.task_id == task_id).values(done=True))
