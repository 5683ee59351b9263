"""Formats, compression and splitting of the files; the command that writes them."""

import csv
import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memory_pipelines.cli import main
from memory_pipelines.sample import Config, Summary, files, write, write_sample

CONFIG = Config.sized(3_000, seed=3, days=40)


def read_text(path: Path) -> str:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    if path.suffix == ".zst":
        return str(pa.input_stream(str(path), compression="zstd").read(), "utf-8")
    return path.read_text(encoding="utf-8")


def stream_lines(summary: Summary, stream: str) -> list[str]:
    """All lines of a stream of the first tenant, in the order of its files."""
    found: list[str] = []
    for path in sorted(summary.logs["default"].glob(f"{stream}-*")):
        part = read_text(path).split("\n")[:-1]
        found += part[1:] if stream == "behaviour" else part
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return write_sample(tmp_path_factory.mktemp("plain"), CONFIG)


@pytest.mark.parametrize("format", ["jsonl.gz", "jsonl.zst"])
def test_compressed_files_hold_the_same(plain: Summary, tmp_path: Path, format: str) -> None:
    packed = write_sample(tmp_path, CONFIG, format=format)
    suffix = format.removeprefix("jsonl")
    assert packed.rows == plain.rows
    for kind in ("logs", "truth"):
        before = {p.relative_to(plain.truth.parent) for p in (plain.truth.parent / kind).rglob("*.*")}
        for path in before:
            other = tmp_path / f"{path}{suffix}"
            assert read_text(other) == read_text(plain.truth.parent / path)


def test_equal_configurations_give_equal_bytes_in_every_format(tmp_path: Path) -> None:
    for format in files.FORMATS:
        one, two = (write_sample(tmp_path / f"{format}-{i}", CONFIG, format=format) for i in (1, 2))
        for path in (p for p in one.truth.parent.rglob("*") if p.is_file()):
            assert path.read_bytes() == (two.truth.parent / path.relative_to(one.truth.parent)).read_bytes()


def test_parquet_holds_the_same_rows(plain: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP", 500)
    table = write_sample(tmp_path, CONFIG, format="parquet")
    assert table.turns == plain.turns
    assert table.expected == plain.expected

    def columns(stream: str) -> list[dict[str, Any]]:
        paths = sorted(table.logs["default"].glob(f"{stream}-*.parquet"))
        assert stream != "dialogues" or pq.ParquetFile(paths[0]).num_row_groups > 1
        return [row for path in paths for row in pq.read_table(path).to_pylist()]

    broken = 0
    wanted = []
    for line in stream_lines(plain, "dialogues"):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            broken += 1
            continue
        wanted.append((row.get("turn_id"), row["user_id"], row["text"] if isinstance(row["text"], str) else None))
    rows = columns("dialogues")
    shown = [(row["turn_id"], row["user_id"], row["text"]) for row in rows if row["role"] is not None]
    assert sorted(shown, key=repr) == sorted(wanted, key=repr)
    assert sum(row["role"] is None and row["occurred_at"] is None for row in rows) == broken

    messages = [m for line in stream_lines(plain, "assistant") for m in json.loads(line)["messages"]]
    assert sorted(m["content"] for m in messages) == sorted(row["text"] for row in columns("assistant"))

    events = list(csv.reader(StringIO("\n".join(stream_lines(plain, "behaviour")))))
    assert sorted(row["event_id"] for row in columns("behaviour")) == sorted(event[0] for event in events)
    assert {row["bounce"] for row in columns("behaviour")} == {True, False, None}


@pytest.mark.parametrize("split", ["day", 97])
def test_splitting_changes_no_row_and_no_order(plain: Summary, tmp_path: Path, split: str | int) -> None:
    parts = write_sample(tmp_path, CONFIG, split=split)
    for stream in ("dialogues", "assistant", "behaviour", "archive"):
        assert stream_lines(parts, stream) == stream_lines(plain, stream)
    names = sorted(path.name for path in parts.logs["default"].glob("dialogues-*"))
    if split == "day":
        assert names[0] == "dialogues-2024-03-01.jsonl"
        assert len(names) == 40
    else:
        sizes = [len(read_text(parts.logs["default"] / name).split("\n")) - 1 for name in names]
        assert names[0] == "dialogues-00001.jsonl"
        assert sizes[:-1] == [97] * (len(sizes) - 1)
        assert 0 < sizes[-1] <= 97


def test_short_slots_and_small_buffers_change_nothing(
    plain: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "SLOT_ROWS", 5)
    monkeypatch.setattr(write, "BUFFERED_ROWS", 211)
    other = write_sample(tmp_path, CONFIG)
    for path in (p for p in plain.truth.parent.rglob("*") if p.is_file()):
        assert path.read_bytes() == (tmp_path / path.relative_to(plain.truth.parent)).read_bytes()
    assert other.rows == plain.rows
    assert not (tmp_path / ".partial").exists()


@pytest.mark.parametrize("wrong", [{"format": "xml"}, {"split": "week"}, {"split": 0}])
def test_meaningless_formats_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"format|split"):
        write_sample(tmp_path, CONFIG, **wrong)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--turns", "1000", "--days", "20", "--tenants", "4", "--seed", "9"]
    assert main(["sample", str(tmp_path / "a"), *arguments, "--format", "jsonl.gz", "--split", "200"]) == 0
    assert "and 1 more" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "a" / "logs").iterdir()} == {"default", "acme", "tenant-3", "tenant-4"}
    assert (tmp_path / "a" / "logs" / "default" / "dialogues-00001.jsonl.gz").exists()
    assert main(["sample", str(tmp_path / "b"), "--days", "3"]) == 1
    assert "--turns" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["sample", str(tmp_path / "b"), "--split", "week"])
