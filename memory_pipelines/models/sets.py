"""Named model sets: which labelling models belong together, and a fingerprint of what they hold.

Belongs here: names and hashes, so that a label is a function of text and model set. Does not belong
here: the models. The sets are listed in ``slices/data/model_sets.yaml``.
"""

import hashlib
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from memory_pipelines.errors import SettingError
from memory_pipelines.model import canonical_json

STEPS = ("intent", "emotion", "entities")


@dataclass(frozen=True)
class ModelSet:
    """``digests``: SHA-256 of each step's rules revision and data files; ``embedding``: the embedder's name.

    ``fingerprint``: 16 hex digits over the digests: two equal ones give equal labels."""

    name: str
    digests: Mapping[str, str]
    embedding: str
    fingerprint: str


@cache
def load_model_set(name: str) -> ModelSet:
    """The set of that name. Raises SettingError if there is none."""
    folder = importlib.resources.files("memory_pipelines.slices") / "data"
    sets: dict[str, Any] = yaml.safe_load(folder.joinpath("model_sets.yaml").read_text(encoding="utf-8"))
    if name not in sets:
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: no such model set; known are {', '.join(sorted(sets))}")
    digests = {}
    for step in STEPS:
        digest = hashlib.sha256(canonical_json([step, sets[name][step]]).encode())
        for file in sorted(sets[name][step]["files"].values()):
            digest.update(folder.joinpath(file).read_bytes())
        digests[step] = digest.hexdigest()
    fingerprint = hashlib.sha256(canonical_json(digests).encode()).hexdigest()[:16]
    return ModelSet(name, digests, sets[name]["embedding"]["name"], fingerprint)
