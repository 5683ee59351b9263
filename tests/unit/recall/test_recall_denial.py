"""What the next turn says of what an agent has just used."""

import pytest
from recall_world import make_fact, make_memory

from memory_pipelines.recall.denial import heard
from memory_pipelines.stores.base import StoredMemory

COMPLAINT = make_memory(
    "complaint", "因物流超时投诉顺丰（书包、深圳仓），之后取消了订单。", intent="logistics_complaint"
)
REFUND = make_memory("refund", "申请退款耳机，已退回。", intent="refund_request")
COFFEE = make_fact("coffee", "用户喜欢咖啡。", "likes", "咖啡")
CITY = make_fact("city", "用户住在上海。", "lives_in", "上海")
CAT = make_fact("cat", "用户养了一只猫。", "has_pet", "猫")
LOST = make_memory("lost", "用户的包裹没有收到。", intent="logistics_inquiry")
ZH = [COMPLAINT, REFUND, COFFEE, CITY, CAT, LOST]

EN_COMPLAINT = make_memory(
    "en_complaint", "On 3 May the customer complained to SF Express about a late parcel.", intent="logistics_complaint"
)
EN_REFUND = make_memory("en_refund", "The customer asked for a refund of the headphones.", intent="refund_request")
VEGAN = make_fact("vegan", "The customer is vegan.", "diet", "vegan")
SEAT = make_fact("seat", "The customer prefers window seats.", "prefers", "window seats")
LEEDS = make_fact("leeds", "The customer lives in Leeds.", "lives_in", "Leeds")
EN_LOST = make_memory("en_lost", "The customer did not receive the parcel.", intent="logistics_inquiry")
EN = [EN_COMPLAINT, EN_REFUND, VEGAN, SEAT, LEEDS, EN_LOST]


@pytest.mark.parametrize(
    ("said", "used", "denied"),
    [
        ("我没投诉过物流", ZH, ["complaint"]),
        ("我从来没有投诉过物流啊，你们搞什么", ZH, ["complaint"]),
        ("没投诉过顺丰。", ZH, ["complaint"]),
        ("我根本没投诉物流", ZH, ["complaint"]),
        ("我没申请退款", ZH, ["refund"]),
        ("我没退过耳机", ZH, ["refund"]),
        ("我不喜欢咖啡", ZH, ["coffee"]),
        ("我不喜欢咖啡，也没养过猫", ZH, ["coffee", "cat"]),
        ("我不住在上海", ZH, ["city"]),
        ("我没有养猫", ZH, ["cat"]),
        ("你记错了", [COMPLAINT], ["complaint"]),
        ("没有这回事", [COFFEE], ["coffee"]),
        ("不是我，认错人了", [CITY], ["city"]),
        ("I never complained about logistics.", EN, ["en_complaint"]),
        ("i didn't complain about a late parcel", EN, ["en_complaint"]),
        ("No, I did not ask for a refund.", EN, ["en_refund"]),
        ("I haven't ever asked for a refund!", EN, ["en_refund"]),
        ("I'm not vegan.", EN, ["vegan"]),
        ("I don't prefer window seats, sorry", EN, ["seat"]),
        ("I do not live in Leeds", EN, ["leeds"]),
        ("That's wrong.", [SEAT], ["seat"]),
        ("That never happened", [EN_REFUND], ["en_refund"]),
        ("you are mistaken", [VEGAN], ["vegan"]),
    ],
)
def test_denials(said: str, used: list[StoredMemory], denied: list[str]) -> None:
    assert list(heard(said, used).denied) == denied


@pytest.mark.parametrize(
    ("said", "used"),
    [
        ("我不记得了", [COMPLAINT]),
        ("我不记得投诉过物流", ZH),
        ("我记不清有没有投诉过物流了", ZH),
        ("忘了，没什么印象", [REFUND]),
        ("我没投诉过物流吗？", ZH),
        ("我是不是没投诉过物流？", ZH),
        ("我的包裹没收到", ZH),
        ("我没收到过包裹", ZH),
        ("我不住上海了", ZH),
        ("我现在不再喜欢咖啡", ZH),
        ("我没投诉过餐厅", ZH),
        ("我没去过北京", ZH),
        ("没问题，谢谢", ZH),
        ("不用了", [COFFEE]),
        ("你记错了", ZH),
        ("物流太慢了我要投诉", ZH),
        ("I don't remember", [EN_COMPLAINT]),
        ("I don't remember complaining about logistics.", EN),
        ("Sorry, I can't recall that refund", EN),
        ("I'm not sure I asked for a refund", EN),
        ("Didn't I complain about logistics?", EN),
        ("I never received the parcel", EN),
        ("I didn't receive my parcel", EN),
        ("I'm no longer vegan", EN),
        ("I don't live in Leeds any more", EN),
        ("I never complained about the restaurant", EN),
        ("I have not decided yet", EN),
        ("I don't mind a window", EN),
        ("That's wrong.", EN),
        ("Not now, thank you.", [SEAT]),
        ("The courier is wrong about the address", [SEAT]),
        ("", EN),
        ("？！…", ZH),
    ],
)
def test_no_denials(said: str, used: list[StoredMemory]) -> None:
    assert heard(said, used).denied == ()


@pytest.mark.parametrize(
    ("said", "used", "echoed"),
    [
        ("A window seat again, please, as I prefer window seats", EN, ["seat"]),
        ("Yes, I live in Leeds", EN, ["leeds"]),
        ("对，我喜欢咖啡", ZH, ["coffee"]),
        ("I don't prefer window seats", EN, []),
        ("What is the weather?", EN, []),
        ("今天天气怎么样", ZH, []),
    ],
)
def test_what_the_person_brings_up(said: str, used: list[StoredMemory], echoed: list[str]) -> None:
    assert list(heard(said, used).echoed) == echoed


def test_nothing_was_used() -> None:
    assert heard("我没投诉过物流", []) == heard("That's wrong.", [])
    assert heard("我没投诉过物流", []).denied == ()
