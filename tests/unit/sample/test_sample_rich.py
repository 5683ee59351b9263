"""Simulations of a chosen size: what they add to the small sample, and the truth of it."""

import csv
import json
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.model import turn_id
from memory_pipelines.sample import Config, Record, Summary, simulate, write_sample
from memory_pipelines.sample.config import RICH
from memory_pipelines.sample.personal import id_card_digit, luhn_digit
from memory_pipelines.sample.phrases import load

ROLES = {"assistant": "agent", "staff": "agent", "customer": "user"}


class Turn(NamedTuple):
    """One log row as it would be landed."""

    stream: str
    at: datetime | None
    role: str
    subject: str
    text: object
    edited: bool
    month: str


class Rich:
    """One written simulation, read back without any code that wrote it."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.turns: dict[tuple[str, str], list[Turn]] = defaultdict(list)
        self.events: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
        for tenant, folder in summary.logs.items():
            for path in sorted(folder.glob("*.jsonl")):
                for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
                    self._read(tenant, path, line)
            for path in sorted(folder.glob("behaviour-*.csv")):
                with path.open(encoding="utf-8", newline="") as file:
                    for row in csv.DictReader(file):
                        self.events[tenant, row["event_id"]].append(row)

    def _read(self, tenant: str, path: Path, line: str) -> None:
        stream, month = path.stem[:-8], path.stem[-7:]
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            return
        if stream == "assistant":
            for said in row["messages"]:
                at, role = parsed(said["created_at"]), ROLES.get(said["role"], said["role"])
                key = (tenant, turn_id(row["id"], at, role, said["content"], 0))
                self.turns[key].append(Turn(stream, at, role, f"u:{row['user']}", said["content"], False, month))
            return
        role = ROLES.get(row["role"], row["role"])
        if "timestamp" in row:
            when: datetime | None = datetime.fromtimestamp(row["timestamp"] / 1000, UTC)
        else:
            when = None if row["occurred_at"] is None else parsed(row["occurred_at"])
        made = row.get("turn_id") or turn_id(row["conversation_id"], when or parsed(""), role, row["text"], 0)
        subject = f"u:{row['user_id']}" if row["user_id"] else f"d:{row['device_id']}"
        self.turns[tenant, made].append(Turn(stream, when, role, subject, row["text"], "edited_at" in row, month))

    def truth(self, name: str) -> list[dict[str, Any]]:
        text = (self.summary.truth / f"{name}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def final(self, tenant: str, row_id: str) -> Turn:
        """The turn as it stands after all edits."""
        return max(self.turns[tenant, row_id], key=lambda turn: turn.edited)


def parsed(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Rich:
    return Rich(write_sample(tmp_path_factory.mktemp("rich"), Config.sized(30_000, seed=5)))


def test_every_row_with_a_verdict_is_in_its_stream_under_its_subject(rich: Rich) -> None:
    for row in rich.truth("expected"):
        key = (row["tenant"], row["row_id"])
        if row["stream"] == "behaviour":
            assert key in rich.events
        elif row["row_id"] is not None:
            assert row["subject"] in {t.subject for t in rich.turns[key] if t.stream == row["stream"]}


def test_an_id_has_as_many_rows_as_the_truth_says(rich: Rich) -> None:
    """One, and one more for each duplicate and each version before an edit."""
    more: Counter[tuple[bool, str, str]] = Counter()
    for row in rich.truth("expected"):
        if row["expected"] == "duplicate" or row["kind"] == "edited":
            more[row["stream"] == "behaviour", row["tenant"], row["row_id"]] += 1
    assert all(len(found) == 1 + more[False, *key] for key, found in rich.turns.items())
    assert all(len(found) == 1 + more[True, *key] for key, found in rich.events.items())
    kinds = Counter(row["kind"] for row in rich.truth("expected") if row["expected"] == "duplicate")
    assert set(kinds) == {"duplicate", "overlap", "second_export"}
    assert min(kinds.values()) > 50


def test_copies_are_equal_and_some_lie_in_another_file(rich: Rich) -> None:
    elsewhere = 0
    for found in rich.turns.values():
        if len(found) > 1 and not any(turn.edited for turn in found):
            assert len({turn[1:5] for turn in found}) == 1
            elsewhere += len({(turn.stream, turn.month) for turn in found}) > 1
    assert elsewhere > 100
    for copies in rich.events.values():
        assert all(copy == copies[0] for copy in copies)


def test_edits(rich: Rich) -> None:
    edits = rich.truth("edits")
    assert len(edits) > 20
    for edit in edits:
        versions = rich.turns[edit["tenant"], edit["row_id"]]
        assert {turn.text for turn in versions} == {edit["before"], edit["after"]}
        assert rich.final(edit["tenant"], edit["row_id"]).text == edit["after"]
        assert edit["after"].startswith(edit["before"])


def test_the_current_value_is_the_last_in_event_time_also_where_it_arrives_first(rich: Rich) -> None:
    chains: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for fact in rich.truth("facts"):
        chains[fact["tenant"], fact["person"], fact["predicate"]].append(fact)
        said = rich.final(fact["tenant"], fact["turn_id"])
        assert fact["value"] in str(said.text)
        assert (said.at, said.subject) == (parsed(fact["valid_from"]), fact["subject"])
    overtaken = 0
    for chain in chains.values():
        chain.sort(key=lambda fact: fact["valid_from"])
        assert [fact["current"] for fact in chain] == [False] * (len(chain) - 1) + [True]
        for before, after in pairwise(chain):
            assert before["valid_to"] == after["valid_from"]
            assert before["value"] != after["value"]
            months = [rich.final(fact["tenant"], fact["turn_id"]).month for fact in (before, after)]
            if chain[0]["predicate"] != "delivery_address":
                assert months[0] <= months[1] or before["out_of_order"]
            overtaken += months[0] > months[1]
        assert not chain[-1]["out_of_order"]
    assert overtaken > 5
    assert max(len(chain) for chain in chains.values()) > 3
    ended = Counter(fact["ended_by"] for fact in rich.truth("facts") if fact["predicate"] != "meeting_time")
    assert ended["correction"] > 50


def test_memories_are_the_turns_to_remember(rich: Rich) -> None:
    memories = rich.truth("memories")
    named = {(m["tenant"], row_id) for m in memories for row_id in m["turn_ids"]}
    assert named == {(r["tenant"], r["row_id"]) for r in rich.truth("expected") if r["expected"] == "remember"}
    assert {(m["type"], m["permanence"]) for m in memories} == {
        ("episodic", "long"),
        ("semantic", "permanent"),
        ("semantic", "long"),
        ("semantic", "task"),
        ("procedural", "permanent"),
    }
    for memory in memories:
        said = [rich.final(memory["tenant"], row_id) for row_id in memory["turn_ids"]]
        assert {turn.subject for turn in said} == {memory["subject"]}
        assert memory["value"] is None or memory["value"] in str(said[0].text)


def test_effects_come_after_their_causes(rich: Rich) -> None:
    pairs = rich.truth("causes")
    for pair in pairs:
        for row_id in (*pair["cause_ids"], *pair["effect_ids"]):
            assert (pair["tenant"], row_id) in rich.events or (pair["tenant"], row_id) in rich.turns
        assert pair["cause_at"] <= pair["effect_at"]
    kinds = {(pair["cause"], pair["effect"]) for pair in pairs}
    assert {
        ("order", "logistics_complaint"),
        ("logistics_complaint", "cancel"),
        ("logistics_complaint", "coupon"),
        ("logistics_complaint", "logistics_complaint"),
        ("refund_request", "refund"),
    } <= kinds
    caused = {(pair["tenant"], row_id) for pair in pairs for row_id in pair["effect_ids"]}
    for key, rows in rich.events.items():
        if rows[0]["kind"] in ("coupon", "cancel", "refund", "churn") and not key[1].endswith("-x"):
            assert key in caused


def test_personal_data_is_where_the_truth_says_and_valid(rich: Rich) -> None:
    planted = rich.truth("personal")
    for row in planted:
        found = [turn for turn in rich.turns[row["tenant"], row["row_id"]] if turn.stream == row["stream"]]
        assert row["value"] in str(found[0].text)
        assert (found[0].subject, found[0].role) == (row["subject"], row["role"])
        digits = "".join(char for char in row["value"] if char.isdigit())
        if row["kind"] in ("bank_card", "wrong_card"):
            assert (luhn_digit(digits[:-1]) == digits[-1]) is row["sensitive"]
        if row["kind"] == "id_card":
            assert id_card_digit(row["value"][:17]) == row["value"][17]
            assert row["value"][2:6] == "0199"
        if row["kind"] == "email":
            assert row["value"].rpartition("@")[2] in ("example.com", "example.org", "example.net")
    kinds = Counter(row["kind"] for row in planted)
    assert set(kinds) == {
        "phone", "email", "id_card", "bank_card", "password", "password_hint", "tracking_number", "wrong_card",
    }  # fmt: skip
    assert any(row["role"] == "agent" for row in planted)


def test_check_digits_of_the_standards() -> None:
    assert luhn_digit("7992739871") == "3"
    assert id_card_digit("11010519491231002") == "X"


@given(st.text("0123456789", min_size=8, max_size=18), st.integers(0, 17))
def test_luhn_notices_one_wrong_digit(digits: str, place: int) -> None:
    place %= len(digits)
    other = digits[:place] + str((int(digits[place]) + 1) % 10) + digits[place + 1 :]
    assert luhn_digit(other) != luhn_digit(digits)


def test_devices_are_whose_the_truth_says(rich: Rich) -> None:
    identity = {(row["tenant"], row["device"]): row for row in rich.truth("identity")}
    seen: dict[tuple[str, str], set[str]] = {key: set() for key in identity}
    anonymous: set[tuple[str, str]] = set()
    for (tenant, _), rows in rich.events.items():
        device = (tenant, f"d:{rows[0]['device_id']}")
        if rows[0]["user_id"]:
            seen[device].add(f"u:{rows[0]['user_id']}")
        else:
            anonymous.add(device)
    assert all(users <= set(identity[device]["users"]) for device, users in seen.items())
    assert any(row["shared"] and len(seen[key]) == 2 for key, row in identity.items())
    assert any(not row["users"] for row in identity.values())
    persons = Counter((row["tenant"], row["person"]) for row in identity.values())
    assert max(persons.values()) == 2
    # seen without login on a device that was logged in from the first day on
    first = "2024-03-01T00:00:00Z"
    assert sum(identity[device]["logged_in_at"] == [first] for device in anonymous) > 10


def test_members_of_a_group_are_subjects_of_their_own(rich: Rich) -> None:
    members: dict[str, set[str]] = defaultdict(set)
    for folder in rich.summary.logs.values():
        for path in folder.glob("dialogues-*.jsonl"):
            for line in path.read_text(encoding="utf-8").split("\n"):
                if '"gr-' in line:
                    row = json.loads(line)
                    members[row["conversation_id"]].add(row["user_id"])
    assert max(len(users) for users in members.values()) >= 3
    guests = {fact["subject"] for fact in rich.truth("facts") if fact["subject"].startswith("u:g")}
    assert guests
    assert guests <= {f"u:{user}" for users in members.values() for user in users}


def test_texts_are_varied(rich: Rich) -> None:
    said = [str(found[0].text) for found in rich.turns.values() if found[0].role == "user"]
    assert len(set(said)) > 0.3 * len(said)
    assert max(Counter(said).values()) < 0.03 * len(said)


@pytest.mark.parametrize("language", ["zh", "zh-Hant", "en"])
def test_phrase_books_fit_together(language: str) -> None:
    book = load(language, rich=True)
    assert len(book.service["question"]) == len(book.service["agent_answer"])
    assert all(fact.correct for name, fact in book.facts.items() if name != "meeting_time")
    small = load(language)
    for name, phrases in small.service.items():
        assert book.service[name][: len(phrases)] == phrases or language == "zh-Hant"
        assert len(set(book.service[name])) == len(book.service[name])
    if language == "zh-Hant":
        told = "".join(line for lines in book.service.values() for line in lines)
        assert not set(told) & set("这个说还没们给吗请么为发")


def test_the_small_sample_is_without(tmp_path: Path) -> None:
    summary = write_sample(tmp_path, Config(subjects=30, days=40))
    assert not (summary.truth / "personal.jsonl").exists()
    assert not list(summary.logs["default"].glob("archive-*"))
    assert not any(getattr(Config.sample(), name) for name in RICH)


def test_more_persons_change_nobodys_rich_life() -> None:
    def first(subjects: int) -> list[Record]:
        shares: dict[str, Any] = dict.fromkeys(RICH, 0.5)
        base = Config(subjects=subjects, days=30, tenants=("only",), rich=True)
        return list(simulate(replace(base, **shares)))

    few, many = first(3), first(9)
    assert many[: len(few)] == few


def test_what_is_rich_says_so() -> None:
    with pytest.raises(ValueError, match="must be rich"):
        Config(groups=0.1)
    assert replace(Config(), rich=True, groups=0.1).groups == 0.1


@pytest.mark.parametrize(("days", "tenants"), [(3, 1), (30, 5), (80, 2)])
def test_sized_gives_that_many_turns_in_any_time(tmp_path: Path, days: int, tenants: int) -> None:
    config = Config.sized(20_000, seed=4, days=days, tenants=tenants)
    summary = write_sample(tmp_path, config)
    assert summary.turns == pytest.approx(20_000, rel=0.15)
    assert len(summary.logs) == tenants


@pytest.mark.parametrize("wrong", [{"tenants": 0}, {"days": 0}])
def test_meaningless_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        Config.sized(1_000, **wrong)
