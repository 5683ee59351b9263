"""Intent models at rest: the files that ship in a model set, and the text that the model registry keeps.

Belongs here: reading and writing. Does not belong here: what a model does (``predict``) or how it is trained
(``fit``).
"""

import base64
import binascii
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import canonical_json
from memory_pipelines.slices.intent.features import BUCKETS
from memory_pipelines.slices.intent.model import HEADS, IntentModel, ontology_labels
from memory_pipelines.slices.intent.vectors import Landmarks, Part
from memory_pipelines.slices.resources import Named, data_folder, label_files, read_yaml

FORMAT = 1
HEADER = "# Written by python -m memory_pipelines.slices.intent.training; do not edit.\n"


@cache
def load_model(model_set: Named) -> IntentModel:
    """The intent model that ships in a set. Raises SettingError (no such set), IntegrityError (files disagree)."""
    files = label_files(model_set, "intent")
    ontology, card = read_yaml(files["ontology"]), read_yaml(files["card"])
    card = {**card, "labels": ontology_labels(ontology), "fallback": ontology["fallback"]}
    arrays = _arrays(data_folder().joinpath(files["weights"]).read_bytes())
    try:
        return _model(card, arrays)
    except (KeyError, ValueError):
        raise IntegrityError(f"the intent weights of model set {model_set} do not fit its ontology: retrain") from None


def save(model: IntentModel, card: dict[str, Any], weights: Path, card_file: Path) -> None:
    """Write a model that ships: arrays to ``weights``, settings and metrics (``card``) to ``card_file``."""
    weights.write_bytes(_packed(model))
    text = yaml.safe_dump({**_settings(model), **card}, sort_keys=True, allow_unicode=True)
    card_file.write_text(HEADER + text, encoding="utf-8")


def to_body(model: IntentModel) -> str:
    """The whole model as one JSON text: equal models give equal texts."""
    kept = {
        "format": FORMAT,
        "labels": {head: list(names) for head, names in model.labels.items()},
        "fallback": model.fallback,
        "arrays": base64.b64encode(_packed(model)).decode("ascii"),
    }
    return canonical_json(kept | _settings(model))


def from_body(body: str) -> IntentModel:
    """The model of :func:`to_body`. Raises IntegrityError for any other text."""
    try:
        kept = json.loads(body)
        if kept["format"] != FORMAT:
            raise ValueError("another format")
        return _model(kept, _arrays(base64.b64decode(kept["arrays"], validate=True)))
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise IntegrityError("the registered intent model cannot be read: retrain it") from None


def _settings(model: IntentModel) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "unit": model.unit,
        "temperatures": model.temperatures,
        "threshold": model.threshold,
    }
    if model.kernel is not None:
        settings["kernel"] = {
            "unit": model.kernel.unit,
            "weights": model.kernel_weights,
            "embedders": [[part.embedder, part.model_id] for part in model.kernel.parts],
        }
    return settings


def _packed(model: IntentModel) -> bytes:
    arrays: dict[str, NDArray[Any]] = {"weights": model.weights}
    if model.squares is not None:
        arrays["squares"] = model.squares
    if model.kernel is not None:
        arrays["coefficients"] = model.kernel.coefficients
        for i, part in enumerate(model.kernel.parts):
            arrays |= {f"mean{i}": part.mean, f"rows{i}": part.rows}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _model(card: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> IntentModel:
    """Raises ValueError or KeyError where arrays and card do not belong together."""
    labels = {head: tuple(card["labels"][head]) for head in HEADS}
    width = sum(map(len, labels.values()))
    weights = arrays["weights"]
    if weights.shape != (BUCKETS, width) or weights.dtype != np.int16:
        raise ValueError("weights of another shape")
    kernel, kernel_weights = None, None
    if "kernel" in card:
        coefficients = arrays["coefficients"]
        parts = tuple(
            Part(embedder, model_id, arrays[f"mean{i}"], arrays[f"rows{i}"])
            for i, (embedder, model_id) in enumerate(card["kernel"]["embedders"])
        )
        if {coefficients.shape} != {(len(part.rows) + 1, width) for part in parts} or coefficients.dtype != np.int16:
            raise ValueError("coefficients of another shape")
        kernel = Landmarks(parts, coefficients, float(card["kernel"]["unit"]))
        kernel_weights = {head: float(card["kernel"]["weights"][head]) for head in HEADS}
    return IntentModel(
        weights=weights,
        labels=labels,
        unit=float(card["unit"]),
        temperatures={head: float(card["temperatures"][head]) for head in HEADS},
        threshold=float(card["threshold"]),
        fallback=card["fallback"],
        squares=arrays.get("squares"),
        kernel=kernel,
        kernel_weights=kernel_weights,
    )
