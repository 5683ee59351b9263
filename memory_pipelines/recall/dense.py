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
from types import MappingProxyType

import numpy as np

from memory_pipelines.model import Owner
from memory_pipelines.models.base import Unrelated
from memory_pipelines.recall.bm25 import Floats, Mask
from memory_pipelines.recall.legs import DEPTH, Found
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.base import Hit, Vector, VectorStore

NAME = "dense"
OVERFETCH = 8
PRIOR_HITS = 5


def search(
    vectors: VectorStore,
    owner: Owner,
    vector: Vector,
    snapshot: Snapshot,
    usable: Mask,
    unrelated: Unrelated,
    linked: Sequence[Owner] = (),
) -> list[Found]:
    """Usable rows by z-score of their cosine to ``vector``, among the hits of the owner and those ``linked`` to it.

    Fetches eight times the depth (of each language, if there are more rows than that and several), since the
    store may hold uncommitted versions that no visible row names, and since neighbours pass their scores on.
    ``unrelated``: of the model that made ``vector``. Raises StoreUnavailableError."""
    cosines: dict[int, float] = {}
    depth = OVERFETCH * DEPTH
    several = len(snapshot.rows) > depth and len(snapshot.by_language) > 1
    hits: list[Hit] = []
    cut: dict[str, int] = {}
    for language in snapshot.by_language if several else (None,):
        found = [hit for one in (owner, *linked) for hit in vectors.search(one, vector, depth, language)]
        hits += sorted(found, key=lambda hit: (-hit.score, hit.entry_id))[:depth]
        if len(found) >= depth:  # else the store has told of all it has
            named = snapshot.by_language if language is None else (language,)
            cut |= {name: int((usable & snapshot.by_language[name]).sum()) for name in named}
    for hit in _distinct(hits):
        row = snapshot.by_entry.get(hit.entry_id)
        if row is not None and usable[row]:
            cosines[row] = hit.score
    return normalised(cosines, {row: snapshot.rows[row].language for row in cosines}, unrelated, cut)


def normalised(
    cosines: Mapping[int, float],
    languages: Mapping[int, str],
    unrelated: Unrelated,
    rows: Mapping[str, int] = MappingProxyType({}),
) -> list[Found]:
    """z-score per language, and relevance: how far the cosine lies above its language's mean, as a share
    of the way to 1.

    ``rows``: how many rows each language has; those without a cosine are taken to be as far as the farthest
    that has one, else the scores would depend on how many the store was asked for."""
    groups: dict[str, list[int]] = {}
    for row in sorted(cosines):
        groups.setdefault(languages[row], []).append(row)
    found: list[Found] = []
    for language in sorted(groups):
        values = np.array([cosines[row] for row in groups[language]])
        mean, deviation = _shrunk(values, max(0, rows.get(language, 0) - len(values)), unrelated)
        scores, relevance = (values - mean) / deviation, np.clip((values - mean) / (1 - mean), 0.0, 1.0)
        found += map(Found, groups[language], scores.tolist(), relevance.tolist())
    return found


def _shrunk(values: Floats, unseen: int, prior: Unrelated) -> tuple[float, float]:
    """Mean and deviation of the values, as many ``unseen`` ones like the smallest, and the pseudo-hits."""
    least, count = float(values.min()), len(values) + unseen + PRIOR_HITS
    mean = (float(values.sum()) + unseen * least + PRIOR_HITS * prior.mean) / count
    of_prior = prior.deviation**2 + (prior.mean - mean) ** 2
    spread = float(((values - mean) ** 2).sum()) + unseen * (least - mean) ** 2 + PRIOR_HITS * of_prior
    return min(mean, 0.99), math.sqrt(spread / count)


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """A store that answers an entry twice counts once, with its best score."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.entry_id not in best or hit.score > best[hit.entry_id].score:
            best[hit.entry_id] = hit
    return list(best.values())
