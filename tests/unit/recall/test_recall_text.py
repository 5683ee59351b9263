"""Tokens, stems, language and token estimates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.recall import text


@pytest.mark.parametrize(
    ("word", "stem"),
    [  # Porter's own examples, and words that must meet
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("cats", "cat"),
        ("feed", "feed"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("bled", "bled"),
        ("motoring", "motor"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("troubled", "troubl"),
        ("sized", "size"),
        ("hopping", "hop"),
        ("tanned", "tan"),
        ("falling", "fall"),
        ("controlling", "control"),
        ("controll", "control"),
        ("arrived", "arriv"),
        ("arrive", "arriv"),
        ("living", "live"),
        ("lives", "live"),
        ("rate", "rate"),
        ("cease", "ceas"),
        ("hissing", "hiss"),
        ("fizzed", "fizz"),
        ("failing", "fail"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("ok", "ok"),
        ("café", "café"),
    ],
)
def test_stem(word: str, stem: str) -> None:
    assert text.stem(word) == stem


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("快递晚了", ["快", "递", "晚", "快递", "递晚", "晚了"]),
        ("The parcels arrived", ["parcel", "arriv"]),
        ("iPhone15坏了", ["iphone15", "iphone", "15", "坏", "坏了"]),
        ("ＡＢＣ　１，２３４．５", ["abc", "1234.5"]),
        ("花了1,000元 3.14", ["花", "花了", "1000", "元", "3.14"]),
        ("我的你的", []),
        ("SF快递", ["sf", "快", "递", "快递"]),
        ("😀 !!!", []),
        ("", []),
    ],
)
def test_tokens(given_text: str, expected: list[str]) -> None:
    assert text.tokens(given_text) == expected


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [("我的iPhone坏了", "zh"), ("What does 顺丰 mean here", "en"), ("12345 😀", None), ("", None), ("hola", "en")],
)
def test_language(given_text: str, expected: str | None) -> None:
    assert text.language(given_text) == expected


def test_prompt_tokens() -> None:
    assert text.prompt_tokens("你好世界") == 4
    assert text.prompt_tokens("hello world") == pytest.approx(2.6)
    assert text.prompt_tokens("a" * 25) == pytest.approx(3.9)
    assert text.prompt_tokens("你好, ok!") == pytest.approx(2 + 0.25 + 1.3 + 0.25)
    assert text.prompt_tokens("😀") == 1
    assert text.prompt_tokens("") == 0


def test_clip_keeps_what_fits_and_marks_the_cut() -> None:
    assert text.clip("你好世界", 4) == "你好世界"
    assert text.clip("你好世界", 3) == "你好世…"
    assert text.clip("hello big world", 2.6) == "hello big…"
    assert text.clip("a b c", 5) == "a b c"
    assert text.clip("a b c", 3) == "a b…"


@given(st.text(), st.floats(0, 50))
def test_clip_never_exceeds_its_limit_by_more_than_the_mark(value: str, limit: float) -> None:
    assert text.prompt_tokens(text.clip(value, limit)) <= limit + 1 + 1e-9


@given(st.text(st.characters()))
def test_any_text_has_tokens_one_line_and_a_well_formed_twin(value: str) -> None:
    assert all(token and not token.isspace() for token in text.tokens(value))
    assert "\n" not in text.one_line(value)
    text.well_formed(value).encode("utf-8")


def test_lone_surrogates_are_replaced() -> None:
    assert text.well_formed("a\ud800b") == "a?b"
