"""Fusion: standard scores by language, context, legs that add, multipliers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from recall_world import ALICE, NOW, make_memory

from memory_pipelines.recall import fusion
from memory_pipelines.recall.fusion import Weights
from memory_pipelines.recall.legs import Found, Leg, Scored
from memory_pipelines.recall.snapshot import Snapshot

ALONE = Weights(
    words_onward=0, words_back=0, dense_onward=0, dense_back=0, session=0, speaker=0, facts=0, time=0, ripple=0
)
DAY = timedelta(days=1)


def rows(count: int, **changes: Any) -> Snapshot:
    return Snapshot(ALICE, [make_memory(f"m{i}", f"s{i}", occurred_at=NOW - i * DAY, **changes) for i in range(count)])


def blend(
    words: list[float], dense: dict[int, float], view: Snapshot, weights: Weights, usable: Any = None
) -> fusion.Fused:
    scores = np.array(words, dtype=np.float64)
    mask = np.ones(len(words), dtype=np.bool_) if usable is None else usable
    found = Scored(np.array(list(dense), dtype=np.int64), np.array(list(dense.values())), np.full(len(dense), 0.5))
    return fusion.blend((scores, scores / 10), found, "", view, mask, weights)


def test_standard_scores_are_added_by_share() -> None:
    view = rows(3)
    fused = blend([3, 0, 0], {0: 0.0, 1: 1.0, 2: -1.0}, view, replace(ALONE, dense=0.75))
    words, close = np.array([3, 0, 0.0]), np.array([0, 1, -1.0])
    expected = 0.75 * (close - close.mean()) / close.std() + 0.25 * (words - words.mean()) / words.std()
    assert fused.scores == pytest.approx(expected)
    assert fused.relevance == pytest.approx([0.5, 0.5, 0.5])


def test_a_language_of_which_words_say_nothing_is_not_behind_the_other() -> None:
    zh = [make_memory(f"z{i}", f"中{i}", occurred_at=NOW - i * DAY) for i in range(3)]
    en = [make_memory(f"e{i}", f"en {i}", occurred_at=NOW - (9 + i) * DAY) for i in range(3)]
    view = Snapshot(ALICE, [*zh, *en])
    fused = blend([5, 0, 0, 0, 0, 0], {0: 2.0, 1: 0.0, 2: 0.0, 3: 2.0, 4: 0.0, 5: 0.0}, view, ALONE)
    assert fused.scores[3] == pytest.approx(fused.scores[0])


def test_rows_without_a_cosine_are_as_far_as_the_farthest() -> None:
    fused = blend([1, 0, 0, 0], {0: 2.0, 1: 1.0}, rows(4), replace(ALONE, dense=1.0))
    assert fused.scores[1] == fused.scores[2] == fused.scores[3]


def test_without_dense_hits_the_words_decide() -> None:
    fused = blend([0, 2, 1], {}, rows(3), ALONE)
    assert np.argsort(-fused.scores).tolist() == [1, 2, 0]


def test_what_is_not_usable_has_no_relevance_and_gives_nothing_to_its_neighbour() -> None:
    near = [make_memory(f"m{i}", f"s{i}", occurred_at=NOW - i * timedelta(minutes=1)) for i in range(3)]
    view = Snapshot(ALICE, near)
    usable = np.array([True, False, True])
    told = blend([0, 0, 4], {}, view, Weights(), usable)
    assert told.relevance[1] == 0
    assert told.scores[1] == told.scores.min()
    assert 1 not in told.candidates()


def test_a_leg_adds_its_relevance_times_its_weight_and_none_without_weight() -> None:
    fused = blend([1, 0], {}, rows(2), ALONE)
    leg = Leg("facts", (Found(1, 9.0, 0.4),))
    more = fusion.with_legs(fused, [(leg, 2.0)])
    assert more.scores[1] == pytest.approx(fused.scores[1] + 0.8)
    assert more.relevance[1] == 0.4
    same = fusion.with_legs(fused, [(leg, 0.0)])
    assert (same.scores == fused.scores).all()
    assert (same.relevance == fused.relevance).all()


def test_scores_are_positive_and_carry_recency_and_trust() -> None:
    view = Snapshot(
        ALICE,
        [make_memory("a", "a", occurred_at=NOW), make_memory("b", "b", occurred_at=NOW - 400 * DAY, trust=0.5)],
    )
    fused = fusion.Fused(np.array([-1.0, -1.0]), np.array([0.5, 0.5]))
    scores, relevance = fusion.weighed(fused, view, NOW)
    assert scores[1] == pytest.approx(scores[0] * 0.95 * 0.9)
    assert scores[1] > 0
    assert relevance == {0: 0.5, 1: 0.5}


def test_at_most_a_hundred_candidates_best_first() -> None:
    fused = fusion.Fused(np.arange(150.0), np.full(150, 0.2))
    assert fused.candidates() == list(range(149, 49, -1))
    assert fusion.Fused(np.zeros(2), np.array([0.05, 0.3])).candidates() == [1]
