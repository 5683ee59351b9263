"""A light graph embedding of one subject's graph: FastRP in integer arithmetic.

Belongs here: the embedding and the search for similar nodes. Does not belong here: edges. All sums are exact
integers, and what follows of them is correctly rounded, so a result is the same on every machine and batch.
Source: Chen et al., "Fast and Accurate Network Embeddings via Very Sparse Random Projection", CIKM 2019.
"""

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


def _candidates(vectors: Integers) -> tuple[Integers, Integers]:
    """Pairs i < j worth comparing: all of a small graph, else close ones in four sorted sign-hash orders."""
    count = len(vectors)
    if count <= EXHAUSTIVE:
        first, second = np.triu_indices(count, 1)
        return first.astype(np.int64), second.astype(np.int64)
    signs = vectors > 0
    width = DIMENSIONS // _BANDS
    codes = []
    for band in range(_BANDS):
        packed = np.packbits(np.roll(signs, -band * width, axis=1), axis=1)
        ranked = np.argsort(packed.view(">u8").ravel(), kind="stable")  # of equal signs the lower number first
        for step in range(1, _WINDOW + 1):
            one, other = ranked[:-step], ranked[step:]
            codes.append(np.minimum(one, other) * count + np.maximum(one, other))
    found = np.unique(np.concatenate(codes))
    return found // count, found % count


def similar(vectors: Integers, threshold: float) -> dict[tuple[int, int], float]:
    """Pairs (i, j), i < j, whose cosine (rounded to 4) is ≥ ``threshold``: the strongest first, of equal ones that of
    the lowest numbers, at most three a node. Beyond 64 nodes the work is that of sorting them."""
    if len(vectors) < 2:
        return {}
    lengths = np.sqrt((vectors * vectors).sum(axis=1).astype(np.float64))
    first, second = _candidates(vectors)
    scores = np.zeros(len(first))
    for start in range(0, len(first), _BLOCK):
        one, other = first[start : start + _BLOCK], second[start : start + _BLOCK]
        norms = lengths[one] * lengths[other]
        dots = (vectors[one] * vectors[other]).sum(axis=1).astype(np.float64)
        scores[start : start + _BLOCK] = np.round(np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0), 4)
    good = np.flatnonzero(scores >= threshold)
    ranked = good[np.lexsort((second[good], first[good], -scores[good]))]
    degree: dict[int, int] = defaultdict(int)
    kept = {}
    for at in ranked.tolist():
        i, j = int(first[at]), int(second[at])
        if degree[i] < NEIGHBOURS and degree[j] < NEIGHBOURS:
            kept[i, j] = min(1.0, float(scores[at]))
            degree[i] += 1
            degree[j] += 1
    return kept
