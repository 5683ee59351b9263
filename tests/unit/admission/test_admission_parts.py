"""Dimensions, routing, validity, summaries and the package data, each by itself."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory_pipelines.admission.dimensions import persistence, personalisation, structure
from memory_pipelines.admission.extract import candidates
from memory_pipelines.admission.facts import extract_facts
from memory_pipelines.admission.ontology import LANGUAGES, Predicate, patterns, predicates, profile, relations
from memory_pipelines.admission.routing import route
from memory_pipelines.admission.snapshot import Snapshot
from memory_pipelines.admission.summary import episode_summary, fact_summary, gist, summary_language
from memory_pipelines.admission.validity import frequent
from memory_pipelines.model import MemoryType, Owner

Make = Callable[..., dict[str, Any]]
ANN = Owner("acme", "u:ann")
SERVICE = profile("customer_service")
FEDEX = {"surface": "FedEx", "canonical": "carrier/fedex", "kind": "carrier"}


def test_distinctiveness_runs_from_all_to_few() -> None:
    snapshot = Snapshot("v1", 100, {"a": 100, "b": 9, "over": 500, "alone": 0})
    assert snapshot.distinctiveness(("a",)) == 0.0
    assert snapshot.distinctiveness(("unseen",)) == round(1 - math.log(3) / math.log(101), 4)
    assert snapshot.distinctiveness(("alone",)) == 1.0
    assert snapshot.distinctiveness(("a", "b")) == pytest.approx(0.501, abs=1e-3)
    assert snapshot.distinctiveness(("over",)) == 0.0
    assert Snapshot().distinctiveness(("a",)) == snapshot.distinctiveness(()) == 0.5
    keys = iter(("a",))
    assert Snapshot().distinctiveness(keys) == 0.5
    assert list(keys) == ["a"]  # an empty snapshot has nothing to look up


def test_dimensions_are_bounded_and_explain_themselves(slice_row: Make) -> None:
    row = slice_row(
        1,
        "It is always late!",
        feedback="churned",
        decision_impact=1.0,
        entities=[FEDEX] * 5,
        emotion_score=-1.0,
        reason="late",
    )
    (episode,) = candidates(ANN, [row])
    p, s, z = persistence(episode), structure(episode), personalisation(episode, Snapshot())
    horizon = p.parts["persistence.horizon"]
    assert p.parts == {"persistence.horizon": horizon, "persistence.consequence": 1.0, "persistence.impact": 1.0}
    assert 0.05 <= horizon <= 0.9
    assert p.value == pytest.approx(1 - (1 - horizon) * 0.4 * 0.6, abs=1e-4)  # parts are rounded, too
    assert s.parts["structure.entities"] == 0.65
    expected = 0.4 * z.parts["personalisation.core"] + 0.3 * 0.5 + 0.3 * 1.0
    assert z.value == pytest.approx(expected, abs=1e-4)


def test_structure_orders_triple_entities_and_text(slice_row: Make) -> None:
    bare, named, fact = (
        candidates(ANN, [slice_row(1, text, entities=entities)])[-1]
        for text, entities in (("it rained again", []), ("FedEx again", [FEDEX]), ("I live in Leeds", []))
    )
    values = [structure(c).value for c in (bare, named, fact)]
    assert values == sorted(values)
    assert len(set(values)) == 3


def test_facts_leave_less_to_the_episode(slice_row: Make) -> None:
    covered, free = (candidates(ANN, [slice_row(1, t)])[0] for t in ("I live in Leeds", "It rained in Leeds"))
    assert covered.reading.coverage == 1.0
    assert persistence(covered).value < persistence(free).value


def test_routing_takes_one_or_two_and_three_for_a_preference() -> None:
    preference = route(MemoryType.SEMANTIC, "preference", 0.95, 1, 0.0, "The customer likes hiking in the Alps.")
    assert set(preference.stores) == {"graph", "vector", "relational"}
    fact = route(MemoryType.SEMANTIC, "identity", 0.95, 1, 0.0, "The customer lives in Leeds.")
    assert len(fact.stores) == 2
    assert fact.stores[0] == "relational"
    episode = route(MemoryType.EPISODIC, "fact", 0.8, 3, 0.8, "FedEx lost it")
    assert episode.stores[0] == "graph"
    assert all(0 <= fit <= 1 for r in (preference, fact, episode) for fit in r.fit.values())


def test_low_structure_needs_a_stricter_vector_fit() -> None:
    short = route(MemoryType.EPISODIC, "task", 0.3, 0, 0.0, "fix it")
    long = route(
        MemoryType.EPISODIC, "fact", 0.3, 0, 0.0, "we walked along the river until the sun went down over the hills"
    )
    assert "vector" not in short.stores
    assert short.fit["vector"] < 0.75 <= long.fit["vector"]
    assert short.stores
    assert long.stores[0] == "vector"


def test_frequent_needs_three_within_seven_days() -> None:
    base = datetime(2024, 1, 1, tzinfo=UTC)
    days = [base + timedelta(days=d) for d in (0, 5, 10, 11, 12)]
    assert frequent(days)
    assert not frequent(days[:2])
    assert not frequent([base + timedelta(days=4 * d) for d in range(9)])
    assert not frequent([])


def test_english_summary_of_an_episode(slice_row: Make) -> None:
    row = slice_row(
        1, "late!", intent="logistics_complaint", entities=[FEDEX], reason="late delivery", feedback="canceled_order"
    )
    told = "On 17 May 2024 the customer complained about FedEx because of late delivery and later cancelled the order."
    assert episode_summary(row, SERVICE, "en") == told


def test_summary_falls_back_to_topic_and_quotation(slice_row: Make) -> None:
    bare = slice_row(1, "退款", intent="refund_request", language="zh")
    assert episode_summary(bare, SERVICE, "zh") == "2024-05-17 客户就订单申请退款。"
    order = {"surface": "A88", "canonical": "order_number/a88", "kind": "order_number"}
    assert episode_summary(bare | {"entities": [order]}, SERVICE, "zh") == "2024-05-17 客户就订单A88申请退款。"
    said = slice_row(1, "Hm. We adopted a puppy last week!", intent="out_of_scope")
    assert episode_summary(said, profile("assistant"), "en") == (
        "On 17 May 2024 the user said: “We adopted a puppy last week!”"
    )


def test_a_wish_to_cancel_is_told_as_a_wish(slice_row: Make) -> None:
    row = slice_row(1, "取消吧", intent="cancel_order", language="zh", feedback="canceled_order")
    assert episode_summary(row, SERVICE, "zh") == "2024-05-17 客户要求取消订单，之后取消了订单。"
    assert (
        episode_summary(row | {"feedback": None}, SERVICE, "en")
        == "On 17 May 2024 the customer asked to cancel an order."
    )


def test_a_reason_is_told_only_in_its_own_language_or_by_dictionary(slice_row: Make) -> None:
    row = slice_row(1, "慢", intent="logistics_complaint", reason="quantum entanglement")
    assert episode_summary(row, SERVICE, "zh") == "2024-05-17 客户投诉物流。"
    assert episode_summary(row | {"reason": "物流延误"}, SERVICE, "en") == (
        "On 17 May 2024 the customer complained about the delivery."
    )


@pytest.mark.parametrize(
    ("text", "language", "told"),
    [
        ("I love running my own studio.", "en", "The user likes running their own studio."),
        ("I plan to visit my sister next Friday.", "en", "The user plans to visit their sister on 24 May 2024."),
        ("I'm determined to make this studio work.", "en", "The user plans to make this studio work."),
        ("Next month I'm having an art show.", "en", "The user's plan on 1 June 2024: having an art show."),
        ("我打算下周五去看我妈", "zh", "用户打算2024-05-24去看自己妈。"),
        ("我准备考研", "zh", "用户打算考研。"),
    ],
)
def test_a_fact_is_told_of_the_person_with_a_date_if_there_is_one(text: str, language: str, told: str) -> None:
    (fact,) = extract_facts(text, datetime(2024, 5, 17, 8, tzinfo=UTC), language)
    assert fact_summary(fact, profile("assistant"), None) == told


@pytest.mark.parametrize(
    ("text", "language", "marks", "expected"),
    [
        ("Yep, Nora. I'm off to my pottery class, I go every Thursday.", "en", ["Nora"], "I'm off to my pottery class"),
        ("Thanks, Ben! My sister moved to Leeds last year. How are you?", "en", ["Ben"], "My sister moved to Leeds"),
        ("你好，小雨！我对花生过敏，请记住。今天天气真不错呀，是不是？", "zh", ["小雨"], "我对花生过敏"),
    ],
)
def test_gist_is_the_sentence_that_is_worth_most(text: str, language: str, marks: list[str], expected: str) -> None:
    assert expected in gist(text, language, marks)


def test_gist_cuts_at_a_word() -> None:
    assert gist("", "en") == ""
    assert gist("word " * 100, "en").endswith("word…")
    assert len(gist("很" * 500, "zh")) == 80
    assert gist("short one. The parcel from FedEx is lost!", "en", ["FedEx"]).endswith("FedEx is lost!")


def test_language_of_a_mixed_text() -> None:
    assert summary_language("我的 order 到了吗，等了三天了", "mixed") == "zh"
    assert summary_language("my 订单 has not arrived since Monday", "mixed") == "en"


def test_package_data_is_consistent() -> None:
    known = predicates()
    for language in LANGUAGES:
        for mode in ("verb", "noun"):
            for pattern in patterns(language, mode):
                assert pattern.predicate in known
                assert 0 < pattern.strength <= 1
                assert pattern.also in known or not pattern.also
    for entry in known.values():
        assert isinstance(entry, Predicate)
        assert all(0 <= part <= 1 for part in (entry.persistence, entry.core, entry.use))
        assert entry.cardinality in ("single", "multi", "keyed")
        assert not entry.opposite or known[entry.opposite].opposite == entry.name
    assert all({"zh", "en", "zh_name"} <= set(row) for row in relations().values())
    for name in ("customer_service", "assistant", "entertainment"):
        found = profile(name)
        assert sum(found.weights) == pytest.approx(1.0)
        assert found.short < found.long
        assert found.arm_b_share == 0.0


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("I'm passionate about growing roses and making good marmalade.", ["growing roses", "making good marmalade"]),
        ("I'm passionate about restoring pianos and instruments.", ["restoring pianos", "instruments"]),
        ("I have booked a small room in Harrogate to teach how to bind old books, by the way.", []),
    ],
)  # fmt: skip
def test_no_value_ends_within_a_word_or_with_one_that_leads_on(text: str, objects: list[str]) -> None:
    found = extract_facts(text, datetime(2024, 5, 17, 8, tzinfo=UTC), "en")
    assert [fact.object for fact in found if fact.predicate == "likes"] == objects
    for fact in found:
        after = text.partition(fact.object)[2]
        assert not after[:1].isalpha(), fact.object
        assert fact.object.rsplit(" ", 1)[-1] not in ("to", "how", "and", "in", "my")


@pytest.mark.parametrize(
    ("question", "answer", "name"),
    [
        ("May I have your name?", "oh, wrong button, sorry", None),
        ("May I have your name?", "nothing, thanks", None),
        ("May I have your name?", "Nadia Ross, thanks", "Nadia Ross"),
        ("请问您贵姓？", "不好意思，点错了", None),
        ("请问您怎么称呼？", "算了，谢谢", None),
    ],
)
def test_what_is_said_instead_of_an_answer_is_none(
    slice_row: Make, question: str, answer: str, name: str | None
) -> None:
    rows = [
        slice_row(0, "hello", reply_text=question, session_id="s"),
        slice_row(1, answer, days=0.001, session_id="s"),
    ]
    claims = [c.claim.fact.object for c in candidates(ANN, rows) if c.claim and c.claim.fact.predicate == "name"]
    assert claims == ([] if name is None else [name])
