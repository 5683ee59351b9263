"""The dense leg: a vector store's hits, made comparable between languages.

Belongs here: over-fetching, hydration and normalisation of cosines. Does not belong here: making
vectors.

A memory in the query's own language gets a higher cosine than its translation, so each language's
hits are normalised apart, per query. Mean and deviation are drawn towards the model's own of unrelated
texts by a few pseudo-hits, so that a language with one or two memories is neither flattened nor
thrown out. Where the store may not answer with all of a person's memories, it is asked once per language:
else the nearest are all in the query's own.
"""

import math
from collections.abc import Mapping, Sequence

from memory_pipelines.model import Owner
from memory_pipelines.models.base import Unrelated
from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.legs import DEPTH, Found, Leg, ranked
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.base import Hit, Vector, VectorStore

NAME = "dense"
OVERFETCH = 3
PRIOR_HITS = 5


def leg(
    vectors: VectorStore,
    owner: Owner,
    vector: Vector,
    snapshot: Snapshot,
    usable: Mask,
    unrelated: Unrelated,
    linked: Sequence[Owner] = (),
) -> Leg:
    """Usable rows by z-score of their cosine to ``vector``, among the hits of the owner and those ``linked`` to it.

    Fetches three times the depth (of each language, if there are more rows than that and several), since the
    store may hold uncommitted versions that no visible row names. ``unrelated``: of the model that made
    ``vector``. Raises StoreUnavailableError."""
    cosines: dict[int, float] = {}
    depth = OVERFETCH * DEPTH
    languages = snapshot.languages if len(snapshot.rows) > depth and len(snapshot.languages) > 1 else (None,)
    hits: list[Hit] = []
    for language in languages:
        found = [hit for one in (owner, *linked) for hit in vectors.search(one, vector, depth, language)]
        hits += sorted(found, key=lambda hit: (-hit.score, hit.entry_id))[:depth]
    for hit in _distinct(hits):
        row = snapshot.by_entry.get(hit.entry_id)
        if row is not None and usable[row]:
            cosines[row] = hit.score
    return ranked(NAME, normalised(cosines, {row: snapshot.rows[row].language for row in cosines}, unrelated))


def normalised(cosines: Mapping[int, float], languages: Mapping[int, str], unrelated: Unrelated) -> list[Found]:
    """z-score per language, and relevance: how far the cosine lies above its language's mean, as a share
    of the way to 1."""
    groups: dict[str, list[int]] = {}
    for row in sorted(cosines):
        groups.setdefault(languages[row], []).append(row)
    found = []
    for language in sorted(groups):
        mean, deviation = _shrunk([cosines[row] for row in groups[language]], unrelated)
        for row in groups[language]:
            above = cosines[row] - mean
            found.append(Found(row, above / deviation, min(1.0, max(0.0, above / (1 - mean)))))
    return found


def _shrunk(values: Sequence[float], prior: Unrelated) -> tuple[float, float]:
    count = len(values) + PRIOR_HITS
    mean = (math.fsum(values) + PRIOR_HITS * prior.mean) / count
    of_prior = prior.deviation**2 + (prior.mean - mean) ** 2
    spread = math.fsum((v - mean) ** 2 for v in values) + PRIOR_HITS * of_prior
    return min(mean, 0.99), math.sqrt(spread / count)


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """A store that answers an entry twice counts once, with its best score."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.entry_id not in best or hit.score > best[hit.entry_id].score:
            best[hit.entry_id] = hit
    return list(best.values())
