"""The sentences in common, and what is measured with them."""

import numpy as np
import pytest

from memory_pipelines.models import everyday
from memory_pipelines.models.embeddings import local_embedder


def test_both_languages_say_the_same_number_of_different_things() -> None:
    zh, en = (everyday.sentences(language) for language in everyday.LANGUAGES)
    assert len(set(zh)) == len(set(en)) == len(zh) == len(en)
    assert all(everyday.chinese_share(text) == 1 for text in zh)
    assert all(everyday.chinese_share(text) == 0 for text in en)


@pytest.mark.parametrize(
    ("text", "share"), [("", 0.5), ("123 😀", 0.5), ("我的 order", 2 / 3), ("café olé", 0), ("字" * 9999 + "a", 1)]
)
def test_chinese_share(text: str, share: float) -> None:
    assert everyday.chinese_share(text) == pytest.approx(share)


def test_the_centre_takes_out_what_a_language_has_in_common() -> None:
    common = {"zh": np.array([3.0, 0, 0], np.float32), "en": np.array([0, 3.0, 0], np.float32)}

    def encode(texts: object, kind: str) -> np.ndarray:
        language = "en" if str(texts).isascii() else "zh"
        return np.stack([common[language], common[language]])

    centre = everyday.Centre(encode)  # type: ignore[arg-type]
    meaning = np.array([0, 0, 1], np.float32)
    for text, vector in (("中文", common["zh"]), ("english", common["en"])):
        assert centre(vector + meaning, text) == pytest.approx(meaning)


@pytest.mark.parametrize("name", ["use", "e5", "e5+use"])
def test_cosines_of_unrelated_texts_are_near_the_declared_ones(name: str) -> None:
    model = local_embedder(name)
    measured = everyday.measured(model.encode)
    assert measured.mean == pytest.approx(model.unrelated.mean, abs=0.25)
    assert measured.deviation == pytest.approx(model.unrelated.deviation, rel=0.5)
