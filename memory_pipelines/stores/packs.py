"""Packs in PostgreSQL: one row a subject, beside the row that says which epoch is current.

Belongs here: keeping packs, and telling which are not of the current epoch. Does not belong here: what is in one
(``recall.pack``), when it is made (``pipeline.packs``).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

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
        with translated(), self._engine.begin() as connection:
            body = connection.execute(sa.select(_TABLE.c.body).where(*wanted)).scalar_one_or_none()
        return bytes(body) if body else None

    def newest(self, owners: Collection[str]) -> dict[str, bytes]:
        """Owner key → the subject's pack of whatever epoch."""
        query = sa.select(_TABLE.c.owner, _TABLE.c.body).where(_TABLE.c.size > 0)
        with translated(), self._engine.begin() as connection:
            return {
                row.owner: bytes(row.body)
                for part in parts(sorted(owners))
                for row in connection.execute(query.where(_TABLE.c.owner.in_(part)))
            }

    def put(self, packs: Sequence[Kept]) -> set[Owner]:
        """Keep packs in the place of the subjects' former ones; returns whose were kept. One whose epoch is not the
        current one any more is not: somebody has published, or the subject is erased."""
        people = schema.people
        owners = sorted(pack.owner.key for pack in packs)  # the order of publishers: neither waits for the other
        with translated(), self._engine.begin() as connection:
            current: dict[str, int] = {}
            for part in parts(owners):
                epochs = sa.select(people.c.owner, people.c.epoch).where(people.c.owner.in_(part))
                held = epochs.order_by(people.c.owner).with_for_update(read=True)
                current |= {row.owner: row.epoch for row in connection.execute(held)}
            kept = [pack for pack in packs if current.get(pack.owner.key) == pack.epoch]
            upsert(connection, _TABLE, [_row(pack) for pack in kept])
        return {pack.owner for pack in kept}

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


def _row(pack: Kept) -> dict[str, Any]:
    return {
        "owner": pack.owner.key,
        "tenant": pack.owner.tenant,
        "epoch": pack.epoch,
        "form": pack.form,
        "size": len(pack.body),
        "left_out": pack.left_out,
        "body": pack.body,
    }
