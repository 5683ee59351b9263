"""The daily plan: moves down and back with their reasons, what is deleted, and what never is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from life_world import NOW, ago, memory

from memory_pipelines.errors import SettingError
from memory_pipelines.lifecycle.plan import Deletion, Move, MovePlan, Reason, claim_of, is_marked, plan_moves
from memory_pipelines.model import Owner, Tier
from memory_pipelines.stores.authority import StoredMemory

HOT, WARM, COLD = Tier.HOT, Tier.WARM, Tier.COLD


def plan(
    *memories: StoredMemory,
    accesses: Mapping[str, Sequence[datetime]] | None = None,
    related: Mapping[str, int] | None = None,
    profile: str = "assistant",
    as_of: datetime = NOW,
    horizons: Mapping[str, timedelta] | None = None,
) -> MovePlan:
    return plan_moves(memories, accesses or {}, related or {}, as_of=as_of, profile=profile, horizons=horizons or {})


def moves(found: MovePlan) -> list[tuple[str, str, str, str]]:
    return [(m.memory_id, m.source.value, m.target.value, m.reason.value) for m in found.moves]


def test_nothing_to_do() -> None:
    assert plan() == MovePlan((), (), 0)
    found = plan(memory("a", 1, "hot"), memory("b", 60, "warm"), memory("c", 200, "cold"))
    assert found == MovePlan((), (), 3)
    assert found.summary() == []


def test_down_by_age() -> None:
    found = plan(memory("a", 31, "hot"), memory("b", 91, "warm"), memory("c", 91, "hot"))
    assert moves(found) == [("a", "hot", "warm", "age"), ("b", "warm", "cold", "age"), ("c", "hot", "cold", "age")]
    # .8 · .95^(31/30.4375) as the mean of seven days
    assert found.moves[0] == Move("a", HOT, WARM, 0.7631, Reason.AGE)


def test_the_other_profile_has_other_ages() -> None:
    rows = [memory("a", 8, "hot"), memory("b", 31, "warm")]
    assert plan(*rows[:1]).moves == plan(rows[1]).moves == ()
    assert moves(plan(*rows, profile="commerce")) == [("a", "hot", "warm", "age"), ("b", "warm", "cold", "age")]
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_PROFILE"):
        plan(profile="nobody's")


def test_back_by_access() -> None:
    rows = [memory("a", 500, "cold"), memory("b", 500, "cold"), memory("c", 500, "warm"), memory("d", 500, "cold")]
    accesses = {"a": [ago(400), ago(1)], "b": [ago(60)], "c": [ago(30)], "d": [ago(120)]}
    assert moves(plan(*rows, accesses=accesses)) == [
        ("a", "cold", "hot", "accessed"),
        ("b", "cold", "warm", "accessed"),
        ("c", "warm", "hot", "accessed"),
    ]
    assert plan(rows[0], accesses={"a": [NOW + timedelta(days=1)]}).moves == ()  # not yet, at this instant


def test_a_low_score_goes_to_cold_as_soon_as_it_is_no_longer_hot() -> None:
    weak = [memory("a", 29, "hot", gate=0.2), memory("b", 31, "hot", gate=0.2), memory("c", 40, "warm", gate=0.2)]
    found = plan(*weak)
    assert moves(found) == [("b", "hot", "cold", "low_score"), ("c", "warm", "cold", "low_score")]
    assert moves(plan(*weak, related={"b": 3, "c": 3})) == [("b", "hot", "warm", "age")]  # .35 · decay
    assert plan(memory("a", 31, "warm", gate=0.31)).moves[0].score == 0.2957
    assert plan(memory("a", 31, "warm", gate=0.32)).moves == ()  # .3053


def test_who_never_goes_cold_and_returns_if_it_did() -> None:
    kept = [
        memory("a", 900, "cold", permanence="permanent", gate=0.1),
        memory("b", 900, "cold", kind="semantic", gate=0.1, slices=["s1"]),
        memory("c", 900, "cold", gate=0.1, slices=["s1"]),
        memory("d", 900, "cold", kind="semantic", gate=0.1, valid_to=NOW + timedelta(days=1)),
    ]
    found = plan(*kept)
    assert moves(found) == [(m, "cold", "warm", "protected") for m in "abcd"]
    assert [m.score for m in found.moves] == [0.1, 0.1, 0.0221, 0.1]  # only a cited slice decays
    assert found.deletions == ()


def test_only_a_live_fact_of_the_same_owner_keeps_a_slice() -> None:
    other = Owner("shop", "u:2")
    rows = [
        memory("a", 900, "warm", slices=["s1"]),
        memory("b", 900, "warm", slices=["s2"]),
        memory("c", 900, "warm", kind="semantic", valid_to=NOW, slices=["s1", "s3"]),
        memory("d", 900, "warm", kind="semantic", owner=other, slices=["s2"]),
        memory("e", 900, "warm", kind="semantic", slices=["s3"]),
    ]
    assert moves(plan(*rows)) == [
        ("a", "warm", "cold", "age"),
        ("b", "warm", "cold", "age"),
        ("c", "warm", "cold", "age"),
    ]


def test_changed_rules_bring_back_what_nobody_accessed() -> None:
    assert moves(plan(memory("a", 60, "cold"))) == [("a", "cold", "warm", "rules")]
    assert moves(plan(memory("a", 20, "warm"))) == [("a", "warm", "hot", "rules")]


@pytest.mark.parametrize(
    ("profile", "days", "gate", "deleted"),
    [
        ("assistant", 366, 0.34, True),  # .34 · .95^12.025 = .1836, mean of seven days .1844
        ("assistant", 366, 0.37, False),  # .2007
        ("assistant", 365, 0.1, False),
        ("commerce", 181, 0.39, True),  # .39 · .95^5.947 = .2875, mean .2890
        ("commerce", 181, 0.41, False),  # .3037
        ("commerce", 180, 0.1, False),
    ],
)
def test_deletion_by_the_table(profile: str, days: float, gate: float, deleted: bool) -> None:
    found = plan(memory("a", days, "cold", gate=gate), profile=profile)
    assert len(found.deletions) == deleted
    assert found.moves == ()


def test_deletion_counts_from_last_use_and_from_admission() -> None:
    assert plan(memory("a", 2000, "cold", gate=0.1, admitted=365)).deletions == ()  # an import loses nothing
    assert len(plan(memory("a", 2000, "cold", gate=0.1, admitted=366)).deletions) == 1
    used = memory("a", 2000, "cold", gate=0.01)
    assert plan(used, accesses={"a": [ago(365)]}).deletions == ()
    assert len(plan(used, accesses={"a": [ago(366)]}).deletions) == 1
    # an admission by a clock that runs ahead of the log is no age at all
    assert plan(memory("a", 2000, "cold", gate=0.1, admitted=-400)).deletions == ()


def test_only_what_is_cold_already_is_deleted() -> None:
    found = plan(memory("a", 2000, "warm", gate=0.1))
    assert moves(found) == [("a", "warm", "cold", "age")]
    assert found.deletions == ()


def test_a_deletion_says_what_its_marker_holds() -> None:
    row = memory(
        "a", 2000, "cold", kind="semantic", predicate="home_city", valid_to=ago(1500), turns=["t1", "t2"], gate=0.1
    )
    assert plan(row).deletions == (Deletion("a", row.owner.key, ("t1", "t2"), "semantic:home_city", 0.0035),)
    assert claim_of("episodic", None) == claim_of("episodic", "") == "episodic:"
    assert is_marked(["t9", "t1"], "episodic:", {("t1", "episodic:")})
    assert not is_marked(["t1"], "semantic:likes", {("t1", "episodic:")})
    assert not is_marked([], "episodic:", {("t1", "episodic:")})


def test_expired_memories_are_left_to_publishing() -> None:
    assert plan(memory("a", 2000, "hot", expires_at=NOW)) == MovePlan((), (), 0)
    assert len(plan(memory("a", 2000, "hot", expires_at=NOW + timedelta(days=1))).moves) == 1


def test_a_horizon_replaces_the_warm_age_of_episodes() -> None:
    rows = [memory("a", 100, "warm"), memory("b", 100, "warm", kind="procedural"), memory("c", 20, "hot")]
    key = rows[0].owner.key
    assert moves(plan(*rows)) == [("a", "warm", "cold", "age"), ("b", "warm", "cold", "age")]
    assert moves(plan(*rows, horizons={key: timedelta(days=365)})) == [("b", "warm", "cold", "age")]
    assert moves(plan(memory("a", 31, "warm"), horizons={key: timedelta(days=7)})) == [("a", "warm", "cold", "age")]
    assert plan(rows[2], horizons={key: timedelta(days=7)}).moves == ()  # hot is hot


def test_the_summary_counts_by_move_and_reason() -> None:
    rows = [memory(f"a{i}", 31, "hot") for i in range(3)]
    rows += [memory("b", 31, "hot", gate=0.2), memory("c", 2000, "cold", gate=0.1), memory("d", 1, "hot")]
    found = plan(*rows)
    assert found.unmoved == 1
    assert found.summary() == [
        {"from": "hot", "to": "warm", "reason": "age", "memories": 3},
        {"from": "cold", "to": "deleted", "reason": "age", "memories": 1},
        {"from": "hot", "to": "cold", "reason": "low_score", "memories": 1},
    ]


def test_the_order_of_rows_does_not_matter_and_a_plan_that_was_carried_out_is_empty() -> None:
    random = Random(7)
    rows = [
        memory(f"m{i:03}", random.randint(0, 800), random.choice(["hot", "warm", "cold"]), gate=random.random())
        for i in range(200)
    ]
    found = plan(*rows)
    assert plan(*random.sample(rows, len(rows))) == found
    assert found.moves
    assert found.deletions
    target = {m.memory_id: m.target.value for m in found.moves}
    gone = {d.memory_id for d in found.deletions}
    after = [replace(m, tier=target.get(m.memory_id, m.tier)) for m in rows if m.memory_id not in gone]
    again = plan(*after)
    assert again.moves == ()
    assert all(target[d.memory_id] == "cold" for d in again.deletions)  # they have been cold for a run only now
