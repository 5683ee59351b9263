"""What is denied is gone at once, everywhere, for thirty days: wrong memories are injected, and leaks are counted."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pipeline_world import cut, derive_all, in_memory
from quarter_world import clock, copied, said, write_rows

from memory_pipelines.errors import InputError, StoreUnavailableError
from memory_pipelines.model import Owner, day_of, day_start
from memory_pipelines.pipeline import files
from memory_pipelines.pipeline.life import move_tiers
from memory_pipelines.recall import Answer
from memory_pipelines.recall.feedback import SUPPRESSED
from memory_pipelines.stores.authority import AccessKind, StoredMemory
from memory_pipelines.wiring import Platform

START = datetime(2024, 5, 13, 9, tzinfo=UTC)
NOW = datetime(2024, 5, 20, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TRUE_EN, TRUE_ZH = "I prefer window seats when flying.", "我喜欢靠窗的座位，请记住。"
CASES = {
    "u:ann": (TRUE_EN, "My order 88123 with SF Express has not arrived, I want to complain. This is the third time!"),
    "u:bea": (TRUE_EN, "My name is Alice Harper."),
    "u:cai": (TRUE_ZH, "我的订单 20240301888 顺丰一直没送到，我要投诉物流，这是第三次了！"),
    "u:dan": (TRUE_EN, "I am allergic to peanuts, please remember that."),
    "u:eva": (TRUE_ZH, "我对花生过敏，请记住。"),
}
"""Subject → what they said, and what somebody else said under their name."""
WRONG = {
    "u:ann": ("SF Express complaint", "Did my order arrive?", "what did I complain about?"),
    "u:bea": ("What is my name?", "Alice Harper"),
    "u:cai": ("我投诉过什么物流问题？", "顺丰的订单", "Where is my order?"),
    "u:dan": ("What am I allergic to?", "peanuts"),
    "u:eva": ("我对什么过敏？", "花生"),
}
"""Questions that the wrong memory answers."""
DENIALS = {
    "u:ann": "I never complained about SF Express.",
    "u:bea": "My name is not Alice Harper.",
    "u:cai": "我没投诉过物流",
    "u:dan": "I'm not allergic to peanuts.",
    "u:eva": "我对花生不过敏",
}
SEATS = {"en": "Which seats do I prefer?", "zh": "我喜欢什么座位？"}


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    """Persons with a true memory and a wrong one each."""
    platform, folder = in_memory(), tmp_path_factory.mktemp("logs")
    for number, (subject, (true, wrong)) in enumerate(CASES.items()):
        name = subject[2:]
        write_rows(folder / f"{name}.jsonl", said(name, START + number * MINUTE, true))
        write_rows(folder / f"{name}-wrong.jsonl", said(name, START + timedelta(days=1, minutes=number), wrong))
    clock(platform, day_start("2024-05-15"))
    files.land(platform, sorted(folder.iterdir()))
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)
    return platform


@pytest.fixture
def platform(derived: Platform) -> Iterator[Platform]:
    """The same before anybody has told anything."""
    fresh = copied(derived)
    clock(fresh, NOW)
    yield fresh
    fresh.engine.dispose()


def ask(platform: Platform, subject: str, query: str) -> Answer:
    answer = platform.recall.recall(query, tenant="default", subject=subject)
    platform.feedback.used(answer)
    return answer


def wrong_ids(platform: Platform, subject: str) -> set[str]:
    """Memories with a turn of the injected day: a leak, wherever one is told."""
    shown = platform.authority.visible(Owner("default", subject))
    return {m.memory_id for m in shown if any("-20240514-" in turn for turn in m.source_turn_ids)}


def leaks(platform: Platform, subjects: dict[str, tuple[str, ...]] = WRONG) -> tuple[int, int]:
    """(answers with a wrong memory, answers) over all questions and the session's start."""
    answers = [(s, ask(platform, s, query)) for s, queries in subjects.items() for query in (*queries, "")]
    return sum(bool({i.memory.memory_id for i in a.items} & wrong_ids(platform, s)) for s, a in answers), len(answers)


def say(platform: Platform, subject: str, text: str, at: datetime) -> tuple[str, ...]:
    row = {"role": "user", "text": text, "occurred_at": at.isoformat(), "session_id": "now"}
    return platform.session.note([row], tenant="default", subject=subject).denied


def truths(platform: Platform) -> int:
    """Persons whose true memory is told when it is asked for."""
    found = 0
    for subject, (true, _) in CASES.items():
        items = ask(platform, subject, SEATS["zh" if true == TRUE_ZH else "en"]).items
        found += any("-20240513-" in turn for item in items for turn in item.memory.source_turn_ids)
    return found


def test_wrong_memories_leak_until_the_next_turn_denies_them(platform: Platform) -> None:
    """The rate before and after, by rules alone: the agent tells nothing."""
    true_before = truths(platform)
    leaked, asked = leaks(platform)
    assert asked == sum(len(queries) + 1 for queries in WRONG.values())
    assert leaked / asked > 0.6, "else the test shows nothing"
    clock(platform, NOW + MINUTE)
    for subject in CASES:
        ask(platform, subject, WRONG[subject][0])
        denied = say(platform, subject, DENIALS[subject], NOW + MINUTE)
        assert set(denied) & wrong_ids(platform, subject), f"{subject}: {DENIALS[subject]}"
    assert leaks(platform)[0] == 0
    assert truths(platform) == true_before == len(CASES), "nothing true was hidden"


def test_a_suppression_ends_after_thirty_days(platform: Platform, derived: Platform) -> None:
    never_denied = copied(derived)
    deny(platform)
    for days in (0, 29, 30):
        for one in (platform, never_denied):
            clock(one, NOW + timedelta(days=days))
        left = leaks(never_denied)[0]
        assert left > 0
        assert leaks(platform)[0] == (0 if days < 30 else left), days
    assert timedelta(days=30) == SUPPRESSED


def deny(platform: Platform) -> None:
    """The agent tells of every wrong memory that was denied."""
    for subject in CASES:
        platform.feedback.tell(
            AccessKind.NEGATED, sorted(wrong_ids(platform, subject)), tenant="default", subject=subject
        )


def test_a_doubt_hides_nothing(platform: Platform) -> None:
    before = leaks(platform)
    for subject in CASES:
        for text in ("我不记得了", "I don't remember.", "我没投诉过物流吗？"):
            assert say(platform, subject, text, NOW) == ()
    after = leaks(platform)
    assert after == before


def test_what_is_denied_is_gone_for_whoever_reads(platform: Platform) -> None:
    """Another process with everything in its memory, a linked device's user, the graph, the copies in the hot store."""
    elsewhere = platform.recall
    platform.session.identify("d:phone", "u:zoe", tenant="default")
    for subject in CASES:
        elsewhere.recall(WRONG[subject][0], tenant="default", subject=subject, explain=True)
    deny(platform)
    for subject, queries in WRONG.items():
        wrong = wrong_ids(platform, subject)
        for query in queries:
            answer = elsewhere.recall(query, tenant="default", subject=subject, explain=True)
            assert answer.explanation is not None
            assert wrong <= set(answer.explanation.suppressed)
            told = {item.memory.memory_id for item in answer.items}
            legs = {name for found in answer.explanation.legs.values() for name, _ in found}
            paths = {hop.target for item in answer.items for path in item.reasons.paths for hop in path.hops}
            assert not wrong & (told | legs | paths | {name for name, _ in answer.explanation.anchors})


class _Down:
    def __getattr__(self, name: str) -> object:
        def refuse(*_: object, **__: object) -> None:
            raise StoreUnavailableError("relational", "A_SETTING", "refused")

        return refuse


def test_with_the_authority_down_the_copy_knows_what_was_denied(platform: Platform) -> None:
    before = ask(platform, "u:ann", WRONG["u:ann"][0])
    wrong = wrong_ids(platform, "u:ann")
    assert wrong & {item.memory.memory_id for item in before.items}
    deny(platform)
    platform.__dict__.update(authority=_Down(), links=_Down(), journal=_Down())
    for part in ("recall", "buffers", "session", "feedback"):
        platform.__dict__.pop(part, None)
    answer = platform.recall.recall(WRONG["u:ann"][0], tenant="default", subject="u:ann")
    assert "relational" in answer.missing
    assert not wrong & {item.memory.memory_id for item in answer.items}


def test_the_ledger_has_every_kind_and_each_once(platform: Platform) -> None:
    answer = ask(platform, "u:bea", "What is my name?")
    platform.feedback.used(answer)
    ids = [item.memory.memory_id for item in answer.items]
    for kind in (AccessKind.ECHO, AccessKind.NEGATED, AccessKind.CORRECTED):
        for _ in range(2):
            platform.feedback.tell(kind, ids, tenant="default", subject="u:bea")
    owner = Owner("default", "u:bea")
    uses = platform.accesses.by_owner([owner.key])[owner.key]
    turns = {turn for item in answer.items for turn in item.memory.source_turn_ids}
    assert uses.keys() == turns
    for kinds in uses.values():
        found = [kind for _, kind in kinds]
        assert {"presented", "echo", "negated", "corrected"} <= set(found)
        assert len(found) == len(set(found))


def test_an_echo_is_heard_and_counts_as_access(platform: Platform) -> None:
    ask(platform, "u:ann", SEATS["en"])
    clock(platform, NOW + MINUTE)
    row = {"role": "user", "text": "Yes, window seats when flying, I prefer those.", "session_id": "now"}
    row["occurred_at"] = (NOW + MINUTE).isoformat()
    noted = platform.session.note([row], tenant="default", subject="u:ann")
    assert noted.echoed
    owner = Owner("default", "u:ann")
    kinds = {kind for uses in platform.accesses.by_owner([owner.key])[owner.key].values() for _, kind in uses}
    assert "echo" in kinds


def test_a_turn_long_after_an_answer_denies_nothing(platform: Platform) -> None:
    ask(platform, "u:cai", WRONG["u:cai"][0])
    clock(platform, NOW + timedelta(hours=1))
    assert say(platform, "u:cai", DENIALS["u:cai"], NOW + timedelta(hours=1)) == ()


def test_what_was_just_noted_can_be_denied_as_well(platform: Platform) -> None:
    say(platform, "u:fay", "My parcel 777 from SF Express is broken", NOW - MINUTE)
    (item,) = ask(platform, "u:fay", "SF Express parcel").items
    assert not item.consolidated
    platform.feedback.tell(AccessKind.NEGATED, [item.memory.memory_id], tenant="default", subject="u:fay")
    assert ask(platform, "u:fay", "SF Express parcel").items == ()


@pytest.mark.parametrize(("tenant", "subject"), [("default", "u:bea"), ("rival", "u:ann")])
def test_nobody_denies_for_others(platform: Platform, tenant: str, subject: str) -> None:
    wrong = sorted(wrong_ids(platform, "u:ann"))
    with pytest.raises(InputError, match="none of this person's"):
        platform.feedback.tell(AccessKind.NEGATED, wrong, tenant=tenant, subject=subject)
    assert wrong_ids(platform, "u:ann") & {i.memory.memory_id for i in ask(platform, "u:ann", WRONG["u:ann"][0]).items}


def test_only_what_an_agent_can_know_is_told(platform: Platform) -> None:
    with pytest.raises(InputError, match="echo, negated, corrected"):
        platform.feedback.tell(AccessKind.PRESENTED, [], tenant="default", subject="u:ann")


def test_a_denial_survives_that_its_person_is_derived_again(platform: Platform, tmp_path: Path) -> None:
    """Late rows and new models change memories; what was denied is known by its turns."""
    deny(platform)
    write_rows(tmp_path / "late.jsonl", said("ann", START + timedelta(hours=1), "I live in Leeds."))
    files.land(platform, sorted(tmp_path.iterdir()))
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)
    assert leaks(platform)[0] == 0


def test_memories_of_other_turns_stay(platform: Platform) -> None:
    before: dict[str, list[StoredMemory]] = {s: platform.authority.visible(Owner("default", s)) for s in CASES}
    deny(platform)
    for subject, shown in before.items():
        person = platform.authority.person(Owner("default", subject))
        assert person.suppressed == wrong_ids(platform, subject)
        assert len(shown) > len(person.suppressed)


def test_a_memory_that_is_denied_again_and_again_is_trusted_less_after_the_night(platform: Platform) -> None:
    """Each denial is of one showing; when the suppressions have ended it ranks below what was not denied."""
    owner = Owner("default", "u:bea")
    (name,) = {m.memory_id for m in platform.authority.visible(owner) if m.predicate} & wrong_ids(platform, "u:bea")
    trust = platform.authority.shown([name])[0].trust
    for month in range(3):
        clock(platform, NOW + month * timedelta(days=31))
        assert name in {item.memory.memory_id for item in ask(platform, "u:bea", "What is my name?").items}
        platform.feedback.tell(AccessKind.NEGATED, [name], tenant="default", subject="u:bea")
    end = NOW + timedelta(days=62)
    nights = [day_start(day_of(end - timedelta(days=1))), day_start(day_of(end + timedelta(days=1)))]
    move_tiers(platform, nights[:1])
    assert platform.authority.shown([name])[0].trust == trust, "two showings are too few"
    move_tiers(platform, nights[1:])
    assert platform.authority.shown([name])[0].trust == 0
    platform.ledger.touch_everybody()
    derive_all(platform)
    assert platform.authority.shown([name])[0].trust == 0, "and it stays so when it is derived again"


def test_what_is_asked_for_often_is_fresher_after_the_night(platform: Platform) -> None:
    """Its pointer says so: no version is made, and to derive it again keeps it."""
    day = timedelta(days=1)
    for number in range(5):
        clock(platform, NOW + number * day)
        (name, *_) = [item.memory.memory_id for item in ask(platform, "u:bea", "What is my name?").items]
    (before,) = platform.authority.shown([name])
    assert (before.accessed_at, before.activations) == (None, 0)
    move_tiers(platform, [day_start(day_of(NOW + 5 * day))])
    (after,) = platform.authority.shown([name])
    assert (after.accessed_at, after.activations) == (NOW + 4 * day, 1)
    assert after.version == before.version
    epoch = platform.authority.person(before.owner).epoch
    move_tiers(platform, [day_start(day_of(NOW + 6 * day))])
    assert platform.authority.person(before.owner).epoch == epoch, "nothing new was used"
    platform.ledger.touch_everybody()
    derive_all(platform)
    assert platform.authority.shown([name]) == [after]
    answer = platform.recall.recall("What is my name?", tenant="default", subject="u:bea")
    assert after in [item.memory for item in answer.items]
