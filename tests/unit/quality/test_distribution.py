"""Distribution checks: each planted fault is found, the border itself and good data are not."""

from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from memory_pipelines.quality.distribution import (
    Limits,
    Summary,
    check_impacts,
    final_impacts,
    histogram,
    stability_index,
    summarise,
)
from memory_pipelines.tables import IMPACTS, SLICES

NOW = datetime(2024, 6, 1, tzinfo=UTC)
GOOD = [i / 100 for i in range(100)]


def names(values: object, reference: list[float] | None = None, **limits: object) -> list[str]:
    known = None if reference is None else histogram(reference)
    return [p.name for p in check_impacts(values, known, Limits(**limits))]  # type: ignore[arg-type]


def test_good_data_has_no_problems() -> None:
    assert check_impacts(GOOD) == []
    assert check_impacts(GOOD, histogram(GOOD)) == []
    assert check_impacts(np.random.default_rng(1).beta(2, 3, 3000)) == []


def test_almost_binary_impacts() -> None:
    binary = [0.0] * 50 + [1.0] * 50
    (problem,) = check_impacts(binary)
    assert (problem.name, problem.value, problem.limit) == ("deviation", 0.5, 0.45)
    assert problem.text == "standard deviation 0.5000 > 0.45: impacts are almost all nothing or everything"
    assert names([0.05] * 50 + [0.95] * 50) == []  # .45 itself is no fault
    assert names([0.04] * 50 + [0.96] * 50) == ["deviation"]


def test_collapse() -> None:
    (problem,) = check_impacts([0.5 - 0.04, 0.5 + 0.04] * 30, limits=Limits(low=(0, 1), medium=(0, 1)))
    assert (problem.name, problem.value, problem.limit) == ("collapse", 0.04, 0.05)
    assert names([0.4, 0.5] * 30, low=(0, 1), medium=(0, 1)) == []
    assert names([0.2] * 60) == ["collapse", "low_share"]


def test_label_shares() -> None:
    rows = [0.1] * 20 + [0.5] * 30 + [0.9] * 50
    assert names(rows) == []
    (problem,) = check_impacts(rows, limits=Limits(high=(0, 0.4)))
    assert (problem.name, problem.value, problem.limit) == ("high_share", 0.5, 0.4)
    assert problem.text == "50.0% of the impacts are high, outside 0% to 40%"
    (problem,) = check_impacts(rows, limits=Limits(medium=(0.35, 1)))
    assert (problem.name, problem.value, problem.limit) == ("medium_share", 0.3, 0.35)
    assert names(rows, low=(0.2, 0.2), medium=(0.3, 0.3), high=(0.5, 0.5)) == []


def test_two_humps_need_the_hump_the_tail_and_the_empty_middle() -> None:
    fault = [0.1] * 40 + [0.3] * 40 + [0.91] * 20
    (problem,) = check_impacts(fault)
    assert (problem.name, problem.value, problem.limit) == ("two_humps", 0.0, 0.02)
    assert problem.text == "80.0% lie in .1 to .3 and 20.0% above .9, but only 0.0% between .4 and .7"
    assert names([*fault, 0.4, 0.7]) == ["two_humps"]  # 2 of 102
    assert names([*fault, 0.4, 0.5, 0.7]) == []
    assert names([0.1] * 40 + [0.3] * 40 + [0.9] * 20) == []  # no tail above .9
    assert names([0.0] * 40 + [0.2] * 40 + [0.95] * 20) == []  # the mass lies elsewhere


def test_the_stability_index_by_hand() -> None:
    # bins 0 and 9 alone are filled: shares (90.5, 10.5) and (50.5, 50.5) of 105, eight bins with .5 / 105 each
    low, even = histogram([0.05] * 90 + [0.95] * 10), histogram([0.05] * 50 + [0.95] * 50)
    by_hand = (90.5 - 50.5) / 105 * np.log(90.5 / 50.5) + (10.5 - 50.5) / 105 * np.log(10.5 / 50.5)
    assert stability_index(low, even) == stability_index(even, low) == round(by_hand, 4) == 0.8206
    assert stability_index(even, even) == 0
    assert stability_index(histogram([0.1, 1.0]), histogram([0.15, 0.95])) == 0  # 1 lies in the last bin


def test_drift_from_the_training_range() -> None:
    low, high = [0.1 + i / 400 for i in range(100)], [0.5 + i / 400 for i in range(100)]
    assert names(low, high) == ["psi"]
    assert names(low, low) == []
    assert names(low, high[:49]) == []  # too few to compare with
    assert names(low, high, psi_most=99.0) == []


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.0001, 1.0001])
def test_what_is_no_impact_is_a_fault_whatever_the_number(bad: float) -> None:
    for values in ([bad], [*GOOD, bad]):
        (problem,) = check_impacts(values)
        assert (problem.name, problem.value, problem.limit) == ("outside", 1, 0)
        assert problem.text == f"1 of {len(values)} impacts are no numbers in [0, 1]"


def test_too_few_are_a_note_and_no_fault() -> None:
    assert check_impacts([]) == check_impacts([0.2] * 49) == []
    assert summarise([]) == Summary(
        0, 0.0, 0.0, {"low": 0.0, "medium": 0.0, "high": 0.0}, "too few to judge: 0 of at least 50"
    )
    assert summarise([0.2] * 49).note == "too few to judge: 49 of at least 50"
    assert names([0.2] * 9, fewest=9) == ["collapse", "low_share"]


def test_the_summary() -> None:
    found = summarise([0.1, 0.3, 0.7, 0.9], Limits(fewest=1))
    assert found == Summary(4, 0.5, 0.3162, {"low": 0.25, "medium": 0.5, "high": 0.25}, "")


def test_the_order_of_values_does_not_matter() -> None:
    values = np.random.default_rng(3).beta(0.4, 0.9, 997).tolist()
    shuffled = Random(1).sample(values, len(values))
    assert check_impacts(values, histogram(shuffled[:500])) == check_impacts(
        shuffled, histogram(sorted(shuffled[:500]))
    )
    assert summarise(values) == summarise(shuffled)


def test_final_impacts_of_90_days() -> None:
    rows = [
        (NOW, True, 0.1),
        (NOW - timedelta(microseconds=1), True, 0.2),
        (NOW - timedelta(days=90), True, 0.3),
        (NOW - timedelta(days=90, microseconds=1), True, 0.4),
        (NOW - timedelta(days=9), False, 0.5),
    ]
    for spec in (IMPACTS, SLICES):
        table = pa.Table.from_pylist(
            [{"occurred_at": at, "impact_final": final, "decision_impact": x} for at, final, x in rows],
            schema=spec.schema,
        )
        assert final_impacts(table, NOW).tolist() == [0.2, 0.3]
        assert final_impacts(spec.schema.empty_table(), NOW).tolist() == []
