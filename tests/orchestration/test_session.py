"""From what an agent notes to what is remembered: at once from the buffer, later from memories, never twice."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pipeline_world import House, cut, derive_all, in_memory
from quarter_world import Life, clock, living, told, write_rows

from memory_pipelines import cli
from memory_pipelines.model import Owner, day_of, day_start, shift_day
from memory_pipelines.pipeline import audit, files, reflection
from memory_pipelines.projection import INSIGHT
from memory_pipelines.recall import Answer
from memory_pipelines.tables import TURNS
from memory_pipelines.wiring import Platform

START = datetime(2024, 5, 13, 9, tzinfo=UTC)
"""A Monday."""
ANN = Owner("default", "u:ann")
PHONE = Owner("default", "d:phone")
COMPLAINT = "My order 88123 with SF Express has not arrived, I want to complain. This is the third time!"
PASSING = "I am waiting for the SF Express courier today."
QUESTION = "Where is my parcel?"


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    with living(in_memory(home=str(tmp_path))) as life:
        yield life


def dialogue(at: datetime, *texts: str) -> list[dict[str, Any]]:
    """Rows as a log has them: the agent answers each sentence."""
    rows = []
    for number, text in enumerate(texts):
        for role, content in (("user", text), ("agent", "We will look into it right away.")):
            when = at + timedelta(seconds=60 * number + (role == "agent") * 20)
            row = {"session_id": f"s-{at:%d}", "role": role, "occurred_at": when.isoformat(), "text": content}
            rows.append(row | {"origin": "web_app"})
    return rows


def note(platform: Platform, at: datetime, *texts: str, owner: Owner = ANN) -> list[dict[str, Any]]:
    rows = dialogue(at, *texts)
    clock(platform, at + timedelta(hours=1))
    platform.session.note(rows, tenant=owner.tenant, subject=owner.subject)
    return rows


def night(platform: Platform, at: datetime) -> None:
    """The jobs after a day, by the library."""
    clock(platform, day_start(shift_day(day_of(at), 1)))
    files.land_journal(platform)
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)


def ask(platform: Platform, query: str, owner: Owner = ANN) -> Answer:
    return platform.recall.recall(query, tenant=owner.tenant, subject=owner.subject)


def test_noted_recalled_landed_remembered(life: Life) -> None:
    platform = life.platform
    rows = note(platform, START, COMPLAINT)
    (now,) = [item for item in ask(platform, "SF Express order").items if item.memory.summary == COMPLAINT]
    assert not now.consolidated
    inbox = platform.settings.inbox_path / "same.jsonl"
    write_rows(inbox, [row | ({"user_id": "ann"} if row["role"] == "user" else {}) for row in rows])
    clock(platform, day_start("2024-05-14"))
    assert told(life.run("land_logs"), "landed_logs")["noted_turns"] == 2
    assert told(life.run("land_logs"), "landed_logs")["noted_turns"] == 0
    landed = {item.memory.memory_id: item.consolidated for item in ask(platform, "SF Express order").items}
    assert landed[now.memory.memory_id] is False, "landed, and in no memory yet"
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)
    answer = ask(platform, "SF Express order")
    assert answer.items
    assert all(item.consolidated for item in answer.items), "the memory has taken the turn's place"
    assert now.memory.source_turn_ids[0] in answer.items[0].memory.source_turn_ids
    accounts = audit.accounts(platform)
    assert (accounts.balance, accounts.duplicates, accounts.in_exchanges) == (0, 2, 2)
    assert platform.lake.read(TURNS)["origin"].to_pylist() == ["web_app"] * 4
    assert not files.journal_waits(platform)


def test_what_the_gate_does_not_keep_is_recallable_no_more(life: Life) -> None:
    note(life.platform, START, "Thanks, have a nice day!")
    assert ask(life.platform, "have a nice day").items
    night(life.platform, START)
    assert ask(life.platform, "have a nice day").items == ()


def test_a_login_moments_later_knows_what_was_said_on_the_device(life: Life) -> None:
    note(life.platform, START, COMPLAINT, owner=PHONE)
    life.platform.session.identify(PHONE.subject, ANN.subject, tenant="default")
    assert COMPLAINT in {item.memory.summary for item in ask(life.platform, "SF Express order").items}
    night(life.platform, START)
    joined = ask(life.platform, "SF Express order").items
    assert {(item.memory.owner, item.consolidated) for item in joined} == {(PHONE, True)}


def test_an_erasure_reaches_journal_and_buffer(life: Life) -> None:
    from memory_pipelines.pipeline import forget

    platform = life.platform
    note(platform, START, COMPLAINT)
    note(platform, START, PASSING, owner=Owner("default", "u:bob"))
    assert ask(platform, "SF Express").items
    plan = forget.plan_erasure(platform, ANN)
    assert plan.counts["postgres.journal"] == 2
    assert plan.counts["hot"] > 0
    request = forget.request_erasure(platform, ANN, "desk")
    forget.approve_erasure(platform, request, "officer")
    life.run("erasure_job")
    assert ask(platform, "SF Express").items == ()
    assert platform.hot.held(ANN) == 0
    note_again = platform.session.note(dialogue(START, COMPLAINT), tenant=ANN.tenant, subject=ANN.subject)
    assert note_again.new == 0
    assert ask(platform, "SF Express", Owner("default", "u:bob")).items


# ---- short-term memory, from the outside


def terms(answer: Answer) -> set[tuple[str, bool]]:
    return {(item.memory.term, item.consolidated) for item in answer.items}


def test_short_term_memory_goes_from_the_buffer_to_a_memory_that_expires(life: Life) -> None:
    platform, question = life.platform, "SF Express courier"
    note(platform, START, PASSING)
    seen = [terms(ask(platform, question))]
    night(platform, START)
    (memory,) = ask(platform, question).items
    assert memory.memory.expires_at == START + timedelta(seconds=20) + timedelta(days=9)
    for day in (1, 8, 9):
        note(platform, START + timedelta(days=day), "I live in Leeds.", owner=Owner("default", "u:bob"))
        night(platform, START + timedelta(days=day))
        seen.append(terms(ask(platform, question)))
    assert seen == [{("short", False)}, {("short", True)}, {("short", True)}, set()]


def test_the_third_mention_within_a_week_is_kept_for_good(life: Life) -> None:
    platform = life.platform
    for day in (0, 3, 6):
        note(platform, START + timedelta(days=day), PASSING)
        night(platform, START + timedelta(days=day))
    (lasting,) = [item.memory for item in ask(platform, "SF Express courier").items if item.memory.term == "long"]
    assert (len(lasting.slice_ids), lasting.expires_at) == (3, None)


def test_the_weekly_aggregation_keeps_what_was_asked_again_and_again(life: Life) -> None:
    platform = life.platform
    for day in (0, 2, 4):
        note(platform, START + timedelta(days=day), QUESTION)
        night(platform, START + timedelta(days=day))
    note(platform, START + timedelta(days=7), "I live in Leeds.", owner=Owner("default", "u:bob"))
    night(platform, START + timedelta(days=7))
    reflection.reflect_week(platform, START.date())
    note(platform, START + timedelta(days=19), "I live in Leeds.", owner=Owner("default", "u:bob"))
    night(platform, START + timedelta(days=19))
    insights = platform.authority.visible(ANN)
    assert insights
    assert all(memory.predicate.startswith(INSIGHT) for memory in insights), "the questions themselves are gone"
    recalled = {item.memory.memory_id for insight in insights for item in ask(platform, insight.summary).items}
    assert recalled == {insight.memory_id for insight in insights}


# ---- by the command line, on servers


@pytest.mark.embedded
def test_the_commands_note_recall_and_forget_a_denied_turn(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    from redis import Redis

    def run(*arguments: str) -> str:
        assert cli.main(arguments) == 0
        return capsys.readouterr().out

    house.reset()
    who = ("--subject", "u:ann")
    assert "1 turns noted, 1 of them new" in run("note", *who, "--session", "s1", "--origin", "web_app", COMPLAINT)
    assert COMPLAINT in run("recall", *who, "SF Express order")
    with house.platform() as platform, Redis.from_url(platform.settings.redis_url) as redis:
        redis.flushall()
    assert COMPLAINT in run("recall", *who, "SF Express order"), "the journal has it"
    run("note", "--subject", "d:phone", PASSING)
    run("identify", "--device", "d:phone", "--user", "u:ann")
    assert PASSING in run("recall", *who, "SF Express courier")
    answer = json.loads(run("recall", *who, "--format", "json", "SF Express order"))
    ids = [item["memory"]["memory_id"] for item in answer["items"] if item["memory"]["summary"] == COMPLAINT]
    run("feedback", *who, "--kind", "negated", *ids)
    assert COMPLAINT not in run("recall", *who, "SF Express order")
    assert cli.main(["feedback", "--subject", "u:bob", "--kind", "negated", *ids]) == 1
    assert "none of this person's" in capsys.readouterr().err
