"""Trains the intent models that ship: ``python -m memory_pipelines.slices.intent.training``.

Belongs here: which rows and embedders make a shipped model, and its card. Does not belong here: numerics
(``fit``), metrics (``metrics``); users' models are trained by ``pipeline.trained``, with the same code.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from memory_pipelines.slices.intent.examples import ONTOLOGY, examples_hash, load_examples
from memory_pipelines.slices.intent.files import save
from memory_pipelines.slices.intent.fit import fit_model
from memory_pipelines.slices.intent.metrics import evaluate
from memory_pipelines.slices.intent.model import IntentModel, ontology_labels
from memory_pipelines.slices.resources import data_folder, read_yaml

KINDS: dict[str, tuple[str, ...]] = {"fast": (), "accurate": ("e5", "use")}
"""Embedders of each kind of model; the fast one reads n-grams only."""
FILES = {"fast": "intent_model_2", "accurate": "intent_accurate_2"}


@dataclass(frozen=True)
class Trained:
    """A model of all rows, and the card that ships beside it: what the same training gave on held-out templates."""

    model: IntentModel
    card: dict[str, Any]


def train(kind: str) -> Trained:
    """Fit on the training part, judge on held-out templates; then fit on all rows."""
    ontology = read_yaml(ONTOLOGY)
    labels, fallback = ontology_labels(ontology), ontology["fallback"]
    examples = load_examples()
    rows, held = ([e.row for e in examples if e.held_out is out] for out in (False, True))
    metrics = evaluate(fit_model(rows, labels, fallback, KINDS[kind]), held)
    card = {
        "rows": {"training": len(rows), "held_out": len(held)},
        "templates": {"training": len({r.group for r in rows}), "held_out": len({r.group for r in held})},
        "held_out": {head: found.as_json() for head, found in metrics.items()},
        "examples_sha256": examples_hash(),
    }
    return Trained(fit_model([e.row for e in examples], labels, fallback, KINDS[kind]), card)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the intent models from the labelled rows of the package.")
    parser.add_argument("--output", type=Path, default=Path(str(data_folder())), help="folder of the models' files")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    chosen = parser.parse_args(arguments)
    for kind in chosen.kinds:
        trained = train(kind)
        name = FILES[kind]
        save(trained.model, trained.card, chosen.output / f"{name}.npz", chosen.output / f"{name}.yaml")
        print(kind)
        print(yaml.safe_dump(trained.card, sort_keys=True), end="")


if __name__ == "__main__":
    main()
