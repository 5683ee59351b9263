"""Named model sets: which labelling models belong together, and a fingerprint of what they hold.

Belongs here: names and hashes, so that a label is a function of text and model set. Does not belong
here: the models. The sets are listed in ``slices/data/model_sets.yaml``, and a user's own in the home's
``model_sets.yaml``; a model that was trained from labelled rows stands in the set's name.
"""

import hashlib
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from memory_pipelines.errors import SettingError
from memory_pipelines.model import canonical_json

OWN_SETS = "model_sets.yaml"
STEPS = ("intent", "emotion", "entities")
ID_LENGTH = 12
"""Signs of a trained model's id in the name of its set."""


@dataclass(frozen=True)
class ModelSet:
    """A set as it is now. Two of one name and fingerprint are equal, and give equal labels.

    ``steps``: settings and files of each step; ``trained``: the start of the id of a step's trained model, if it has
    one; ``digests``: SHA-256 of each step's settings, files and trained model; ``fingerprint``: 16 hex digits over
    the digests; ``embedding``: the embedder's name."""

    name: str
    fingerprint: str
    steps: Mapping[str, Mapping[str, Any]] = field(compare=False, repr=False)
    trained: Mapping[str, str] = field(compare=False)
    digests: Mapping[str, str] = field(compare=False, repr=False)
    embedding: str = field(compare=False)


def parted(name: str) -> tuple[str, dict[str, str]]:
    """The listed set that a name begins with, and the start of the id of each step's trained model.

    ``base-2+intent-3f9c01ab27de`` is ``base-2`` with another intent model. Raises SettingError for another form."""
    listed, *parts = name.split("+")
    trained = {}
    for part in parts:
        step, _, start = part.partition("-")
        if step not in STEPS or step in trained or len(start) < ID_LENGTH:
            raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: {part} is no trained model of a step")
        trained[step] = start
    return listed, trained


def with_trained(name: str, step: str, model_id: str) -> str:
    """The name of the set that is ``name`` with a trained model of one step, beside those of other steps."""
    listed, trained = parted(name)
    trained[step] = model_id[:ID_LENGTH]
    return "+".join([listed, *(f"{step}-{trained[step]}" for step in STEPS if step in trained)])


def read_sets(home: Path | None = None) -> dict[str, Any]:
    """All sets by name: those that ship, and those of ``model_sets.yaml`` in the home, which extend one of them.

    Raises SettingError if a set of the home has a shipped one's name, or is not of the documented form."""
    shipped = _shipped()
    if home is None or not (home / OWN_SETS).exists():
        return shipped
    own = yaml.safe_load((home / OWN_SETS).read_text(encoding="utf-8"))
    if not isinstance(own, dict) or set(own) & set(shipped):
        raise SettingError(f"{OWN_SETS} of the home must name sets of its own: a released set never changes")
    return shipped | {name: _extended(block, shipped, home) for name, block in own.items()}


def load_model_set(name: str, home: Path | None = None) -> ModelSet:
    """The set of that name, its files read anew. Without a ``home`` only sets that ship are known.

    Raises SettingError if there is none of that name, or if a file of it cannot be read."""
    listed, trained = parted(name)
    sets = read_sets(home)
    if listed not in sets:
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: no such model set; known are {', '.join(sorted(sets))}")
    steps = {step: sets[listed][step] for step in STEPS}
    digests = {step: _digest(step, steps[step], trained.get(step, ""), home) for step in STEPS}
    fingerprint = hashlib.sha256(canonical_json(digests).encode()).hexdigest()[:16]
    return ModelSet(name, fingerprint, steps, trained, digests, sets[listed]["embedding"]["name"])


@cache
def shipped_set(name: str) -> ModelSet:
    """A set that ships; its files are read once a process, for they do not change. Raises SettingError."""
    return load_model_set(name)


def _data() -> Traversable:
    """The folder of package data, wherever the package is installed."""
    return importlib.resources.files("memory_pipelines.slices") / "data"


@cache
def _shipped() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(_data().joinpath("model_sets.yaml").read_text(encoding="utf-8"))
    return found


def _extended(own: Any, shipped: Mapping[str, Any], home: Path) -> dict[str, Any]:
    """A shipped set with a step's settings and files replaced or added; files are relative to the home."""
    try:
        base = shipped[own["extends"]]
        steps = {step: own.get(step, {}) for step in STEPS}
        return dict(base) | {
            step: base[step]
            | block
            | {"files": base[step]["files"] | {use: str(home / file) for use, file in block.get("files", {}).items()}}
            for step, block in steps.items()
        }
    except (AttributeError, KeyError, TypeError):
        raise SettingError(
            f"{OWN_SETS} of the home: a set extends a shipped one and may name files of its steps"
        ) from None


def _digest(step: str, block: Mapping[str, Any], trained: str, home: Path | None) -> str:
    """Of what decides a step's labels; where the home lies does not."""
    prefix = "" if home is None else f"{home}/"
    files = {use: file.removeprefix(prefix) for use, file in block["files"].items()}
    digest = hashlib.sha256(canonical_json([step, {**block, "files": files}]).encode())
    for file in sorted(block["files"].values(), key=lambda file: file.removeprefix(prefix)):
        if Path(file).is_absolute():
            try:
                digest.update(Path(file).read_bytes())
            except OSError as error:
                raise SettingError(f"a file of the model set cannot be read: {file} ({type(error).__name__})") from None
        else:
            digest.update(_shipped_hash(file))
    digest.update(trained.encode())
    return digest.hexdigest()


@cache
def _shipped_hash(file: str) -> bytes:
    return hashlib.sha256(_data().joinpath(file).read_bytes()).digest()
