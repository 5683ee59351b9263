"""What the next turn says of what an agent has just used."""

import pytest
from recall_world import make_fact, make_memory

from memory_pipelines.recall.denial import heard
from memory_pipelines.stores.authority import StoredMemory

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


MORE_ZH = [
    make_memory("rude", "投诉快递员态度差（圆通），要求道歉。", intent="service_complaint"),
    make_fact("job", "用户在杭州做程序员。", "job", "程序员"),
    make_fact("sea", "用户对海鲜过敏。", "allergy", "海鲜"),
    make_memory("member", "咨询会员续费价格。", intent="membership_inquiry"),
    make_fact("mild", "用户不吃辣。", "diet", "不吃辣"),
    make_memory("purifier", "下单购买了空气净化器，之后取消了订单。", intent="cancel_order"),
]
MORE_EN = [
    make_memory("gym", "The customer asked to cancel the gym membership.", intent="cancel_subscription"),
    make_fact("siemens", "The customer works at Siemens as an engineer.", "employer", "Siemens"),
    make_fact("girls", "The customer has two daughters.", "children", "two daughters"),
    make_memory(
        "screen", "The customer reported a broken screen and demanded compensation.", intent="quality_complaint"
    ),
    make_fact("coffee", "The customer does not drink coffee.", "diet", "no coffee"),
    make_fact("berlin", "The customer plans to move to Berlin in June.", "plan", "move to Berlin"),
]


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("我没要求过道歉啊", "rude"),
        ("我从来没投诉过快递员", "rude"),
        ("我又不是程序员", "job"),
        ("我不在杭州", "job"),
        ("我对海鲜并不过敏", "sea"),
        ("我可没说过我对海鲜过敏", "sea"),
        ("谁说我要续费了，我没问过会员价格", "member"),
        ("我没买过空气净化器", "purifier"),
        ("搞错了吧，我没取消订单", "purifier"),
        ("不可能，我没下过这个单", "purifier"),
        ("I have never asked to cancel my gym membership", "gym"),
        ("That isn't right, I never wanted to cancel the gym", "gym"),
        ("I don't work at Siemens", "siemens"),
        ("I am not an engineer at Siemens", "siemens"),
        ("I have no daughters", "girls"),
        ("I didn't demand any compensation", "screen"),
        ("Nope, never reported a broken screen", "screen"),
        ("I'm not moving to Berlin", "berlin"),
        ("我的净化器还没发货", ""),
        ("我没吃海鲜", ""),
        ("我不吃辣", ""),
        ("会员我还没续", ""),
        ("我有没有投诉过快递员？", ""),
        ("好像没投诉过吧，记不清了", ""),
        ("大概没要求过道歉吧", ""),
        ("我不做程序员了", ""),
        ("别取消订单", ""),
        ("我不想再跟圆通说话", ""),
        ("快递员没道歉", ""),
        ("I don't drink coffee", ""),
        ("I haven't got my compensation", ""),
        ("I don't work at Siemens any more", ""),
        ("Did I never ask to cancel my gym membership?", ""),
        ("I can't remember reporting a broken screen", ""),
        ("Maybe I never asked to cancel the gym", ""),
        ("My daughters don't like the gym", ""),
        ("I have not moved to Berlin yet", ""),
        ("Please don't cancel the gym membership today", ""),
        ("The screen is not broken any longer", ""),
        ("I don't have time now", ""),
    ],
)
def test_sentences_written_after_the_rules(said: str, denied: str) -> None:
    used = MORE_EN if said.isascii() else MORE_ZH
    assert heard(said, used).denied == ((denied,) if denied else ())


def test_nothing_was_used() -> None:
    assert heard("我没投诉过物流", []) == heard("That's wrong.", [])
    assert heard("我没投诉过物流", []).denied == ()
