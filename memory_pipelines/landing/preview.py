"""What landing a source would do, without doing it.

Belongs here: counting. Does not belong here: any store. The rules of step 1 are passed in as ``clean``, as for
landing.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from memory_pipelines.errors import InputError
from memory_pipelines.landing.land import CHUNK_ROWS, Clean, MappingFile, Stream, source_format, take
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.sources import Source
from memory_pipelines.tables import TURNS


@dataclass
class Preview:
    """Counts of one source. ``known``: new, known, grown, or empty where no ledger was asked; ``first`` and ``last``
    are the days of its rows; ``fault`` says why it could not be read on."""

    name: str
    format: str = ""
    mapping: str = ""
    known: str = ""
    rows: int = 0
    turns: int = 0
    behaviour: int = 0
    filtered: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    first: str = ""
    last: str = ""
    fault: str = ""


def preview(
    source: Source, mapping: MappingFile | None, *, clean: Clean, default_tenant: str, buckets: int, at: datetime
) -> Preview:
    """Read a source as landing would at an instant. It raises nothing: what cannot be read is a ``fault``."""
    found = Preview(source.name, mapping="" if mapping is None else mapping.path)
    try:
        found.format = source_format(source, mapping)
    except InputError as error:
        found.fault = str(error)
        return found
    normalise = Normaliser(source.key, default_tenant, buckets, at)
    with Stream(source, found.format, mapping) as stream:
        while rows := take(stream, CHUNK_ROWS):
            turns = []
            for raw in rows:
                kind, row = normalise(raw)
                if kind == "turn":
                    turns.append(row)
                elif kind == "behaviour":
                    found.behaviour += 1
                    _note_day(found, row["day"])
                else:
                    found.quarantined[row["reason"]] += 1
            kept, filtered = clean(pa.Table.from_pylist(turns, schema=TURNS.schema))
            found.rows += len(rows)
            found.turns += kept.num_rows
            found.filtered.update(filtered)
            for day in kept["day"].unique().to_pylist():
                _note_day(found, day)
    if stream.fault is not None:
        found.fault = str(stream.fault)
    return found


def _note_day(found: Preview, day: str) -> None:
    found.first = min(found.first or day, day)
    found.last = max(found.last, day)
