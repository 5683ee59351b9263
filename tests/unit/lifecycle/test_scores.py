"""The score by hand, its bonuses and bounds; which uses count; relations."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.lifecycle.scores import (
    MONTH,
    Denials,
    access_times,
    denials,
    presented_times,
    related_nodes,
    score,
    use_of,
)
from memory_pipelines.stores.authority import Use
from memory_pipelines.tables import EDGES

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def test_a_new_memory_has_what_the_gate_gave_it() -> None:
    assert score(0.62, (), 0, admitted_at=NOW, as_of=NOW) == 0.62


def test_it_loses_five_percent_a_month_as_the_mean_of_seven_days() -> None:
    # .8 · .95^(10 − k/30.4375), k = 0 … 6: .4790 .4798 .4806 .4814 .4822 .4830 .4838
    assert score(0.8, (), 0, admitted_at=NOW - 10 * MONTH, as_of=NOW) == 0.4814
    assert score(0.8, (), 0, admitted_at=NOW - 10 * MONTH, as_of=NOW, decays=False) == 0.8


def test_an_access_counts_from_the_day_on_which_it_happened() -> None:
    # it is known on 3 of the 7 days: (3 · .6 + 4 · .5) / 7
    assert score(0.5, [ago(2)], 0, admitted_at=NOW, as_of=NOW, decays=False) == 0.5429
    assert score(0.5, [NOW + timedelta(seconds=1)], 0, admitted_at=NOW, as_of=NOW) == 0.5


def test_months_count_from_the_last_access_and_only_else_from_the_admission() -> None:
    accesses = [ago(300), NOW - MONTH]
    # n = 2 on all days; .7 · .95^(1 − k/30.4375): .6650 .6661 .6672 .6684 .6695 .6706 .6718
    assert score(0.5, accesses, 0, admitted_at=ago(900), as_of=NOW) == 0.6684


@pytest.mark.parametrize(
    ("accesses", "related", "expected"),
    [(1, 0, 0.3), (3, 0, 0.5), (9, 0, 0.5), (0, 1, 0.25), (0, 6, 0.5), (0, 40, 0.5), (2, 3, 0.55), (9, 9, 0.8)],
)
def test_bonuses_and_where_they_end(accesses: int, related: int, expected: float) -> None:
    times = [ago(10 + i) for i in range(accesses)]
    assert score(0.2, times, related, admitted_at=NOW, as_of=NOW, decays=False) == expected


def test_a_score_never_passes_1() -> None:
    assert score(0.9, [ago(10 + i) for i in range(3)], 9, admitted_at=NOW, as_of=NOW, decays=False) == 1.0


def test_one_instant_is_one_access() -> None:
    assert score(0.2, [ago(9), ago(9)], 0, admitted_at=NOW, as_of=NOW, decays=False) == 0.3


def test_an_admission_that_is_still_to_come_does_not_raise_the_score() -> None:
    assert score(0.5, (), 0, admitted_at=NOW + timedelta(days=400), as_of=NOW) == 0.5


@given(
    st.floats(0, 1),
    st.lists(st.integers(-10, 900), max_size=6),
    st.integers(0, 50),
    st.integers(-10, 900),
    st.integers(0, 60),
)
def test_bounds_order_and_decay(gate: float, days: list[int], related: int, admitted: int, later: int) -> None:
    times = [ago(d) for d in days]
    now = score(gate, times, related, admitted_at=ago(admitted), as_of=NOW)
    assert 0 <= now <= 1
    assert now == score(gate, times[::-1], related, admitted_at=ago(admitted), as_of=NOW)
    known = [t for t in times if t <= ago(7)]
    first = score(gate, known, related, admitted_at=ago(admitted), as_of=NOW)
    assert score(gate, known, related, admitted_at=ago(admitted), as_of=NOW + timedelta(days=later)) <= first


def test_a_memory_inherits_the_uses_of_its_turns() -> None:
    uses = {
        "t1": [(ago(3), "presented"), (ago(2), "activated")],
        "t2": [(ago(3), "presented"), (ago(1), "echo"), (ago(0), "negated")],
        "t9": [(ago(8), "presented")],
    }
    assert access_times(["t2", "t1", "unused"], uses) == (ago(3), ago(1))
    assert access_times([], uses) == access_times(["t1"], {}) == ()


def test_related_nodes_are_distinct_others() -> None:
    pairs = [("a", "b"), ("b", "a"), ("a", "entity:x"), ("c", "c")]
    rows = [{"source": s, "target": t, "kind": str(i)} for i, (s, t) in enumerate(pairs)]
    assert related_nodes(pa.Table.from_pylist(rows, schema=EDGES.schema)) == {"a": 2, "b": 1, "entity:x": 1}
    assert related_nodes(EDGES.schema.empty_table()) == {}


@pytest.mark.parametrize(
    ("presented", "denied", "rate"),
    [
        ((9, 8), (8,), 0.0),
        ((9, 8, 7), (7,), 1 / 3),
        ((9, 8, 7), (6, 6), 1 / 3),
        ((9, 8, 7), (8.5, 7.5, 6.5), 1.0),
        ((9, 8), (10,), 1 / 3),
        ((), (9, 8, 7), 1.0),
        (tuple(range(20, 0, -1)), (15, 14), 0.0),
        (tuple(range(20, 0, -1)), (10, 9, 0), 0.3),
        ((9, 8, 7), (-1,), 0.0),
    ],
)
def test_the_share_of_the_last_ten_uses_that_were_denied(
    presented: tuple[float, ...], denied: tuple[float, ...], rate: float
) -> None:
    found = Denials(tuple(map(ago, presented)), tuple(map(ago, denied)))
    assert found.rate(NOW) == pytest.approx(rate)


def test_denials_are_inherited_by_turn() -> None:
    uses = {
        "t1": [(ago(3), "presented"), (ago(2), "negated")],
        "t2": [(ago(3), "presented"), (ago(1), "corrected"), (ago(1), "echo")],
        "t3": [(ago(3), "presented")],
    }
    assert denials(["t1", "t2"], uses) == Denials((ago(3),), (ago(2), ago(1)))
    assert denials(["t3", "t9"], uses) is None


@pytest.mark.parametrize(
    ("days_ago", "windows"),
    [
        ([], 0),
        ([5, 4, 3, 2], 0),
        ([5, 4, 3, 2, 1], 1),
        ([8.1, 4, 3, 2, 1], 0),
        ([7.9, 4, 3, 2, 1], 1),
        ([30, 6, 5, 4, 3, 2], 1),
        ([6, 6, 6, 6, 6, 5, 5, 5, 5, 5], 1),
        ([20, 19, 18, 17, 16, 5, 4, 3, 2, 1], 2),
        ([20, 19, 18, 17, 16, 15, 14, 5, 4, 3, 2], 1),
        ([40, 39, 38, 37, 36, 20, 19, 18, 17, 16, 5, 4, 3, 2, 1], 2),
    ],
)
def test_windows_of_seven_days_with_five_presentations_do_not_overlap(days_ago: list[float], windows: int) -> None:
    shown = tuple(ago(days + 1e-6 * i) for i, days in enumerate(days_ago))
    assert use_of((), sorted(shown), NOW).activations == windows


def test_a_use_is_as_of_an_instant() -> None:
    shown = tuple(ago(days) for days in (12, 11, 10, 9, 8, 2))
    assert use_of(shown, shown, NOW) == Use(ago(2), 1)
    assert use_of(shown, shown, ago(8)) == Use(ago(8), 1)
    assert use_of(shown, shown, ago(9)) == Use(ago(9), 0)
    assert use_of(shown, shown, ago(13)) == use_of((), (), NOW) == Use()


def test_an_echo_is_an_access_and_no_presentation() -> None:
    uses = {"t1": [(ago(1), "echo"), (ago(2), "presented")], "t2": [(ago(2), "presented"), (ago(3), "activated")]}
    assert presented_times(["t1", "t2"], uses) == (ago(2),)
    assert access_times(["t1", "t2"], uses) == (ago(2), ago(1))
