"""What an erasure would do: counts by place, and what has to be made anew afterwards.

Belongs here: looking. Does not belong here: changing anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from memory_pipelines.erasure.landed import trace
from memory_pipelines.erasure.linked import LINKED
from memory_pipelines.erasure.places import Place, Stores, Target
from memory_pipelines.erasure.registry import PLACES, QUOTES
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated
from memory_pipelines.tables import REWARD_EVENTS


@dataclass(frozen=True)
class Plan:
    """``counts``: what every place holds of the person; ``touched_days`` are to be cut anew and ``touched_owners``
    (keys of others whose rows quote the person, or who are linked with it) derived anew; ``models`` learnt from the
    person's rows."""

    owner: str
    counts: dict[str, int]
    touched_days: tuple[str, ...]
    touched_owners: tuple[str, ...]
    models: tuple[str, ...]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def dry_run(stores: Stores, owner: Owner) -> Plan:
    """The plan of an erasure; every store is read, none is changed."""
    target = Target(owner, trace(stores.lake, owner))
    return Plan(
        owner.key,
        look(stores, target, PLACES),
        tuple(sorted(target.trace.around)),
        tuple(sorted(quoting(stores, target))),
        tuple(models_of(stores, owner)),
    )


def look(stores: Stores, target: Target, places: Iterable[Place]) -> dict[str, int]:
    """Place → what it holds of the target, also where it is nothing."""
    return {place.name: place.count(stores, [target]).get(target.key, 0) for place in places}


def quoting(stores: Stores, target: Target) -> set[str]:
    """Keys of others whose rows quote the target or count what it did."""
    return {owner for quote in QUOTES for owner in quote.owners(stores, target)}


def models_of(stores: Stores, owner: Owner) -> list[str]:
    """Ids of models whose training range holds a training row of the owner, or of a subject linked with it."""
    owners = [owner.key, *LINKED.owners(stores, Target(owner))]
    rows = stores.lake.read(REWARD_EVENTS, columns=["occurred_at"], where=[("owner", "in", owners)])
    times = rows["occurred_at"].to_pylist()
    table = schema.models
    with translated(), stores.engine.begin() as connection:
        ranges = connection.execute(sa.select(table.c.model_id, table.c.data_from, table.c.data_to)).all()
    return sorted(model for model, first, last in ranges if any(first <= at <= last for at in times))
