"""Step 3: signs, labels and strengths; neutral service turns stay neutral."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.slices.emotion.score import EmotionLabel, score

NEUTRAL = [
    "好的", "OK", "嗯", "我想查一下物流", "你好，请问有没有优惠券", "订单SF1234567890123", "please check my order",
    "good morning", "How much is it?", "I'd like to check my order status", "我不生气", "I was never angry",
    "质量好吗", "is the phone any good for kids", "", "a", "。", "12345", "好久不见",
    "麻烦把酒店的电话告诉我", "您方便描述一下问题吗",
]  # fmt: skip
LABELS = [
    ("气死我了！快递又丢了", "anger:high"),
    ("太慢了，都三天了还没到，非常失望", "frustration:high"),
    ("不太满意", "frustration:medium"),
    ("質量太差了", "frustration:medium"),
    ("东西不错，但是物流太慢", "frustration:low"),
    ("我担心赶不上", "anxiety:medium"),
    ("我今天很难过", "sadness:high"),
    ("我很开心", "joy:high"),
    ("开心极了", "joy:high"),
    ("谢谢你的帮助", "gratitude:medium"),
    ("I'm not happy with this", "frustration:medium"),
    ("This is the WORST service ever!!!", "frustration:high"),
    ("My mother passed away last week", "sadness:high"),
    ("I love it 😍", "joy:high"),
    ("thank you so much", "gratitude:high"),
    ("I can't wait to see you!", "joy:high"),
    ("😭", "sadness:high"),
    ("😡😡", "anger:high"),
    ("👍🏽", "joy:low"),
    ("The food was good but the service was terrible", "frustration:medium"),
    ("这个 delivery 太慢了 so disappointed", "frustration:high"),
]


@pytest.mark.parametrize("text", NEUTRAL)
def test_neutral_is_exactly_zero(text: str) -> None:
    assert score(text) == EmotionLabel(0.0, "neutral")


@pytest.mark.parametrize(("text", "label"), LABELS)
def test_labels(text: str, label: str) -> None:
    found = score(text)
    assert found.label == label
    assert (found.score > 0) == (label.split(":")[0] in ("joy", "gratitude"))


def test_one_clear_word_has_the_documented_score() -> None:
    assert score("失望").score == -0.6325  # 2 / sqrt(4 + 6)
    assert score("很失望").score == pytest.approx(-0.7279, abs=1e-4)  # strengthened by 1.3


def test_strength_grows_with_intensifiers_exclamation_and_shouting() -> None:
    assert score("有点失望").score > score("失望").score > score("非常失望").score > score("非常失望！！").score
    assert score("bad service").score > score("BAD service").score


def test_negation_turns_joy_only_within_its_clause() -> None:
    assert score("不是很满意").score < 0
    assert score("没办法，很满意").score > 0
    assert score("No, I am happy").score > 0


def test_traditional_and_emoji_variants_are_equal() -> None:
    assert score("憤怒") == score("愤怒") != EmotionLabel(0.0, "neutral")
    assert score("❤️") == score("❤")
    assert score("👍🏿") == score("👍")


def test_a_huge_text_is_read_to_its_cap_and_stays_in_range() -> None:
    assert score("垃圾" * 10_000 + "开心" * 400_000) == score("垃圾" * 10_000)
    assert score("垃圾" * 10_000).score >= -1


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | st.text("不很太开心失望!，not very happy bad😀 ", max_size=40))
def test_always_in_range_and_consistent(text: str) -> None:
    found = score(text)
    assert -1 <= found.score <= 1
    assert found.score == round(found.score, 4)
    assert (found.label == "neutral") == (found.score == 0)
    assert score(text) == found
