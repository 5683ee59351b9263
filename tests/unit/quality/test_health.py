"""The health metrics by hand, their limits, and what they say where there is nothing to measure."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from memory_pipelines.model import Owner
from memory_pipelines.quality import health
from memory_pipelines.quality.distribution import histogram
from memory_pipelines.quality.health import Metric
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.tables import DECISIONS, IMPACTS, SLICES

NOW = datetime(2024, 6, 1, tzinfo=UTC)
ANNE, BO = Owner("shop", "u:anne"), Owner("shop", "u:bo")


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def slices(*days: float) -> pa.Table:
    return pa.Table.from_pylist([{"occurred_at": ago(d)} for d in days], schema=SLICES.schema)


def memory(owner: Owner, *turns: str, tier: str = "hot", kind: str = "episodic") -> StoredMemory:
    return StoredMemory(
        memory_id=f"{owner.subject}{turns}", version="v", owner=owner, memory_type=kind, permanence="long",
        term="long", summary="", text="", language="en", predicate="", value="", structured="", confidence=1.0,
        trust=1.0, score=1.0, decision_impact=0.5, intent="", entities=(), slice_ids=(), source_turn_ids=turns,
        stores=(), occurred_at=ago(3), valid_from=None, valid_to=None, expires_at=None, admitted_at=ago(3), tier=tier,
        path="rules", model_set="base-1",
    )  # fmt: skip


def test_a_steady_flow_is_fresh() -> None:
    found = health.slice_freshness_rate(slices(*[i + 0.5 for i in range(60)]), NOW)
    assert found == Metric(
        "slice_freshness_rate", 0.2333, 0.15, True, {"week": 7, "month": 30, "all": 60, "share_of_all": 0.1167}
    )


def test_freshness_at_its_limit_and_below() -> None:
    assert health.slice_freshness_rate(slices(*[1] * 3, *[20] * 17), NOW).passed  # .15
    found = health.slice_freshness_rate(slices(*[1] * 3, *[20] * 18), NOW)
    assert (found.value, found.passed) == (0.1429, False)


def test_windows_are_half_open_and_the_future_is_no_slice() -> None:
    found = health.slice_freshness_rate(slices(0, 7, 7.1, 30, 30.1, -5), NOW)
    assert found.detail == {"week": 1, "month": 3, "all": 4, "share_of_all": 0.25}


def test_a_flow_that_stopped_is_a_fault_and_one_that_never_began_is_none() -> None:
    stopped = health.slice_freshness_rate(slices(40, 50), NOW)
    assert (stopped.value, stopped.passed) == (0.0, False)
    nothing = health.slice_freshness_rate(slices(), NOW)
    assert nothing == Metric("slice_freshness_rate", None, 0.15, True, {"note": "no slices yet"})


def test_ripple_activation_counts_slices_of_those_recalled() -> None:
    memories = [
        memory(ANNE, "t1", "t2"),
        memory(ANNE, "t3", tier="warm"),
        memory(ANNE, "t4", tier="cold"),
        memory(ANNE, "t2", kind="semantic"),
        memory(BO, "t1"),
    ]
    uses = {
        ANNE.key: {"t2": [(ago(1), "activated")], "t3": [(ago(8), "activated")], "t4": [(ago(1), "activated")]},
        BO.key: {"t1": [(ago(8), "activated"), (ago(2), "echo")]},
    }
    found = health.ripple_activation_rate(memories, uses, NOW)
    assert found == Metric(
        "ripple_activation_rate", 0.5, 0.08, True, {"activated": 1, "slices": 2, "owners": 1}
    )  # fmt: skip
    uses[BO.key]["t1"].append((ago(3), "presented"))  # now Bo was recalled, and nothing rippled
    assert health.ripple_activation_rate(memories, uses, NOW).value == 0.3333


def test_ripple_activation_at_its_limit_and_below() -> None:
    uses = {ANNE.key: {"t0": [(ago(1), "activated")], "t1": [(ago(1), "activated")]}}
    assert health.ripple_activation_rate([memory(ANNE, f"t{i}") for i in range(25)], uses, NOW).passed  # .08
    assert not health.ripple_activation_rate([memory(ANNE, f"t{i}") for i in range(26)], uses, NOW).passed


def test_without_recalls_there_is_nothing_to_measure() -> None:
    found = health.ripple_activation_rate([memory(ANNE, "t1")], {}, NOW)
    assert found == Metric("ripple_activation_rate", None, 0.08, True, {"note": "no recalls in 7 days"})
    old = {ANNE.key: {"t1": [(NOW, "activated"), (ago(7.1), "activated"), (ago(1), "negated")]}}
    assert health.ripple_activation_rate([memory(ANNE, "t1")], old, NOW).value is None
    recalled = {ANNE.key: {"t1": [(ago(7), "presented")]}}
    cold = health.ripple_activation_rate([memory(ANNE, "t1", tier="cold")], recalled, NOW)
    assert cold.detail == {"note": "no hot or warm slices of those recalled"}


def impacts(*values: float) -> pa.Table:
    rows = [{"occurred_at": ago(1), "impact_final": True, "decision_impact": v} for v in values]
    return pa.Table.from_pylist(rows, schema=IMPACTS.schema)


def test_impact_skew() -> None:
    good = health.impact_skew(impacts(*[i / 100 for i in range(100)]), NOW)
    assert (good.value, good.limit, good.passed) == (0.2887, 0.45, True)
    assert good.detail == {"n": 100, "mean": 0.495, "share_low": 0.3, "share_medium": 0.41, "share_high": 0.29}
    bad = health.impact_skew(impacts(*[0.0] * 50, *[1.0] * 50), NOW)
    assert (bad.value, bad.passed) == (0.5, False)
    assert "almost all nothing or everything" in str(bad.detail["deviation"])
    drifted = health.impact_skew(impacts(*[i / 100 for i in range(100)]), NOW, reference=histogram([0.1, 0.4] * 50))
    assert (drifted.passed, "psi" in drifted.detail) == (False, True)


def test_impact_skew_of_too_few() -> None:
    none = health.impact_skew(impacts(), NOW)
    assert (none.value, none.passed, none.detail["note"]) == (None, True, "too few to judge: 0 of at least 50")
    few = health.impact_skew(impacts(0.0, 1.0), NOW)
    assert (few.value, few.passed, few.detail["n"]) == (0.5, True, 2)


def test_sync_latency_is_the_95th_percentile() -> None:
    found = health.sync_latency([9.0, *[0.1 * i for i in range(19)]])
    assert found == Metric("sync_latency", 1.8, 3.0, True, {"logins": 20, "slowest": 9.0})
    assert health.sync_latency([3.0]).passed
    assert health.sync_latency([3.0001, 1.0]) == Metric(
        "sync_latency", 3.0001, 3.0, False, {"logins": 2, "slowest": 3.0001}
    )
    assert health.sync_latency([]) == Metric("sync_latency", None, 3.0, True, {"note": "no logins measured"})


def test_admission_ratios() -> None:
    parts = [("long", 0.9, 0.7, 0.2), ("short", 0.7, 0.5, 0.1), ("discard", 0.1, 0.1, None), ("long", 0.8, 0.2, 0.3)]
    rows = [{"outcome": o, "persistence": p, "structure": s, "personalisation": z} for o, p, s, z in parts]
    found = health.admission_ratios(pa.Table.from_pylist(rows, schema=DECISIONS.schema))
    assert [(m.name, m.value) for m in found] == [
        ("admission_long_term", 0.5),
        ("admission_persistence", 0.75),
        ("admission_structure", 0.25),
        ("admission_personalisation", 0.0),
    ]
    assert all(m.passed and m.limit is None for m in found)
    assert [m.value for m in health.admission_ratios(DECISIONS.schema.empty_table())] == [None] * 4


@pytest.mark.parametrize(("rows", "bad", "value", "passed"), [(100, 20, 0.2, True), (100, 21, 0.21, False)])
def test_quarantine_rate(rows: int, bad: int, value: float, passed: bool) -> None:
    found = health.quarantine_rate(rows, bad, most=0.2)
    assert found == Metric("quarantine_rate", value, 0.2, passed, {"rows": bad, "all": rows})


def test_duplicate_rate_never_alerts() -> None:
    assert health.duplicate_rate(3, 1) == Metric("duplicate_rate", 0.3333, None, True, {"rows": 1, "all": 3})
    assert health.duplicate_rate(0, 0) == Metric("duplicate_rate", None, None, True, {"note": "no rows read yet"})
