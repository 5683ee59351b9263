"""The model registry in the relational store: every model that was trained, and which one is in use.

Belongs here: rows of ``models`` and ``promotions``. Does not belong here: what a model is or who deserves to be
champion (``reward``).
"""

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.errors import IntegrityError, PermanentError
from memory_pipelines.model import stable_hash
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated, upsert


@dataclass(frozen=True)
class ModelRow:
    """One trained model. ``model_id`` = ``stable_hash(body)``; it learned from ``rows`` rows of [data_from, data_to).

    ``metrics`` are JSON values (no NaN); ``verdict`` says whether it was promoted and why."""

    model_id: str
    kind: str
    created_at: datetime
    data_from: datetime
    data_to: datetime
    data_hash: str
    rows: int
    metrics: dict[str, Any]
    verdict: str
    body: str


@dataclass(frozen=True)
class Promotion:
    """When a model came into use, and why; a roll-back is one too."""

    at: datetime
    model_id: str
    reason: str


_COLUMNS = [schema.models.c[field.name] for field in fields(ModelRow)]


class ModelRegistry:
    """Models by kind. Raises StoreUnavailableError where the database does not answer."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def add(self, row: ModelRow) -> None:
        """Keep a model; one that is known already stays as it is. Raises IntegrityError if the id is not the body's."""
        if row.model_id != stable_hash(row.body):
            raise IntegrityError(f"model {row.model_id} is not the hash of its body")
        with translated(), self._engine.begin() as connection:
            upsert(connection, schema.models, [asdict(row)], update=())

    def judge(self, model_id: str, verdict: str) -> None:
        """Note why a model was promoted or not."""
        table = schema.models
        with translated(), self._engine.begin() as connection:
            connection.execute(table.update().where(table.c.model_id == model_id).values(verdict=verdict))

    def rows(self, kind: str) -> list[ModelRow]:
        """All models of a kind, newest first."""
        table = schema.models
        statement = (
            sa.select(*_COLUMNS).where(table.c.kind == kind).order_by(table.c.created_at.desc(), table.c.model_id)
        )
        with translated(), self._engine.connect() as connection:
            return [_row(found) for found in connection.execute(statement)]

    def beginning(self, kind: str, start: str) -> list[ModelRow]:
        """The models of a kind whose ids begin like this."""
        table = schema.models
        statement = sa.select(*_COLUMNS).where(
            table.c.kind == kind, table.c.model_id.startswith(start, autoescape=True)
        )
        with translated(), self._engine.connect() as connection:
            return [_row(found) for found in connection.execute(statement.order_by(table.c.model_id))]

    def champion(self, kind: str) -> ModelRow | None:
        """The model in use: that of the newest promotion. Raises IntegrityError if its body was changed."""
        promotions = schema.promotions
        statement = (
            sa.select(*_COLUMNS)
            .join(promotions, promotions.c.model_id == schema.models.c.model_id)
            .where(promotions.c.kind == kind)
            .order_by(promotions.c.promotion_id.desc())
            .limit(1)
        )
        with translated(), self._engine.connect() as connection:
            found = connection.execute(statement).one_or_none()
        if found is None:
            return None
        row = _row(found)
        if row.model_id != stable_hash(row.body):
            raise IntegrityError(f"model {row.model_id} is not the hash of its body")
        return row

    def promotions(self, kind: str, most: int) -> list[Promotion]:
        """The newest promotions and roll-backs of a kind, newest first."""
        table = schema.promotions
        statement = sa.select(table.c.at, table.c.model_id, table.c.reason).where(table.c.kind == kind)
        with translated(), self._engine.connect() as connection:
            found = connection.execute(statement.order_by(table.c.promotion_id.desc()).limit(most))
            return [Promotion(*row) for row in found]

    def promote(self, kind: str, model_id: str, at: datetime, reason: str) -> None:
        """Bring a model into use; nothing happens if it is. Raises PermanentError if the kind has no such model."""
        with translated(), self._engine.begin() as connection:
            _lock(connection)
            known = sa.select(schema.models.c.model_id).where(
                schema.models.c.model_id == model_id, schema.models.c.kind == kind
            )
            if connection.execute(known).one_or_none() is None:
                raise PermanentError(f"no model {model_id} of kind {kind} is registered")
            line = _line(connection, kind)
            if not line or line[-1] != model_id:
                _promote(connection, kind, model_id, at, reason)

    def roll_back(self, kind: str, at: datetime) -> str:
        """Bring the model before the current one into use and return its id; again: the one before that.

        A repeated call with the same ``at`` changes nothing. Raises PermanentError if there was none before.
        """
        with translated(), self._engine.begin() as connection:
            _lock(connection)
            line = _line(connection, kind)
            reason = "rolled back at " + at.isoformat()
            newest = connection.execute(
                sa.select(schema.promotions.c.reason)
                .where(schema.promotions.c.kind == kind)
                .order_by(schema.promotions.c.promotion_id.desc())
                .limit(1)
            ).scalar_one_or_none()
            if newest == reason:
                return line[-1]
            if len(line) < 2:
                raise PermanentError(f"no earlier model of kind {kind} to roll back to")
            _promote(connection, kind, line[-2], at, reason)
            return line[-2]


def _row(found: sa.Row[Any]) -> ModelRow:
    return ModelRow(**found._mapping)


def _lock(connection: sa.Connection) -> None:
    """Two promotions at once must see each other."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("LOCK TABLE promotions IN SHARE ROW EXCLUSIVE MODE"))


def _line(connection: sa.Connection, kind: str) -> list[str]:
    """Models that led to the one in use, which is the last; coming back to one drops those after it."""
    table = schema.promotions
    line: list[str] = []
    for model_id in connection.execute(
        sa.select(table.c.model_id).where(table.c.kind == kind).order_by(table.c.promotion_id)
    ).scalars():
        if model_id in line:
            del line[line.index(model_id) :]
        line.append(model_id)
    return line


def _promote(connection: sa.Connection, kind: str, model_id: str, at: datetime, reason: str) -> None:
    row = {"kind": kind, "model_id": model_id, "at": at, "reason": reason}
    connection.execute(schema.promotions.insert().values(row))
