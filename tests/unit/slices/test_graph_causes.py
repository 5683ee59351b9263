"""Cause and effect: what ties two things, whose cause is whose, what is no cause."""

from typing import Any

import pytest
from graph_world import Row, edges, event, pair

from memory_pipelines.slices.graph.nodes import event_node
from memory_pipelines.slices.graph.rules import cause_rules

COMPLAINT, CANCEL = {"intent": "logistics_complaint"}, {"intent": "cancel_order"}
ONE, TWO = "order_number/SO-1", "order_number/SO-2"


def causes(*pairs: tuple[Row, Row], behaviour: Any = ()) -> dict[tuple[str, str], float]:
    found = edges(*pairs, behaviour=behaviour)
    return {(source, target): weight for (source, target, kind), weight in found.items() if kind == "causes"}


def weight_of(effect: str, cause: str, how: str) -> float:
    (rule,) = (rule for rule in cause_rules().by_effect[effect] if cause in rule.causes)
    return rule.ties[how].weight


def test_an_order_leads_to_what_is_said_of_its_number() -> None:
    orders = [event("order", "b1", days=0, reference="so 1"), event("order", "b2", days=2, reference="SO-2")]
    found = causes(pair("a", days=3, entities=[ONE], **COMPLAINT), behaviour=orders)
    assert found == {(event_node("order", "b1"), "a"): weight_of("complaint", "order", "order")}


def test_without_a_number_it_is_the_latest_order_that_can_have_come_and_that_nothing_else_is_said_of() -> None:
    orders = [event("order", f"b{i}", days=i, reference=f"SO-{i}") for i in (1, 2, 3, 4)]
    praise = pair("p", days=4.5, intent="praise", entities=["product/shoes"])
    alone = causes(praise, behaviour=orders)
    assert alone == {(event_node("order", "b3"), "p"): weight_of("praise", "order", "time")}
    other = pair("c", days=4, entities=["order_number/SO-3"], **COMPLAINT)
    assert (event_node("order", "b2"), "p") in causes(praise, other, behaviour=orders)


def test_a_complaint_leads_to_a_cancellation_that_was_done() -> None:
    done = [event("cancel", "b1", days=1, reference="SO-1"), event("churn", "b2", days=3)]
    first, second = pair("a", entities=[ONE], **COMPLAINT), pair("b", days=0.5, entities=[TWO], **COMPLAINT)
    assert causes(first, second, behaviour=done) == {
        ("a", event_node("cancel", "b1")): weight_of("cancel", "complaint", "order"),
        ("b", event_node("churn", "b2")): weight_of("churn", "complaint", "time"),
    }


@pytest.mark.parametrize(
    ("cause", "effect", "how"),
    [
        ({"entities": [ONE]}, {"entities": [ONE]}, "order"),
        ({"entities": ["product/x"], "session": "s"}, {"session": "s"}, "session"),
        ({"entities": ["product/x"]}, {"entities": ["product/x"]}, "entity"),
        ({"entities": [ONE], "session": "s"}, {"entities": [TWO], "session": "s"}, None),
        ({"entities": ["place/x"]}, {"entities": ["place/x"]}, None),
        ({"session": "s"}, {"session": "s", "entities": [ONE]}, None),
    ],
)
def test_what_ties_a_complaint_to_a_wish_to_cancel(cause: Row, effect: Row, how: str | None) -> None:
    found = causes(pair("a", **COMPLAINT, **cause), pair("b", days=0.1, **CANCEL, **effect))
    assert found == ({} if how is None else {("a", "b"): weight_of("cancel_request", "complaint", how)})


def test_no_cause_backwards_in_time_nor_after_its_days() -> None:
    cancel, complaint = pair("a", entities=[ONE], **CANCEL), pair("b", days=1, entities=[ONE], **COMPLAINT)
    assert causes(cancel, complaint) == {}
    assert causes(pair("a", entities=[ONE], **COMPLAINT), pair("b", days=7.01, entities=[ONE], **CANCEL)) == {}


def test_what_is_said_again_at_once_is_the_same_matter_and_the_one_that_names_the_order_stands_for_it() -> None:
    said = [
        pair("a", session="s", **COMPLAINT),
        pair("b", days=0.01, session="s", entities=[ONE], **COMPLAINT),
        pair("c", days=0.02, session="s", intent="service_complaint", entities=["product/x"]),
    ]
    done = [event("order", "b1", days=-3, reference="SO-1"), event("cancel", "b2", days=1, reference="SO-1")]
    assert set(causes(*said, behaviour=done)) == {
        (event_node("order", "b1"), "b"),
        ("b", event_node("cancel", "b2")),
    }
    later = pair("d", days=2, entities=[ONE], **COMPLAINT)
    assert ("b", "d") in causes(*said, later)


def test_of_many_the_strongest_tie_then_the_latest() -> None:
    said = [
        pair("old", entities=[ONE], **COMPLAINT),
        pair("new", days=1, entities=[ONE], **COMPLAINT),
        pair("other", days=2, entities=["product/x"], **COMPLAINT),
    ]
    assert ("new", "end") in causes(*said, pair("end", days=3, entities=[ONE], **CANCEL))
    assert ("other", "end") in causes(*said, pair("end", days=3, entities=["product/x"], **CANCEL))


def test_the_cause_of_one_subject_is_never_another_s() -> None:
    done = [event("cancel", "b1", days=1, reference="SO-1", subject="u:bob")]
    assert causes(pair("a", entities=[ONE], **COMPLAINT), behaviour=done) == {}


def test_every_weight_and_number_of_days_of_the_rules_makes_sense() -> None:
    for rules in cause_rules().by_effect.values():
        for rule in rules:
            for how, strength in rule.ties.items():
                assert how in {"order", "session", "entity", "time"}
                assert 0 < strength.weight <= 1
                assert strength.after < strength.within
