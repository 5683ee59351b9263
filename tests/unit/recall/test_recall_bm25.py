"""BM25 and coverage against values computed by hand."""

import math

import numpy as np
import pytest

from memory_pipelines.recall.bm25 import Bm25

DOCUMENTS = [["cat", "cat", "dog"], ["dog"], ["bird", "fish"]]
ALL = np.ones(3, dtype=np.bool_)


def test_scores_by_hand() -> None:
    scores, _ = Bm25.of(DOCUMENTS).score(["cat", "dog"], ALL)
    cat, dog = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    # |d| = 3, 1, 2; avgdl = 2; k1 · (1 − b + b · |d| / avgdl) = 1.5, .9, 1.2
    assert scores[0] == pytest.approx(cat * 2 * 2.2 / (2 + 1.5) + dog * 2.2 / (1 + 1.5))
    assert scores[1] == pytest.approx(dog * 2.2 / (1 + 0.9))
    assert scores[2] == 0


def test_a_repeated_query_term_counts_once() -> None:
    index = Bm25.of(DOCUMENTS)
    assert index.score(["cat", "cat"], ALL)[0].tolist() == index.score(["cat"], ALL)[0].tolist()


def test_a_masked_document_does_not_show_through_the_statistics() -> None:
    mask = np.array([True, False, True])
    seen, coverage = Bm25.of(DOCUMENTS).score(["cat", "dog"], mask)
    alone, alone_coverage = Bm25.of([DOCUMENTS[0], DOCUMENTS[2]]).score(["cat", "dog"], np.ones(2, dtype=np.bool_))
    assert seen[[0, 2]].tolist() == alone.tolist()
    assert coverage[[0, 2]].tolist() == alone_coverage.tolist()
    assert seen[1] == coverage[1] == 0


def test_coverage_is_the_share_of_the_querys_weight() -> None:
    _, coverage = Bm25.of(DOCUMENTS).score(["cat", "whale"], ALL)
    cat, whale = 1 + math.log(1 + 2.5 / 1.5), 1 + math.log(1 + 3.5 / 0.5)
    assert coverage[0] == pytest.approx(cat / (cat + whale))


def test_an_unseen_pair_of_characters_does_not_lower_coverage() -> None:
    _, coverage = Bm25.of([["快", "递", "快递"]]).score(["快", "递", "快递", "递到"], np.ones(1, dtype=np.bool_))
    assert coverage[0] == pytest.approx(1)


def test_lone_characters_count_half_where_no_pair_is_shared() -> None:
    _, coverage = Bm25.of([["快", "递", "快递"], ["快", "乐", "快乐"]]).score(
        ["快", "快递"], np.ones(2, dtype=np.bool_)
    )
    lone, pair = 1 + math.log(1 + 0.5 / 2.5), 1 + math.log(1 + 1.5 / 1.5)
    assert coverage[0] == pytest.approx(1)
    assert coverage[1] == pytest.approx(lone / 2 / (lone + pair))


@pytest.mark.parametrize("documents", [[], [[]], [["a"]]])
def test_nothing_to_find(documents: list[list[str]]) -> None:
    scores, coverage = Bm25.of(documents).score(["b"], np.ones(len(documents), dtype=np.bool_))
    assert scores.tolist() == coverage.tolist() == [0.0] * len(documents)


def test_everything_masked() -> None:
    assert not Bm25.of(DOCUMENTS).score(["cat"], ~ALL)[0].any()
