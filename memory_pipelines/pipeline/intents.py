"""The intent model over the stores: labelled rows in, a challenger trained, judged, promoted; the model of a set.

Belongs here: reading, one call into ``slices``, writing. Does not belong here: numerics, metrics, verdicts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memory_pipelines.errors import InputError, SettingError
from memory_pipelines.model import stable_hash
from memory_pipelines.models.sets import ID_LENGTH, parted, with_trained
from memory_pipelines.pipeline.daily import Step
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.slices.intent.examples import ONTOLOGY, examples_hash, load_examples
from memory_pipelines.slices.intent.files import from_body, load_model, to_body
from memory_pipelines.slices.intent.fit import Row, fit_model
from memory_pipelines.slices.intent.labelled import Labelled, all_labels, read_labels, training_rows
from memory_pipelines.slices.intent.metrics import HeadMetrics, better, evaluate
from memory_pipelines.slices.intent.predict import IntentModel, label_intents, ontology_labels
from memory_pipelines.slices.resources import read_yaml
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.registry import ModelRow
from memory_pipelines.tables import LABELLED
from memory_pipelines.wiring import Platform

KIND = "intent"
FEWEST_HELD = 5


@dataclass(frozen=True)
class Trained:
    """A challenger with its metrics by head on the held-out rows, or why there is none.

    ``model_set`` is what an operator pins to label with it; ``verdict`` says whether it was promoted and why."""

    model_id: str = ""
    model_set: str = ""
    rows: int = 0
    metrics: Mapping[str, HeadMetrics] | None = None
    promoted: bool = False
    verdict: str = ""
    truth: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


@uses_lake
def import_labels(platform: Platform, file: Path) -> Labelled:
    """Bring the rows of a CSV file in, in place of those that came from a file of that name before.

    Raises InputError where the file cannot be read, or no row of it is good: the earlier ones stay."""
    found = read_labels(file)
    if not found.rows.num_rows:
        first = f"; row {found.faults[0][0]}: {found.faults[0][1]}" if found.faults else ""
        raise InputError(f"{file.name} has no good row, nothing was changed{first}")
    platform.lake.write(LABELLED, found.rows, [Replace("source", (file.name,))])
    return found


@uses_lake
def train_intents(platform: Platform) -> Trained:
    """Train on the labelled rows of the lake and on those that ship; promote what beats the current model.

    Both are judged on the same held-out labelled rows, which train no model ever. The kind of model, fast or
    accurate, is that of the settings' model set. Too few rows are no failure."""
    table = platform.lake.read(LABELLED)
    train, held = training_rows(table)
    if len(held) < FEWEST_HELD:
        return Trained(verdict=f"{table.num_rows} labelled rows: too few to train and to judge")
    base, _ = parted(platform.settings.model_set)
    shipped = load_model(base)
    embedders = [] if shipped.kernel is None else [part.embedder for part in shipped.kernel.parts]
    ontology = read_yaml(ONTOLOGY)
    rows = [*(example.row for example in load_examples()), *train]
    model = fit_model(rows, all_labels(ontology_labels(ontology), train), ontology["fallback"], embedders)
    metrics = evaluate(model, held)
    champion = platform.registry.champion(KIND)
    current = shipped if champion is None else from_body(champion.body)
    promote, reason = better(evaluate(current, held)["intent"], metrics["intent"])
    body = to_body(model)
    now = platform.clock.now()
    row = ModelRow(
        model_id=stable_hash(body),
        kind=KIND,
        created_at=now,
        data_from=now,
        data_to=now,
        data_hash=stable_hash(canonical_hash(LABELLED, table), examples_hash()),
        rows=len(rows),
        metrics=_as_json(metrics),
        verdict=reason,
        body=body,
    )
    if champion is not None and champion.model_id == row.model_id:
        promote, reason = True, "it is the current model already"
    platform.registry.add(row)
    platform.registry.judge(row.model_id, reason)
    if promote:
        platform.registry.promote(KIND, row.model_id, now, reason)
    return Trained(
        model_id=row.model_id,
        model_set=with_trained(base, KIND, row.model_id),
        rows=len(rows),
        metrics=metrics,
        promoted=promote,
        verdict=reason,
        truth=tuple(_intent(row) for row in held),
        given=tuple(label.intent for label in model.classify([row.text for row in held])),
    )


def intent_step(platform: Platform) -> Step:
    """Step 2 with the intent model of the settings' model set. Raises SettingError if the registry does not know it."""
    return partial(label_intents, model=model_of(platform, platform.settings.model_set))


def model_of(platform: Platform, model_set: str) -> IntentModel:
    """The intent model of a set: a registered one, or the one that ships."""
    _, trained = parted(model_set)
    if not trained:
        return load_model(model_set)
    start = trained.removeprefix(f"{KIND}-")
    found = platform.registry.beginning(KIND, start) if len(start) >= ID_LENGTH else []
    if len(found) != 1:
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: the registry has no intent model {start}")
    return from_body(found[0].body)


def _intent(row: Row) -> str:
    return row.labels[0] or ""


def _as_json(metrics: Mapping[str, HeadMetrics]) -> dict[str, Any]:
    return {head: found.as_json() for head, found in metrics.items()}
