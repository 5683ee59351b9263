"""The files of ``write_sample``: determinism, form, counts, order."""

import csv
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines.errors import InputError
from memory_pipelines.model import turn_id
from memory_pipelines.sample import Config, Summary, write, write_sample

SMALL = Config(subjects=12, days=40)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def digest(folder: Path) -> str:
    total = hashlib.blake2b()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        total.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def truth(summary: Summary, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(summary.truth / f"{name}.jsonl")]


def dialogue_rows(summary: Summary) -> list[tuple[Path, dict[str, Any] | None]]:
    """Every line of every dialogue file; None where it is no JSON."""
    rows: list[tuple[Path, dict[str, Any] | None]] = []
    for folder in summary.logs.values():
        for path in sorted(folder.glob("dialogues-*.jsonl")):
            for line in lines(path):
                try:
                    rows.append((path, json.loads(line)))
                except json.JSONDecodeError:
                    rows.append((path, None))
    return rows


def conversations(summary: Summary) -> list[dict[str, Any]]:
    paths = [path for folder in summary.logs.values() for path in sorted(folder.glob("assistant-*.jsonl"))]
    return [json.loads(line) for path in paths for line in lines(path)]


def behaviour(summary: Summary) -> list[tuple[str, dict[str, str]]]:
    rows = []
    for tenant, folder in summary.logs.items():
        for path in sorted(folder.glob("behaviour-*.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                rows += [(tenant, row) for row in csv.DictReader(file)]
    return rows


def when(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def ids_of_turns(summary: Summary) -> set[tuple[str, str]]:
    """(tenant, turn id) of everything said, ids made by ``model.turn_id`` where the log has none."""
    found = set()
    for _, row in dialogue_rows(summary):
        if row is None or not isinstance(row["text"], str) or row["occurred_at"] is None:
            continue
        at = when(row["occurred_at"])
        given = row.get("turn_id") or turn_id(row["conversation_id"], at, row["role"], row["text"], 0)
        found.add((row.get("tenant", "default"), given))
    for talk in conversations(summary):
        for message in talk["messages"]:
            role = "agent" if message["role"] == "assistant" else message["role"]
            made = turn_id(talk["id"], when(message["created_at"]), role, message["content"], 0)
            found.add((talk.get("tenant", "default"), made))
    return found


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return write_sample(tmp_path_factory.mktemp("sample"), Config.sample())


def test_equal_configurations_give_equal_bytes_in_any_process(tmp_path: Path) -> None:
    write_sample(tmp_path / "one", SMALL)
    script = (
        "import sys; from pathlib import Path; from memory_pipelines.sample import Config, write_sample;"
        "write_sample(Path(sys.argv[1]), Config(subjects=12, days=40))"
    )
    for name, seed in (("two", "1"), ("three", "4242")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"}
        subprocess.run([sys.executable, "-c", script, str(tmp_path / name)], check=True, env=environment)
    assert digest(tmp_path / "one") == digest(tmp_path / "two") == digest(tmp_path / "three")
    write_sample(tmp_path / "other", Config(seed=8, subjects=12, days=40))
    assert digest(tmp_path / "one") != digest(tmp_path / "other")


def test_spilling_to_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_sample(tmp_path / "whole", SMALL)
    monkeypatch.setattr(write, "BUFFERED_ROWS", 97)
    spilled = write_sample(tmp_path / "spilled", SMALL)
    assert digest(tmp_path / "whole") == digest(tmp_path / "spilled")
    assert whole.rows == spilled.rows


def test_size_and_streams(sample: Summary) -> None:
    assert 9_000 <= sample.turns <= 12_000
    assert 5_000 <= sample.rows["behaviour"] <= 8_000
    assert sorted(path.name for path in sample.logs["default"].iterdir()) == sorted(
        [f"{stream}-2024-0{month}.jsonl" for stream in ("dialogues", "assistant") for month in (3, 4, 5, 6)]
        + [f"behaviour-2024-0{month}.csv" for month in (3, 4, 5, 6)]
    )
    assert len(sample.logs) == 2
    assert sample.truth.parent not in sample.logs.values()


def test_counts_are_those_of_the_files(sample: Summary) -> None:
    assert sample.rows["dialogues"] == len(dialogue_rows(sample))
    assert sample.rows["behaviour"] == len(behaviour(sample))
    talks = conversations(sample)
    assert sample.rows["assistant"] == len(talks)
    assert sample.turns == sample.rows["dialogues"] + sum(len(talk["messages"]) for talk in talks)
    for name in ("events", "facts", "expected", "questions"):
        assert sample.rows[f"truth/{name}"] == len(truth(sample, name)) > 0
    assert sample.expected == dict(sorted(Counter(row["expected"] for row in truth(sample, "expected")).items()))


def test_every_row_is_an_answer_or_has_a_verdict(sample: Summary) -> None:
    """Rows of a stream = plain answers of the other side + rows with a verdict."""
    expected = truth(sample, "expected")
    verdicts = Counter(row["stream"] for row in expected)
    messages = [message for talk in conversations(sample) for message in talk["messages"]]
    assert len(messages) == sum(m["role"] == "assistant" for m in messages) + verdicts["assistant"]
    answers = [row for _, row in dialogue_rows(sample) if row is not None and row["role"] == "agent"]
    automatic = {(r["tenant"], r["row_id"]) for r in expected if r["kind"] == "automatic_reply"}
    keys = [(row.get("tenant", "default"), row.get("turn_id") or json.dumps(row)) for row in answers]
    assert sample.rows["dialogues"] == len(set(keys) - automatic) + verdicts["dialogues"]
    assert len(keys) > len(set(keys))


def test_share_and_kinds_of_noise(sample: Summary) -> None:
    kinds = Counter(row["kind"] for row in truth(sample, "expected"))
    noise = sample.expected["filter"] + sample.expected["quarantine"] + sample.expected["duplicate"]
    assert 0.08 < noise / sample.turns < 0.2
    for kind in ("heartbeat", "tracking", "automatic_reply", "system_row", "duplicate", "small_talk", "arithmetic"):
        assert kinds[kind] > 20, kind
    for kind in ("no_time", "future_time", "empty_text", "nul_byte", "wrong_type", "bad_json", "negative_value"):
        assert kinds[kind] > 0, kind


def test_noise_can_be_switched_off(tmp_path: Path) -> None:
    shares = ("heartbeats", "tracking", "automatic_replies", "system_rows", "duplicates", "broken", "markup", "emoji")
    clean = write_sample(tmp_path, Config(subjects=12, days=40, **dict.fromkeys(shares, 0.0)))  # type: ignore[arg-type]
    assert not {"quarantine", "duplicate"} & set(clean.expected)
    assert all(
        row is not None and row["role"] != "system" and "<" not in row["text"] for _, row in dialogue_rows(clean)
    )


def test_gold_turns_exist(sample: Summary) -> None:
    known = ids_of_turns(sample)
    gold = [(q["tenant"], row_id) for q in truth(sample, "questions") for row_id in q["gold_turn_ids"]]
    gold += [(e["tenant"], row_id) for e in truth(sample, "events") for row_id in e["turn_ids"]]
    gold += [(fact["tenant"], fact["turn_id"]) for fact in truth(sample, "facts")]
    assert len(gold) > 1_000
    assert set(gold) <= known
    to_remember = {(r["tenant"], r["row_id"]) for r in truth(sample, "expected") if r["expected"] == "remember"}
    assert set(gold) <= to_remember <= known


def test_times(sample: Summary) -> None:
    config = Config.sample()
    begin = datetime(2024, 3, 1, tzinfo=UTC)
    end = begin + timedelta(days=config.days)
    late = 0
    for path, row in dialogue_rows(sample):
        if row is None or row["occurred_at"] is None or row["occurred_at"].startswith("2099"):
            continue
        at = when(row["occurred_at"])
        assert begin <= at < end + timedelta(hours=1)
        late += f"{at:%Y-%m}" < path.stem[-7:]
    assert late > 10
    for _, visit in behaviour(sample):
        if visit["occurred_at"] and not visit["occurred_at"].startswith("2099"):
            assert begin <= when(visit["occurred_at"]) < end


def test_sessions_cross_midnight_lack_ids_and_begin_on_devices(sample: Summary) -> None:
    days: dict[str, set[str]] = {}
    by_device: dict[tuple[str, str], set[str | None]] = {}
    sessionless = 0
    for _, row in dialogue_rows(sample):
        if row is None or row["occurred_at"] is None or row["occurred_at"].startswith("2099"):
            continue
        sessionless += row["session_id"] is None
        days.setdefault(row["conversation_id"], set()).add(f"{when(row['occurred_at']):%m-%d}")
        if row["device_id"]:
            by_device.setdefault((row.get("tenant", ""), row["device_id"]), set()).add(row["user_id"])
        assert row["user_id"] or row["device_id"]
    assert sum(len(of) > 1 for of in days.values()) > 10
    assert 0.05 < sessionless / sample.rows["dialogues"] < 0.25
    assert sum(None in users and len(users) == 2 for users in by_device.values()) >= 5
    assert all(len(users - {None}) <= 1 for users in by_device.values())


def test_both_languages_and_traditional_characters(sample: Summary) -> None:
    texts = [row["text"] for _, row in dialogue_rows(sample) if row is not None and isinstance(row["text"], str)]
    chinese = [text for text in texts if any("\u4e00" <= c <= "\u9fff" for c in text)]
    assert 0.4 < len(chinese) / len(texts) < 0.75
    assert any("訂單" in text for text in chinese)
    assert any("订单" in text for text in chinese)
    assert any("<p>" in text for text in texts)
    assert any("&nbsp;" in text for text in texts)
    assert any("😡" in text for text in texts)
    assert len({text for text in texts if "SO2024" in text}) > 300


def test_tenants_share_user_ids_but_not_persons(sample: Summary) -> None:
    users: dict[str, set[str]] = {"default": set(), "acme": set()}
    for _, row in dialogue_rows(sample):
        if row is not None and row.get("user_id"):
            users[row.get("tenant", "default")].add(row["user_id"])
    assert len(users["acme"]) > 15
    assert len(users["acme"] & users["default"]) > 10
    assert all(row["tenant"] == tenant for tenant, row in behaviour(sample) if tenant == "acme")
    assert all(tenant == "acme" or "tenant" not in row for tenant, row in behaviour(sample))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with pytest.raises(InputError):
        write_sample(tmp_path, SMALL)
    assert list((tmp_path / "logs").iterdir()) == []


def test_what_a_killed_attempt_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a" / ".partial" / "truth").mkdir(parents=True)
    (tmp_path / "a" / ".partial" / "truth" / "events.jsonl").write_text("half a li")
    write_sample(tmp_path / "a", SMALL)
    write_sample(tmp_path / "b", SMALL)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_one_person_one_day_and_nobody(tmp_path: Path) -> None:
    one = write_sample(tmp_path / "one", Config(subjects=1, days=1, tenants=("solo",)))
    assert list(one.logs) == ["solo"]
    nobody = write_sample(tmp_path / "nobody", Config(subjects=0, demo=False))
    assert nobody.turns == 0
    assert nobody.rows == {}


def test_sized_is_close() -> None:
    assert Config.sized(1_000_000).subjects == pytest.approx(10 * Config.sized(100_000).subjects, rel=0.01)
    assert sum(Config(subjects=103, tenants=("a", "b", "c")).persons_of(i) for i in range(3)) == 103


def test_sized_gives_that_many_turns(tmp_path: Path) -> None:
    assert write_sample(tmp_path, Config.sized(20_000, seed=3)).turns == pytest.approx(20_000, rel=0.15)


@pytest.mark.parametrize(
    "wrong",
    [
        {"days": 0},
        {"subjects": -1},
        {"tenants": ()},
        {"tenants": ("a", "a")},
        {"tenants": ("../a",)},
        {"languages": (("fr", 1.0),)},
        {"languages": (("zh", 0.0),)},
        {"broken": 1.5},
    ],
)
def test_meaningless_configurations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|name|languages"):
        Config(**wrong)


def test_any_start(tmp_path: Path) -> None:
    summary = write_sample(tmp_path, Config(subjects=6, days=20, start=date(2019, 12, 25)))
    names = {path.name for path in summary.logs["default"].glob("behaviour-*.csv")}
    assert names == {"behaviour-2019-12.csv", "behaviour-2020-01.csv"}
