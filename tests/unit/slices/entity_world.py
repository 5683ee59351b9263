"""Model sets of the second entity revision, and one with a user's files."""

from pathlib import Path

import yaml

from memory_pipelines.slices.resources import label_step, read_yaml

FAST, ACCURATE, OWN = "base-2", "accurate-2", "test-own"


def add_own_set(home: Path, **files: str) -> None:
    """Writes ``test-own`` to the home: the fast set with a user's ``files`` besides."""
    own = {OWN: {"extends": FAST, "entities": {"files": files}}}
    (home / "model_sets.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    label_step.cache_clear()
    read_yaml.cache_clear()
