"""Models of labelled rows over the stores: rows in, a challenger trained, judged, promoted; for steps 2 to 4 alike.

Belongs here: reading, one call of a learner, writing. Does not belong here: what a step learns (``learners``), nor
which model labels (``model_sets``).
"""

from dataclasses import dataclass
from pathlib import Path

from memory_pipelines.errors import InputError
from memory_pipelines.model import stable_hash
from memory_pipelines.models.sets import with_trained
from memory_pipelines.pipeline.learners import LEARNERS, Learned
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.model_sets import model_set_of
from memory_pipelines.slices.labelled import Labelled, parts, read_labels
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.registry import ModelRow
from memory_pipelines.tables import LABELLED
from memory_pipelines.wiring import Platform

FEWEST_HELD = 5


@dataclass(frozen=True)
class Trained:
    """A challenger and what was found of it, or (``learned`` is None) in ``verdict`` why there is none.

    ``model_set`` is what an operator pins to label with it; ``verdict`` says whether it was promoted and why."""

    verdict: str
    learned: Learned | None = None
    model_id: str = ""
    model_set: str = ""
    held_out: int = 0
    promoted: bool = False


@uses_lake
def import_labels(platform: Platform, file: Path) -> Labelled:
    """Bring the rows of a file in, in place of those that came from a file of that name before.

    Raises InputError where the file cannot be read, or no row of it is good: the earlier ones stay."""
    found = read_labels(file)
    if not found.rows.num_rows:
        first = f"; row {found.faults[0][0]}: {found.faults[0][1]}" if found.faults else ""
        raise InputError(f"{file.name} has no good row, nothing was changed{first}")
    platform.lake.write(LABELLED, found.rows, [Replace("source", (file.name,))])
    return found


@uses_lake
def train(platform: Platform, kind: str) -> Trained:
    """Train the model of a step (``intent``, ``emotion``, ``entities``) on its labelled rows; promote what beats the
    current model on the held-out ones, which train no model ever.

    The current model is the champion, or that of the settings' model set. Too few rows are no failure."""
    table = platform.lake.read(LABELLED, where=[("kind", "=", kind)])
    rows, held = parts(table, kind)
    if len(held) < FEWEST_HELD:
        return Trained(f"{table.num_rows} labelled rows: too few to train and to judge")
    champion = platform.registry.champion(kind)
    try:
        learned = LEARNERS[kind](model_set_of(platform), None if champion is None else champion.body, rows, held)
    except InputError as error:
        return Trained(str(error))
    now = platform.clock.now()
    row = ModelRow(
        model_id=stable_hash(learned.body),
        kind=kind,
        created_at=now,
        data_from=now,
        data_to=now,
        data_hash=stable_hash(canonical_hash(LABELLED, table), learned.sources),
        rows=learned.rows,
        metrics=dict(learned.metrics),
        verdict=learned.reason,
        body=learned.body,
    )
    promote, reason = learned.better, learned.reason
    if champion is not None and champion.model_id == row.model_id:
        promote, reason = True, "it is the current model already"
    platform.registry.add(row)
    platform.registry.judge(row.model_id, reason)
    if promote:
        platform.registry.promote(kind, row.model_id, now, reason)
    name = with_trained(platform.settings.model_set, kind, row.model_id)
    return Trained(reason, learned, row.model_id, name, len(held), promote)
