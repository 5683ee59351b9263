"""Measures of one ranking against its gold, and their means.

Belongs here: R@k, all@k, nDCG@k, hit@1 over turns and over sessions. Does not belong here: how a ranking came about.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MEASURES = ("R@5", "R@10", "all@10", "nDCG@10", "hit@1", "session R@5", "session R@10")


@dataclass(frozen=True)
class Judged:
    """One question's measures, by name."""

    category: str
    values: dict[str, float]


def judge(category: str, ranked: Sequence[frozenset[str]], gold: frozenset[str], sessions: dict[str, str]) -> Judged:
    """``ranked``: the turns each answer item covers, best first; ``sessions``: session by turn id.

    R@k: share of the gold that the first k cover; all@k: whether they cover all of it. nDCG@k: an item's gain is
    the number of gold turns that it is the first to cover, its discount log2(rank + 1); the ideal is an item per
    gold turn (it can be passed where items cover several turns, and is cut at 1). Session measures: of the sessions
    that hold gold, the share among the first k distinct sessions."""
    held = {sessions[turn] for turn in gold}
    order = list(dict.fromkeys(sessions[turn] for item in ranked for turn in sorted(item) if turn in sessions))
    values = {
        "R@5": _covered(ranked[:5], gold),
        "R@10": _covered(ranked[:10], gold),
        "all@10": float(_covered(ranked[:10], gold) == 1),
        "nDCG@10": _ndcg(ranked[:10], gold),
        "hit@1": float(bool(ranked) and bool(ranked[0] & gold)),
        "session R@5": len(held & set(order[:5])) / len(held),
        "session R@10": len(held & set(order[:10])) / len(held),
    }
    return Judged(category, values)


def _covered(items: Sequence[frozenset[str]], gold: frozenset[str]) -> float:
    return len(gold.intersection(*[frozenset().union(*items)])) / len(gold)


def _ndcg(items: Sequence[frozenset[str]], gold: frozenset[str]) -> float:
    left, gained = set(gold), 0.0
    for rank, item in enumerate(items, 1):
        gained += len(left & item) / math.log2(rank + 1)
        left -= item
    return min(1.0, gained / sum(1 / math.log2(rank + 1) for rank in range(1, min(len(items) or 1, len(gold)) + 1)))


def mean(judged: Sequence[Judged], measure: str) -> float:
    """NaN of nothing."""
    return math.fsum(one.values[measure] for one in judged) / len(judged) if judged else math.nan
