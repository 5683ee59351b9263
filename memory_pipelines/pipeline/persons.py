"""Whose behaviour counts for whom: that of all subjects of the person, for scores, explanations and training alike.

Belongs here: reading it. Does not belong here: who is one person (``stores.persons``), when two subjects tell one event
(``slices.events``).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.pipeline.owned import placed, rows_of, times_of
from memory_pipelines.slices.events import events_of_persons, settled_events
from memory_pipelines.tables import BEHAVIOUR, TIME
from memory_pipelines.wiring import Platform

Where = Sequence[tuple[str, str, object]]
Others = Mapping[str, Collection[str]]
"""Owner key → keys of the other subjects of the same person; owners without any are left out."""


def behaviour_of(platform: Platform, owners: Collection[str], where: Where) -> pa.Table:
    """BEHAVIOUR rows of the owners, whom ``where`` finds: each event once, and as theirs what the other subjects of
    their persons did."""
    rows, others = _joined(platform, owners, platform.lake.read(BEHAVIOUR, where=where))
    return events_of_persons(settled_events(rows), others)


def behaviour_ahead(
    platform: Platform, owners: Collection[str], rows: pa.Table, as_of: datetime
) -> dict[str, list[datetime]]:
    """Owner key → times, not before ``as_of``, of what has landed of the owner's person; ``rows``: the owners' own."""
    rows, others = _joined(platform, owners, rows)
    times = times_of(rows.filter(pc.greater_equal(rows["occurred_at"], pa.scalar(as_of, TIME))))
    return {owner: [at for key in (owner, *others.get(owner, ())) for at in times.get(key, ())] for owner in owners}


def everybodys_behaviour(platform: Platform) -> tuple[pa.Table, Others]:
    """``behaviour_of`` everybody, and who is one person."""
    others = platform.links.others_of()
    return events_of_persons(settled_events(platform.lake.read(BEHAVIOUR)), others), others


def _joined(platform: Platform, owners: Collection[str], rows: pa.Table) -> tuple[pa.Table, Others]:
    """The owners' rows and those of the others of their persons. These are read only where there are any: for nearly
    everybody a person is one query more, of the links."""
    others = platform.links.others_of(owners)
    elsewhere = frozenset[str]().union(*others.values()) - frozenset(owners)
    if elsewhere:
        places = rows_of(placed(elsewhere, platform.settings.buckets))
        rows = pa.concat_tables([rows, platform.lake.read(BEHAVIOUR, where=places)])
    return rows, others
