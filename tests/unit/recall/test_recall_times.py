"""Times that a question names."""

from datetime import UTC, datetime, timedelta

import pytest
from recall_world import ALICE, NOW, World, make_memory

from memory_pipelines.recall import times

AT = datetime(2024, 6, 5, 15, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("query", "first", "after"),
    [
        ("Which team did John sign with on 21 May, 2023?", "2023-05-21", "2023-05-22"),
        ("What happened on May 21st?", "2024-05-21", "2024-05-22"),
        ("On December 24, what did I buy?", "2023-12-24", "2023-12-25"),
        ("2024-02-29 那天", "2024-02-29", "2024-03-01"),
        ("2023年5月2日我去了哪里", "2023-05-02", "2023-05-03"),
        ("五月二十一号的事", "2024-05-21", "2024-05-22"),
        ("去年十二月3号买了什么", "2023-12-03", "2023-12-04"),
        ("What did I say in March 2022?", "2022-03-01", "2022-04-01"),
        ("31 February 2024", "2024-02-01", "2024-03-01"),
        ("last March I was ill", "2024-03-01", "2024-04-01"),
        ("last June", "2023-06-01", "2023-07-01"),
        ("in July we moved", "2023-07-01", "2023-08-01"),
        ("去年三月", "2023-03-01", "2023-04-01"),
        ("三月份的投诉", "2024-03-01", "2024-04-01"),
        ("三年前我住哪", "2021-01-01", "2022-01-01"),
        ("two months ago", "2024-04-01", "2024-05-01"),
        ("十天前", "2024-05-26", "2024-05-27"),
        ("两周前的快递", "2024-05-19", "2024-05-26"),
        ("last week", "2024-05-27", "2024-06-03"),
        ("上周我问了什么", "2024-05-27", "2024-06-03"),
        ("上上周", "2024-05-20", "2024-05-27"),
        ("上周三", "2024-05-29", "2024-05-30"),
        ("上周日", "2024-06-02", "2024-06-03"),
        ("last Wednesday", "2024-05-29", "2024-05-30"),
        ("last Friday", "2024-05-31", "2024-06-01"),
        ("last weekend", "2024-06-01", "2024-06-03"),
        ("上个月", "2024-05-01", "2024-06-01"),
        ("昨天说的", "2024-06-04", "2024-06-05"),
        ("大前天", "2024-06-02", "2024-06-03"),
        ("the day before yesterday", "2024-06-03", "2024-06-04"),
        ("去年的旅行", "2023-01-01", "2024-01-01"),
        ("What did I do in 2022?", "2022-01-01", "2023-01-01"),
        ("明天的会", "2024-06-06", "2024-06-07"),
    ],
)
def test_the_interval(query: str, first: str, after: str) -> None:
    found = times.span(query, AT)
    assert found is not None
    assert (found.start.date().isoformat(), found.end.date().isoformat()) == (first, after)


@pytest.mark.parametrize(
    "query",
    ["我喜欢什么", "May I return it?", "order 20240501123", "the march went on", "9999年前"],
)
def test_no_time(query: str) -> None:
    assert times.span(query, AT) is None


def test_a_question_about_a_time_alone() -> None:
    for query, subject in [
        ("What happened last week?", False),
        ("上周我做了什么？", False),
        ("Which courier came last week?", True),
        ("上周的快递", True),
    ]:
        found = times.span(query, AT)
        assert found is not None
        assert times.has_subject(query, found) is subject


def test_what_happened_in_the_time_is_told_whatever_its_words(world: World) -> None:
    old = make_memory("old", "用户换了窗帘", occurred_at=NOW - timedelta(days=40))
    new = make_memory("new", "用户修了屋顶", occurred_at=NOW - timedelta(days=3))
    world.publish([old, new])
    best = max(world.ask("3天前发生了什么事").items, key=lambda item: item.score)
    assert best.memory.memory_id == "new"
    assert "time" in [score.leg for score in best.reasons.legs]
    assert "在所问的时间内" in best.why
    world.suppress("new")
    assert "new" not in [item.memory.memory_id for item in world.ask("3天前发生了什么事").items]
    assert world.authority.person(ALICE).suppressed == {"new"}
