"""Model sets of the second entity revision, and one with a user's files."""

from pathlib import Path

import yaml

from memory_pipelines.models.sets import ModelSet, load_model_set

FAST, ACCURATE = "base-2", "accurate-2"


def own_set(home: Path, **files: str) -> ModelSet:
    """A set of the home: the fast one with a user's ``files`` besides."""
    own = {"own": {"extends": FAST, "entities": {"files": files}}}
    (home / "model_sets.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    return load_model_set("own", home)
