"""Script detection, normal form and the shared matcher."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.slices.language import MAX_CHARS, detect, fold, normalise
from memory_pipelines.slices.matching import Gazetteer


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我的快递到哪了", "zh"),
        ("我想买iPhone 15", "zh"),
        ("Where is my order?", "en"),
        ("I bought it at the 超市 yesterday with friends", "en"),
        ("Where is my 顺丰 order", "mixed"),
        ("我用Python写了一个machine learning的model", "mixed"),
        ("😀 123", "mixed"),
        ("", "mixed"),
        ("憤怒", "zh"),
    ],
)
def test_detect(text: str, language: str) -> None:
    assert detect(text) == language


def test_normal_form() -> None:
    assert normalise("ＡＢＣ１２３！ 頭髮後面") == "ABC123! 头发后面"
    assert fold("ＳＦ Express 順豐") == "sf express 顺丰"
    assert fold("a\0b") == "a b"
    assert len(normalise("字" * 50_000)) == MAX_CHARS
    assert fold("İ") == "İ"
    assert normalise("好\ud800") == "好?"


@given(st.text(max_size=200))
def test_length_is_kept(text: str) -> None:
    assert len(normalise(text)) == len(fold(text)) == len(text)
    assert fold(fold(text)) == fold(text)


def test_matcher_takes_the_longest_and_respects_word_borders() -> None:
    matcher = Gazetteer({"顺丰": 1, "顺丰速运": 2, "ups": 3, "bank of china": 4, "a": 5, "好": 6})
    assert matcher.find("顺丰速运和顺丰好") == [(0, 4, 2), (5, 7, 1), (7, 8, 6)]
    assert matcher.find("groups ups, ups2 用ups发") == [(7, 10, 3), (18, 21, 3)]
    assert matcher.find("the bank of china") == [(4, 17, 4)]
    assert matcher.find("a cat") == [(0, 1, 5)]
    assert matcher.find("") == []
