"""The gate: hard rules, thresholds, promotion, windows, independence of order and company."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_pipelines.admission.gate import Admitted, admit, arm_of
from memory_pipelines.admission.ontology import profile
from memory_pipelines.admission.snapshot import Snapshot, claim_key
from memory_pipelines.admission.version import gate_data
from memory_pipelines.errors import IntegrityError, SettingError
from memory_pipelines.model import MemoryType, Owner, memory_id
from memory_pipelines.tables import DECISIONS, MEMORIES, SLICES

Row = dict[str, Any]
Make = Callable[..., Row]
BASE = datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)
LATER = BASE + timedelta(days=60)
SF = {"surface": "顺丰", "canonical": "carrier/sf_express", "kind": "carrier"}
WAREHOUSE = {"surface": "深圳仓", "canonical": "warehouse/shenzhen", "kind": "warehouse"}


def run(rows: list[Row], *, scenario: str = "customer_service", as_of: datetime = LATER, **more: Any) -> Admitted:
    snapshot = more.pop("snapshot", Snapshot())
    return admit(pa.Table.from_pylist(rows, schema=SLICES.schema), snapshot, scenario=scenario, as_of=as_of, **more)


def episodes(table: pa.Table) -> list[Row]:
    return [row for row in table.to_pylist() if row["memory_type"] == "episodic"]


def facts(table: pa.Table) -> list[Row]:
    return [row for row in table.to_pylist() if row["memory_type"] == "semantic"]


def verdict(row: Row, **options: Any) -> tuple[str, str]:
    (decision,) = episodes(run([row], **options).decisions)
    return decision["rule"], decision["outcome"]


def test_empty() -> None:
    result = run([])
    assert result.decisions.schema == DECISIONS.schema
    assert result.memories.schema == MEMORIES.schema
    assert result.decisions.num_rows == result.memories.num_rows == 0


def test_unknown_scenario_and_a_slice_without_own_turn_are_refused(slice_row: Make) -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_SCENARIO must be one of"):
        run([], scenario="nope")
    with pytest.raises(IntegrityError, match="evt_acme/u:ann/1"):
        run([slice_row(1, "hello", own_turn_ids=[])])


@pytest.mark.parametrize(
    "text",
    [
        "你好",
        "您好，在吗？",
        "好的，谢谢！",
        "收到👌",
        "嗯嗯",
        "Hello!",
        "thanks a lot",
        "ok, got it, thank you so much",
        "👍",
        "Good morning!!",
    ],
)
def test_small_talk_is_filtered_whatever_the_labels(slice_row: Make, text: str) -> None:
    assert verdict(slice_row(1, text, category="task", entities=[SF])) == ("small_talk", "discard")


@pytest.mark.parametrize(
    "text", ["好吃的苹果", "你好，我的订单丢了", "thank you for the broken vase", "hi, where is my parcel"]
)
def test_small_talk_with_content_is_not_small_talk(slice_row: Make, text: str) -> None:
    assert verdict(slice_row(1, text))[0] != "small_talk"


def test_transient_reasoning_and_empty_chit_chat_never_pass(slice_row: Make) -> None:
    high = {"decision_impact": 0.95, "impact_final": True}
    assert verdict(slice_row(1, "先算一下 3 乘 4", category="transient_reasoning", **high)) == (
        "transient_reasoning",
        "discard",
    )
    assert verdict(slice_row(1, "今天天气不错", category="chit_chat", **high)) == ("chit_chat", "discard")
    assert verdict(slice_row(1, "顺丰今天真快", category="chit_chat", entities=[SF]))[0] == "score"


def test_final_high_impact_always_passes_and_provisional_does_not(slice_row: Make) -> None:
    row = slice_row(1, "算了", category="fact", decision_impact=0.71)
    assert verdict(row) == ("impact", "long")
    assert verdict(row | {"impact_final": False})[0] == "score"
    assert verdict(row | {"decision_impact": 0.7})[0] == "score"


@pytest.mark.parametrize(
    "text", ["充电宝突然起火了，把手烫伤了", "The charger exploded and injured my hand", "吃完全身起疹子"]
)
def test_danger_always_passes(slice_row: Make, text: str) -> None:
    assert verdict(slice_row(1, text, category="chit_chat")) == ("health", "long")


def test_denied_or_supposed_danger_does_not(slice_row: Make) -> None:
    assert verdict(slice_row(1, "没有受伤，放心", category="fact"))[0] == "score"
    assert verdict(slice_row(1, "Could it have exploded?", category="fact"))[0] == "score"


def test_an_allergy_passes_whatever_the_labels(slice_row: Make) -> None:
    result = run([slice_row(1, "我对花生过敏", category="transient_reasoning")])
    (fact,) = facts(result.memories)
    assert (fact["term"], fact["permanence"], fact["predicate"], fact["value"]) == (
        "long",
        "permanent",
        "allergy",
        "peanut",
    )
    assert fact["summary"] == "客户对花生过敏。"
    (decision,) = facts(result.decisions)
    assert decision["rule"] == "health"
    assert episodes(result.memories) == []


def test_an_inquiry_waits_for_its_seven_days(slice_row: Make) -> None:
    row = slice_row(1, "顺丰到深圳要几天？", category="inquiry", intent="order_status", entities=[SF])
    assert verdict(row, as_of=BASE + timedelta(days=7, seconds=-1)) == ("open_inquiry", "short")
    assert verdict(row, as_of=BASE + timedelta(days=7)) == ("closed_inquiry", "discard")
    assert verdict(row | {"feedback": "canceled_order"}, as_of=LATER)[0] == "score"


def test_what_is_no_question_is_no_inquiry(slice_row: Make) -> None:
    row = slice_row(1, "The garden is full of roses this year.", category="inquiry", intent="out_of_scope")
    assert verdict(row)[0] == "score"


def test_a_complaint_that_led_to_a_cancellation(slice_row: Make) -> None:
    row = slice_row(
        1,
        "顺丰太慢了，一直卡在深圳仓",
        intent="logistics_complaint",
        feedback="canceled_order",
        reason="logistics timeout",
        entities=[SF, WAREHOUSE],
        emotion_score=-0.8,
        decision_impact=0.6,
    )
    (memory,) = run([row]).memories.to_pylist()
    assert memory["summary"] == "2024-05-17 因物流超时投诉顺丰（深圳仓），之后取消了订单。"
    assert memory["term"] == "long"
    assert memory["permanence"] == "long"
    assert memory["memory_id"] == memory_id(Owner("acme", "u:ann"), MemoryType.EPISODIC, "acme/u:ann/1/own")
    assert memory["entities"] == ["carrier/sf_express", "warehouse/shenzhen"]
    assert memory["path"] == "rules+small_model"
    assert memory["expires_at"] is None
    assert "graph" in memory["stores"]


def test_the_score_is_the_weighted_sum_and_every_candidate_has_a_decision(slice_row: Make) -> None:
    rows = [
        slice_row(1, "I live in Leeds and I love hiking"),
        slice_row(2, "hello", days=1),
        slice_row(3, "Parcel lost", days=2),
    ]
    result = run(rows)
    decisions = result.decisions.to_pylist()
    assert len(decisions) == 5
    for row in decisions:
        expected = 0.4 * row["persistence"] + 0.3 * row["structure"] + 0.3 * row["personalisation"]
        assert row["score"] == round(expected, 4)
        assert row["scenario"] == "customer_service@2"
        assert row["gate_data"] == gate_data()
        assert set(json.loads(row["fit"])) == {"graph", "vector", "relational"}
    kept = {row["memory_id"] for row in decisions if row["outcome"] != "discard"}
    assert kept == set(result.memories["memory_id"].to_pylist())


def test_short_term_expires_nine_days_after_its_session(slice_row: Make) -> None:
    row = slice_row(1, "Can you check whether the blue one is in stock?", intent="product_inquiry", category="inquiry")
    (memory,) = run([row], as_of=BASE + timedelta(days=1)).memories.to_pylist()
    assert (memory["term"], memory["permanence"]) == ("short", "short")
    assert memory["expires_at"] == row["ended_at"] + timedelta(days=9)


def test_three_mentions_within_a_week_promote_the_earliest(slice_row: Make) -> None:
    def complaint(number: int, days: float) -> Row:
        return slice_row(number, "包裹有点湿", days=days, intent="logistics_complaint", entities=[SF])

    result = run([complaint(1, 0), complaint(2, 3), complaint(3, 7)])
    long = [m for m in result.memories.to_pylist() if m["term"] == "long"]
    assert [m["slice_ids"] for m in long] == [["evt_acme/u:ann/1", "evt_acme/u:ann/2", "evt_acme/u:ann/3"]]
    assert long[0]["own_turn_ids"] == ["acme/u:ann/1/own", "acme/u:ann/2/own", "acme/u:ann/3/own"]
    assert [d["rule"] for d in result.decisions.to_pylist()] == ["promoted", "score", "score"]
    spread = run([complaint(1, 0), complaint(2, 3), complaint(3, 7.1)])
    assert {m["term"] for m in spread.memories.to_pylist()} == {"short"}


def test_a_repeated_near_plan_is_promoted(slice_row: Make) -> None:
    rows = [slice_row(i, "我5月17日去北京出差", days=i * 0.1) for i in range(3)]
    once, thrice = facts(run(rows[:1]).memories), facts(run(rows).memories)
    assert [(m["term"], m["permanence"]) for m in once] == [("short", "task")]
    assert [(m["term"], m["permanence"], len(m["slice_ids"])) for m in thrice] == [("long", "task", 3)]
    assert thrice[0]["summary"] == "客户打算2024-05-17去北京出差。"
    assert json.loads(thrice[0]["structured"])["date"] == "2024-05-17"


MOVES = [
    (1, "I live in Paris", 0),
    (2, "I moved to London", 40),
    (3, "I live in London", 50),
    (4, "I live in Paris", 90),
]


def test_validity_windows_in_event_time_whatever_the_order_of_arrival(slice_row: Make) -> None:
    rows = [slice_row(n, text, days=days) for n, text, days in MOVES]
    as_of = BASE + timedelta(days=100)
    expected = [
        ("paris", 0, 40, 1, "The customer lived in Paris until 26 June 2024."),
        ("london", 40, 90, 2, "The customer lived in London until 15 August 2024."),
        ("paris", 90, None, 1, "The customer lives in Paris."),
    ]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        memories = facts(run([rows[i] for i in order], as_of=as_of).memories)
        found = [
            (
                m["value"],
                (m["valid_from"] - BASE).days,
                (m["valid_to"] - BASE).days if m["valid_to"] else None,
                len(m["slice_ids"]),
                m["summary"],
            )
            for m in memories
        ]
        assert found == expected
    assert len({m["memory_id"] for m in memories}) == 3


def test_slices_after_as_of_take_no_part(slice_row: Make) -> None:
    rows = [slice_row(n, text, days=days) for n, text, days in MOVES]
    early = run(rows, as_of=BASE + timedelta(days=10))
    assert early.memories.equals(run(rows[:1], as_of=BASE + timedelta(days=10)).memories)
    assert [m["valid_to"] for m in facts(early.memories)] == [None]


def test_negation_closes_without_successor_and_values_accumulate(slice_row: Make) -> None:
    rows = [
        slice_row(1, "我喜欢咖啡和茶"),
        slice_row(2, "我不再喜欢咖啡了", days=5),
        slice_row(3, "我对花生过敏", days=6),
        slice_row(4, "I'm allergic to mango", days=7),
    ]
    state = {(m["predicate"], m["value"]): m["valid_to"] for m in facts(run(rows).memories)}
    assert state == {
        ("likes", "coffee"): BASE + timedelta(days=5),
        ("likes", "tea"): None,
        ("allergy", "peanut"): None,
        ("allergy", "mango"): None,
    }


def test_dislike_closes_like_and_languages_share_a_value(slice_row: Make) -> None:
    rows = [slice_row(1, "I love cilantro"), slice_row(2, "我喜欢香菜", days=1), slice_row(3, "我不喜欢香菜", days=9)]
    likes, dislikes = facts(run(rows).memories)
    assert (likes["value"], likes["slice_ids"]) == ("cilantro", ["evt_acme/u:ann/1", "evt_acme/u:ann/2"])
    assert likes["valid_to"] == dislikes["valid_from"] == BASE + timedelta(days=9)


def test_a_moved_plan_replaces_the_old_date(slice_row: Make) -> None:
    rows = [slice_row(1, "I'm flying to Tokyo on 1 July"), slice_row(2, "I'm flying to Tokyo on 8 July", days=3)]
    old, new = facts(run(rows).memories)
    assert (old["value"], old["valid_to"]) == ("2024-07-01 fly to tokyo", BASE + timedelta(days=3))
    assert (new["value"], new["valid_to"]) == ("2024-07-08 fly to tokyo", None)


def test_a_corrected_meeting_time_replaces_the_wrong_one_only(slice_row: Make) -> None:
    rows = [slice_row(1, "周一例会是上午9点"), slice_row(2, "周一例会是上午10点，不是上午9点", days=3)]
    old, new = facts(run(rows).memories)
    assert (old["value"], old["valid_to"]) == ("周一例会 上午9点", BASE + timedelta(days=3))
    assert (new["value"], new["valid_to"]) == ("周一例会 上午10点", None)


def test_resignation_ends_job_and_employer(slice_row: Make) -> None:
    rows = [slice_row(1, "I work for Google as a data analyst"), slice_row(2, "I quit my job", days=9)]
    assert {m["predicate"]: m["valid_to"] for m in facts(run(rows).memories)} == dict.fromkeys(
        ("employer", "job"), BASE + timedelta(days=9)
    )


def test_a_relatives_fact_is_not_the_speakers(slice_row: Make) -> None:
    rows = [slice_row(1, "我住在杭州"), slice_row(2, "我妈妈住在上海", days=1)]
    memories = facts(run(rows).memories)
    assert {(m["predicate"], m["value"], m["valid_to"]) for m in memories} == {
        ("home_city", "hangzhou", None),
        ("family.mother.home_city", "shanghai", None),
    }
    assert memories[1]["summary"] == "客户的妈妈住在上海。"
    assert memories[1]["trust"] < memories[0]["trust"]


def test_a_fact_names_the_entities_it_is_about(slice_row: Make) -> None:
    leeds = {"surface": "Leeds", "canonical": "place/leeds", "kind": "place"}
    (memory,) = facts(run([slice_row(1, "I live in Leeds with SF", entities=[SF, leeds])]).memories)
    assert memory["entities"] == ["place/leeds"]
    assert memory["text"] == "I live in Leeds with SF"


def test_distinctiveness_moves_the_score(slice_row: Make) -> None:
    row = slice_row(1, "I love hiking")

    def score(snapshot: Snapshot) -> float:
        value: float = facts(run([row], snapshot=snapshot).decisions)[0]["score"]
        return value

    rare = score(Snapshot("v1", 1000, {}))
    common = score(Snapshot("v1", 1000, {claim_key("likes", "hiking"): 1000}))
    assert common < score(Snapshot()) < rare


def test_arm_b_has_its_own_threshold_by_subject_hash(slice_row: Make) -> None:
    base = profile("customer_service")
    half, all_b = replace(base, arm_b_share=0.5), replace(base, arm_b_share=1.0)
    arms = [arm_of(Owner("acme", f"u:{i}"), half) for i in range(400)]
    assert 150 < arms.count("B") < 250
    assert arm_of(Owner("acme", "u:1"), base) == "A"
    row = slice_row(1, "顺丰又晚了", intent="logistics_complaint", feedback="complained_again", entities=[SF])
    (a,), (b,) = (episodes(run([row], profile=p).decisions) for p in (base, all_b))
    assert 0.65 <= a["score"] == b["score"] < 0.7
    assert (a["arm"], a["outcome"], b["arm"], b["outcome"]) == ("A", "short", "B", "long")


@pytest.mark.parametrize("scenario", ["customer_service", "assistant"])
def test_worth_decides_where_the_labels_say_nothing(slice_row: Make, scenario: str) -> None:
    told = {
        "Last weekend I went camping with my sister near the lake.": "long",
        "快递把箱子摔烂了，里面的杯子全碎了，没人管": "long",
        "Could you check if the train at nine still has seats?": "short",
        "Why is the sky blue?": "discard",
        "说简单点": "discard",
        "我的密码是abc12345": "discard",
    }
    for text, outcome in told.items():
        row = slice_row(1, text, intent="out_of_scope", category="")
        assert {m["term"] for m in run([row], scenario=scenario).memories.to_pylist()} == {outcome} - {"discard"}, text


def test_a_workflow_is_procedural_and_keeps_its_steps(slice_row: Make) -> None:
    row = slice_row(1, "我写周报是这样的：先翻日历，再看聊天记录，最后按项目归类", category="fact")
    (memory,) = run([row], scenario="assistant").memories.to_pylist()
    assert (memory["memory_type"], memory["term"], memory["permanence"]) == ("procedural", "long", "long")
    assert json.loads(memory["structured"])["steps"][-3:] == ["翻日历", "看聊天记录", "按项目归类"]
    tonight = slice_row(2, "先喝口水，再回封邮件，然后去吃饭", category="fact")
    assert {m["memory_type"] for m in run([tonight], scenario="assistant").memories.to_pylist()} <= {"episodic"}


def test_an_ending_of_what_was_not_known_is_a_closed_claim(slice_row: Make) -> None:
    (memory,) = facts(run([slice_row(1, "我已经不住在北京了")]).memories)
    assert (memory["predicate"], memory["value"]) == ("home_city", "beijing")
    assert memory["valid_from"] == memory["valid_to"] == BASE
    assert facts(run([slice_row(1, "I'm not allergic to peanuts")]).memories) == []


TEXTS = [
    "我住在上海",
    "我搬到杭州了",
    "我不住在上海了",
    "I love coffee and tea",
    "我不喜欢咖啡",
    "你好",
    "顺丰太慢了",
    "I'm allergic to nuts",
    "I work for Google as a data analyst",
    "I quit my job",
    "我下周三去北京出差",
    "",
]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, str, str, str, int]]:
    size = draw(st.integers(0, 14))
    return [
        (
            i,
            draw(st.sampled_from(TEXTS)),
            draw(st.sampled_from(["u:a", "u:b", "d:c"])),
            draw(st.sampled_from(["acme", "zeta"])),
            draw(st.integers(0, 12)),
        )
        for i in range(size)
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(), seed=st.randoms(use_true_random=False))
def test_neither_order_nor_company_matters(slice_row: Make, history: list[Any], seed: Any) -> None:
    rows = [
        slice_row(n, text, subject=who, tenant=tenant, days=days, intent="logistics_complaint", entities=[SF] * (n % 2))
        for n, text, who, tenant, days in history
    ]
    whole = run(rows)
    shuffled = list(rows)
    seed.shuffle(shuffled)
    again = run(shuffled)
    assert again.decisions.equals(whole.decisions)
    assert again.memories.equals(whole.memories)
    owners = sorted({(r["tenant"], r["subject"]) for r in rows})
    parts = [run([r for r in rows if (r["tenant"], r["subject"]) == owner]) for owner in owners]
    if parts:
        assert pa.concat_tables([p.decisions for p in parts]).equals(whole.decisions)
        assert pa.concat_tables([p.memories for p in parts]).equals(whole.memories)
    ids = whole.decisions["memory_id"].to_pylist()
    assert len(ids) == len(set(ids))
    current = [
        (m["tenant"], m["subject"])
        for m in facts(whole.memories)
        if m["predicate"] == "home_city" and not m["valid_to"]
    ]
    assert len(current) == len(set(current))
