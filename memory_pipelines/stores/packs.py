"""Packs in PostgreSQL: one row a subject, beside the row that says which epoch is current.

Belongs here: keeping packs, and telling which are not of the current epoch. Does not belong here: what is in one
(``recall.pack``), when it is made (``pipeline.packs``).
"""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import parts, translated, upsert

_TABLE = schema.packs


@dataclass(frozen=True)
class Kept:
    """A pack as it is kept. ``form``: what its vectors and its bytes are made with; ``left_out``: memories that the
    stores have to be asked for, since they did not fit. An empty ``body`` says that the subject has none of that epoch:
    nothing is visible of them, or it would be too large."""

    owner: Owner
    epoch: int
    form: str
    body: bytes
    left_out: int


class PackShelf:
    """The rows of ``packs``, over an engine of ``database.connect``."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def get(self, owner: Owner, epoch: int) -> bytes | None:
        """The subject's pack, if it is of the epoch."""
        wanted = (_TABLE.c.owner == owner.key, _TABLE.c.tenant == owner.tenant, _TABLE.c.epoch == epoch)
        return self._body(*wanted)

    def newest(self, owner: Owner) -> bytes | None:
        """The subject's pack of whatever epoch."""
        return self._body(_TABLE.c.owner == owner.key, _TABLE.c.tenant == owner.tenant)

    def put(self, pack: Kept) -> bool:
        """Keep a pack in the place of the subject's former one; False where its epoch is not the current one any more:
        somebody has published, or the subject is erased."""
        people = schema.people
        current = sa.select(people.c.owner).where(people.c.owner == pack.owner.key, people.c.epoch == pack.epoch)
        row = {
            "owner": pack.owner.key,
            "tenant": pack.owner.tenant,
            "epoch": pack.epoch,
            "form": pack.form,
            "size": len(pack.body),
            "left_out": pack.left_out,
            "body": pack.body,
        }
        with translated(), self._engine.begin() as connection:
            if connection.execute(current.with_for_update(read=True)).first() is None:
                return False
            upsert(connection, _TABLE, [row])
        return True

    def clear(self) -> None:
        """Forget everybody's."""
        with translated(), self._engine.begin() as connection:
            connection.execute(_TABLE.delete())

    def stale(self, form: str, owners: Collection[str] | None = None) -> list[Owner]:
        """Published subjects whose pack is missing, of another epoch or of another form: of some, or of everybody."""
        people = schema.people
        current = (_TABLE.c.epoch == people.c.epoch) & (_TABLE.c.form == form)
        query = (
            sa.select(people.c.tenant, people.c.subject)
            .outerjoin(_TABLE, (_TABLE.c.owner == people.c.owner) & current)
            .where(_TABLE.c.owner.is_(None))
            .order_by(people.c.owner)
        )
        chosen = [query] if owners is None else [query.where(people.c.owner.in_(p)) for p in parts(sorted(owners))]
        with translated(), self._engine.begin() as connection:
            return [Owner(*row) for one in chosen for row in connection.execute(one)]

    def totals(self) -> dict[str, int]:
        """Packs, their bytes, and memories whose vectors did not fit."""
        query = sa.select(
            sa.func.count().filter(_TABLE.c.size > 0).label("packs"),
            sa.func.coalesce(sa.func.sum(_TABLE.c.size), 0).label("bytes"),
            sa.func.coalesce(sa.func.sum(_TABLE.c.left_out), 0).label("left_out"),
        )
        with translated(), self._engine.begin() as connection:
            return {name: int(value) for name, value in connection.execute(query).mappings().one().items()}

    def _body(self, *wanted: sa.ColumnElement[bool]) -> bytes | None:
        with translated(), self._engine.begin() as connection:
            body = connection.execute(sa.select(_TABLE.c.body).where(*wanted)).scalar_one_or_none()
        return bytes(body) if body else None
