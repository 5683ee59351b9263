"""The truth of the simulator: causes, facts, questions, the demo persons."""

from bisect import bisect_left
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from math import prod
from statistics import fmean
from typing import Any

import pytest

from memory_pipelines.model import turn_id
from memory_pipelines.sample import Config, Record, simulate
from memory_pipelines.sample.people import Calendar

WEEK = 7 * 86_400


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


class World:
    """All records of one simulation, by stream."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.tenant: dict[int, str] = {}
        for record in simulate(config):
            assert isinstance(record, Record)
            if isinstance(record.row, dict):
                self.rows[record.stream].append(record.row | {"tenant": record.tenant})
        users = {row["device_id"]: row["user_id"] for row in self.rows["behaviour"] if row["user_id"]}
        self.orders: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row in self.rows["behaviour"]:
            real = row["kind"] == "order" and row["value"] > 0 and row["occurred_at"]
            if real and not row["occurred_at"].startswith("2099"):
                user = row["user_id"] or users.get(row["device_id"], "")
                self.orders[row["tenant"], f"u:{user}"].append(seconds(row["occurred_at"]))
        for times in self.orders.values():
            times.sort()

    def ordered(self, person: tuple[str, str], start: int) -> int:
        """Orders in the 7 days from ``start`` on."""
        times = self.orders[person]
        return bisect_left(times, start + WEEK) - bisect_left(times, start)

    def closed(self, kind: str, compensated: bool | None) -> list[dict[str, Any]]:
        return [
            event
            for event in self.rows["truth/events"]
            if event["kind"] == kind and event["compensated"] is compensated and event["window_closed"]
        ]


@pytest.fixture(scope="module")
def world() -> World:
    return World(Config(seed=11, subjects=400, anonymous=0.0, broken=0.0))


def test_an_uncompensated_complaint_lowers_orders_against_the_same_persons_other_weeks(world: World) -> None:
    troubled: dict[tuple[str, str], list[int]] = defaultdict(list)
    for event in world.rows["truth/events"]:
        troubled[event["tenant"], event["person"]].append(seconds(event["occurred_at"]))
    after, matched = [], []
    for event in world.closed("logistics_complaint", False):
        person, at = (event["tenant"], event["person"]), seconds(event["occurred_at"])
        calm = [
            week
            for shift in (-4, -3, -2, 2, 3, 4)
            if world.config.begin <= (week := at + shift * WEEK) <= world.config.end - WEEK
            and not any(week - WEEK < other < week + WEEK for other in troubled[person])
        ]
        if calm:
            after.append(world.ordered(person, at))
            matched.append(fmean(world.ordered(person, week) for week in calm))
    assert len(after) > 60
    assert fmean(after) < 0.65 * fmean(matched)


def test_the_stated_effects_are_the_effects(world: World) -> None:
    """Orders after events = expected orders x the effects of all the person's events, within noise.

    The difference of a count and its integrated intensity has mean 0, whatever the history.
    """
    effects: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for event in world.rows["truth/events"]:
        sign = {"down": -1, "up": 1, "none": 0}[event["direction"]]
        at = seconds(event["occurred_at"])
        effects[event["tenant"], event["person"]].append((at, 1 + sign * event["effect"]))

    def predicted(event: dict[str, Any]) -> float:
        at = seconds(event["occurred_at"])
        steps = [at + (2 * i + 1) * WEEK // 168 for i in range(84)]
        active = effects[event["tenant"], event["person"]]
        factors = [prod(by for start, by in active if start <= step < start + WEEK) for step in steps]
        return float(event["expected_orders"]) * fmean(factors)

    for kind, compensated, least in (
        ("logistics_complaint", False, 250),
        ("logistics_complaint", True, 150),
        ("refund_request", True, 80),
        ("praise", None, 200),
    ):
        events = world.closed(kind, compensated)
        assert len(events) > least
        orders = fmean(event["orders_after"] for event in events)
        assert orders == pytest.approx(fmean(map(predicted, events)), rel=0.15), (kind, compensated)


def test_effects_are_spread_and_signed(world: World) -> None:
    effects = [e["effect"] for e in world.closed("logistics_complaint", False)]
    assert min(effects) >= 0.1
    assert max(effects) <= 1.0
    assert sum(e < 0.3 for e in effects) > 10
    assert sum(e > 0.7 for e in effects) > 10
    assert fmean(effects) > 10 * fmean(e["effect"] for e in world.closed("logistics_complaint", True))
    directions = {(e["kind"], e["direction"]) for e in world.rows["truth/events"]}
    assert directions == {
        ("logistics_complaint", "down"),
        ("refund_request", "down"),
        ("praise", "up"),
        ("address_change", "none"),
    }
    assert all(e["effect"] == 0 for e in world.rows["truth/events"] if e["direction"] == "none")


def test_orders_after_are_counted_in_the_log(world: World) -> None:
    for event in world.rows["truth/events"]:
        person = (event["tenant"], event["person"])
        assert event["orders_after"] == world.ordered(person, seconds(event["occurred_at"]) + 1)


def test_heavy_buyers_complain_more(world: World) -> None:
    complaints = Counter(
        (e["tenant"], e["person"]) for e in world.rows["truth/events"] if e["kind"] == "logistics_complaint"
    )
    persons = sorted(world.orders, key=lambda person: len(world.orders[person]))
    quarter = len(persons) // 4
    light = fmean(complaints[person] for person in persons[:quarter])
    heavy = fmean(complaints[person] for person in persons[-quarter:])
    assert heavy > 3 * light


def test_weekends_and_seasons_show_in_the_orders(world: World) -> None:
    days = Counter(datetime.fromtimestamp(at, UTC).weekday() for times in world.orders.values() for at in times)
    assert (days[5] + days[6]) / 2 > 1.1 * fmean(days[day] for day in range(4))
    calendar = Calendar(Config(days=365))
    assert max(calendar.days) > 1.5 * min(calendar.days)
    assert calendar.week_after(Config().begin) == pytest.approx(sum(calendar.days[:7]))


def test_feedback_is_the_strongest_that_followed(world: World) -> None:
    order = ["churned", "refunded", "canceled_order", "complained_again", "bought_again", "thanked", "none"]
    found = Counter(event["feedback"] for event in world.rows["truth/events"])
    assert set(found) == set(order)
    for event in world.rows["truth/events"]:
        if event["feedback"] in ("thanked", "none"):
            assert event["orders_after"] == 0
    cancels = [row for row in world.rows["behaviour"] if row["kind"] == "cancel"]
    assert len(cancels) > 50
    numbers = {row["reference"] for row in world.rows["behaviour"] if row["kind"] == "order"}
    assert {row["reference"] for row in cancels} <= numbers


def test_nobody_buys_after_churning(world: World) -> None:
    churned = [row for row in world.rows["behaviour"] if row["kind"] == "churn"]
    assert churned
    for row in churned:
        times = world.orders[row["tenant"], f"u:{row['user_id']}"]
        assert all(at <= seconds(row["occurred_at"]) for at in times)


def test_facts_form_chains_with_one_current_value(world: World) -> None:
    chains: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for fact in world.rows["truth/facts"]:
        chains[fact["tenant"], fact["person"], fact["predicate"]].append(fact)
    ended = Counter(fact["ended_by"] for fact in world.rows["truth/facts"])
    assert ended["change"] > 50
    assert ended["correction"] > 50
    for chain in chains.values():
        chain.sort(key=lambda fact: fact["valid_from"])
        assert [fact["current"] for fact in chain] == [False] * (len(chain) - 1) + [True]
        for before, after in pairwise(chain):
            assert before["valid_to"] == after["valid_from"] > before["valid_from"]
        assert chain[-1]["valid_to"] is None


def test_questions_point_at_the_current_value(world: World) -> None:
    current = {
        (fact["tenant"], fact["person"], fact["predicate"]): fact
        for fact in world.rows["truth/facts"]
        if fact["current"]
    }
    asked = Counter(question["kind"] for question in world.rows["truth/questions"])
    assert {"home_city", "allergy", "seat_preference", "plan", "logistics_complaint"} <= set(asked)
    for question in world.rows["truth/questions"]:
        assert question["gold_turn_ids"]
        assert question["language"] in ("zh", "zh-Hant", "en")
        fact = current.get((question["tenant"], question["subject"], question["kind"]))
        if fact is not None:
            assert question["answer"] == fact["value"]
            assert question["gold_turn_ids"] == [fact["turn_id"]]


def test_more_persons_change_nobodys_life() -> None:
    def demo_and_first(subjects: int) -> list[Record]:
        return list(simulate(Config(subjects=subjects, days=30, tenants=("only",))))

    few, many = demo_and_first(3), demo_and_first(9)
    assert many[: len(few)] == few


def test_demo_persons_have_clear_answers() -> None:
    world = World(Config(subjects=0))
    said = {}
    for row in world.rows["dialogues"]:
        if row["occurred_at"]:
            at = datetime.fromisoformat(row["occurred_at"])
            made = turn_id(row["conversation_id"], at, row["role"], str(row["text"]), 0)
            said[row.get("turn_id", made)] = row["text"]
    questions = {(q["subject"], q["question"]): q for q in world.rows["truth/questions"]}
    delivery = questions["u:zh-demo", "我之前投诉过什么物流问题？"]
    assert "顺丰" in said[delivery["gold_turn_ids"][0]]
    assert questions["u:zh-demo", "我对什么东西过敏？"]["answer"] == "花生"
    assert questions["u:zh-demo", "我现在住在哪个城市？"]["answer"] == "上海"
    assert questions["u:en-demo", "What seat do I prefer when flying?"]["answer"] == "window seat"
    assert questions["u:en-demo", "Where do I work now?"]["answer"] == "Bluepine Robotics"
    delay = questions["u:en-demo", "Which delivery problems have I complained about before?"]
    assert "FedEx" in said[delay["gold_turn_ids"][0]]
    complaints = {e["subject"]: e for e in world.rows["truth/events"] if e["kind"] == "logistics_complaint"}
    assert complaints["u:zh-demo"]["feedback"] == "canceled_order"
    cancelled = [row["reference"] for row in world.rows["behaviour"] if row["kind"] == "cancel"]
    assert cancelled == [complaints["u:zh-demo"]["order"]]


@pytest.mark.parametrize("days", [1, 10, 100, 400])
def test_demo_facts_fit_any_length(days: int) -> None:
    rows = World(Config(subjects=0, days=days)).rows["truth/facts"]
    assert {fact["predicate"] for fact in rows} >= {"home_city", "allergy", "seat_preference"}
