"""Tiers by age: the table of ages, its borders, who is exempt."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.errors import SettingError
from memory_pipelines.lifecycle.tiers import PROFILES, Life, next_move, profile, tier_of
from memory_pipelines.model import Tier

NOW = datetime(2024, 6, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def life(
    age: timedelta,
    *,
    kind: str = "episodic",
    permanence: str = "long",
    current: bool = False,
    cited: bool = False,
    access: timedelta | None = None,
) -> Life:
    """A memory that was admitted today with the best score, so that its age alone decides."""
    return Life(
        memory_type=kind,
        permanence=permanence,
        current=current,
        cited=cited,
        gate_score=1.0,
        related=0,
        occurred_at=NOW - age,
        admitted_at=NOW,
        accesses=[] if access is None else [NOW - access],
    )


def tier(days: float, *, access: float | None = None, name: str = "assistant", ticks: int = 0, **fields: Any) -> str:
    accessed = None if access is None else timedelta(days=access)
    return tier_of(life(timedelta(days=days) + ticks * TICK, access=accessed, **fields), NOW, profile(name)).value


@pytest.mark.parametrize(("name", "warm", "cold"), [("assistant", 30, 90), ("commerce", 7, 30)])
def test_borders(name: str, warm: int, cold: int) -> None:
    assert [tier(0, name=name), tier(warm, name=name)] == ["hot", "hot"]
    assert [tier(warm, name=name, ticks=1), tier(cold, name=name)] == ["warm", "warm"]
    assert [tier(cold, name=name, ticks=1), tier(3000, name=name)] == ["cold", "cold"]


def test_unaccessed_counts_from_the_last_access() -> None:
    assert [tier(3000, access=days) for days in (1, 31, 91)] == ["hot", "warm", "cold"]


def test_who_never_goes_cold() -> None:
    assert tier(3000, permanence="permanent") == "warm"
    assert tier(3000, kind="semantic", current=True) == "warm"
    assert tier(3000, cited=True) == "warm"
    assert tier(3000, kind="semantic") == "cold"
    assert tier(3000, kind="procedural") == "cold"
    assert tier(3000, permanence="task") == tier(3000, permanence="short") == "cold"


def test_an_import_of_old_logs_lands_where_its_age_says() -> None:
    assert [tier(days) for days in (10, 60, 1000)] == ["hot", "warm", "cold"]


def test_an_unknown_profile_names_the_setting() -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_PROFILE must be one of assistant, commerce"):
        profile("archive")


@given(st.sampled_from(sorted(PROFILES)), st.integers(0, 400), st.none() | st.integers(0, 400), st.integers(0, 400))
def test_a_memory_stays_until_its_next_move_and_moves_then(
    name: str, age: int, access: int | None, as_of_age: int
) -> None:
    ages, memory = profile(name), life(timedelta(days=age), access=None if access is None else timedelta(days=access))
    as_of = NOW + timedelta(days=as_of_age)
    move = next_move(memory.occurred_at, memory.last_access(as_of), as_of, ages)
    if move is None:
        assert tier_of(memory, as_of, ages) == tier_of(memory, as_of + timedelta(days=9999), ages) == Tier.COLD
    else:
        assert tier_of(memory, as_of, ages) == tier_of(memory, move - TICK, ages) != tier_of(memory, move, ages)
