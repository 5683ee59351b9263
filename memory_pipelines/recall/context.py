"""What stands beside a memory: the one before and after it, its session, who said it.

Belongs here: neighbours, sessions and speakers of rows, and how scores pass between rows. Does not belong here: any
leg's own scores, or weights (``fusion``).

A question and its answer are two turns, and one of them holds the words that are asked for. So part of a row's score
passes on to the row before and after it, and part of a session's best score to all of the session. Scores are passed,
not texts: a row that a recall may not see has the score 0 and passes nothing on.
"""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.model import MemoryType
from memory_pipelines.stores.base import StoredMemory

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

    def __init__(self, rows: Sequence[StoredMemory], instants: Ints) -> None:
        """``instants``: when each row occurred, in microseconds."""
        episodes = [i for i, row in enumerate(rows) if row.memory_type == MemoryType.EPISODIC]
        owners = {owner: number for number, owner in enumerate(dict.fromkeys(row.owner for row in rows))}
        owned = np.array([owners[rows[i].owner] for i in episodes], dtype=np.int64)
        at = np.array(episodes, dtype=np.int64)
        order = np.lexsort((-at, instants[at], owned))
        at, owned = at[order], owned[order]
        gaps, same = np.diff(instants[at]), np.diff(owned) == 0
        near = np.flatnonzero(same & (gaps > 0) & (gaps <= NEAR // _US))
        self.earlier, self.later = at[near], at[near + 1]
        """Positions of neighbours: each of ``earlier`` is followed by that of ``later``."""
        self.session = np.arange(len(rows), dtype=np.int64)
        """A number per row, equal within a session."""
        if len(at):
            begins = np.concatenate(([True], ~same | (gaps > NEAR // _US)))
            self.session[at] = at[np.flatnonzero(begins)][np.cumsum(begins) - 1]
        self._by_session = np.argsort(self.session, kind="stable")
        self._numbers, self._starts = np.unique(self.session[self._by_session], return_index=True)
        self.speakers = _speakers(rows)
        """Positions of what each speaker said, by name in lower case; rows that begin with ``Name:``."""

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
        return np.asarray(best[np.searchsorted(self._numbers, self.session)])

    def spoken(self, query: str) -> Ints | None:
        """Rows of the one speaker whom the query names by first or full name; None if it names none or several."""
        said = query.lower()
        named = [name for name in self.speakers if _names(said, name.split()[0])]
        return self.speakers[named[0]] if len(named) == 1 else None


def _names(text: str, name: str) -> bool:
    """Whether the name stands in the text, a latin one as a word of its own."""
    if name.isascii():
        return re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", text) is not None
    return name in text


def _speakers(rows: Sequence[StoredMemory]) -> dict[str, Ints]:
    """A name that begins one row only is none: any line may hold a colon."""
    named: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        found = _SPEAKER.match(row.text or row.summary)
        if found is not None and len(found[1].split()) <= _MAX_WORDS:
            named.setdefault(found[1].lower(), []).append(i)
    counts = Counter({name: len(at) for name, at in named.items()})
    return {name: np.array(named[name], dtype=np.int64) for name in sorted(named) if counts[name] > 1}
