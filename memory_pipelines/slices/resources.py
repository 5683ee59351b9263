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
from memory_pipelines.models.sets import parted, read_sets


def data_folder() -> Traversable:
    """The folder of package data, wherever the package is installed."""
    return importlib.resources.files("memory_pipelines.slices") / "data"


@cache
def read_yaml(name: str) -> Any:
    """The parsed YAML file ``name`` of the package data; callers must not change it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(data_folder().joinpath(name).read_text(encoding="utf-8"), Loader=loader)


@cache
def label_step(model_set: str, step: str) -> dict[str, Any]:
    """What a model set says of a step (``intent``, ``emotion``, ``entities``): its files and settings.

    ``base-2+intent-…`` is ``base-2`` with another intent model. Raises SettingError for a set that does not exist."""
    sets = read_sets()
    shipped, _ = parted(model_set)
    if shipped not in sets:
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: no such model set; known are {', '.join(sorted(sets))}")
    found: dict[str, Any] = sets[shipped][step]
    return found


def label_files(model_set: str, step: str) -> dict[str, str]:
    """File names of a step in a model set, by their use. Raises SettingError as ``label_step`` does."""
    files: dict[str, str] = label_step(model_set, step)["files"]
    return files
