"""Every expectation of every suite is quiet on good rows and fires on exactly those that were spoilt for it."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from memory_pipelines.errors import InputError, IntegrityError
from memory_pipelines.quality.suites import SUITES, _suite, feature_frame, run_suite
from memory_pipelines.tables import BEHAVIOUR, REWARD_EVENTS

pytestmark = pytest.mark.slow  # the import of Great Expectations alone takes seconds
ROWS = 60


def behaviour() -> pd.DataFrame:
    rows = [
        {
            "tenant": "shop", "owner": f"o{i % 7}", "event_id": f"e{i}", "subject": "u:1",
            "kind": ("order", "visit", "refund", "warranty claim 保修")[i % 4],
            "occurred_at": pd.Timestamp("2024-05-01", tz="UTC") + pd.Timedelta(hours=i),
            "value": 9.5 * i if i % 4 == 0 else None, "dwell_seconds": 3.0 * i if i % 4 == 1 else None,
            "bounce": i % 8 == 1 if i % 4 == 1 else None, "day": "2024-05-01", "bucket": 0,
        }
        for i in range(ROWS)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=BEHAVIOUR.schema).to_pandas()


def impact() -> pd.DataFrame:
    values = np.linspace(0, 1, ROWS)
    return pd.DataFrame({"owner": "o1", "exchange_id": [f"x{i}" for i in range(ROWS)], "decision_impact": values})


OWN = ("owner", "exchange_id", "window_closed", "expected", "observed", "label")
NAMES = tuple(c for c in _suite("reward_features")["columns"] if c not in OWN)


def reward_table() -> pa.Table:
    rows = []
    for i in range(ROWS):
        closed = i % 10 != 0
        after = {"after_orders": 1.0, "after_spend": 20.0, "after_visits": 2.0, "after_bounce": 0.5}
        after |= {"after_contacts": 1.0, "churned": 0.0, "compensated": float(i % 2), "habit_change": -0.5}
        after |= {"repurchase_days": 3.5 if i % 3 else np.nan, "rule_40": 1.0}
        values = dict.fromkeys(NAMES, 0.5) | {"hour": 23.0, "weekday": 6.0, "emotion": -1.0, "intent": 4294967295.0}
        values |= after if closed else dict.fromkeys(after, np.nan)
        rows.append(
            {
                "tenant": "shop", "subject": "u:1", "exchange_id": f"x{i}", "owner": "o1", "bucket": 0,
                "intent": "praise", "category": "task", "emotion_score": -1.0, "window_closed": closed,
                "features": [values[name] for name in NAMES], "expected": 1.2 if closed else None,
                "observed": 1.0 if closed else None, "label": (i % 7) / 6 if closed else None,
            }
        )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=REWARD_EVENTS.schema)


def reward_features() -> pd.DataFrame:
    return feature_frame(reward_table(), NAMES)


GOOD = {"behaviour": behaviour, "impact": impact, "reward_features": reward_features}
OPEN, CLOSED = True, False
"""In which row a value is planted: of an open window or of a closed one. A row is spoilt once."""

CELLS: dict[str, list[tuple[str, str, bool, Any]]] = {
    "behaviour": [
        ("tenant is known", "tenant", CLOSED, None),
        ("owner is known", "owner", CLOSED, None),
        ("event id is known", "event_id", CLOSED, None),
        ("time is known", "occurred_at", CLOSED, None),
        ("kind is known", "kind", CLOSED, None),
        ("kind is a word", "kind", CLOSED, ""),
        ("day is a date", "day", CLOSED, "1/5/2024"),
        ("values are amounts", "value", CLOSED, -0.01),
        ("values are amounts", "value", CLOSED, float("inf")),
        ("dwell is a time within a day", "dwell_seconds", CLOSED, 86401),
    ],
    "impact": [
        ("owner is known", "owner", CLOSED, None),
        ("exchange is known", "exchange_id", CLOSED, None),
        ("one row per exchange", "exchange_id", CLOSED, "x0"),
        ("impact is known", "decision_impact", CLOSED, None),
        ("impact in 0 to 1", "decision_impact", CLOSED, 1.01),
    ],
    "reward_features": [
        ("owner is known", "owner", CLOSED, None),
        ("one row per exchange", "exchange_id", CLOSED, "x0"),
        ("whether the window is closed is known", "window_closed", CLOSED, None),
        ("orders before are known", "before_orders", CLOSED, np.nan),
        ("the own rate is known", "weekly_rate", CLOSED, np.nan),
        ("no label before the window closes", "label", OPEN, 0.5),
        ("no orders after before the window closes", "after_orders", OPEN, 0.0),
        ("no repurchase before the window closes", "repurchase_days", OPEN, 1.0),
        ("a label once the window is closed", "label", CLOSED, np.nan),
        ("orders after once the window is closed", "after_orders", CLOSED, np.nan),
        ("label in 0 to 1", "label", CLOSED, 1.1),
        ("expected orders", "expected", CLOSED, -1.0),
        ("observed orders", "observed", CLOSED, -1.0),
        ("orders before", "before_orders", CLOSED, -1.0),
        ("spend before", "before_spend", CLOSED, float("inf")),
        ("visits before", "before_visits", CLOSED, -1.0),
        ("dwell before", "before_dwell", CLOSED, -1.0),
        ("bounces before are a share", "before_bounce", CLOSED, 1.5),
        ("contacts before", "before_contacts", CLOSED, -1.0),
        ("days since the last order", "since_order_days", CLOSED, -0.5),
        ("the own rate", "weekly_rate", CLOSED, -0.5),
        ("change of the rate", "rate_change", CLOSED, 1.5),
        ("emotion in -1 to 1", "emotion", CLOSED, -1.01),
        ("intent is a code", "intent", CLOSED, 4294967296.0),
        ("hour of a day", "hour", CLOSED, 24.0),
        ("day of a week", "weekday", CLOSED, 7.0),
        ("orders after", "after_orders", CLOSED, -1.0),
        ("spend after", "after_spend", CLOSED, -1.0),
        ("visits after", "after_visits", CLOSED, -1.0),
        ("bounces after are a share", "after_bounce", CLOSED, 2.0),
        ("contacts after", "after_contacts", CLOSED, -1.0),
        ("churned", "churned", CLOSED, -1.0),
        ("compensated is a flag", "compensated", CLOSED, 0.5),
        ("repurchase within a week", "repurchase_days", CLOSED, 7.5),
        ("change of habit", "habit_change", CLOSED, -1.5),
        ("the 40 % rule is a flag", "rule_40", CLOSED, 0.4),
    ],
}
DISTRIBUTIONS: list[tuple[str, str, str, dict[int, Any]]] = [
    ("behaviour", "most kinds are ones that decisions are read from", "kind", dict.fromkeys(range(31), "下单")),
    ("impact", "impacts are not almost binary", "decision_impact", {i: float(i % 2) for i in range(ROWS)}),
    ("impact", "impacts have not collapsed", "decision_impact", {i: 0.5 + i / 1000 for i in range(ROWS)}),
    ("impact", "impacts are not all low or all high", "decision_impact", {i: 1 - i % 10 / 55 for i in range(ROWS)}),
    ("reward_features", "labels vary", "label", {i: 0.5 for i in range(ROWS) if i % 10}),
]


@pytest.mark.parametrize("name", SUITES)
def test_good_rows_pass(name: str) -> None:
    found = run_suite(name, GOOD[name]())
    assert (found.passed, found.failures, found.n, found.skipped) == (True, (), ROWS, ())


@pytest.mark.parametrize("name", SUITES)
def test_no_rows_pass_with_what_was_skipped(name: str) -> None:
    found = run_suite(name, GOOD[name]()[:0])
    assert (found.passed, found.failures, found.n) == (True, (), 0)
    assert found.skipped == tuple(e["name"] for e in _suite(name)["expectations"] if e.get("distribution"))


@pytest.mark.parametrize("suite", SUITES)
def test_each_expectation_fires_on_the_rows_that_were_spoilt_for_it(suite: str) -> None:
    frame = GOOD[suite]()
    rows = {OPEN: iter(range(0, ROWS, 10)), CLOSED: iter([i for i in range(ROWS) if i % 10])}
    for name, column, where, value in CELLS[suite]:
        if name == "whether the window is closed is known":
            frame[column] = frame[column].astype(object)
        frame.loc[next(rows[where]), column] = value
    found = run_suite(suite, frame)
    expected = Counter(name for name, *_ in CELLS[suite])
    expected.update(name for name in expected if name == "one row per exchange")  # both rows of a pair count
    assert {f.name: f.unexpected for f in found.failures} == expected


@pytest.mark.parametrize(("suite", "name", "column", "values"), DISTRIBUTIONS)
def test_a_distribution_fires_alone(suite: str, name: str, column: str, values: dict[int, Any]) -> None:
    frame = GOOD[suite]()
    for row, value in values.items():
        frame.loc[row, column] = value
    found = run_suite(suite, frame)
    assert [failure.name for failure in found.failures] == [name]


def test_every_expectation_has_a_planted_fault_and_a_name_of_its_own() -> None:
    for suite in SUITES:
        expectations = [e["name"] for e in _suite(suite)["expectations"]]
        assert len(set(expectations)) == len(expectations)
        planted = {name for name, *_ in CELLS[suite]} | {name for s, name, *_ in DISTRIBUTIONS if s == suite}
        assert planted == set(expectations)


def test_failures_count_rows_quote_nothing_and_keep_the_order_of_the_suite() -> None:
    frame = impact()
    frame.loc[3, "decision_impact"] = 77.125
    frame.loc[[4, 5], "exchange_id"] = "秘密"
    frame.loc[6, "owner"] = None
    found = run_suite("impact", frame)
    assert [(f.name, f.unexpected) for f in found.failures] == [
        ("owner is known", 1),
        ("one row per exchange", 2),
        ("impact in 0 to 1", 1),
        ("impacts are not almost binary", None),
        ("impacts are not all low or all high", None),
    ]
    assert found.failures[1].text == "one row per exchange: not so in 2 of 60 rows"
    assert "not so, it is 9." in found.failures[3].text
    text = repr(found)
    assert "77.125" not in text
    assert "秘密" not in text


def test_too_few_rows_say_nothing_of_a_distribution() -> None:
    binary = impact()[:49].assign(decision_impact=[float(i % 2) for i in range(49)])
    found = run_suite("impact", binary)
    assert (found.passed, len(found.skipped)) == (True, 3)
    assert not run_suite("impact", impact()[:50].assign(decision_impact=[float(i % 2) for i in range(50)])).passed


def test_a_missing_column_is_the_one_failure() -> None:
    found = run_suite("behaviour", behaviour().drop(columns=["value", "day"]))
    assert [(f.name, f.text) for f in found.failures] == [("columns", "columns are missing: value, day")]
    assert not found.passed


def test_a_column_of_another_type_fails_without_its_values() -> None:
    found = run_suite("impact", impact().assign(decision_impact="秘密"))
    assert "impact in 0 to 1" in [f.name for f in found.failures]
    assert "秘密" not in repr(found)


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(InputError, match="behaviour, reward_features, impact"):
        run_suite("orders", impact())


def test_features_become_columns() -> None:
    frame = feature_frame(reward_table(), NAMES)
    assert "features" not in frame.columns
    assert frame.loc[1, "hour"] == 23.0
    assert frame["intent"].tolist() == [4294967295.0] * ROWS  # the code, not the name
    assert frame.loc[0, ["after_orders", "label"]].isna().all()
    assert len(feature_frame(reward_table()[:0], NAMES)) == 0
    with pytest.raises(IntegrityError, match="do not have 2 features each"):
        feature_frame(reward_table(), ["a", "b"])
