"""BM25 over one person's rows.

Belongs here: term statistics of one set of documents and scores against them. Does not belong
here: tokenisation, or which rows a recall may see (the caller's mask says that).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.recall.text import is_han, is_pair

K1 = 1.2
B = 0.5

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AnyInts = NDArray[Any]
"""Whole numbers of any width: a pack keeps them as narrow as they may be."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Postings:
    """Term statistics of documents. ``rows[starts[i]:starts[i + 1]]`` are the documents that hold ``terms[i]``, and
    ``counts`` there how often; ``lengths`` are in tokens."""

    lengths: AnyInts
    terms: Sequence[str]
    starts: AnyInts
    rows: AnyInts
    counts: AnyInts

    @classmethod
    def of(cls, documents: Sequence[Sequence[str]]) -> "Postings":
        """Of token lists; document ``i`` keeps its position."""
        found: dict[str, tuple[list[int], list[int]]] = {}
        for i, document in enumerate(documents):
            for term, count in Counter(document).items():
                rows, counts = found.setdefault(term, ([], []))
                rows.append(i)
                counts.append(count)
        return cls(
            np.array([len(d) for d in documents], dtype=np.int64),
            tuple(found),
            np.cumsum([0, *(len(rows) for rows, _ in found.values())]),
            np.array([row for rows, _ in found.values() for row in rows], dtype=np.int64),
            np.array([count for _, counts in found.values() for count in counts], dtype=np.int64),
        )

    @cached_property
    def _number(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms)}

    def holding(self, term: str) -> tuple[AnyInts, AnyInts]:
        """(documents, counts) of a term."""
        i = self._number.get(term)
        part = slice(0, 0) if i is None else slice(int(self.starts[i]), int(self.starts[i + 1]))
        return self.rows[part], self.counts[part]


class Bm25:
    """BM25 of documents by their postings.

    score(q, d) = Σ idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · |d| / avgdl)) over the distinct
    terms of q, idf(t) = ln(1 + (N − df + .5) / (df + .5)). Source: Robertson and Zaragoza, "The
    Probabilistic Relevance Framework: BM25 and Beyond", 2009, with the idf that cannot be negative
    (Lucene). N, df and avgdl are those of the documents under the mask, so a row that a recall may
    not see does not show through the statistics either.
    """

    def __init__(self, parts: Sequence[tuple[Postings, Ints]]) -> None:
        """``parts``: postings, with the position that each of their documents has in the whole."""
        self._parts = [(postings, at) for postings, at in parts if len(at)]
        self._lengths = np.zeros(sum(len(at) for _, at in self._parts))
        for postings, at in self._parts:
            self._lengths[at] = postings.lengths

    @classmethod
    def of(cls, documents: Sequence[Sequence[str]]) -> "Bm25":
        """Of token lists; document ``i`` keeps its position."""
        return cls([(Postings.of(documents), np.arange(len(documents)))])

    def _holding(self, term: str) -> tuple[Ints, Floats]:
        found = [(at[rows], counts) for p, at in self._parts for rows, counts in [p.holding(term)] if len(rows)]
        if not found:
            return np.zeros(0, np.int64), np.zeros(0)
        rows, counts = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(counts).astype(np.float64)

    def score(self, query: Iterable[str], mask: Mask) -> tuple[Floats, Floats]:
        """(BM25 scores, coverage in [0, 1]), one of each per document; 0 outside of the mask.

        Coverage is the share of the query's weight (1 + idf per term) that a document holds. A
        pair of Han characters that no document holds is left out of the whole: most of those lie
        across a word border and mean nothing. Lone Han characters count half in a document that
        holds none of the query's pairs: 「你好」 is not about everything that is 好.
        """
        scores = np.zeros(len(self._lengths))
        covered = np.zeros(len(self._lengths))
        lone = np.zeros(len(self._lengths))
        paired = np.zeros(len(self._lengths), dtype=np.bool_)
        total = int(mask.sum())
        if not total:
            return scores, covered
        average = float(self._lengths[mask].sum()) / total or 1.0
        norm = K1 * (1 - B + B * self._lengths / average)
        whole = 0.0
        terms = list(dict.fromkeys(query))
        for term in terms:
            rows, counts = self._holding(term)
            seen = mask[rows]
            rows, counts = rows[seen], counts[seen]
            if not len(rows) and is_pair(term):
                continue
            idf = math.log(1 + (total - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += idf * counts * (K1 + 1) / (counts + norm[rows])
            (lone if is_han(term) else covered)[rows] += 1 + idf
            if is_pair(term):
                paired[rows] = True
            whole += 1 + idf
        if any(map(is_pair, terms)):
            lone[~paired] /= 2
        return scores, (covered + lone) / (whole or 1.0)
