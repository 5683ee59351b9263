"""What people say about themselves, sentence by sentence, in both languages."""

from datetime import UTC, datetime

import pytest

from memory_pipelines.admission.facts import extract_facts

AT = datetime(2024, 6, 5, 10, tzinfo=UTC)  # a Wednesday

STATED = [
    ("我对花生过敏", {"allergy": {"peanut"}}),
    ("我对海鲜和牛奶严重过敏，下单时请注意", {"allergy": {"seafood", "milk"}}),
    ("对芒果过敏，请不要放", {"allergy": {"mango"}}),
    ("医生说我对青霉素过敏", {"allergy": {"penicillin"}}),
    ("我可能对虾过敏", {"allergy": {"shrimp"}}),
    ("我妈妈对花生过敏", {"family.mother.allergy": {"peanut"}}),
    ("我儿子对牛奶过敏，我对芒果过敏", {"family.son.allergy": {"milk"}, "allergy": {"mango"}}),
    ("我爸有高血压", {"family.father.condition": {"hypertension"}}),
    ("我有糖尿病", {"condition": {"diabetes"}}),
    ("我怀孕了", {"condition": {"pregnant"}}),
    ("我住在上海，你们多久能送到？", {"home_city": {"shanghai"}}),
    ("我家住在北京朝阳区", {"home_city": {"北京朝阳区"}}),
    ("我搬到成都了", {"home_city": {"chengdu"}}),
    ("我和老婆住在成都", {"home_city": {"chengdu"}}),
    ("我同事住在上海，我住在苏州", {"home_city": {"苏州"}}),
    ("我住在上海，不对，是杭州", {"home_city": {"hangzhou"}}),
    ("不是花生，我是对核桃过敏", {"allergy": {"walnut"}}),
    ("我叫张伟，是一名程序员，在腾讯上班", {"name": {"张伟"}, "job": {"programmer"}, "employer": {"腾讯"}}),
    ("我现在在字节跳动当产品经理", {"employer": {"字节跳动"}, "job": {"产品经理"}}),
    ("我在晨星物流工作五年了", {"employer": {"晨星物流"}}),
    ("我老婆是医生", {"family.wife.job": {"doctor"}}),
    ("我是四川人", {"hometown": {"四川"}}),
    ("我女儿叫小雨", {"family.daughter.name": {"小雨"}}),
    ("我有两个女儿", {"family_member": {"daughter"}}),
    ("我女儿的生日是6月1日", {"family.daughter.birthday": {"06-01"}}),
    ("我的生日是1990年3月8日", {"birthday": {"03-08"}}),
    ("我最喜欢吃草莓和芒果", {"likes": {"草莓", "mango"}}),
    ("我很喜欢看电影和打篮球", {"likes": {"看电影", "打篮球"}}),
    ("我不喜欢香菜", {"dislikes": {"cilantro"}}),
    ("我讨厌排队", {"dislikes": {"排队"}}),
    ("我不吃辣，也不喝酒", {"diet": {"no 辣", "no 酒"}}),
    ("我吃素", {"diet": {"vegetarian"}}),
    ("我喜欢靠窗的座位", {"seat_preference": {"window"}}),
    ("我会说英语和日语", {"language": {"english", "japanese"}}),
    ("我养了两只猫和一条狗", {"pet": {"cat", "dog"}}),
    ("我养了一只猫叫咪咪", {"pet": {"cat:咪咪"}}),
    ("我买了一辆特斯拉", {"possession": {"特斯拉"}}),
    ("我下周三去北京出差", {"plan": {"2024-06-12 去北京出差"}}),
    ("我6月12日有一个面试", {"plan": {"2024-06-12 面试"}}),
    ("I love mangoes, super happy", {"likes": {"mangoe"}}),
    (
        "I love mango ice cream and my flight CA1234 to Beijing was cancelled, very angry",
        {"likes": {"mango ice cream"}},
    ),
    ("I've been at Harrow Press for five years", {"employer": {"harrow press"}}),
    ("I start at Harrow Press next week.", {"employer": {"harrow press"}}),
    ("I live in Paris", {"home_city": {"paris"}}),
    ("I live in Paris, do you deliver there?", {"home_city": {"paris"}}),
    ("I've been living in Tokyo for three years 🗼", {"home_city": {"tokyo"}}),
    ("I moved to Berlin last month because of work", {"home_city": {"berlin"}}),
    ("I live in London. No wait, Leeds.", {"home_city": {"leeds"}}),
    ("I grew up in Ohio but I live in Texas now", {"hometown": {"ohio"}, "home_city": {"texas"}}),
    ("My name is Anna Schmidt and I work as a nurse.", {"name": {"anna schmidt"}, "job": {"nurse"}}),
    ("I work for Google as a data analyst.", {"employer": {"google"}, "job": {"data analyst"}}),
    ("I'm a software engineer at Google", {"job": {"software engineer"}, "employer": {"google"}}),
    ("My wife works at Siemens", {"family.wife.employer": {"siemens"}}),
    ("I'm allergic to peanuts, shellfish and eggs.", {"allergy": {"peanut", "shellfish", "egg"}}),
    ("I have a severe peanut allergy", {"allergy": {"peanut"}}),
    ("My mom's allergic to penicillin", {"family.mother.allergy": {"penicillin"}}),
    ("My daughter Mia is allergic to nuts", {"family.daughter.name": {"mia"}, "family.daughter.allergy": {"nut"}}),
    ("I’m diabetic", {"condition": {"diabetes"}}),
    ("I'm vegetarian", {"diet": {"vegetarian"}}),
    ("I don't eat pork or beef.", {"diet": {"no pork", "no beef"}}),
    ("I stopped eating meat", {"diet": {"no meat"}}),
    ("I love hiking and swimming", {"likes": {"hiking", "swimming"}}),
    ("I'm a huge fan of Taylor Swift and I hate jazz", {"likes": {"taylor swift"}, "dislikes": {"jazz"}}),
    ("I don't like cilantro", {"dislikes": {"cilantro"}}),
    ("I prefer aisle seats now", {"seat_preference": {"aisle"}}),
    ("I have a dog named Rex", {"pet": {"dog:rex"}}),
    ("We live in Oslo and we have a cat", {"home_city": {"oslo"}, "pet": {"cat"}}),
    ("I have two kids", {"family_member": {"child"}}),
    ("I bought a Tesla", {"possession": {"tesla"}}),
    ("I speak Mandarin and English", {"language": {"mandarin", "english"}}),
    ("I'm flying to Tokyo next Friday", {"plan": {"2024-06-14 fly to tokyo"}}),
    ("I have a dentist appointment on 12 June at 3pm", {"plan": {"2024-06-12 dentist appointment"}}),
    ("I'm moving to Berlin next month", {"plan": {"2024-07-01 move to berlin"}}),
    ("我目前就职于蓝鲸软件", {"employer": {"蓝鲸软件"}}),
    ("坐飞机我喜欢靠过道的座位", {"seat_preference": {"aisle"}}),
    ("我不能吃虾，会过敏", {"allergy": {"shrimp"}}),
    ("家里有一只橘猫", {"pet": {"橘猫"}}),
    ("提醒我6月20日带孩子体检", {"plan": {"2024-06-20 带孩子体检"}}),
    ("周一例会是上午9点。说错了，应该是上午10点", {"schedule": {"周一例会 上午10点"}}),
    ("My Monday meeting is at 9 am. No, it is at 10 am.", {"schedule": {"monday meeting 10 am"}}),
    ("I cannot have dairy, I am allergic.", {"allergy": {"dairy"}}),
    ("On planes I like the window seat.", {"seat_preference": {"window"}}),
    ("I love Thai food, sushi and ramen", {"likes": {"thai food", "sushi", "ramen"}}),
    ("I love Thai food, choose that first", {"likes": {"thai food"}}),
    ("I'm into climbing now, not so much yoga", {"likes": {"climbing"}}),
    ("Remind me of the lease signing on June 20", {"plan": {"2024-06-20 lease signing"}}),
    ("As of today I work at Harrow Press", {"employer": {"harrow press"}}),
    ("Each Thursday at 6 pm we have a choir rehearsal", {"schedule": {"thursday choir rehearsal 6 pm"}}),
    ("On Sundays I play some backgammon", {"likes": {"backgammon"}}),
    ("I usually want an exit row seat when I travel", {"seat_preference": {"exit row seat"}}),
    ("Our son is Theo, he's five", {"family.son.name": {"theo"}}),
    ("My sister is Norwegian", {}),
    ("I need a child seat", {}),
    ("After dinner I do the dishes", {}),
    ("Allergies: walnuts", {"allergy": {"walnut"}}),
    ("The size, the colour and the price", {}),
    ("儿子阿哲今年上小学", {"family.son.name": {"阿哲"}}),
    ("女儿最近上幼儿园了", {}),
    ("最近爱上了陶艺", {"likes": {"陶艺"}}),
    ("我只喝乌龙茶", {"diet": {"只喝乌龙茶"}}),
    ("血型：O型", {"blood_type": {"o型"}}),
    ("血型，你猜", {}),
    ("我住在 Shanghai，I work at Google", {"home_city": {"shanghai"}, "employer": {"google"}}),
]

NOTHING = [
    "住下以后帮我找个饭店",
    "住宿方便吗",
    "我住两晚",
    "I live in 94110",
    "",
    "   \n",
    "😀👍",
    "如果我住在上海，你们多久能送到？",
    "要是我对花生过敏怎么办",
    "我住在上海，对吧？",
    "我住哪里？",
    "我对花生过敏吗",
    "难道我喜欢香菜",
    "你喜欢香菜吗",
    "我朋友对海鲜过敏",
    "他说我住在上海",
    "客服说我住在上海",
    "他说“我住在北京”",
    "我可能住在上海",
    "我叫了外卖",
    "我喜欢你们的服务",
    "我在家工作",
    "我在江苏南京工作",
    "这里住着特别舒服",
    "我喜欢的公园，叫荔枝公园",
    "他的生日是6月1日",
    "好的，我知道了",
    "do I live in Paris?",
    "Do I live in Paris",
    "Do you know I'm vegan?",
    "I'm vegan, right?",
    "If I lived in Paris I would walk more",
    "Imagine I'm allergic to dogs.",
    "Wish I lived in Spain",
    "I'd love to live in Paris",
    "She said I live in Paris",
    "My friend is allergic to nuts",
    '"I live in Rome" is a song',
    "I have a question",
    "I have a problem with my laptop",
    "I am a bit tired",
    "I like your service",
    "I hate it when you do that",
    "I love the colour",
    "I love you",
    "I work from home",
    "Maybe I live in Leeds",
    "I would like a refund",
    "I am at Starbucks now",
    "I changed my mind",
    "我在医院",
]

ENDED = [
    ("我不再住在上海了", "home_city", "shanghai"),
    ("我以前住在上海", "home_city", "shanghai"),
    ("我不在阿里巴巴上班了", "employer", "阿里巴巴"),
    ("我从腾讯离职了", "employer", "腾讯"),
    ("我不对花生过敏", "allergy", "peanut"),
    ("我把车卖了", "possession", "车"),
    ("我不是北京人", "hometown", "beijing"),
    ("我不怎么吃粤菜了", "likes", "粤菜"),
    ("I no longer live in Paris", "home_city", "paris"),
    ("I don't live in Paris anymore.", "home_city", "paris"),
    ("I used to live in Paris", "home_city", "paris"),
    ("I left Google last month", "employer", "google"),
    ("I'm not allergic to peanuts", "allergy", "peanut"),
    ("I no longer like coffee", "likes", "coffee"),
    ("I don't hate cilantro", "dislikes", "cilantro"),
    ("I sold my car", "possession", "car"),
]


def _language(text: str) -> str:
    return "zh" if any("\u3400" <= c <= "\u9fff" for c in text) else "en"


@pytest.mark.parametrize(("text", "expected"), STATED)
def test_stated(text: str, expected: dict[str, set[str]]) -> None:
    found: dict[str, set[str]] = {}
    for fact in extract_facts(text, AT, _language(text)):
        if not fact.ends:
            found.setdefault(fact.predicate, set()).add(fact.value)
    assert found == expected


@pytest.mark.parametrize("text", NOTHING)
def test_states_nothing_of_the_speaker(text: str) -> None:
    assert extract_facts(text, AT, _language(text)) == []


@pytest.mark.parametrize(("text", "predicate", "value"), ENDED)
def test_ended(text: str, predicate: str, value: str) -> None:
    facts = extract_facts(text, AT, _language(text))
    assert [(f.predicate, f.value, f.ends) for f in facts] == [(predicate, value, True)]


def test_a_new_job_ends_the_old_one_first() -> None:
    for text, new in (
        ("我换工作了，现在在晨星软件", "晨星软件"),
        ("I changed jobs, I am at Larkspur Press now.", "larkspur press"),
    ):
        facts = extract_facts(text, AT, _language(text))
        assert [(f.predicate, f.value, f.ends) for f in facts] == [
            ("job", "", True),
            ("employer", "", True),
            ("employer", new, False),
        ]


def test_resignation_ends_job_and_employer_whatever_they_are() -> None:
    for text in ("我辞职了", "I quit my job yesterday"):
        facts = extract_facts(text, AT, _language(text))
        assert {(f.predicate, f.value, f.ends) for f in facts} == {("job", "", True), ("employer", "", True)}


def test_a_correction_states_one_and_denies_the_other() -> None:
    for text, new, old in (
        ("I live in Leeds, not London", "leeds", "london"),
        ("我住在杭州，不是上海", "hangzhou", "shanghai"),
    ):
        facts = extract_facts(text, AT, _language(text))
        assert [(f.value, f.ends) for f in facts] == [(new, False), (old, True)]


def test_a_cancelled_plan_names_its_activity() -> None:
    (fact,) = extract_facts("我下周三不去北京出差了", AT, "zh")
    assert (fact.predicate, fact.key, fact.ends) == ("plan", "去北京出差", True)


def test_places_are_no_employers() -> None:
    assert extract_facts("I work in Leeds and I work for Leeds", AT, "en", places={"Leeds"}) == []


def test_a_hedge_halves_trust_and_spans_point_into_the_text() -> None:
    text = "你好！我可能对虾过敏。"
    (fact,) = extract_facts(text, AT, "zh")
    assert fact.strength < 0.6
    assert text[fact.start : fact.end] == "我可能对虾过敏"
    assert text[slice(*fact.sentence)] == "我可能对虾过敏。"


def test_a_huge_or_hostile_text_is_read() -> None:
    assert extract_facts("! . , ' " * 20_000, AT, "en") == []
    assert extract_facts("I love " + "! " * 140 + "x", AT, "en") == []
    facts = extract_facts("bla " * 5_000 + ". I live in Paris.", AT, "en")
    assert [f.value for f in facts] == ["paris"]
