"""The statistical reflection: every kind of insight with values worked out by hand, in Chinese and English."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import sqrt
from typing import Any

import pytest
from reflection_world import END, START, WANG, at, cited, fact, memory, plan, run, told

from memory_pipelines.model import stable_hash
from memory_pipelines.reflection.statistics import binomial_tail, trend
from memory_pipelines.stores.authority import StoredMemory

SF = ("carrier/sf_express",)


def topics(intent: str, days: str, entities: tuple[str, ...] = (), **changes: Any) -> list[StoredMemory]:
    return [memory(f"{intent}-{d}", at(d), intent=intent, entities=entities, **changes) for d in days.split()]


def test_core_needs_with_counts_and_trend() -> None:
    found = run(
        *topics("order_status", "03-26 04-23 05-02 05-03 05-06 05-14"),
        *topics("product_inquiry", "05-07 05-15"),
        *topics("refund_request", "05-16"),
        *topics("greeting", "05-13 05-14 05-15 05-16"),
        *topics("out_of_scope", "05-13 05-14 05-15"),
    )
    assert told(found, "core_need") == [
        "近四周的核心需求：商品咨询，2 次（此前四周 0 次，新出现）。",
        "近四周的核心需求：查询订单，5 次（此前四周 1 次，平稳）。",
    ]
    ids = ("order_status-04-23", "order_status-05-02", "order_status-05-03", "order_status-05-06", "order_status-05-14")
    needs = {i.memory_ids: i for i in found.insights if i.kind == "core_need"}
    need = needs[ids]
    assert need.own_turn_ids == tuple(f"turn-{m}" for m in ids)
    assert need.confidence == round(6 / 7 * 0.9, 4)
    assert (need.valid_from, need.valid_to, need.due_at) == (END, END + timedelta(weeks=4), None)
    assert need.insight_id == stable_hash("insight", WANG.key, "2024-05-13", "core_need", "order_status")


@pytest.mark.parametrize(
    ("count", "before", "expected"),
    [
        (7, 1, "rising"),  # 6 / sqrt 8 = 2.12
        (10, 3, "steady"),  # 7 / sqrt 13 = 1.94
        (6, 10, "steady"),  # -4 / sqrt 16 = -1
        (2, 9, "falling"),  # -7 / sqrt 11 = -2.11
        (5, 4, "steady"),
        (9, 0, "new"),
    ],
)
def test_trend(count: int, before: int, expected: str) -> None:
    assert trend(count, before) == expected


def test_english_needs_of_a_new_person() -> None:
    found = run(*topics("refund_request", "05-13 05-14 05-15", language="en"))
    assert told(found, "core_need") == [
        "Core need of the last four weeks: refund requests, 3 times (0 in the four weeks before, new)."
    ]
    assert told(found, "agent_behaviour") == [
        "“refund requests” 3 times in the last four weeks: tell the progress before being asked."
    ]


def test_at_most_three_needs_by_count_then_name() -> None:
    days = "05-13 05-14"
    names = ("b_thing", "a_thing", "d_thing", "c_thing")
    found = run(*(m for name in names for m in topics(name, days, language="en")))
    assert [t.split(": ")[1].split(",")[0] for t in told(found, "core_need")] == ["a thing", "b thing", "c thing"]


def test_one_slice_counts_once_whoever_tells_of_it() -> None:
    """An episode that was promoted cites the slices of others; a fact names the slice it was said in."""
    first, second = topics("order_status", "05-13 05-15")
    promoted = replace(first, slice_ids=(*first.slice_ids, *second.slice_ids))
    said = fact("f", at("05-15"), "likes", "tea", slice_ids=second.slice_ids, intent="order_status")
    found = run(promoted, second, said)
    assert [t for t in told(found, "core_need") if "2 次" in t] == told(found, "core_need") != []
    assert cited(found, "core_need") == [(first.memory_id, second.memory_id)]
    alone = run(replace(promoted, slice_ids=(*first.slice_ids, "evt_20240516_gone")))
    assert "2 次" in told(alone, "core_need")[0]
    later = run(replace(promoted, slice_ids=(*first.slice_ids, "evt_20240520_later", "evt_20241399_none", "odd")))
    assert "3 次" in told(later, "core_need")[0]  # two slices without a day of their own keep the memory's


def test_weekday_pattern() -> None:
    """Active on 5 Wednesdays of 6 days: P(X >= 5), X ~ B(6, 1/7) = 6 · 6/7^6 + 1/7^6 = .000315 < .01 / 7."""
    assert binomial_tail(5, 6, 1 / 7) == pytest.approx(37 / 7**6)
    found = run(*topics("", "04-03 04-10 04-24 05-08 05-15 05-09"))
    (pattern,) = (i for i in found.insights if "周三" in i.text)
    assert pattern.text == "近八周常在周三（UTC）来联系：6 个活跃日中有 5 个。"
    assert pattern.memory_ids == ("-04-03", "-04-10", "-04-24", "-05-08", "-05-15")
    english = told(run(*topics("", "04-03 04-10 04-24 05-08 05-15 05-09"), language="en"), "behaviour_pattern")
    assert "In the last eight weeks often in touch on Wednesdays (UTC): 5 of 6 active days." in english


def test_no_pattern_by_chance_or_burst_or_of_old() -> None:
    """4 of 6 days: .0049 > .01 / 7. Ten events on one day are one active day."""
    assert binomial_tail(4, 6, 1 / 7) == pytest.approx((15 * 36 + 6 * 6 + 1) / 7**6)
    hours = iter(range(24))
    spread = [memory(d, at(f"{d} {next(hours) * 3 % 24:02d}")) for d in ("04-03", "04-10", "04-24", "05-15", "05-09")]
    assert told(run(*spread, memory("x", at("05-14 20"))), "behaviour_pattern") == []
    burst = [memory(f"b{i}", at(f"05-15 {2 * i:02d}")) for i in range(10)]
    assert told(run(*burst), "behaviour_pattern") == []
    regular = topics("", "04-03 04-10 04-17 04-24 05-01 05-08")
    assert told(run(*regular, memory("y", at("05-14 23"))), "behaviour_pattern") == []  # none of it in this week


def test_part_of_the_day_and_by_intent() -> None:
    """4 of 5 periods of 21 to 24 h: 36 / 8^5 = .0011 < .01 / 8; 4 of 4 are .0002, 4 of 6 .0029. Weekdays differ."""
    days = [memory(d, at(f"{d} 22"), intent="product_inquiry") for d in ("04-02", "04-17", "05-06", "05-16")]
    once, again = memory("x", at("05-14 03")), memory("y", at("05-11 10"))
    assert told(run(*days, once), "behaviour_pattern") == [
        "近八周常在 21:00–24:00（UTC）来联系：5 个活跃时段中有 4 个。"
    ]
    found = run(*days, once, again)
    assert told(found, "behaviour_pattern") == ["近八周常在 21:00–24:00（UTC）谈及“商品咨询”：4 个活跃时段中有 4 个。"]
    assert cited(found, "behaviour_pattern") == [("04-02", "04-17", "05-06", "05-16")]
    imprecise = replace(days[0], slice_ids=(*days[0].slice_ids, "evt_20240430_a", "evt_20240507_b", "evt_20240513_c"))
    assert told(run(imprecise), "behaviour_pattern") == []  # slices of which only the day is known have no hour


def test_emerging_preference_of_a_fact_mentioned_three_times() -> None:
    slices = ("evt_20240425_a", "evt_20240507_b", "evt_20240514_c")
    tea = fact("tea", at("04-25"), "likes", "乌龙茶", summary="用户喜欢乌龙茶。", slice_ids=slices)
    found = run(tea)
    assert told(found, "emerging_preference") == ["新出现的偏好：用户喜欢乌龙茶（近四周提到 3 次，此前四周 0 次）。"]
    assert found.insights[0].confidence == 0.72  # 4/5 · .9
    assert told(run(replace(tea, slice_ids=slices[1:])), "emerging_preference") == []
    assert told(run(replace(tea, slice_ids=(*slices, "evt_20240402_z", "evt_20240401_y"))), "emerging_preference") == []
    assert told(run(replace(tea, slice_ids=(*slices[:2], "evt_20240424_z"))), "emerging_preference") == []  # not now
    home = fact("home", at("04-25"), "home_city", "上海", category="identity", slice_ids=slices)
    assert told(run(home), "emerging_preference") == []
    ended = replace(tea, valid_to=at("05-15"))
    assert told(run(ended), "emerging_preference") == []


def test_emerging_interest_but_not_of_complaints_dates_or_orders() -> None:
    entities = ("product/coffee_machine", "date/2024-05-14", "order_number/88")
    found = run(*topics("product_inquiry", "04-30 05-07 05-14", entities, language="en"))
    assert told(found, "emerging_preference") == [
        "Emerging interest: coffee machine (product questions, 3 times in the last four weeks, "
        "0 in the four weeks before)."
    ]
    named = run(*topics("product_inquiry", "04-30 05-07 05-14", entities), names={"product/coffee_machine": "咖啡机"})
    assert told(named, "emerging_preference") == ["新的关注点：咖啡机（商品咨询，近四周 3 次，此前四周 0 次）。"]
    assert told(run(*topics("logistics_complaint", "04-30 05-07 05-14", SF)), "emerging_preference") == []


def test_repeated_complaints_about_one_entity() -> None:
    found = run(
        *topics("logistics_complaint", "04-25 05-14", SF),
        *topics("service_complaint", "05-08", (*SF, "place/shenzhen")),
        *topics("logistics_complaint", "04-01", SF),
    )
    assert told(found, "agent_behaviour") == [
        "近四周有 3 次投诉涉及sf express：再提到它时先说明处理进展，并主动给出不依赖它的方案。"
    ]
    assert cited(found, "agent_behaviour") == [
        ("logistics_complaint-04-25", "service_complaint-05-08", "logistics_complaint-05-14")
    ]
    assert told(found, "action_item") == ["在 2024-05-23 之前就涉及sf express的投诉回访。"]
    (task,) = found.tasks
    assert task.due_at == datetime(2024, 5, 23, tzinfo=UTC)
    assert task.task_id == stable_hash("task", WANG.key, "complaints carrier/sf_express", "2024-05-23T00:00:00Z")
    assert told(run(*topics("logistics_complaint", "05-14", SF)), "agent_behaviour") == []


def test_a_new_allergy_is_to_be_checked() -> None:
    allergy = fact(
        "a", at("05-14"), "family.daughter.allergy", "peanut", category="health", summary="用户的女儿对花生过敏。"
    )
    found = run(allergy)
    assert told(found, "agent_behaviour") == ["推荐之前先核对：用户的女儿对花生过敏。"]
    assert told(run(replace(allergy, occurred_at=at("05-01")), memory("x", at("05-14"))), "agent_behaviour") == []


def test_a_fact_that_was_succeeded_in_the_week() -> None:
    moved = at("05-15 09")
    old = fact("old", at("01-02"), "home_city", "beijing", said="北京", category="identity", valid_to=moved)
    new = fact("new", moved, "home_city", "shanghai", said="上海", category="identity", confidence=0.7)
    found = run(old, new)
    assert told(found, "preference_change") == ["2024-05-15的变化：居住城市由“北京”变为“上海”。"]
    assert cited(found, "preference_change") == [("old", "new")]
    assert [i.confidence for i in found.insights if i.kind == "preference_change"] == [0.7]
    assert told(run(old, new, language="en"), "preference_change") == [
        "Changed on 15 May 2024: home city from “北京” to “上海”."
    ]
    assert told(run(old), "preference_change") == []  # ended, by nothing
    later = END
    assert told(run(replace(old, valid_to=later), new, memory("x", at("05-14"))), "preference_change") == []


def test_a_liking_that_turned_and_a_relative() -> None:
    turn = at("05-16")
    found = run(
        fact("likes", at("01-02"), "family.mother.likes", "榴莲", valid_to=turn),
        fact("dislikes", turn, "family.mother.dislikes", "榴莲"),
        fact("other", turn, "family.mother.likes", "芒果"),
        fact("own", turn, "dislikes", "榴莲"),
    )
    assert told(found, "preference_change") == ["2024-05-16的变化：由妈妈的喜欢“榴莲”变为妈妈的不喜欢“榴莲”。"]


def test_plans_done_overdue_upcoming_moved() -> None:
    moved = at("05-14 09")
    found = run(
        plan("done", at("05-01"), "2024-05-15", "去北京出差"),
        memory("proof", at("05-17"), text="北京出差已经结束了，挺累的"),
        plan("late", at("05-01"), "2024-05-16", "交电费"),
        memory("denied", at("05-18"), text="电费还没交了"),
        plan("soon", at("05-14"), "2024-05-23", "体检"),
        plan("far", at("05-14"), "2024-08-01", "去旅行"),
        plan("was", at("05-02"), "2024-05-20", "牙医预约", valid_to=moved),
        plan("now", moved, "2024-06-10", "牙医预约"),
        plan("gone", at("05-02"), "2024-05-21", "看电影", valid_to=moved),
    )
    assert told(found, "task_progress") == [
        "计划“交电费”（2024-05-16）已到期，没有完成的记录。",
        "计划“体检”定于 2024-05-23。",
        "计划“去北京出差”（2024-05-15）已完成。",
        "计划“牙医预约”由 2024-05-20 改到 2024-06-10。",
    ]
    assert cited(found, "task_progress") == [("done", "proof"), ("late",), ("soon",), ("was", "now")]
    assert [(t.text, t.due_at) for t in found.tasks] == [
        ("询问计划“交电费”（2024-05-16）是否已经完成。", END + timedelta(days=1)),
        ("在 2024-05-23 之前跟进计划“体检”。", datetime(2024, 5, 23, tzinfo=UTC)),
    ]
    assert told(found, "preference_change") == []


def test_english_plans_and_a_plan_known_only_as_an_episode() -> None:
    found = run(
        plan("dentist", at("05-06"), "2024-05-14", "have a dentist appointment", language="en"),
        memory("proof", at("05-15"), text="The dentist appointment went fine.", language="en"),
        memory(
            "remind",
            at("05-16"),
            intent="ask_reminder",
            entities=("date/2024-05-22", "date/2024-05-01", "date/2024-W20"),
            text="Remind me to renew my passport on Wednesday",
            language="en",
        ),
    )
    assert told(found, "task_progress") == [
        "The plan “Remind me to renew my passport on Wednesday” is set for 22 May 2024.",
        "The plan “have a dentist appointment” (14 May 2024) is done.",
    ]
    assert [t.due_at for t in found.tasks] == [datetime(2024, 5, 22, tzinfo=UTC)]


def test_talk_of_before_the_day_does_not_finish_a_plan() -> None:
    found = run(
        plan("next", at("05-06"), "2024-05-17", "have a dentist appointment", language="en"),
        memory("earlier", at("05-10"), text="I already had a dentist appointment last month.", language="en"),
    )
    assert "past its date" in told(found, "task_progress")[0]


def test_a_task_is_the_same_task_in_the_next_week() -> None:
    soon = plan("soon", at("05-14"), "2024-05-28", "体检")
    this, following = run(soon), run(soon, week=END.date())
    assert [t.task_id for t in this.tasks] == [t.task_id for t in following.tasks]
    assert this.insights[0].insight_id != following.insights[0].insight_id


def test_overdue_is_followed_up_once() -> None:
    late = plan("late", at("05-01"), "2024-05-16", "交电费")
    assert len(run(late).tasks) == 1
    after = run(late, memory("x", at("05-22")), week=END.date())
    assert told(after, "task_progress") == ["计划“交电费”（2024-05-16）已到期，没有完成的记录。"]
    assert after.tasks == ()


def weekly(counts: list[int]) -> list[StoredMemory]:
    """So many events in each week, the last one being the week reflected on."""
    first = START - timedelta(weeks=len(counts) - 1)
    return [
        memory(f"{week}.{i}", first + timedelta(weeks=week, days=i % 7, hours=5 * i % 24))
        for week, count in enumerate(counts)
        for i in range(count)
    ]


def test_anomaly_against_the_own_mean() -> None:
    """Mean 2 of (1, 3, 1, 3); sample deviation 1.155 < sqrt 2; 6 events: z = 4 / 1.414 = 2.83."""
    found = run(*weekly([1, 3, 1, 3, 6]))
    assert round(4 / sqrt(2), 1) == 2.8
    assert told(found, "anomaly") == ["本周有 6 次互动，明显多于往常（此前 4 周平均每周 2.0 次，z = 2.8）。"]
    assert len(cited(found, "anomaly")[0]) == 6
    fewer = run(*weekly([16, 16, 16, 16, 2]), language="en")  # -14 / 4 = -3.5
    assert told(fewer, "anomaly") == [
        "Only 2 interactions this week, far fewer than usual (16.0 a week over 4 weeks before, z = -3.5)."
    ]


@pytest.mark.parametrize(
    "counts",
    [
        [1, 3, 1, 4],  # three weeks of history
        [4, 4, 4, 4, 8],  # z = exactly 2
        [0, 1, 20, 1, 20, 20],  # a person of ups and downs: mean 10.5 of four weeks, deviation 10.97
        [16, 16, 16, 16, 0],  # nothing to cite: a quiet week
    ],
)
def test_no_anomaly(counts: list[int]) -> None:
    assert told(run(*weekly(counts)), "anomaly") == []


def test_anomaly_after_half_a_year_of_silence() -> None:
    assert "此前 26 周平均每周 0.0 次，z = 3.0" in told(run(*weekly([1] + [0] * 39 + [3])), "anomaly")[0]
