"""Contrasts and changes: what a turn says against a value that is known, in both languages and any order of arrival."""

from itertools import permutations

import pytest
from admission_world import make_slice

from memory_pipelines.admission.extract import candidates
from memory_pipelines.model import Owner

ANN = Owner("acme", "u:ann")


def holding(*turns: str, session: str | None = "s", order: tuple[int, ...] | None = None) -> set[str]:
    """``predicate: object`` of what holds after the turns, a day apart, read in ``order``."""
    rows = [make_slice(i, text, days=i, session_id=session) for i, text in enumerate(turns)]
    read = sorted((rows[i] for i in order or range(len(rows))), key=lambda row: (row["occurred_at"], row["slice_id"]))
    claims = [c.claim for c in candidates(ANN, read) if c.claim]
    return {f"{claim.fact.predicate}: {claim.fact.object}" for claim in claims if claim.valid_to is None}


CORRECTED = [
    # not Y but X, of any predicate
    (("I live in Leeds", "It should be Hull rather than Leeds"), {"home_city: Hull"}),
    (("I'm allergic to walnuts.", "Cashews, not walnuts."), {"allergy: Cashews"}),
    (("I work at Harrow Press", "Not Harrow Press but Barrow Press"), {"employer: Barrow Press"}),
    (("My cat is called Tom", "Not Tom but Tim"), {"pet: cat Tim"}),
    (("My daughter is called Mia", "I said Mia earlier, I meant Mira"), {"family.daughter.name: Mira"}),
    (("My Tuesday call is at 2 pm", "I meant 3 pm, not 2 pm, sorry"), {"schedule: tuesday call at 3 pm"}),
    (("I prefer the aisle seat", "What I meant was the back row, not the aisle"), {"seat_preference: back row"}),
    (("我住在苏州", "写错了，不是苏州，是无锡"), {"home_city: 无锡"}),
    (("我对花生过敏", "是核桃，不是花生，打错字了"), {"allergy: 核桃"}),
    (("我在海豚软件上班", "把海豚软件改成白鲸软件"), {"employer: 白鲸软件"}),
    (("我女儿叫小雨", "不是小雨，是小玉"), {"family.daughter.name: 小玉"}),
    (("周三晨会是上午9点", "口误，应该是上午10点，不是上午9点"), {"schedule: 周三晨会上午10点"}),
    (("家里养了一缸金鱼", "不是金鱼，我们养的是两只乌龟，说错了"), {"pet: 乌龟"}),
    # without the old value, of a kind that tells which is meant
    (("My Tuesday call is at 2 pm", "No, it's at 4 pm."), {"schedule: tuesday call at 4 pm"}),
    (
        ("Every Friday at 8 am I have a yoga class", "My mistake, 9 am is right."),
        {"schedule: friday yoga class at 9 am"},
    ),
    (("周三晨会是上午9点", "不对，上午11点才对"), {"schedule: 周三晨会上午11点"}),
]

CHANGED = [
    (("I work at Harrow Press", "Harrow Press let me go, I'm with Barrow Press now."), {"employer: Barrow Press"}),
    (("I love rowing", "I gave up rowing, I only do archery now"), {"likes: archery"}),
    (("I love curry", "I am tired of curry, so it is salads from now on"), {"likes: salads"}),
    (
        ("I prefer the window seat", "The window seat is no longer comfortable, book me an aisle seat instead."),
        {"seat_preference: aisle"},
    ),
    (("我在海豚软件上班", "海豚软件倒闭了，我去白鲸软件上班了"), {"employer: 白鲸软件"}),
    (("我喜欢爬山", "膝盖不行，爬山不怎么去了，现在改打太极了"), {"likes: 太极"}),
    (("坐飞机我喜欢靠过道的座位", "靠过道的座位不舒服，以后改订后排的座位吧"), {"seat_preference: 后排"}),
]

UNMOVED = [
    # questions, suppositions, third persons, quotations, doubt
    ("My Tuesday call is at 2 pm", "Should it be 3 pm, not 2 pm?"),
    ("My Tuesday call is at 2 pm", "My friend meant 3 pm, not 2 pm"),
    ("My Tuesday call is at 2 pm", "If I had said 3 pm, not 2 pm, would you know?"),
    ("My Tuesday call is at 2 pm", 'She said "I meant 3 pm, not 2 pm"'),
    ("My Tuesday call is at 2 pm", "Maybe it is 3 pm, not 2 pm"),
    ("My Tuesday call is at 2 pm", "The shop opens at 3 pm, not at 4 pm"),
    ("I live in Leeds", "My boss lives in Hull, not Leeds"),
    ("I love curry", "No, thanks."),
    ("I work at Harrow Press", "My neighbour left Harrow Press, she is at Barrow Press now"),
    ("I'm allergic to walnuts", "I stopped buying walnuts, it is almonds in this house now"),
    ("周三晨会是上午9点", "他说错了，是上午10点，不是上午9点"),
    ("周三晨会是上午9点", "是上午10点，不是上午9点吗？"),
    ("我住在苏州", "我同事住无锡，不是苏州"),
    ("我住在苏州", "要是我住在无锡，不是苏州，快递会更快"),
    ("我在海豚软件上班", "听说海豚软件裁员，他们都去白鲸软件了"),
]


@pytest.mark.parametrize(("turns", "expected"), CORRECTED + CHANGED)
def test_takes_the_place_of_the_value_it_speaks_against(turns: tuple[str, ...], expected: set[str]) -> None:
    assert holding(*turns) == expected


@pytest.mark.parametrize("turns", UNMOVED)
def test_moves_nothing(turns: tuple[str, str]) -> None:
    assert holding(turns[0]) <= holding(*turns)


def test_corrects_what_was_said_in_the_same_session_only_if_nothing_is_named() -> None:
    assert holding("My Tuesday call is at 2 pm", "No, it's at 4 pm.", session=None) == {
        "schedule: tuesday call at 2 pm"
    }


def test_a_value_that_came_back_is_not_corrected_by_what_was_said_before_it() -> None:
    assert holding("I live in Leeds", "Hull, not Leeds", "I moved to Leeds") == {"home_city: Leeds"}


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_any_order_of_arrival_comes_to_the_same(order: tuple[int, ...]) -> None:
    turns = (
        "I work at Harrow Press",
        "Barrow Press, not Harrow Press",
        "I love rowing",
        "I gave up rowing, I only do archery now",
    )
    assert holding(*turns, order=order) == {"employer: Barrow Press", "likes: archery"}
