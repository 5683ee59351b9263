"""Package data of the labelling steps: which files a model set means, read once per process.

Belongs here: reading ``slices/data`` through ``importlib.resources``. Does not belong here: what a
file's content means (``intent``, ``emotion``, ``entities``), nor hashes of it (``models.sets``).
"""

import importlib.resources
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from memory_pipelines.errors import SettingError
from memory_pipelines.models.sets import ModelSet, shipped_set

Named = ModelSet | str
"""A model set, or the name of one that ships."""


def read_yaml(file: str) -> Any:
    """The parsed YAML file: one of the package data, which is read once, or a user's, by its absolute path.

    Callers must not change it. Raises SettingError where a user's file cannot be read as that."""
    if not os.path.isabs(file):  # a Path costs more than the rest, and texts ask for each of them
        return _shipped(file)
    try:
        return _parsed(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingError(f"{file} cannot be read as YAML in UTF-8 ({type(error).__name__})") from None


def data_folder() -> Traversable:
    """The folder of package data, wherever the package is installed."""
    return importlib.resources.files("memory_pipelines.slices") / "data"


@cache
def _shipped(file: str) -> Any:
    return _parsed(data_folder().joinpath(file).read_text(encoding="utf-8"))


def _parsed(text: str) -> Any:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def label_step(model_set: Named, step: str) -> Mapping[str, Any]:
    """What a model set says of a step (``intent``, ``emotion``, ``entities``): its files and settings.

    Raises SettingError for a name that no shipped set has."""
    return (shipped_set(model_set) if isinstance(model_set, str) else model_set).steps[step]


def label_files(model_set: Named, step: str) -> dict[str, str]:
    """File names of a step in a model set, by their use. Raises SettingError as ``label_step`` does."""
    files: dict[str, str] = label_step(model_set, step)["files"]
    return files


def name_of(model_set: Named) -> str:
    """The name that labels carry."""
    return model_set if isinstance(model_set, str) else model_set.name
