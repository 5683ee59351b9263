"""Recall as a whole over in-memory stores."""

import json
import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from recall_world import ALICE, NOW, Down, World, make_fact, make_memory

from memory_pipelines.errors import InputError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.recall.source import PERSON, hot_name
from memory_pipelines.stores.base import GraphEdge, cold_key

DAY = timedelta(days=1)


def ids(answer: Any) -> list[str]:
    return [item.memory.memory_id for item in answer.items]


def legs(answer: Any, memory_id: str) -> set[str]:
    (item,) = [item for item in answer.items if item.memory.memory_id == memory_id]
    return {score.leg for score in item.reasons.legs}


SERVICE = [
    make_memory("late", "用户投诉快递晚到", text="我的快递怎么还没到", occurred_at=NOW - 5 * DAY, decision_impact=0.9),
    make_memory("nuts", "用户对花生过敏", occurred_at=NOW - 50 * DAY),
    make_memory("cat", "The user has a cat called Tom", occurred_at=NOW - 20 * DAY),
    make_memory("coupon", "The user asked for a coupon", occurred_at=NOW - 30 * DAY),
]


# ---- retrieval


def test_chinese_words_find_chinese_memories(world: World) -> None:
    world.publish(SERVICE)
    answer = world.ask("快递到哪了")
    assert ids(answer) == ["late"]
    assert legs(answer, "late") >= {"bm25", "dense"}
    assert answer.language == "zh"
    assert "快递" in answer.prompt()


def test_english_inflections_find_english_memories(world: World) -> None:
    world.publish(SERVICE)
    assert ids(world.ask("any coupons for me?")) == ["coupon"]


def test_meaning_crosses_languages(world: World) -> None:
    world.publish(SERVICE)
    answer = world.ask("Where is my parcel?")
    assert ids(answer) == ["late"]
    assert legs(answer, "late") == {"dense", "ripple"}
    assert answer.items[0].why == "is close in meaning, had a high impact"


def test_an_unrelated_query_gets_nothing(world: World) -> None:
    world.publish(SERVICE)
    assert world.ask("几点了").items == ()


def test_items_are_newest_first_with_scores_by_relevance(world: World) -> None:
    world.publish(
        [
            make_memory("best", "快递晚到，用户很生气，快递", occurred_at=NOW - 90 * DAY),
            make_memory("newer", "用户问过快递", occurred_at=NOW - 1 * DAY),
        ]
    )
    answer = world.ask("快递晚到")
    assert ids(answer) == ["newer", "best"]
    assert answer.items[0].score < answer.items[1].score


def test_ties_are_broken_by_time_then_id_whatever_the_order_of_rows(world: World) -> None:
    rows = [make_memory(name, f"快递单 {name}") for name in "gbfc"] + [
        make_memory("z", "快递单 z", occurred_at=NOW - 9 * DAY)
    ]
    for seed in range(4):
        random.Random(seed).shuffle(rows)
        fresh = World()
        fresh.publish(rows)
        assert ids(fresh.ask("快递单")) == ["z", "b", "c", "f", "g"]
        assert ids(fresh.ask("快递单", limit=1)) == ["z"]


def test_two_readings_of_the_same_world_are_equal(world: World) -> None:
    world.publish(SERVICE, [GraphEdge("late", "nuts", "same_topic", 0.5)])
    assert world.ask("快递", explain=True) == world.ask("快递", explain=True)


def test_query_characters_of_stores_languages_are_only_data(world: World) -> None:
    world.publish(SERVICE)
    for query in (
        "'; DROP TABLE memories; --",
        '" or entry_id != "',
        "MATCH (n) DETACH DELETE n",
        "\x00\ud800",
        "%s{}",
    ):
        answer = world.ask(query)
        assert answer.missing == ()
        assert ids(world.ask("快递到哪了")) == ["late"]
        assert answer.prompt().endswith(query.strip())


def test_a_huge_query_is_answered(world: World) -> None:
    world.publish(SERVICE)
    assert ids(world.ask("快递 " + "x" * 1_000_000)) == ["late"]


# ---- ripple


def test_a_linked_high_impact_event_is_recalled_with_its_path(world: World) -> None:
    world.publish(
        [
            make_memory("ask", "用户查询退货快递", occurred_at=NOW - 2 * DAY),
            make_memory("cancel", "用户生气取消订单", occurred_at=NOW - 8 * DAY, decision_impact=0.9),
        ],
        [
            GraphEdge("ask", "entity:carrier/sf_express", "mentions", 1.0),
            GraphEdge("cancel", "entity:carrier/sf_express", "mentions", 1.0),
        ],
    )
    answer = world.ask("退货快递")
    assert ids(answer) == ["ask", "cancel"]
    cancel = answer.items[1]
    assert legs(answer, "cancel") == {"ripple"}
    (path,) = cancel.reasons.paths
    assert [(h.source, h.via, h.target) for h in path.hops] == [("ask", "entity:carrier/sf_express", "cancel")]
    assert path.base_weight == 0.9
    assert path.freshness == pytest.approx(0.98**8)
    assert path.activation == pytest.approx(path.hops[-1].carried * path.base_weight * path.freshness * path.decay)
    assert cancel.why == "经sf express与2024年5月30日的相符记录相连（1跳）；高影响"
    english = world.ask("coupon 退货快递 return parcel delivery please now", explain=True)
    assert "through sf express to a match of 30 May 2024 (1 hop)" in english.items[1].why


def test_what_was_presented_often_is_fresher_and_weighs_more(world: World) -> None:
    links = [GraphEdge("ask", "cancel", "causes", 1.0)]
    ask = make_memory("ask", "用户查询退货快递", occurred_at=NOW - 2 * DAY)
    cancel = make_memory("cancel", "用户生气取消订单", occurred_at=NOW - 30 * DAY, decision_impact=0.6)
    for uses, base, days in (({}, 0.6, 30), ({"accessed_at": NOW - 3 * DAY, "activations": 2}, 0.8, 3)):
        world.publish([ask, replace(cancel, **uses)], links)
        (path,) = world.ask("退货快递").items[1].reasons.paths
        assert path.base_weight == pytest.approx(base)
        assert path.freshness == pytest.approx(0.98**days)


def test_suppression_acts_at_once_in_every_leg(world: World) -> None:
    world.publish(
        [
            make_memory("ask", "用户查询快递", occurred_at=NOW - 2 * DAY),
            make_memory("between", "用户投诉快递", decision_impact=0.9),
            make_memory("far", "用户取消订单", decision_impact=0.9),
        ],
        [GraphEdge("ask", "between", "causes", 1.0), GraphEdge("between", "far", "causes", 1.0)],
    )
    recall = world.recall()
    who = {"tenant": ALICE.tenant, "subject": ALICE.subject}
    assert set(ids(recall.recall("快递", **who))) == {"ask", "between", "far"}
    world.suppress("between")
    answer = recall.recall("快递", explain=True, **who)
    assert ids(answer) == ["ask"]
    assert answer.explanation is not None
    assert answer.explanation.suppressed == ("between",)
    assert "between" not in json.dumps({k: [m for m, _ in v] for k, v in answer.explanation.legs.items()})


# ---- validity, expiry, time


def test_the_current_value_wins_over_the_superseded_one(world: World) -> None:
    world.publish(
        [
            make_fact(
                "old",
                "用户住在上海浦东，住上海",
                "home_city",
                "上海",
                occurred_at=NOW - 90 * DAY,
                valid_from=NOW - 90 * DAY,
                valid_to=NOW - 20 * DAY,
                decision_impact=0.9,
            ),
            make_fact("new", "用户搬去了北京", "home_city", "北京", valid_from=NOW - 20 * DAY),
        ]
    )
    answer = world.ask("用户住在上海吗")
    by_id = {item.memory.memory_id: item for item in answer.items}
    assert by_id["new"].score > by_id["old"].score
    assert by_id["old"].reasons.validity == "superseded"
    assert by_id["old"].reasons.superseded_by == "new"
    assert "（高影响）（2024年5月12日起已失效）：用户住在上海" in answer.prompt()
    assert ids(world.ask("用户住在上海吗", limit=1)) == ["new"]
    then = world.ask("用户住在上海吗", as_of=NOW - 30 * DAY)
    assert ids(then) == ["old"]
    assert then.items[0].reasons.validity == "current"


def test_a_past_instant_is_not_told_how_a_fact_ended(world: World) -> None:
    """The gate's sentence of a fact that has ended says when: on the days before, nobody knew."""
    fact = make_fact(
        "old",
        "The customer lived in Lisbon until 12 May 2024.",
        "home_city",
        "Lisbon",
        text="I live in Lisbon",
        language="en",
        occurred_at=NOW - 90 * DAY,
        valid_from=NOW - 90 * DAY,
        valid_to=NOW - 20 * DAY,
    )
    ahead = replace(fact, memory_id="ahead", summary="The customer is in Lisbon until July.", valid_to=NOW + 20 * DAY)
    world.publish([fact, ahead])
    told = {at: world.ask("Lisbon", as_of=NOW - at * DAY).items for at in (0, 10, 20, 21, 80)}
    for at, items in told.items():
        summaries = {item.memory.memory_id: item.memory.summary for item in items}
        assert summaries["old"] == ("I live in Lisbon" if at > 20 else fact.summary)
        assert summaries["ahead"] == ahead.summary
        ends = {item.memory.memory_id: item.memory.valid_to for item in items}
        assert ends == {"old": None if at > 20 else fact.valid_to, "ahead": ahead.valid_to}


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": -1}, {"subject": "alice"}, {"subject": "u:"}])
@pytest.mark.parametrize("query", ["快递", ""])
def test_a_call_that_can_find_nothing_is_refused(world: World, wrong: dict[str, Any], query: str) -> None:
    world.publish(SERVICE)
    with pytest.raises(InputError):
        world.ask(query, **wrong)


def test_expired_and_later_memories_are_not_recalled(world: World) -> None:
    world.publish(
        [
            make_memory("expired", "快递 一", term="short", expires_at=NOW - DAY),
            make_memory("short", "快递 二", term="short", expires_at=NOW + DAY),
            make_memory("later", "快递 三", occurred_at=NOW + DAY),
        ]
    )
    answer = world.ask("快递", explain=True)
    assert ids(answer) == ["short"]
    assert answer.explanation is not None
    assert (answer.explanation.expired, answer.explanation.later) == (("expired",), ("later",))
    assert set(ids(world.ask("快递", as_of=NOW + 2 * DAY))) == {"later"}


def test_a_time_without_zone_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="zone"):
        world.ask("快递", as_of=datetime(2024, 1, 1))  # noqa: DTZ001


# ---- cold


def test_a_cold_memory_is_found_by_its_line_and_its_text_is_fetched(world: World) -> None:
    world.publish([make_memory("old", "用户买过钢琴", tier="cold", occurred_at=NOW - 900 * DAY)])
    answer = world.ask("钢琴")
    assert answer.items[0].memory.text == "archived words of old"
    assert answer.items[0].reasons.tier == "cold"
    assert answer.items[0].why.endswith("取自归档")
    assert "archived words of old" in answer.prompt()


@pytest.mark.parametrize("raw", [None, b"", b"no gzip", b"\x1f\x8b\x08\x00broken"])
def test_a_cold_text_that_is_gone_or_damaged_leaves_the_line(world: World, raw: bytes | None) -> None:
    memory = make_memory("old", "用户买过钢琴", tier="cold")
    world.publish([memory])
    key = cold_key(ALICE, memory.entry_id)
    if raw is None:
        world.cold.delete([key])
    else:
        world.cold.put(key, raw)
    answer = world.ask("钢琴")
    assert (ids(answer), answer.items[0].memory.text) == (["old"], "")
    assert answer.missing == (() if raw is None else ("cold",))


# ---- stores that do not answer


@pytest.mark.parametrize(
    ("name", "role"), [("vectors", "vector"), ("graph", "graph"), ("hot", "hot"), ("cold", "cold")]
)
def test_any_store_may_be_down(world: World, name: str, role: str) -> None:
    world.publish([*SERVICE, make_memory("archived", "用户投诉快递", tier="cold")])
    setattr(world, name, Down(role))
    answer = world.ask("快递到哪了")
    assert set(ids(answer)) == {"late", "archived"}
    assert answer.missing == (role,)


def test_all_but_the_authority_may_be_down_together(world: World) -> None:
    world.publish([*SERVICE, make_memory("archived", "用户投诉快递", tier="cold")])
    world.vectors, world.graph, world.hot, world.cold = (Down(n) for n in ("vector", "graph", "hot", "cold"))
    answer = world.ask("快递到哪了")
    assert set(ids(answer)) == {"late", "archived"}
    # without anything to start from the graph is asked as well: BM25 gave the anchors
    assert answer.missing == ("cold", "graph", "hot", "vector")


def test_the_hot_copy_answers_while_the_authority_is_down(world: World) -> None:
    world.publish(SERVICE, suppressed={"cat"})
    before = world.ask("快递到哪了")
    authority, world.authority = world.authority, Down("relational")
    answer = world.ask("快递到哪了")
    assert answer.items == before.items
    assert answer.missing == ("relational",)
    assert world.ask("cat").items == ()
    world.hot.delete(ALICE)
    with pytest.raises(StoreUnavailableError):
        world.ask("快递到哪了")
    world.authority = authority
    assert ids(world.ask("快递到哪了")) == ["late"]


def test_the_hot_copy_knows_a_suppression_that_this_process_has_seen(world: World) -> None:
    world.publish(SERVICE)
    recall = world.recall()
    who = {"tenant": ALICE.tenant, "subject": ALICE.subject}
    recall.recall("快递", **who)
    world.suppress("late")
    recall.recall("快递", **who)
    world.authority = Down("relational")
    assert world.ask("快递").items == ()


def test_authority_and_hot_down_raises(world: World) -> None:
    world.publish(SERVICE)
    world.authority, world.hot = Down("relational"), Down("hot")
    with pytest.raises(StoreUnavailableError, match="relational"):
        world.ask("快递")


@pytest.mark.parametrize("name", [PERSON, hot_name(1)])
def test_damaged_hot_copies_count_as_none(world: World, name: str) -> None:
    world.publish(SERVICE)
    world.ask("快递")
    world.hot.put(ALICE, name, b"damaged", 60)
    assert ids(world.ask("快递")) == ["late"]
    world.hot.put(ALICE, name, b"damaged", 60)
    world.authority = Down("relational")
    with pytest.raises(StoreUnavailableError):
        world.ask("快递")


# ---- caches


def test_rows_are_read_once_per_epoch_by_any_process(world: World) -> None:
    world.publish(SERVICE)
    recall = world.recall()
    who = {"tenant": ALICE.tenant, "subject": ALICE.subject}
    for _ in range(3):
        recall.recall("快递", **who)
    world.ask("快递")
    assert world.authority.visible_reads == 1
    world.publish([*SERVICE, make_memory("again", "快递又晚了", occurred_at=NOW - DAY)])
    assert ids(recall.recall("快递", **who)) == ["again", "late"]
    assert world.authority.visible_reads == 2


def test_a_graph_is_read_once_per_version(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    read = world.graph.edges
    monkeypatch.setattr(world.graph, "edges", lambda owner, version: asked.append(version) or read(owner, version))
    link = GraphEdge("late", "coupon", "causes", 0.9)
    world.publish(SERVICE, edges=[link])
    recall = world.recall()
    one, again = (recall.recall("快递", tenant=ALICE.tenant, subject=ALICE.subject) for _ in range(2))
    assert asked == ["g1"]
    assert ids(one) == ids(again) == ["late", "coupon"]
    world.publish(SERVICE)
    assert ids(recall.recall("快递", tenant=ALICE.tenant, subject=ALICE.subject)) == ["late"]
    assert asked == ["g1", "g2"]


def test_rows_of_one_epoch_never_meet_the_person_of_another(world: World) -> None:
    world.publish(SERVICE)
    read, commits = world.authority.visible, [[make_memory("one", "快递一")], [make_memory("two", "快递二")]]

    def visible(owner: Owner) -> Any:
        rows = read(owner)
        if commits:
            world.publish(commits.pop(0))
        return rows

    world.authority.visible = visible
    assert ids(world.ask("快递")) == ["two"]
    assert world.hot.get(ALICE, hot_name(1)) is None
    assert world.hot.get(ALICE, hot_name(3)) is not None


# ---- persons


def test_nobody_sees_rows_of_others(world: World) -> None:
    def linked(suffix: str) -> list[GraphEdge]:
        return [GraphEdge(f"{m.memory_id}{suffix}", "entity:carrier/sf", "mentions", 1.0) for m in SERVICE]

    world.publish(SERVICE, linked(""), suppressed={"nuts", "cat", "coupon"})
    for number, owner in enumerate([Owner("acme", "u:bob"), Owner("rival", "u:alice")]):
        rows = [make_memory(f"{m.memory_id}{number}", m.summary + "秘密", decision_impact=0.9) for m in SERVICE]
        world.publish(rows, linked(str(number)), owner=owner)
    for query in ("快递", "过敏", "parcel", "late0", "", "u:bob rival 秘密"):
        answer = world.ask(query, explain=True)
        assert set(ids(answer)) <= {"late"}
        assert "秘密" not in answer.prompt().replace(query, "")
        assert {
            m for ranking in (answer.explanation.legs if answer.explanation else {}).values() for m, _ in ranking
        } <= {"late"}


def test_rows_that_a_broken_authority_mixes_in_are_dropped(world: World) -> None:
    world.publish(SERVICE)
    world.authority.rows[ALICE].append(make_memory("bob", "快递 秘密", owner=Owner("acme", "u:bob")))
    assert ids(world.ask("快递")) == ["late"]


@pytest.mark.parametrize(("tenant", "subject"), [("acme", "u:nobody"), ("none", "u:alice"), ("", "u:alice")])
@pytest.mark.parametrize("query", ["快递", ""])
def test_an_unknown_person_gets_an_empty_answer(world: World, tenant: str, subject: str, query: str) -> None:
    world.publish(SERVICE)
    answer = world.ask(query, tenant=tenant, subject=subject)
    assert (answer.items, answer.missing) == ((), ())
    assert world.hot.count() == 0


# ---- session start, budget, explanation


def test_a_blank_query_opens_the_session_with_three_recent_slices_of_high_impact(world: World) -> None:
    rows = [
        make_memory(f"e{i}", f"事件{i}", occurred_at=NOW - i * DAY, decision_impact=impact)
        for i, impact in enumerate([0.9, 0.7, 0.8, 0.71, 0.95], start=1)
    ]
    world.publish([*rows, make_fact("f", "用户住在上海", "home_city", "上海", occurred_at=NOW, decision_impact=0.9)])
    for answer in (world.ask(" \n"), world.recall().session_start(tenant="acme", subject="u:alice")):
        assert ids(answer) == ["e1", "e3", "e4"]
        assert answer.language == "zh"
        assert answer.items[0].why == "近期的重要事件；高影响"
        assert answer.prompt().endswith("[Current Query]\n")
    assert ids(world.ask("", as_of=NOW - 3 * DAY)) == ["e3", "e4", "e5"]


def test_the_history_stays_within_the_token_budget(world: World) -> None:
    world.publish([make_memory(f"m{i:02}", f"快递{i}：" + "很长的故事" * 15) for i in range(12)])
    world.budget = 300
    answer = world.ask("快递", explain=True)
    assert 1 <= len(answer.items) <= 3
    assert answer.explanation is not None
    assert {reason for _, reason in answer.explanation.passed_over} == {"budget"}
    world.budget = 0
    assert world.ask("快递").items == ()


def test_explanation_names_legs_anchors_and_what_was_passed_over(world: World) -> None:
    world.publish(SERVICE, [GraphEdge("late", "nuts", "same_topic", 0.9)])
    answer = world.ask("快递到哪了", explain=True)
    assert answer.explanation is not None
    assert [m for m, _ in answer.explanation.legs["bm25"]] == ["late"]
    assert answer.explanation.anchors[0][0] == "late"
    assert 0 < answer.explanation.anchors[0][1] <= 1
    assert ("nuts", "unrelated") in answer.explanation.passed_over
    assert world.ask("快递到哪了").explanation is None


def test_a_number_alone_answers_in_the_persons_language(world: World) -> None:
    world.publish([make_memory("o", "用户的订单 20240517 已取消"), make_memory("p", "用户养猫")])
    answer = world.ask("20240517")
    assert (ids(answer), answer.language) == (["o"], "zh")


def test_a_thousand_memories(world: World) -> None:
    rows = [make_memory(f"m{i:04}", f"用户第{i}次问快递", occurred_at=NOW - i * DAY / 10) for i in range(1000)]
    edges = [GraphEdge(f"m{i:04}", f"m{i + 1:04}", "next", 0.6) for i in range(999)]
    world.publish(rows, edges)
    assert "m0500" in ids(world.ask("第500次"))
    assert ids(world.ask("快递")) == [f"m{i:04}" for i in range(15)]
