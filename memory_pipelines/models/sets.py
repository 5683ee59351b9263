"""Named model sets: which labelling models belong together, and a fingerprint of what they hold.

Belongs here: names and hashes, so that a label is a function of text and model set. Does not belong
here: the models. The sets are listed in ``slices/data/model_sets.yaml``, and a user's own in the home's
``model_sets.yaml``.
"""

import hashlib
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from memory_pipelines.errors import SettingError
from memory_pipelines.model import canonical_json
from memory_pipelines.settings import Settings

OWN_SETS = "model_sets.yaml"
STEPS = ("intent", "emotion", "entities")


@dataclass(frozen=True)
class ModelSet:
    """``digests``: SHA-256 of each step's rules revision and data files; ``embedding``: the embedder's name.

    ``fingerprint``: 16 hex digits over the digests: two equal ones give equal labels."""

    name: str
    digests: Mapping[str, str]
    embedding: str
    fingerprint: str


ID_LENGTH = 12
"""Signs of a trained model's id in the name of its set."""


def with_trained(name: str, step: str, model_id: str) -> str:
    """The name of the set that is ``name`` with a trained model of one step: ``base-2+intent-<start of its id>``."""
    return f"{parted(name)[0]}+{step}-{model_id[:ID_LENGTH]}"


def parted(name: str) -> tuple[str, str]:
    """The listed set that a name begins with, and ``<step>-<start of the id>`` of a trained model in it, or nothing."""
    listed, _, trained = name.partition("+")
    return listed, trained


def read_sets() -> dict[str, Any]:
    """All sets by name: those that ship, and those of ``model_sets.yaml`` in the home, which extend one of them.

    Raises SettingError if a set of the home has a shipped one's name, or is not of the documented form."""
    folder = importlib.resources.files("memory_pipelines.slices") / "data"
    shipped: dict[str, Any] = yaml.safe_load(folder.joinpath("model_sets.yaml").read_text(encoding="utf-8"))
    home = Settings.load().home_path
    if not (home / OWN_SETS).exists():
        return shipped
    own = yaml.safe_load((home / OWN_SETS).read_text(encoding="utf-8"))
    if not isinstance(own, dict) or set(own) & set(shipped):
        raise SettingError(f"{OWN_SETS} of the home must name sets of its own: a released set never changes")
    return shipped | {name: _extended(block, shipped, home) for name, block in own.items()}


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


@cache
def load_model_set(name: str) -> ModelSet:
    """The set of that name; ``base-2+intent-…`` is ``base-2`` with a trained intent model, whose id is its hash.

    Raises SettingError if there is none."""
    folder = importlib.resources.files("memory_pipelines.slices") / "data"
    sets = read_sets()
    shipped, trained = parted(name)
    if shipped not in sets:
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: no such model set; known are {', '.join(sorted(sets))}")
    digests = {}
    for step in STEPS:
        digest = hashlib.sha256(canonical_json([step, sets[shipped][step]]).encode())
        for file in sorted(sets[shipped][step]["files"].values()):
            digest.update(folder.joinpath(file).read_bytes())
        if trained.startswith(f"{step}-"):
            digest.update(trained.encode())
        digests[step] = digest.hexdigest()
    fingerprint = hashlib.sha256(canonical_json(digests).encode()).hexdigest()[:16]
    return ModelSet(name, digests, sets[shipped]["embedding"]["name"], fingerprint)
