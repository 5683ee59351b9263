"""Which patterns, cues and weights judged: a name for the package data of admission.

Belongs here: the name. Does not belong here: weights and thresholds of a scenario, which have a version of their own.
"""

from functools import cache
from importlib import resources

from memory_pipelines.model import stable_hash

EXAMPLES = "worth_examples"
"""What the worth model was learnt from judges nothing: the weights do."""


@cache
def gate_data() -> str:
    """12 digits that change with any file that the gate reads."""
    folder = resources.files("memory_pipelines.admission").joinpath("data")
    files = sorted((file for file in folder.iterdir() if not file.name.startswith(EXAMPLES)), key=lambda f: f.name)
    return stable_hash("gate-data", *(f"{file.name}:{file.read_bytes().hex()}" for file in files))[:12]
