"""Kinds of turns that the shipped models must tell apart, on turns that no example of the package holds."""

import pytest

from memory_pipelines.slices.events import COMPLAINTS
from memory_pipelines.slices.intent.examples import load_examples
from memory_pipelines.slices.intent.predict import classify_all
from memory_pipelines.slices.language import fold

FAST, ACCURATE = "base-2", "accurate-2"
COMPLAINING = [
    "我在你们家买的吹风机九天了还没影，订单TB77120934到底发没发？",
    "单号YT8830012的包裹被压成一张饼，里面的相框全碎了",
    "快递员说已放门口，可我家门口什么都没有，订单88129931",
    "韵达把我的行李箱摔裂了，谁负责？订单号A-20931",
    "下单的时候保证周三到，今天都周日了，物流还停在东莞",
    "催了四次了还是运输中，你们能不能上点心，单号773001",
    "我的猫粮卡在中转场整整一个星期了，猫都快饿死了",
    "签收人写的是我，可我那天根本不在家，东西哪去了",
    "已经第二回反映这个延误了，怎么还没有人理我",
    "包裹外面全是水，书都泡烂了，你们发货不套袋子的吗",
    "说好送上门，结果扔在两公里外的小卖部",
    "订单9912003，三件只到了两件，剩下那件去哪了",
    "My order K-55810 was meant to come on Tuesday, it is Sunday and nothing has turned up",
    "The box for order 7719-22 was ripped open and the mirror inside is in a hundred pieces",
    "It has been eleven days, DPD still has not delivered my mattress, order 993120",
    "Your driver tossed the package over the gate and the lamp is bent",
    "Tracking for 5512-A has been frozen in Leeds since last week, do something",
    "They signed my name and kept the parcel, I never saw it, order 40021",
    "Second complaint about shipment 88-100, nobody has bothered to answer the first",
    "Hermes left my groceries in the sun and all of it went bad",
    "You promised overnight shipping and it took nine days, what a letdown",
    "The courier went to the wrong house again and my gift missed the birthday",
    "Half of order 66120 is missing and the carrier shrugs",
    "I have chased this parcel all month and I am sick of excuses",
]
ASKING = [
    "你好，订单TB77120934现在到什么地方了",
    "请问单号YT8830012预计几号能到",
    "麻烦查一下88129931发的什么快递",
    "昨晚下的单，今天会发货吗，订单号A-20931",
    "想问一下送到东莞一般要几天",
    "我的猫粮发出了吗，单号773001",
    "快递到了会提前给我打电话吗",
    "可以告诉我派件员的联系方式吗，订单9912003",
    "Hi, could you tell me where order K-55810 is at the moment?",
    "When will order 7719-22 get to Leeds?",
    "Has 993120 been handed to the courier yet?",
    "What is the tracking number of order 40021, please?",
    "If I order tonight, will it reach Cork by Friday?",
    "Which carrier are you sending 66120 with?",
    "Will somebody ring me before the delivery of 88-100?",
    "How long does shipping to Norway normally take?",
]
PERSONAL = [
    "哈哈你真会说，我上个月刚学会骑摩托，摔了两回",
    "谢谢惦记，我爷爷上周出院了，现在能自己走路",
    "我侄女在苏州一家医院当药剂师",
    "我婆婆血压一直偏高，每天都要量",
    "我最讨厌吃芹菜，闻到味道就跑",
    "我们打算五一带爸妈去青岛看海",
    "我弟身高一米七八，比我还高",
    "那天的同学会特别热闹，我们聊到半夜才散",
    "Wow, sounds great! I just came back from a week of sailing with my cousins",
    "Thanks! My sister got engaged on Sunday and the whole family cried",
    "My neighbour teaches maths at the village school",
    "Haha same, I burned the lasagna last night and we ordered noodles",
    "I can't stand loud restaurants, give me a quiet corner any day",
    "We're planning to drive down the coast in August with the dogs",
    "I was diagnosed with asthma when I was nine",
    "It was such a moving ceremony, my whole team came and sang for me",
]
REMARKS = [
    "哇，真厉害，恭喜你呀",
    "别太累了，注意休息",
    "真的假的？快跟我说说",
    "你说得太对了",
    "Aw, that's lovely, you two look so happy together",
    "Good luck tomorrow, you'll be brilliant!",
    "How did you manage that? Tell me everything!",
    "Hang in there, it will get better",
]
ALMOST_ALL = 0.85
"""Share that must be right: single turns may be read either way, a kind may not."""


def share(found: list[bool]) -> float:
    return sum(found) / len(found)


def test_no_turn_of_this_list_is_an_example() -> None:
    known = {fold(example.row.text) for example in load_examples()}
    assert not [text for text in (*COMPLAINING, *ASKING, *PERSONAL, *REMARKS) if fold(text) in known]


@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
def test_complaints_about_parcels_are_no_questions_about_orders(model_set: str) -> None:
    complaints = [label.intent in COMPLAINTS for label in classify_all(COMPLAINING, model_set)]
    questions = [label.intent in {"order_status", "product_inquiry"} for label in classify_all(ASKING, model_set)]
    assert share(complaints) >= ALMOST_ALL
    assert share(questions) >= ALMOST_ALL


@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
def test_what_people_tell_of_their_lives_is_no_small_talk(model_set: str) -> None:
    told = [label.category in {"fact", "preference", "task"} for label in classify_all(PERSONAL, model_set)]
    remarks = [label.category in {"chit_chat", "inquiry"} for label in classify_all(REMARKS, model_set)]
    assert share(told) >= ALMOST_ALL
    assert share(remarks) >= ALMOST_ALL
