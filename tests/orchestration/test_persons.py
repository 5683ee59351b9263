"""Behaviour counts for all subjects of a person: whatever the order of logs, logins and their undoing, equal rows."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pipeline_world import cut, derive_all, in_memory, state

from memory_pipelines.model import Owner
from memory_pipelines.pipeline import files, forget, reward
from memory_pipelines.pipeline.derive import (
    admit_buckets,
    link_buckets,
    merge_buckets,
    publish_buckets,
    score_buckets,
)
from memory_pipelines.pipeline.impacts import explain_impacts
from memory_pipelines.pipeline.owned import placed, rows_of
from memory_pipelines.pipeline.persons import behaviour_of
from memory_pipelines.reward.labels import event_features
from memory_pipelines.tables import BEHAVIOUR, IMPACTS, REWARD_EVENTS, SLICES
from memory_pipelines.wiring import Platform

START = datetime(2024, 5, 1, 9, tzinfo=UTC)
DAY = timedelta(days=1)
ANN, BOB, PHONE, LAPTOP = (Owner("default", subject) for subject in ("u:ann", "u:bob", "d:phone", "d:laptop"))
COMPLAINT = "My order 88123 with SF Express has not arrived, I want to complain. This is the third time!"
SECRET = "of the tests"

Step = Callable[[Platform], object]


def said(owner: Owner, day: float, text: str = COMPLAINT) -> dict[str, Any]:
    at = START + day * DAY
    return {"conversation_id": f"c-{owner.subject}", "role": "user", "text": text, **_named(owner, at)}


def did(owner: Owner, day: float, kind: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, **_named(owner, START + day * DAY), **more}


def _named(owner: Owner, at: datetime) -> dict[str, Any]:
    name = {"u": "user_id", "d": "device_id"}[owner.subject[0]]
    return {name: owner.subject[2:], "occurred_at": at.isoformat()}


LOGS: dict[str, list[dict[str, Any]]] = {
    "phone": [said(PHONE, 20)],
    "laptop": [said(LAPTOP, 24, "The parcel is damaged, what a disappointment, I want my money back.")],
    "ann": [said(ANN, 21), said(ANN, 22, "I am allergic to peanuts, please remember that.")],
    "bob": [said(BOB, 23), said(BOB, 60, "Thanks, it has arrived.")],
    "orders of ann": [did(ANN, day, "order", value=20 + day) for day in range(0, 20, 3)],
    "refund of ann": [did(ANN, 21.6, "refund", event_id="r-1", value=20), did(ANN, 25, "cancel")],
    "orders on the phone": [did(PHONE, day, "order", value=5) for day in (12.2, 22.5)],
    "orders of bob": [did(BOB, day, "order", value=9) for day in range(2, 50, 9)],
}
"""What lands, file by file."""


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, rows in LOGS.items():
        found[name] = tmp_path / f"{name}.jsonl"
        found[name].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return found


def link(device: Owner, user: Owner, day: float = 0) -> Step:
    return lambda platform: platform.links.link(device, user, START + day * DAY)


def unlink(device: Owner, user: Owner) -> Step:
    return lambda platform: platform.links.unlink(device, user, START + 99 * DAY)


def land(path: Path) -> Step:
    return lambda platform: files.land(platform, [path])


def derive(platform: Platform) -> None:
    if days := list(platform.ledger.touched_days()):
        cut(platform, days)
    derive_all(platform)


def lived(*steps: Step) -> Platform:
    """A platform on which the steps were done, and all was derived at the end only."""
    platform = in_memory(certificate_secret=SECRET)
    for step in steps:
        step(platform)
    derive(platform)
    return platform


def impacts(platform: Platform, owner: Owner) -> list[tuple[float, str]]:
    """Decision impact and feedback of what the owner said, in order of time."""
    rows = platform.lake.read(IMPACTS, where=[("owner", "=", owner.key)]).to_pylist()
    return [(r["decision_impact"], r["feedback"]) for r in sorted(rows, key=lambda r: r["occurred_at"])]


def test_what_a_device_said_sees_what_its_user_did_and_the_reverse(logs: dict[str, Path]) -> None:
    apart = lived(*map(land, logs.values()))
    joint = lived(*map(land, logs.values()), link(PHONE, ANN), link(LAPTOP, ANN))
    assert [feedback for _, feedback in impacts(apart, PHONE)] == ["bought_again"]
    assert [feedback for _, feedback in impacts(joint, PHONE)] == ["refunded"]
    assert [feedback for _, feedback in impacts(apart, LAPTOP)] == ["none"]
    assert [feedback for _, feedback in impacts(joint, LAPTOP)] == ["canceled_order"]
    (slice_,) = joint.lake.read(SLICES, where=[("owner", "=", LAPTOP.key)]).to_pylist()
    assert slice_["feedback"] == "canceled_order"
    assert impacts(joint, ANN) != impacts(apart, ANN), "the order on the phone is hers"
    assert impacts(joint, BOB) == impacts(apart, BOB)
    assert joint.lake.read(BEHAVIOUR).num_rows == apart.lake.read(BEHAVIOUR).num_rows
    (row,) = joint.lake.read(IMPACTS, where=[("owner", "=", PHONE.key)]).to_pylist()
    (told,) = explain_impacts(joint, row["exchange_id"])
    assert "what followed: refunded" in "\n".join(told.lines)


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_logs_and_logins_does_not_matter(logs: dict[str, Path], seed: int) -> None:
    rng = random.Random(seed)
    clean = state(lived(*map(land, logs.values()), link(PHONE, ANN), link(LAPTOP, ANN)))
    steps = [*map(land, logs.values()), link(PHONE, ANN), link(LAPTOP, ANN)]
    rng.shuffle(steps)
    wrong = [link(LAPTOP, BOB), unlink(LAPTOP, BOB)]
    at = sorted(rng.choices(range(len(steps) + 1), k=2))
    for place, step in zip(reversed(at), reversed(wrong), strict=True):
        steps.insert(place, step)
    platform = in_memory(certificate_secret=SECRET)
    for step in steps:
        step(platform)
        if rng.random() < 0.5:
            derive(platform)
    derive(platform)
    assert state(platform) == clean


@pytest.mark.parametrize("seed", range(4))
def test_a_login_that_was_undone_or_shared_was_never_there(logs: dict[str, Path], seed: int) -> None:
    rng = random.Random(seed)
    clean = state(lived(*map(land, logs.values())))
    ends: list[list[Step]] = [
        [link(PHONE, ANN), unlink(PHONE, ANN)],
        [link(PHONE, ANN), link(PHONE, BOB)],
        [link(PHONE, ANN), unlink(PHONE, ANN), link(PHONE, BOB, 99.5), link(PHONE, ANN, 99.5)],
    ]
    for end in ends:
        platform = in_memory(certificate_secret=SECRET)
        landed = [land(path) for path in logs.values()]
        rng.shuffle(landed)
        for step in (*landed[:5], end[0], derive, *landed[5:], derive, *end[1:]):
            step(platform)
            if rng.random() < 0.3:
                derive(platform)
        derive(platform)
        assert state(platform) == clean


def test_who_logs_in_while_a_derivation_runs_is_derived_again(logs: dict[str, Path]) -> None:
    """Its steps read the links each for itself: Ann and the phone were one person for a while."""
    clean = state(lived(*map(land, logs.values()), link(PHONE, ANN), link(PHONE, BOB)))
    platform = in_memory(certificate_secret=SECRET)
    for path in logs.values():
        files.land(platform, [path])
    cut(platform, list(platform.ledger.touched_days()))
    buckets = platform.ledger.touched_buckets()
    steps = (score_buckets, merge_buckets, admit_buckets, link_buckets, publish_buckets)
    score_buckets(platform, buckets)
    platform.links.link(PHONE, ANN, START)
    for step in steps[:2]:
        step(platform, buckets)
    platform.links.link(PHONE, BOB, START)
    for step in steps[1:]:
        step(platform, buckets)
    derive_all(platform)
    assert state(platform) == clean


def test_what_the_user_will_do_is_due_for_the_device(logs: dict[str, Path]) -> None:
    """Behaviour may land before the turns of its day: then time alone makes it known."""
    platform = in_memory(certificate_secret=SECRET)
    for step in (land(logs["phone"]), land(logs["orders of ann"]), land(logs["refund of ann"]), link(PHONE, ANN)):
        step(platform)
    derive(platform)
    assert [feedback for _, feedback in impacts(platform, PHONE)] == ["none"]
    land(logs["ann"])(platform)
    derive(platform)
    assert [feedback for _, feedback in impacts(platform, PHONE)] == ["refunded"], "time has come, nothing touched it"
    for name in ("bob", "laptop", "orders on the phone", "orders of bob"):
        land(logs[name])(platform)
    derive(platform)
    expected = lived(*map(land, logs.values()), link(PHONE, ANN))
    assert impacts(platform, PHONE) == impacts(expected, PHONE)
    assert state(platform) == state(expected)


def test_one_event_told_by_device_and_user_counts_once(logs: dict[str, Path], tmp_path: Path) -> None:
    twice = [did(PHONE, 21.6, "refund", event_id="r-1", value=20), did(PHONE, 25, "cancel")]
    again = tmp_path / "again.jsonl"
    again.write_text("".join(json.dumps(row) + "\n" for row in twice), encoding="utf-8")
    links = (link(PHONE, ANN), link(LAPTOP, ANN))
    once = lived(*map(land, logs.values()), *links)
    told = lived(*map(land, [*logs.values(), again]), *links)
    as_of = START + 61 * DAY
    for owner in (ANN, PHONE, LAPTOP):
        assert impacts(told, owner) == impacts(once, owner)
        assert _features(told, owner, as_of) == _features(once, owner, as_of)


def _features(platform: Platform, owner: Owner, as_of: datetime) -> list[Any]:
    """As step 5 has them for the reward model."""
    manifest = platform.ledger.manifest()
    assert manifest is not None
    where = rows_of(placed([owner.key], platform.settings.buckets))
    events = reward.labelled_events(platform, manifest.versions, manifest.model_set, as_of, where)
    return [str(row) for row in event_features(events, behaviour_of(platform, [owner.key], where), as_of)[1].tolist()]


def test_training_sees_what_scoring_sees(logs: dict[str, Path]) -> None:
    platform = lived(*map(land, logs.values()), link(PHONE, ANN), link(LAPTOP, ANN))
    as_of = START + 61 * DAY
    rows = reward.collect_reward_events(platform, as_of).to_pylist()
    assert {row["owner"] for row in rows} == {owner.key for owner in (ANN, BOB, PHONE, LAPTOP)}
    for owner in (ANN, BOB, PHONE, LAPTOP):
        collected = [str(row["features"]) for row in rows if row["owner"] == owner.key]
        assert collected == _features(platform, owner, as_of)


@pytest.mark.parametrize("gone", [ANN, PHONE])
def test_an_erasure_takes_the_behaviour_out_of_linked_subjects(logs: dict[str, Path], gone: Owner) -> None:
    platform = lived(*map(land, logs.values()), link(PHONE, ANN), link(LAPTOP, ANN))
    reward.collect_reward_events(platform, START + 61 * DAY)
    without = [path for name, path in logs.items() if gone.subject[2:] not in name]
    left = [link(LAPTOP, ANN)] if gone == PHONE else []
    expected = lived(*map(land, without), *left)
    others = [owner for owner in (ANN, PHONE, LAPTOP) if owner != gone]
    assert forget.plan_erasure(platform, gone).touched_owners == tuple(sorted(owner.key for owner in others))
    request = forget.request_erasure(platform, gone, "desk")
    forget.approve_erasure(platform, request, "officer")
    (erased,) = forget.erase_waiting(platform)
    assert erased.survivors == 0
    kept = set(platform.lake.read(REWARD_EVENTS)["owner"].to_pylist())
    assert kept == {BOB.key}, "the rows of the others count what the person did"
    derive(platform)
    for owner in (*others, BOB):
        assert impacts(platform, owner) == impacts(expected, owner)
    assert forget.sweep_erased(platform).survivors == {}
