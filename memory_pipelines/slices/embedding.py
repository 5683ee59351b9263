"""A light graph embedding of one subject's graph: FastRP in integer arithmetic.

Belongs here: the embedding and the search for similar nodes. Does not belong here: edges by rule
(``graph``). All sums are exact integers, so a result is the same on every machine and batch.
Source: Chen et al., "Fast and Accurate Network Embeddings via Very Sparse Random Projection", CIKM 2019.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.model import stable_hash

DIMENSIONS = 64
ONE = 1 << 16
"""Fixed-point unit: values are integers in units of 1/65536."""
WEIGHT_UNIT = 10_000
ITERATIONS = 2
EXHAUSTIVE = 64
NEIGHBOURS = 3
_BLOCK = 4096
_BANDS = 4
_WINDOW = 4

Integers = NDArray[np.int64]


def _projection(node_id: str) -> list[int]:
    """64 values −1, 0, 0, 1 from the two-bit digits of the node's hash."""
    bits = int(stable_hash("fastrp", node_id), 16)
    return [(-1, 0, 0, 1)[bits >> (2 * i) & 3] for i in range(DIMENSIONS)]


def embed(nodes: Sequence[str], edges: Mapping[tuple[int, int], float]) -> Integers:
    """Fixed-point embedding (nodes × 64) of an undirected graph; ``edges``: (i, j), i < j → weight in (0, 1].

    The sum over two steps of the weighted means of neighbours' random projections; the zeroth is left
    out, so that nodes with the same neighbourhood agree."""
    current: Integers = np.array([_projection(node) for node in nodes], dtype=np.int64).reshape(-1, DIMENSIONS) * ONE
    result = np.zeros_like(current)
    if not edges:
        return result
    pairs = np.array(sorted(edges), dtype=np.int64)
    weights = np.array([round(edges[int(i), int(j)] * WEIGHT_UNIT) for i, j in pairs], dtype=np.int64)
    source, target = np.concatenate([pairs[:, 0], pairs[:, 1]]), np.concatenate([pairs[:, 1], pairs[:, 0]])
    order = np.lexsort((target, source))
    source, target, weights = source[order], target[order], np.concatenate([weights, weights])[order]
    starts = np.searchsorted(source, np.arange(len(nodes) + 1))
    for _ in range(ITERATIONS):
        following = np.zeros_like(current)
        for first in range(0, len(nodes), _BLOCK):
            _mean_block(current, following, target, weights, starts[first : first + _BLOCK + 1], first)
        current = following
        result += current
    return result


def _mean_block(
    current: Integers, following: Integers, target: Integers, weights: Integers, starts: Integers, first: int
) -> None:
    """Weighted means of the neighbours of one block of nodes, written to ``following``."""
    low, high = int(starts[0]), int(starts[-1])
    filled = np.flatnonzero(np.diff(starts))
    if not len(filled):
        return
    offsets = starts[filled] - low
    scaled = current[target[low:high]] * weights[low:high, None]
    total = np.add.reduceat(scaled, offsets, axis=0)
    following[first + filled] = total // np.add.reduceat(weights[low:high], offsets)[:, None]


def _cosine(left: Integers, right: Integers, norm: int) -> float:
    return round(int((left * right).sum()) / math.sqrt(norm), 4) if norm else 0.0


def _candidates(vectors: Integers, ids: Sequence[str]) -> set[tuple[int, int]]:
    """Pairs worth comparing: all of a small graph, else close ones in four sorted sign-hash orders."""
    count = len(ids)
    if count <= EXHAUSTIVE:
        return {(i, j) for i in range(count) for j in range(i + 1, count)}
    signs = vectors > 0
    pairs: set[tuple[int, int]] = set()
    width = DIMENSIONS // _BANDS
    for band in range(_BANDS):
        rolled = np.roll(signs, -band * width, axis=1)
        keys = [row.tobytes() for row in np.packbits(rolled, axis=1)]
        ranked = sorted(range(count), key=lambda i: (keys[i], ids[i]))
        for position, i in enumerate(ranked):
            for j in ranked[position + 1 : position + 1 + _WINDOW]:
                pairs.add((min(i, j), max(i, j)))
    return pairs


def similar(vectors: Integers, ids: Sequence[str], threshold: float) -> dict[tuple[int, int], float]:
    """Pairs (i, j), i < j, whose cosine (rounded to 4) is ≥ ``threshold``: the strongest first, at most
    three a node. Linear in the number of nodes beyond 64."""
    norms = [int(v) for v in (vectors * vectors).sum(axis=1)]
    scored = []
    for i, j in _candidates(vectors, ids):
        score = _cosine(vectors[i], vectors[j], norms[i] * norms[j])
        if score >= threshold:
            scored.append((-score, ids[i], ids[j], i, j))
    degree: dict[int, int] = defaultdict(int)
    kept = {}
    for negative, _, _, i, j in sorted(scored):
        if degree[i] < NEIGHBOURS and degree[j] < NEIGHBOURS:
            kept[i, j] = min(1.0, -negative)
            degree[i] += 1
            degree[j] += 1
    return kept
