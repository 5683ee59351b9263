"""What the population has in common: the versioned figures that distinctiveness is measured against.

Belongs here: what is counted of a subject, from how many holders on a count is kept, the measure. Does not belong
here: whose rows are read, and which version is in use (``pipeline.population``).

A snapshot is made from base rows and labels, never from what was derived: it does not depend on the order in which
subjects were derived. Keys are hashes, since a value may be a name, and none is kept that fewer than ``MIN_HOLDERS``
subjects hold.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_pipelines.admission.extract import Candidate
from memory_pipelines.admission.facts import extract_facts
from memory_pipelines.model import stable_hash

EMPTY = "empty"
"""Version of the start: everything is neutral."""
ALL_SUBJECTS = ""
"""The key of how many subjects there are."""
NEUTRAL = 0.5
MIN_HOLDERS = 5
UNSEEN_HOLDERS = (MIN_HOLDERS - 1) // 2
"""Holders that a key which was not kept is taken to have: it may be none, or all but one of ``MIN_HOLDERS``."""
MIN_SUBJECTS = 20
"""Of fewer subjects no snapshot is made: what five of them share says nothing."""
UNCOUNTED = ("date", "order_number")
"""Kinds of entities that say nothing of a person: almost every one is unique."""
UNKNOWN_INTENTS = ("", "out_of_scope")


@dataclass(frozen=True)
class Snapshot:
    """One tenant's figures of one version: of ``subjects``, how many have each key (``counts``, by ``hashed``).

    An empty snapshot is neutral."""

    version: str = EMPTY
    subjects: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def distinctiveness(self, keys: Iterable[str]) -> float:
        """0 for what all have, towards 1 the fewer have it: 1 − ln(1 + n) / ln(1 + N) of the rarest key, n of N
        subjects. An empty snapshot asks for no key."""
        if self.subjects < 1:
            return NEUTRAL
        rarest = min((self.counts.get(key, UNSEEN_HOLDERS) for key in keys), default=None)
        if rarest is None:
            return NEUTRAL
        rarest = min(rarest, self.subjects)
        return round(1 - math.log1p(rarest) / math.log1p(self.subjects), 4)


def hashed(name: str) -> str:
    """The key that a snapshot knows a name by."""
    return stable_hash("population", name)


def claim_key(predicate: str, value: str) -> str:
    return hashed(f"{predicate}={value}")


def episode_keys(intent: str | None, entities: Iterable[str]) -> Iterator[str]:
    """Keys of what one slice or exchange names: its entities' canonical ids and its intent."""
    for entity in entities:
        if entity.partition("/")[0] not in UNCOUNTED:
            yield hashed(entity)
    if (intent or "") not in UNKNOWN_INTENTS:
        yield hashed(f"intent={intent}")


def snapshot_keys(candidate: Candidate) -> Iterator[str]:
    """What a population snapshot counts for a candidate."""
    if candidate.claim:
        yield claim_key(candidate.predicate, candidate.value)
    else:
        yield from episode_keys(candidate.row["intent"], candidate.entities)


def exchange_keys(row: Mapping[str, Any]) -> Iterator[str]:
    """Keys of one labelled exchange: what it names, and the facts that its own text states."""
    entities = row["entities"] or []
    yield from episode_keys(row["intent"], (e["canonical"] for e in entities if e["canonical"]))
    places = {e["surface"] for e in entities if e["kind"] == "place" and e["surface"]}
    for fact in extract_facts(row["own_text"] or "", row["started_at"], row["language"] or "", places=places):
        yield claim_key(fact.predicate, fact.value)


def kept_counts(held: Iterable[Iterable[str]]) -> dict[str, int]:
    """Key → how many subjects hold it, without keys that fewer than ``MIN_HOLDERS`` do. ``held``: each one's keys."""
    counts = Counter(key for keys in held for key in set(keys))
    return {key: count for key, count in sorted(counts.items()) if count >= MIN_HOLDERS}


def movement(old: Snapshot, new: Snapshot) -> float:
    """How far distinctiveness moves from one snapshot to the next, in [0, 1]: the mean of its absolute change over
    the keys of either, weighted by their holders in the new one (by one at least)."""
    keys = old.counts.keys() | new.counts.keys()
    weights = {key: max(1, new.counts.get(key, 0)) for key in keys}
    total = sum(weights.values())
    if not total:
        return 0.0
    moved = sum(w * abs(old.distinctiveness((key,)) - new.distinctiveness((key,))) for key, w in weights.items())
    return round(moved / total, 4)
