"""Package data of the labelling steps: which files a model set means, read once per process.

Belongs here: reading ``slices/data`` through ``importlib.resources``. Does not belong here: what a
file's content means (``intent``, ``emotion``, ``entities``), nor hashes of it (``models.sets``).
"""

import importlib.resources
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from memory_pipelines.errors import SettingError


def data_folder() -> Traversable:
    """The folder of package data, wherever the package is installed."""
    return importlib.resources.files("memory_pipelines.slices") / "data"


@cache
def read_yaml(name: str) -> Any:
    """The parsed YAML file ``name`` of the package data; callers must not change it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(data_folder().joinpath(name).read_text(encoding="utf-8"), Loader=loader)


@cache
def label_files(model_set: str, step: str) -> dict[str, str]:
    """File names of a step (``intent``, ``emotion``, ``entities``) in a model set, by their use.

    Raises SettingError for a model set that does not exist."""
    sets: dict[str, Any] = read_yaml("model_sets.yaml")
    if model_set not in sets:
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: no such model set; known are {', '.join(sorted(sets))}")
    files: dict[str, str] = sets[model_set][step]["files"]
    return files
