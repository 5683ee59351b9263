"""Labelled rows of users as rows that train an intent model.

Belongs here: from LABELLED to ``fit.Row``. Does not belong here: what a row must hold (``slices.labelled``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memory_pipelines.slices.intent.fit import Row
from memory_pipelines.slices.language import fold


def training_rows(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rows of LABELLED of the kind ``intent`` as those that train."""
    return [Row(row["text"], (row["intent"], row["action"], row["category"]), fold(row["text"])) for row in rows]


def all_labels(shipped: dict[str, tuple[str, ...]], rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """The shipped labels by head, then those that only ``rows`` have, sorted."""
    found = {}
    for h, (head, names) in enumerate(shipped.items()):
        found[head] = (*names, *sorted({name for row in rows if (name := row.labels[h])} - set(names)))
    return found
