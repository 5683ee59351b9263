"""Fusion of the legs into one score per memory.

Belongs here: reciprocal ranks and the bounded multipliers. Does not belong here: thresholds, budget.
"""

from collections.abc import Sequence
from datetime import datetime

from memory_pipelines.recall.legs import Leg
from memory_pipelines.recall.ripple import freshness
from memory_pipelines.stores.base import StoredMemory

K = 60
RECENCY_SHARE = 0.1
TRUST_SHARE = 0.2


def reciprocal_ranks(legs: Sequence[Leg]) -> dict[int, float]:
    """Σ over legs of relevance / (60 + rank), by row.

    Reciprocal rank fusion (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion Outperforms
    Condorcet and Individual Rank Learning Methods", SIGIR 2009), each vote weighted by the leg's own
    relevance: a leg that is sure of nothing must not outvote one that is. BM25 + dense, R@10: LoCoMo
    .626 against .557 unweighted (180 questions, 3 conversations, turns), MemDaily .524 against .500
    (84 questions, 456 messages pooled); use-m3 vectors."""
    scores: dict[int, float] = {}
    for leg in legs:
        for rank, found in enumerate(leg.found, start=1):
            scores[found.row] = scores.get(found.row, 0.0) + found.relevance / (K + rank)
    return scores


def recency(memory: StoredMemory, as_of: datetime) -> float:
    """In [.95, 1]: age breaks near-ties, it does not bury what is old and true."""
    return 1 - RECENCY_SHARE * (1 - freshness(memory.occurred_at, as_of))


def trust(memory: StoredMemory) -> float:
    """In [.8, 1] for a trust in [0, 1]."""
    return 1 - TRUST_SHARE * (1 - min(1.0, max(0.0, memory.trust)))
