"""The weekly proof that who was erased stays erased.

Belongs here: counting every place again for everybody with a tombstone. Does not belong here: deleting.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from memory_pipelines.erasure.places import KnownByKey, Stores, Target
from memory_pipelines.erasure.registry import PLACES
from memory_pipelines.erasure.requests import ERASED
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated
from memory_pipelines.tables import BEHAVIOUR, TURNS


@dataclass(frozen=True)
class Sweep:
    """``persons`` were looked for, of whom ``returned`` have spoken since and may be known again;
    ``survivors``: place → what it holds from before their erasure; ``owners``: whose it is."""

    persons: int
    returned: int
    survivors: dict[str, int]
    owners: tuple[str, ...]


def sweep(stores: Stores) -> Sweep:
    """Count again, by key alone, what every place holds of everybody erased. An erasure under way is left out."""
    erased = _erased(stores.engine)
    back = _returned(stores, {key: before for key, (_, before) in erased.items()})
    targets = [
        Target(KnownByKey(tenant, key), until=before if key in back else None)
        for key, (tenant, before) in sorted(erased.items())
    ]
    survivors: dict[str, int] = {}
    owners: set[str] = set()
    for place in PLACES:
        held = place.count(stores, targets)
        owners |= held.keys()
        if held:
            survivors[place.name] = sum(held.values())
    return Sweep(len(targets), len(back), survivors, tuple(sorted(owners)))


def _erased(engine: sa.Engine) -> dict[str, tuple[str, datetime]]:
    """Owner key → (tenant, tombstone's instant), of those whose last request is carried out."""
    table, stones = schema.erasures, schema.tombstones
    open_ = sa.select(table.c.owner).where(table.c.state != ERASED)
    query = (
        sa.select(table.c.owner, table.c.tenant, stones.c.before)
        .join(stones, stones.c.owner == table.c.owner)
        .where(table.c.owner.not_in(open_))
    )
    with translated(), engine.begin() as connection:
        return {row.owner: (row.tenant, row.before) for row in connection.execute(query)}


def _returned(stores: Stores, before: dict[str, datetime]) -> set[str]:
    """Keys of those with a landed or noted row since."""
    if not before:
        return set()
    since = [("occurred_at", ">=", min(before.values()))]
    turns = stores.lake.read(TURNS, columns=["tenant", "subject", "occurred_at"], where=since).to_pylist()
    named = [(Owner(r["tenant"], r["subject"]).key, r["occurred_at"]) for r in turns if r["subject"] is not None]
    where = [*since, ("owner", "in", sorted(before))]
    events = stores.lake.read(BEHAVIOUR, columns=["owner", "occurred_at"], where=where).to_pylist()
    noted = schema.journal
    with translated(), stores.engine.begin() as connection:
        query = sa.select(noted.c.owner, noted.c.occurred_at).where(noted.c.owner.in_(sorted(before)))
        said = [(row.owner, row.occurred_at) for row in connection.execute(query)]
    times = [*named, *said, *((row["owner"], row["occurred_at"]) for row in events)]
    return {key for key, at in times if key in before and at >= before[key]}
