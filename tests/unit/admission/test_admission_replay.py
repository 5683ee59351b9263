"""Replay of decisions under other thresholds: the same as judging anew, and what is known of its quality."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from memory_pipelines.admission.gate import admit
from memory_pipelines.admission.ontology import profile
from memory_pipelines.admission.replay import (
    COLUMNS,
    THRESHOLDS,
    long_at,
    qualities,
    quality_picture,
    volume_picture,
    volumes,
)
from memory_pipelines.admission.snapshot import Snapshot
from memory_pipelines.tables import DECISIONS, SLICES

Make = Callable[..., dict[str, Any]]
BASE = datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)
LATER = BASE + timedelta(days=60)
SF = {"surface": "顺丰", "canonical": "carrier/sf_express", "kind": "carrier"}


@pytest.fixture
def slices(slice_row: Make) -> pa.Table:
    texts = (
        "我住在杭州，喜欢吃辣",
        "I am allergic to peanuts",
        "hello",
        "包裹又湿了",
        "The garden is full of roses this year.",
        "My sister Anna lives in Leeds and works for Google",
        "what is 3 times 4",
    )
    rows = []
    for number, text in enumerate(texts):
        for week, impact in enumerate((0.1, 0.3, 0.5, 0.65)):
            row = slice_row(
                10 * number + week,
                text,
                days=9 * week + number / 10,
                subject=f"u:{number}",
                decision_impact=impact,
                entities=[SF] if week % 2 else [],
                feedback="canceled_order" if week == 3 else "none",
            )
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=SLICES.schema)


@pytest.mark.parametrize("scenario", ["customer_service", "assistant", "entertainment"])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_replay_says_what_judging_anew_would(slices: pa.Table, scenario: str, threshold: float) -> None:
    used = profile(scenario)
    stored = admit(slices, Snapshot(), scenario=scenario, as_of=LATER).decisions
    anew = admit(slices, Snapshot(), scenario=scenario, as_of=LATER, profile=replace(used, long=threshold)).decisions
    assert "promoted" not in {*anew["rule"].to_pylist(), *stored["rule"].to_pylist()}
    assert anew["memory_id"].to_pylist() == stored["memory_id"].to_pylist()
    replayed = zip(stored["memory_id"].to_pylist(), long_at(stored, threshold).tolist(), strict=True)
    outcomes = zip(anew.to_pylist(), replayed, strict=True)
    assert [(row, long) for row, (_, long) in outcomes if long != (row["outcome"] == "long")] == []
    (row,) = [v for v in volumes(stored) if v.threshold == threshold]
    outcomes = anew["outcome"].to_pylist()
    assert (row.long, row.short, row.discard) == tuple(outcomes.count(o) for o in ("long", "short", "discard"))


def test_every_decision_can_be_computed_from_its_row(slices: pa.Table) -> None:
    """Score from dimensions and weights; outcome from score, thresholds and rule."""
    rows = admit(slices, Snapshot("v7"), scenario="entertainment", as_of=LATER).decisions.to_pylist()
    dimensions = ("persistence", "structure", "personalisation")
    for row in rows:
        assert row["score"] == round(sum(row[f"weight_{name}"] * row[name] for name in dimensions), 4)
        if row["rule"] == "score":
            by_score = "long" if row["score"] >= row["long_from"] else "short"
            assert row["outcome"] == (by_score if row["score"] >= row["short_from"] else "discard")
        names = {name for name, _ in row["parts"]}
        assert {name.partition(".")[0] for name in names} == set(dimensions)
        assert {f"personalisation.{part}" for part in ("core", "distinctiveness", "use")} <= names
        assert (row["scenario"].partition("@")[0], row["snapshot"], row["arm"]) == ("entertainment", "v7", "A")


def test_scenarios_weigh_what_they_are_for() -> None:
    service, fun = profile("customer_service"), profile("entertainment")
    assert service.weights == (0.4, 0.3, 0.3)
    assert service.weights[1] > fun.weights[1], "entities"
    assert service.weights[2] < fun.weights[2], "what it means to the person"
    for name in ("customer_service", "assistant", "entertainment"):
        known = profile(name)
        assert round(sum(known.weights), 9) == 1
        assert (known.long, known.short, known.arm_b_long, known.arm_b_share) == (0.7, 0.4, 0.65, 0.0)
        assert known.label == f"{name}@{known.version}"


def decision(name: str, score: float, rule: str = "score", outcome: str = "long", arm: str = "A") -> dict[str, Any]:
    values = {"memory_id": name, "score": score, "short_from": 0.4, "long_from": 0.7, "rule": rule, "outcome": outcome}
    return values | {"scenario": "s@1", "arm": arm}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=pa.schema([DECISIONS.schema.field(name) for name in COLUMNS]))


def test_rules_and_promotions_stand() -> None:
    found = table(
        decision("a", 0.2, "health"),
        decision("b", 0.5, "promoted"),
        decision("c", 0.95, "small_talk", "discard"),
        decision("d", 0.5, "open_inquiry", "short"),
        decision("e", 0.65, outcome="short"),
        decision("f", 0.66, arm="B"),
    )
    by = {(v.arm, v.threshold): (v.long, v.short, v.discard) for v in volumes(found)}
    assert (by["A", 0.4], by["A", 0.65], by["A", 0.7]) == ((3, 1, 1), (3, 1, 1), (2, 2, 1))
    assert (by["B", 0.65], by["B", 0.7]) == ((1, 0, 0), (0, 1, 0))
    assert len(by) == 2 * len(THRESHOLDS)


def test_quality_by_use_and_by_questions() -> None:
    found = table(decision("a", 0.9), decision("b", 0.75), decision("c", 0.5, outcome="short"), decision("d", 0.8))
    by = {q.threshold: q for q in qualities(found, {"a", "c"}, [{"a", "b"}, {"b"}, {"gone"}, set()])}
    assert (by[0.4].used_kept, by[0.4].kept_used, by[0.4].answered) == (1.0, 0.5, 0.5)
    assert (by[0.7].used_kept, by[0.7].kept_used, by[0.7].answered) == (0.5, 0.3333, 0.5)
    assert (by[0.8].used_kept, by[0.8].kept_used, by[0.8].answered) == (0.5, 0.5, 0.25)
    nothing = qualities(found, set())[0]
    assert (nothing.used_kept, nothing.kept_used, nothing.answered) == (None, None, None)


def test_pictures_are_pictures_and_equal_for_equal_figures(slices: pa.Table) -> None:
    stored = admit(slices, Snapshot(), scenario="assistant", as_of=LATER).decisions
    first, second = (volume_picture(volumes(stored), (0.7,)) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert quality_picture(qualities(stored, set()), (0.7,)).startswith(b"\x89PNG")
