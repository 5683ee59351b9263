"""One person forgotten as Dagster runs it: request, approval, run, certificate, and nothing that comes back."""

import json
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from pipeline_world import NOW, cut, derive_all
from quarter_world import SECRET, Life, checks, clock, life_state, said, told, write_rows

from memory_pipelines.erasure.certificate import GONE, UNREACHABLE, verify
from memory_pipelines.erasure.requests import load
from memory_pipelines.errors import PermanentError
from memory_pipelines.landing.sources import log_files
from memory_pipelines.model import Owner
from memory_pipelines.pipeline import audit, files, forget
from memory_pipelines.tables import MEMORIES, TURNS


@pytest.fixture
def person(life: Life) -> Owner:
    """Who has most memories."""
    owners = life.platform.authority.owners()
    return max(owners, key=lambda owner: (len(life.platform.authority.visible(owner)), owner.key))


def forgotten(life: Life, person: Owner) -> str:
    request = forget.request_erasure(life.platform, person, "desk")
    forget.approve_erasure(life.platform, request, "officer")
    life.run("erasure_job")
    return request


def nothing_of(life: Life, person: Owner) -> bool:
    platform = life.platform
    answer = platform.recall.recall("what do you know of me?", tenant=person.tenant, subject=person.subject)
    return not (
        answer.items
        or platform.authority.visible(person)
        or platform.vectors.entry_ids(person)
        or platform.graph.versions(person)
        or platform.lake.read(TURNS, where=[("subject", "=", person.subject)]).num_rows
        or platform.lake.read(MEMORIES, where=[("owner", "=", person.key)]).num_rows
    )


def test_a_request_is_carried_out_after_its_approval_only(life: Life, person: Owner) -> None:
    platform = life.platform
    life.run("reflection_job", "2024-04-01", "2024-07-01")
    life.run("tier_job", "2024-07-08", "2024-09-10")
    before = life_state(platform)
    assert not nothing_of(life, person)
    assert life.tick("approved_erasures") == []
    request = forget.request_erasure(platform, person, "desk")
    assert life.tick("approved_erasures") == [], "not approved"
    assert told(life.run("erasure_job"), "erasure_certificates") == {"erased": 0, "survivors": 0}
    assert life_state(platform) == before
    forget.approve_erasure(platform, request, "officer")
    assert life.tick("approved_erasures") == [{}]
    result = life.run("erasure_job")
    shown = told(result, "erasure_certificates")
    assert (shown["erased"], shown["survivors"]) == (1, 0)
    assert life.tick("approved_erasures") == []
    done = load(platform.engine, request)
    assert done.owner is None, "the name is forgotten"
    assert set(done.certificates) == {UNREACHABLE, GONE}
    assert all(verify(certificate, SECRET.encode()) for certificate in done.certificates.values())
    certificate = done.certificates[GONE]
    assert [row.data["signature"] for row in shown["certificates"].records] == [certificate.signature]
    assert certificate.survivors == 0
    assert certificate.body["places"]["lake.turns"]["before"] > 0
    assert nothing_of(life, person)
    assert person.subject not in json.dumps([dg.serialize_value(e) for e in result.all_events])
    sweep = life.run("sweep_job")
    assert told(sweep, "erasure_sweep") == {"persons": 1, "returned": 0, "survivors": 0, "places": {}}
    assert checks(sweep)["nothing_is_left"].passed


def test_nobody_comes_back_and_all_rows_are_accounted_for(
    life: Life, person: Owner, spring: Path, tmp_path: Path
) -> None:
    platform = life.platform
    rows = audit.accounts(platform).rows
    forgotten(life, person)
    life.derive()
    assert nothing_of(life, person)
    accounts = audit.accounts(platform)
    assert (accounts.rows, accounts.balance) == (rows, 0)
    assert accounts.erased > 0
    before = life_state(platform)

    assert {landed.status for landed in files.land(platform, log_files(spring))} == {"known"}
    assert life_state(platform) == before
    ours = [path for path in log_files(spring) if person.subject.removeprefix("u:") in path.read_text("utf-8")]
    assert ours
    for number, path in enumerate(ours):
        again = tmp_path / path.parent.name / f"{number}-{path.name}"
        again.parent.mkdir(exist_ok=True)
        again.write_bytes(path.read_bytes() + b"\n")  # other bytes, so another file
    assert {landed.status for landed in files.land(platform, log_files(tmp_path))} == {"landed"}
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)
    assert nothing_of(life, person)
    assert audit.accounts(platform).balance == 0
    platform.ledger.touch_everybody()
    life.derive()
    for night in ("2024-07-08", "2024-07-09"):
        life.run("tier_job", night)
    life.run("reflection_job", "2024-07-01")
    assert nothing_of(life, person)
    sweep = life.run("sweep_job")
    assert told(sweep, "erasure_sweep")["returned"] == 0
    assert checks(sweep)["nothing_is_left"].passed


def test_who_speaks_again_is_known_again_by_that_alone(life: Life, person: Owner, tmp_path: Path) -> None:
    platform = life.platform
    forgotten(life, person)
    life.derive()
    clock(platform, NOW + timedelta(days=3))
    sentence = "I am allergic to shrimp, please remember that."
    user = person.subject.removeprefix("u:")
    files.land(platform, [write_rows(tmp_path / "new.jsonl", said(user, NOW + timedelta(days=1), sentence))])
    life.derive()
    visible = platform.authority.visible(person)
    assert visible
    assert {m.occurred_at.year for m in visible} == {2025}
    sweep = life.run("sweep_job")
    assert told(sweep, "erasure_sweep")["returned"] == 1
    assert checks(sweep)["nothing_is_left"].passed


def test_what_is_left_over_fails_the_sweep(life: Life, person: Owner) -> None:
    platform = life.platform
    turns = platform.lake.read(TURNS)
    forgotten(life, person)
    platform.lake.write(TURNS, turns, [])  # a restored backup
    sweep = life.run("sweep_job", check=False)
    check = checks(sweep)["nothing_is_left"]
    assert not check.passed
    assert check.metadata["lake.turns"].value > 0


def test_the_only_person_can_be_forgotten(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    only = Owner("default", "u:only")
    files.land(platform, [write_rows(tmp_path / "one.jsonl", said("only", NOW - timedelta(days=9), "My name is Al."))])
    nobody.derive()
    assert not nothing_of(nobody, only)
    forgotten(nobody, only)
    nobody.derive()
    assert nothing_of(nobody, only)
    assert audit.accounts(platform).balance == 0
    assert platform.vectors.count() == 0
    for job, partition in (("tier_job", "2025-01-01"), ("reflection_job", "2024-12-23"), ("reward_job", "2024-10-01")):
        assert nobody.run(job, partition).success
    with pytest.raises(PermanentError):
        forget.approve_erasure(platform, "unknown", "officer")
