"""A candidate with the gate's decision on it.

Belongs here: the record and the names of outcomes. Does not belong here: how it comes about (``gate``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memory_pipelines.admission.extract import Candidate

LONG, SHORT, DISCARD = "long", "short", "discard"


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with its dimensions and what they are made of (``parts``: ``<dimension>.<part>`` → value), its score,
    the threshold of its arm for long-term memory, the rule that decided and the outcome."""

    candidate: Candidate
    persistence: float
    structure: float
    personalisation: float
    parts: Mapping[str, float]
    score: float
    arm: str
    long_from: float
    rule: str
    outcome: str
