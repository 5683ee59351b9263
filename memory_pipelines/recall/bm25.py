"""BM25 over one person's rows.

Belongs here: term statistics of one set of documents and scores against them. Does not belong
here: tokenisation, or which rows a recall may see (the caller's mask says that).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.recall.text import is_han, is_pair

K1 = 1.2
B = 0.5

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Bm25:
    """Postings of documents given as token lists; document ``i`` keeps its position.

    score(q, d) = Σ idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · |d| / avgdl)) over the distinct
    terms of q, idf(t) = ln(1 + (N − df + .5) / (df + .5)). Source: Robertson and Zaragoza, "The
    Probabilistic Relevance Framework: BM25 and Beyond", 2009, with the idf that cannot be negative
    (Lucene). N, df and avgdl are those of the documents under the mask, so a row that a recall may
    not see does not show through the statistics either.
    """

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._lengths = np.array([len(d) for d in documents], dtype=np.float64)
        postings: dict[str, tuple[list[int], list[int]]] = {}
        for i, document in enumerate(documents):
            for term, count in Counter(document).items():
                rows, counts = postings.setdefault(term, ([], []))
                rows.append(i)
                counts.append(count)
        self._postings = {
            term: (np.array(rows, dtype=np.int64), np.array(counts, dtype=np.float64))
            for term, (rows, counts) in postings.items()
        }

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
            rows, counts = self._postings.get(term, (np.zeros(0, np.int64), np.zeros(0)))
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
