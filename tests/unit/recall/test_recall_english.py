"""Forms of a word that must meet, and words that must not."""

import pytest

from memory_pipelines.recall.english import stem


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("went", "go"), ("bought", "buying"), ("children", "child"), ("mother", "mom"), ("picture", "photos"),
        ("relational", "relate"), ("hopefulness", "hopeful"), ("adoption", "adopt"), ("formality", "formal"),
    ],
)  # fmt: skip
def test_forms_meet(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("conditional", "condit"), ("vietnamization", "vietnam"), ("triplicate", "triplic"), ("goodness", "good"),
        ("replacement", "replac"), ("irritant", "irrit"), ("opinion", "opinion"),
    ],
)  # fmt: skip
def test_porters_own_examples(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_different_words_stay_apart() -> None:
    assert len({stem(word) for word in ("wand", "wander", "wonder", "new", "news")}) >= 4
