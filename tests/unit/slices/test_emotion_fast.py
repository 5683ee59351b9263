"""The fast emotion scorer, revision 2: what is neutral, negation, questions, mockery, English with VADER."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.slices.emotion.score import EmotionLabel, Scorer
from memory_pipelines.slices.emotion.training import LEXICON
from memory_pipelines.slices.emotion.words import load_lexicon

NOTHING = EmotionLabel(0.0, "neutral")
NEUTRAL = [
    "好的", "好", "嗯嗯", "OK", "ok", "yes please", "no", "no thanks but no", "是的", "收到", "知道了",
    "稍等", "转人工", "你好，请问有没有优惠券",
    "我想查一下物流", "I'd like to check my order", "please check my order",
    "I want to cancel my subscription",
    "订单SF1234567890123", "good morning", "How much is it?", "质量好吗", "这个好吃吗", "这个掉色吗",
    "尺码偏大还是偏小", "能便宜点吗",
    "is the phone any good for kids", "Is it waterproof?", "Do you have free shipping?",
    "帮我推荐一款手机", "can you recommend a laptop?",
    "我要退货", "怎么投诉", "能快点发货吗", "支持七天无理由退货吗", "what's your refund policy",
    "Could you help me reset my password?",
    "I'm looking for a gift for my son", "我不生气", "my phone is [phone:7f3k9a2c]", "[phone]", "", "a",
    "。", "12345", "!!!", "???",
]  # fmt: skip
LABELS = [
    ("气死我了！快递又丢了", "anger:high"),
    ("太慢了，都三天了还没到", "frustration:medium"),
    ("質量太差了，氣死", "anger:high"),
    ("没有色差，很满意", "joy:medium"),
    ("不值得买", "frustration:medium"),
    ("我很担心赶不上飞机", "anxiety:medium"),
    ("奶奶去世了", "sadness:high"),
    ("谢谢你的帮助", "gratitude:medium"),
    ("I can't wait to see you!", "anticipation:low"),
    ("I can't wait any longer, this is ridiculous", "anger:medium"),
    ("THIS IS THE WORST SERVICE EVER!!!", "frustration:high"),
    ("not happy with this", "frustration:medium"),
    ("it ca n ' t get better , awful", "frustration:high"),
    ("The food was good but the service was terrible", "frustration:medium"),
    ("这个 delivery 太慢了 so disappointed", "frustration:high"),
    ("😭", "sadness:high"),
    ("😡😡", "anger:high"),
    ("👍🏽", "joy:low"),
]


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return Scorer(load_lexicon(*LEXICON))


@pytest.mark.parametrize("text", NEUTRAL)
def test_neutral_is_exactly_zero(scorer: Scorer, text: str) -> None:
    assert scorer.labels([text]) == [NOTHING]


@pytest.mark.parametrize(("text", "label"), LABELS)
def test_labels(scorer: Scorer, text: str, label: str) -> None:
    (found,) = scorer.labels([text])
    assert found.label == label
    assert (found.score > 0) == (label.split(":")[0] in ("joy", "gratitude", "anticipation"))


@pytest.mark.parametrize(
    "text",
    ["你们这服务可真行，让我白跑三趟", "凭什么不给退", "难道我的钱不是钱吗？",
     "Great, another delay. Thanks for nothing.",
     "Are you kidding, is it too much to ask for a nice reply", "这也叫次日达", "好意思说质量好"],
)  # fmt: skip
def test_mockery_and_rhetorical_questions_are_complaints(scorer: Scorer, text: str) -> None:
    assert scorer.labels([text])[0].score < -0.1


def test_words_have_the_documented_scores(scorer: Scorer) -> None:
    mild, clear, strong = (label.score for label in scorer.labels(["一般般", "失望", "崩溃"]))
    assert (mild, clear, strong) == (-0.2774, -0.5, -0.6547)


def test_a_denied_fault_is_mild_praise_and_a_denied_anger_nothing(scorer: Scorer) -> None:
    fault, praise, anger = (label.score for label in scorer.labels(["没有色差", "喜欢", "我没有生气"]))
    assert 0 < fault < praise
    assert anger == 0


def test_english_is_blended_with_vader(scorer: Scorer) -> None:
    known, unknown = (label.score for label in scorer.labels(["a marvelous film", "a brave film"]))
    assert 0 < unknown < known  # the second is VADER's alone


def test_a_question_about_a_quality_has_no_emotion_but_a_judgement_has(scorer: Scorer) -> None:
    asked, told, angry = (label.score for label in scorer.labels(["这家店好吃吗？", "这家店好吃", "怎么还没到？"]))
    assert (asked, told > 0, angry < 0) == (0, True, True)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | st.text("不很太开心失望吗!？，not very happy bad？😀 ", max_size=40))
def test_always_in_range_and_consistent(text: str) -> None:
    scorer = Scorer(load_lexicon(*LEXICON))
    (found,) = scorer.labels([text])
    assert -1 <= found.score <= 1
    assert found.score == round(found.score, 4)
    assert (found.label == "neutral") == (found.score == 0)
    assert scorer.labels([text, "太差了"])[0] == found


@pytest.mark.parametrize("text", ["太差了" * 30_000, "I hate it, but " * 8_000, "😡" * 100_000, "x" * 100_000])
def test_a_huge_text_is_read_to_its_cap(scorer: Scorer, text: str) -> None:
    (found,) = scorer.labels([text])
    assert found == scorer.labels([text + "开心"])[0]
    assert -1 <= found.score <= 0
