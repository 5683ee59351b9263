"""The dense leg: nearest memories of a vector store or of packs, made comparable between languages.

Belongs here: over-fetching, hydration and normalisation of cosines. Does not belong here: making
vectors.

A memory in the query's own language gets a higher cosine than its translation, so each language's
hits are normalised apart, per query. Mean and deviation are drawn towards the model's own of unrelated
texts by a few pseudo-hits, so that a language with one or two memories is neither flattened nor
thrown out. Where the store may not answer with all of a person's memories, it is asked once per language, at once:
else the nearest are all in the query's own. A pack could tell of all, but it is cut where a store would be: the scores
depend on how many are told of, and both ways give one answer.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from types import MappingProxyType

import numpy as np

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.models.base import Embedder, Unrelated
from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.legs import DEPTH, Floats, Ints, Scored
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.base import Hit, Vector, VectorStore

NAME = "dense"
ROLE = "vector"
DECIMALS = 5
"""Of a cosine that count. Stores are exact to six or seven: memories that are equally near stay so whoever computes."""
OVERFETCH = 8
AT_ONCE = 4
"""Searches of one recall that the store works on together."""
PRIOR_HITS = 5


def search(
    vectors: VectorStore, model: Embedder, vector: Vector, snapshot: Snapshot, usable: Mask, missing: set[str]
) -> Scored:
    """Usable rows by z-score of their cosine to ``vector``, a unit vector that the model made.

    Of subjects all of whose vectors by that model are in their packs the store is not asked. Fetches eight times the
    depth (of each language, if there are more rows than that and several), since the
    store may hold uncommitted versions that no visible row names, and since neighbours pass their scores on.
    A store that does not answer is noted in ``missing``: what is in packs is found all the same."""
    depth = OVERFETCH * DEPTH
    several = len(snapshot) > depth and len(snapshot.by_language) > 1
    rows, cosines, asked = _in_packs(snapshot, model, vector)
    languages = tuple(snapshot.by_language) if several else (None,)
    searches = [(owner, vector, depth, language) for language in languages for owner in asked]
    answers = iter(_at_once(vectors, searches, missing))
    near, close, cut = list[Ints](), list[Floats](), dict[str, int]()
    for language in languages:
        some = slice(None) if language is None else snapshot.by_language[language][rows]
        found = [(rows[some], cosines[some])]
        count = len(found[0][0])
        for hits in islice(answers, len(asked)):
            if hits is None:
                continue
            fresh, repeated = _hydrated(hits, snapshot, rows)
            count += len(hits) - repeated
            found.append(fresh)
        told = np.concatenate([c for _, c in found]).round(DECIMALS)
        best = _nearest(np.concatenate([r for r, _ in found]), told, depth)
        near.append(best[0])
        close.append(best[1])
        if count >= depth:  # else the store has told of all it has
            named = snapshot.by_language if language is None else (language,)
            cut |= {name: int((usable & snapshot.by_language[name]).sum()) for name in named}
    rows, cosines = np.concatenate(near), np.concatenate(close)
    order = np.argsort(rows, kind="stable")
    order = order[usable[rows[order]]]
    spoken = [(name, mask[rows[order]]) for name, mask in snapshot.by_language.items()]
    return normalised(rows[order], cosines[order], spoken, model.unrelated, cut)


def _in_packs(snapshot: Snapshot, model: Embedder, vector: Vector) -> tuple[Ints, Floats, list[Owner]]:
    """Rows whose vectors are in packs with their cosines, and the owners whose vectors are not, or not all of them."""
    rows, cosines, asked = [np.zeros(0, np.int64)], [np.zeros(0)], []
    for pack, at in snapshot.parts:
        held = pack.vectors
        if held is None or (held.model_id, held.digest) != (model.model_id, model.digest):
            asked.append(pack.owner)
            continue
        rows.append(at[held.rows])
        cosines.append(held.vectors.cosines(vector))
        if held.left_out:
            asked.append(pack.owner)
    return np.concatenate(rows), np.concatenate(cosines), asked


def _at_once(
    vectors: VectorStore, searches: Sequence[tuple[Owner, Vector, int, str | None]], missing: set[str]
) -> list[list[Hit] | None]:
    """The answers of the searches, in their order; None where the store did not answer.

    The caller and up to three threads, which an interpreter that ends does not wait for, take one after the other."""
    answers: list[list[Hit] | None] = [None] * len(searches)
    refused: list[Exception] = []
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(searches)):
        waiting.put(number)

    def work() -> None:
        with suppress(Empty):
            while True:
                number = waiting.get_nowait()
                try:
                    answers[number] = vectors.search(*searches[number])
                except StoreUnavailableError:
                    missing.add(ROLE)
                except Exception as error:  # whoever waits for the answers raises it
                    refused.append(error)

    others = [threading.Thread(target=work, daemon=True) for _ in range(1, min(AT_ONCE, len(searches)))]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if refused:
        raise refused[0]
    return answers


def _hydrated(hits: Sequence[Hit], snapshot: Snapshot, known: Ints) -> tuple[tuple[Ints, Floats], int]:
    """Rows of the hits that a visible row names but those ``known``, and how many of the hits were. One that a store
    answers twice counts once, with its best score."""
    best: dict[int, float] = {}
    for hit in hits:
        row = snapshot.by_entry.get(hit.entry_id)
        if row is not None:
            best[row] = max(hit.score, best.get(row, hit.score))
    rows, scores = np.array(list(best), dtype=np.int64), np.array(list(best.values()), dtype=np.float64)
    fresh = ~np.isin(rows, known)
    return (rows[fresh], scores[fresh]), int((~fresh).sum())


def _nearest(rows: Ints, cosines: Floats, depth: int) -> tuple[Ints, Floats]:
    """The ``depth`` nearest, ties by row position."""
    if len(rows) > depth:
        least = np.partition(cosines, len(cosines) - depth)[len(cosines) - depth]
        near = np.flatnonzero(cosines >= least)
        best = near[np.lexsort((rows[near], -cosines[near]))[:depth]]
        rows, cosines = rows[best], cosines[best]
    return rows, cosines


def normalised(
    rows: Ints,
    cosines: Floats,
    languages: Sequence[tuple[str, Mask]],
    unrelated: Unrelated,
    counts: Mapping[str, int] = MappingProxyType({}),
) -> Scored:
    """z-score per language, and relevance: how far the cosine lies above its language's mean, as a share
    of the way to 1. ``languages``: by name which of the rows are in it.

    ``counts``: how many rows each language has; those without a cosine are taken to be as far as the farthest
    that has one, else the scores would depend on how many the store was asked for."""
    scores, relevance = np.zeros(len(rows)), np.zeros(len(rows))
    for language, mask in languages:
        values = cosines[mask]
        if len(values):
            mean, deviation = _shrunk(values, max(0, counts.get(language, 0) - len(values)), unrelated)
            scores[mask] = (values - mean) / deviation
            relevance[mask] = np.clip((values - mean) / (1 - mean), 0.0, 1.0)
    return Scored(rows, scores, relevance)


def _shrunk(values: Floats, unseen: int, prior: Unrelated) -> tuple[float, float]:
    """Mean and deviation of the values, as many ``unseen`` ones like the smallest, and the pseudo-hits."""
    least, count = float(values.min()), len(values) + unseen + PRIOR_HITS
    mean = (float(values.sum()) + unseen * least + PRIOR_HITS * prior.mean) / count
    of_prior = prior.deviation**2 + (prior.mean - mean) ** 2
    spread = float(((values - mean) ** 2).sum()) + unseen * (least - mean) ** 2 + PRIOR_HITS * of_prior
    return min(mean, 0.99), math.sqrt(spread / count)
