"""Scores of admission: precision, recall and F1 of what is kept, of facts, and of permanence.

Belongs here: counting. Does not belong here: how results came about (``gold``), or printing (``report``).

Kept: of the turns that a result calls positive, the share that is (precision), and of those that are, the share that
it calls so (recall). Facts: a found fact is right if an expected one of the same turn has the same person, predicate
(all predicates outside the labels' list are one class, ``other``) and state (stated or ended) and a value that
overlaps: one contains the other, or their words (Chinese: characters) have an F1 of at least .5. Each expected fact is
used once.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.admission.gold import Gold, GoldFact, Result
from memory_pipelines.slices.language import simplified

OVERLAP = 0.5
_WORD = re.compile("[\u3400-\u9fff]|[a-z0-9à-ÿ']+")
_EMPTY = frozenset(("a", "an", "the", "my", "our", "to", "in", "of", "i", "am", "is", "的", "了", "我"))


@dataclass(frozen=True)
class Score:
    """``right`` of the ``found`` ones, where ``expected`` were there to find."""

    right: int
    found: int
    expected: int

    @property
    def precision(self) -> float:
        """1 where nothing was found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """1 where nothing was expected."""
        return self.right / self.expected if self.expected else 1.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.found + self.expected) if self.found + self.expected else 1.0

    def __add__(self, other: "Score") -> "Score":
        return Score(self.right + other.right, self.found + other.found, self.expected + other.expected)


Pair = tuple[Gold, Result]


def kept(pairs: Sequence[Pair], outcomes: frozenset[str]) -> Score:
    """Of turns whose label, or result, is one of ``outcomes``."""
    found = [result.remember in outcomes for _, result in pairs]
    wanted = [gold.remember in outcomes for gold, _ in pairs]
    return Score(sum(f and w for f, w in zip(found, wanted, strict=True)), sum(found), sum(wanted))


def recall_of(pairs: Sequence[Pair], key: Callable[[Gold], str], outcome: str = "long") -> dict[str, tuple[int, int]]:
    """Key → (turns whose outcome is right, turns) of the turns labelled ``outcome``."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for gold, result in pairs:
        if gold.remember == outcome:
            total[key(gold)] += 1
            right[key(gold)] += result.remember == outcome
    return {name: (right[name], total[name]) for name in sorted(total)}


def agreement(pairs: Sequence[Pair], key: Callable[[Gold], str]) -> dict[str, tuple[int, int]]:
    """Key → (turns with the labelled outcome, turns)."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for gold, result in pairs:
        total[key(gold)] += 1
        right[key(gold)] += gold.remember == result.remember
    return {name: (right[name], total[name]) for name in sorted(total)}


def permanence(pairs: Sequence[Pair]) -> tuple[int, int]:
    """(right, all) permanence of the turns that are kept by label and by result."""
    both = [(gold, result) for gold, result in pairs if gold.permanence and result.permanence]
    return sum(gold.permanence == result.permanence for gold, result in both), len(both)


def types(pairs: Sequence[Pair]) -> tuple[int, int]:
    """(right, all) memory types of the turns that are kept for long by label and by result."""
    both = [(gold, result) for gold, result in pairs if gold.remember == result.remember == "long"]
    return sum(gold.type == result.type for gold, result in both), len(both)


def facts(pairs: Sequence[Pair]) -> dict[str, Score]:
    """Predicate → score of the facts of all turns."""
    scores: dict[str, Score] = {}
    for gold, result in pairs:
        matched = matches(gold.facts, result.facts)
        names = {fact.predicate for fact in (*gold.facts, *result.facts)}
        for name in names:
            found = sum(fact.predicate == name for fact in result.facts)
            expected = sum(fact.predicate == name for fact in gold.facts)
            right = sum(fact.predicate == name for fact in matched)
            scores[name] = scores.get(name, Score(0, 0, 0)) + Score(right, found, expected)
    return dict(sorted(scores.items()))


def matches(expected: Sequence[GoldFact], found: Sequence[GoldFact]) -> list[GoldFact]:
    """The found facts that an expected one confirms; each expected fact confirms one."""
    left = list(expected)
    right = []
    for fact in found:
        hit = next((e for e in left if _same(e, fact)), None)
        if hit is not None:
            left.remove(hit)
            right.append(fact)
    return right


def _same(expected: GoldFact, found: GoldFact) -> bool:
    same = (expected.who, expected.predicate, expected.ends) == (found.who, found.predicate, found.ends)
    return same and overlaps(expected.value, found.value)


def overlaps(one: str, other: str) -> bool:
    """Whether two values name the same: one contains the other, or word F1 ≥ ``OVERLAP``."""
    left, right = _words(one), _words(other)
    if not left or not right:
        return one == other
    if "".join(left) in "".join(right) or "".join(right) in "".join(left):
        return True
    common = sum((Counter(left) & Counter(right)).values())
    return 2 * common / (len(left) + len(right)) >= OVERLAP


def _words(value: str) -> list[str]:
    folded = simplified(unicodedata.normalize("NFKC", value)).casefold().replace("’", "'").replace("n't", " not")
    words = _WORD.findall(folded)
    return [w[:-1] if len(w) > 3 and w.isascii() and w.endswith("s") else w for w in words if w not in _EMPTY] or words
