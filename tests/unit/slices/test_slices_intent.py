"""Step 2: right labels by the shipped models, exact arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import SettingError
from memory_pipelines.slices.intent import predict as intent
from memory_pipelines.slices.intent.features import BUCKETS, extract
from memory_pipelines.slices.intent.files import load_model
from memory_pipelines.slices.intent.model import IntentLabel, probabilities

FAST, ACCURATE = "base-2", "accurate-2"
CASES = [
    ("我的快递怎么还没到？都三天了！", "logistics_complaint", "express_frustration", "fact"),
    ("顺丰又把我的包裹弄丢了，气死我了", "logistics_complaint", "express_frustration", "fact"),
    ("快递太慢了，我要取消订单", "cancel_order", "cancel", "task"),
    ("你好，请问这款手机支持快充吗？", "product_inquiry", "ask", "inquiry"),
    ("我要退款，商品质量太差", "refund_request", "request", "task"),
    ("發票什麼時候開", "invoice_request", "ask", "task"),
    ("帮我把收货地址改成深圳市南山区", "address_change", "request", "task"),
    ("谢谢你的帮助！", "thanks", "thank", "chit_chat"),
    ("好的", "acknowledgement", "confirm", "chit_chat"),
    ("我对海鲜过敏", "share_fact", "inform", "fact"),
    ("我喜欢喝拿铁，不加糖", "state_preference", "inform", "preference"),
    ("下周五我要去上海出差", "make_plan", "inform", "task"),
    ("明天早上七点叫我起床", "ask_reminder", "request", "task"),
    ("我从没投诉过你们的物流", "logistics_complaint", "deny", "fact"),
    ("I want my money back for the jacket", "refund_request", "request", "task"),
    ("My daughter Emma is allergic to peanuts.", "share_fact", "inform", "fact"),
    ("I prefer tea over coffee", "state_preference", "inform", "preference"),
    ("Can you recommend a good Italian restaurant?", "recommendation_request", "ask", "inquiry"),
    ("What's 18% of 250?", "calculation_request", "ask", "transient_reasoning"),
    ("we're going camping next weekend", "make_plan", "inform", "task"),
    ("👍", "acknowledgement", "confirm", "chit_chat"),
    ("bye, talk to you later", "farewell", "say_goodbye", "chit_chat"),
]
MESSAGES = st.one_of(
    st.sampled_from([case[0] for case in CASES]), st.text(max_size=40), st.text("快递退款ab 1？!😀\n", max_size=12)
)


def classify(text: str, model_set: str = FAST) -> IntentLabel:
    return intent.classify(text, model_set)


def classify_all(texts: list[str], model_set: str = FAST) -> list[IntentLabel]:
    return intent.classify_all(texts, model_set)


@pytest.mark.parametrize("model_set", ["base-1", FAST, ACCURATE])
@pytest.mark.parametrize(("text", "intent", "action", "category"), CASES)
def test_right_labels(text: str, intent: str, action: str, category: str, model_set: str) -> None:
    label = classify(text, model_set)
    assert (label.intent, label.action, label.category) == (intent, action, category)
    assert 0.4 <= label.intent_confidence <= 1
    assert label.intent_confidence == round(label.intent_confidence, 4)


@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
@pytest.mark.parametrize(
    ("text", "intents"),
    [
        ("Does the hotel have a swimming pool?", {"product_inquiry"}),
        ("这家酒店有停车场吗", {"product_inquiry"}),
        ("那家餐厅的地址和电话是多少", {"product_inquiry"}),
        ("find me a cheap restaurant with parking", {"recommendation_request"}),
        ("I can't wait to see you all next week!", {"chit_chat", "make_plan"}),
        ("The tracking page says it arrives tomorrow", {"order_status"}),
        ("预计明天下午送达", {"order_status"}),
        ("That's so sweet, my kids would love that lake too!", {"chit_chat"}),
        ("My boss is driving me crazy these days", {"share_fact", "chit_chat"}),
    ],
)
def test_what_an_earlier_model_mistook(text: str, intents: set[str], model_set: str) -> None:
    assert classify(text, model_set).intent in intents


@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
@pytest.mark.parametrize("text", ["asdkjh zzxq", "什么是光合作用", "how far is Mars from the sun"])
def test_what_no_intent_covers_is_out_of_scope(text: str, model_set: str) -> None:
    assert classify(text, model_set).intent == "out_of_scope"


@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
@pytest.mark.parametrize(
    "text", ["好", "k", "😡😡😡", "我要refund，package还没到", "\ud800", "退款" * 50_000, "[phone:7f3k9a2c]"]
)
def test_any_text_has_labels(text: str, model_set: str) -> None:
    label = classify(text, model_set)
    assert label.intent
    assert 0 <= label.intent_confidence <= 1
    assert classify_all(["x", text, "y"], model_set)[1] == label


@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
def test_whose_number_it_was_makes_no_difference(model_set: str) -> None:
    texts = ["电话写错了，改成[phone:7f3k9a2c4d5e]", "电话写错了，改成[phone:zzzzzzzzzzzz]", "电话写错了，改成[phone]"]
    first, *others = classify_all(texts, model_set)
    assert first.intent == "address_change"
    assert others == [first, first]


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("So glad the choir gave you a home, singing together is wonderful!", "out_of_scope"),
        ("Yes, you were great, everybody loved your speech!", "out_of_scope"),
        ("Wow, your pottery is beautiful, I love the colours!", "praise"),
        ("太好了，真为你高兴，你们的合唱太棒了", "out_of_scope"),
    ],
)
def test_a_text_full_of_joy_is_no_complaint(text: str, intent: str) -> None:
    label = classify(text, "base-1")
    assert (label.intent, label.action) == (intent, "express_satisfaction")
    assert classify(text).intent in {"praise", "chit_chat"}


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_nothing_said_has_no_confidence(text: str) -> None:
    label = classify(text)
    assert (label.intent, label.action, label.category) == ("out_of_scope", "inform", "chit_chat")
    assert label.intent_confidence == label.action_confidence == label.category_confidence == 0.0


def test_full_width_traditional_and_case_make_no_difference() -> None:
    assert classify("我要退款，請快點！") == classify("我要退款,请快点!")
    assert classify("WHERE IS MY ORDER") == classify("where  is my order")


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(MESSAGES, max_size=12), seed=st.randoms(use_true_random=False))
def test_labels_do_not_depend_on_the_batch(texts: list[str], seed: object) -> None:
    alone = [classify(text) for text in texts]
    assert classify_all(texts) == alone
    order = list(range(len(texts)))
    seed.shuffle(order)  # type: ignore[attr-defined]
    assert classify_all([texts[i] for i in order]) == [alone[i] for i in order]


@pytest.mark.parametrize("model_set", ["base-1", FAST, ACCURATE])
def test_chunks_change_nothing(model_set: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [case[0] for case in CASES] * 3
    whole = load_model(model_set).classify(texts)
    monkeypatch.setattr("memory_pipelines.slices.intent.model._CHUNK_CHARS", 20)
    assert load_model(model_set).classify(texts) == whole


@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_batches_change_nothing(model_set: str, size: int) -> None:
    texts = [f"{case[0]} {number}" for number in range(4) for case in CASES]
    whole = classify_all(texts, model_set)
    parts = [classify_all(texts[i : i + size], model_set) for i in range(0, len(texts), size)]
    assert [label for part in parts for label in part] == whole


def test_a_huge_text_is_read_to_its_cap() -> None:
    head = "我要退款" * 5_000
    assert classify(head + "谢谢" * 400_000) == classify(head)
    assert classify(head).intent == "refund_request"


def test_features_are_grouped_by_text_and_depend_on_it_alone() -> None:
    texts = ["退款", "", "hello world", "退款"]
    features = extract(texts)
    # two characters, three pairs and two triples with the frame; words: two and one pair
    assert features.counts[0] == 7
    assert features.counts[1] == 0
    groups = np.split(features.buckets, np.cumsum(features.counts)[:-1])
    for text, group in zip(texts, groups, strict=True):
        assert sorted(group) == sorted(extract([text]).buckets)
    assert features.buckets.max() < BUCKETS


def test_word_features_ignore_position() -> None:
    assert set(extract(["refund"]).buckets) & set(extract(["please refund me"]).buckets)
    assert not set(extract(["ab"]).buckets) & set(extract(["cd"]).buckets)


def test_probabilities_are_a_softmax() -> None:
    scores = np.array([[300, 100, -50], [0, 0, 0]])
    expected = math.exp(3) / (math.exp(3) + math.exp(1) + math.exp(-0.5))
    assert probabilities(scores, scores.argmax(axis=1), np.array([100.0, 1.0])) == [
        pytest.approx(expected, abs=2e-3),
        0.3333,
    ]


def test_an_unknown_model_set_names_the_setting() -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_MODEL_SET"):
        classify("好的", "no-such-set")
