"""What stands beside a memory: the one before and after it, its session, who said it.

Belongs here: neighbours, sessions and speakers of rows, and how scores pass between rows. Does not belong here: any
leg's own scores, or weights (``fusion``).

A question and its answer are two turns, and one of them holds the words that are asked for. So part of a row's score
passes on to the row before and after it, and part of a session's best score to all of the session. Scores are passed,
not texts: a row that a recall may not see has the score 0 and passes nothing on.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

NEAR = timedelta(minutes=30)
"""Rows further apart are no neighbours, and a longer pause ends a session: what was said hours later is mostly about
something else (MemDaily: a session's share over pauses of six hours cost .009 of R@10)."""
_US = timedelta(microseconds=1)
_SPEAKER = re.compile(r"\s*([^\W\d_][^:：\n]{0,29}?)[:：]\s*\S")
_MAX_WORDS = 3


class Context:
    """Neighbours and sessions of rows, by position. Facts have neither: they tell no moment.

    A neighbour is of the same subject, of another instant, and no more than half an hour away."""

    def __init__(self, episodic: Mask, owned: Ints, instants: Ints, speakers: Mapping[str, Ints]) -> None:
        """``episodic``: rows that tell of a moment; ``owned``: a number of each row's owner; ``instants``: when each
        occurred, in microseconds; ``speakers``: as :func:`speakers` finds them."""
        at = np.flatnonzero(episodic)
        at = at[np.lexsort((-at, instants[at], owned[at]))]
        gaps, same = np.diff(instants[at]), np.diff(owned[at]) == 0
        near = np.flatnonzero(same & (gaps > 0) & (gaps <= NEAR // _US))
        self.earlier, self.later = at[near], at[near + 1]
        """Positions of neighbours: each of ``earlier`` is followed by that of ``later``."""
        self.session = np.arange(len(episodic), dtype=np.int64)
        """A number per row, equal within a session."""
        if len(at):
            begins = np.concatenate(([True], ~same | (gaps > NEAR // _US)))
            self.session[at] = at[np.flatnonzero(begins)][np.cumsum(begins) - 1]
        self._by_session = np.argsort(self.session, kind="stable")
        _, self._starts, self._number = np.unique(
            self.session[self._by_session], return_index=True, return_inverse=True
        )
        self.speakers = {name: rows for name, rows in speakers.items() if len(rows) > 1}
        """Positions of what each speaker said, by name in lower case. A name that begins one row only is none: any
        line may hold a colon."""

    def spread(self, scores: Floats, onward: float, back: float) -> Floats:
        """Each row's score, plus ``onward`` times that of the row before it and ``back`` times that of the next."""
        out = scores.copy()
        out[self.later] += onward * scores[self.earlier]
        out[self.earlier] += back * scores[self.later]
        return out

    def raised(self, values: Floats, onward: float, back: float) -> Floats:
        """The larger of each row's value and its neighbours' shares."""
        out = values.copy()
        out[self.later] = np.maximum(out[self.later], onward * values[self.earlier])
        out[self.earlier] = np.maximum(out[self.earlier], back * values[self.later])
        return out

    def best_of_session(self, scores: Floats) -> Floats:
        """The largest score of each row's session."""
        if not len(scores):
            return scores
        best = np.maximum.reduceat(scores[self._by_session], self._starts)
        out = np.empty(len(scores))
        out[self._by_session] = best[self._number]
        return out

    def spoken(self, query: str) -> Ints | None:
        """Rows of the one speaker whom the query names by first or full name; None if it names none or several."""
        said = query.lower()
        named = [name for name in self.speakers if (first := name.split()[0]) in said and _names(said, first)]
        return self.speakers[named[0]] if len(named) == 1 else None


def _names(text: str, name: str) -> bool:
    """Whether the name stands in the text, a latin one as a word of its own."""
    if name.isascii():
        return re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", text) is not None
    return name in text


def speakers(texts: Iterable[str]) -> dict[str, Ints]:
    """Positions of the texts that begin with ``Name:``, by name in lower case, names in order."""
    named: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        found = _SPEAKER.match(text)
        if found is not None and len(found[1].split()) <= _MAX_WORDS:
            named.setdefault(found[1].lower(), []).append(i)
    return {name: np.array(named[name], dtype=np.int64) for name in sorted(named)}
