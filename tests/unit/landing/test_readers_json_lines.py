"""JSON lines: every line is there, with its number and what was read of it."""

import json

import pytest
from reading import Trickle, errors, read, rows

from memory_pipelines.landing.readers import RawRow, lines, parse_again, read_rows


def test_json_lines() -> None:
    made = read(b'\xef\xbb\xbf{"a":1}\r\n\n   \n{"a":"\xe4\xbd\xa0"}', "jsonl")
    assert made == [RawRow(0, {"a": 1}, '{"a":1}\r\n'), RawRow(3, {"a": "你"}, '{"a":"你"}')]


def test_two_encodings() -> None:
    text = '{"a":"顺丰还没到"}\n'
    assert rows(read(text.encode("gbk") + text.encode(), "jsonl")) == [{"a": "顺丰还没到"}] * 2


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf_16(order: str) -> None:
    text = '\ufeff{"a":"顺丰"}\r\n{"a":"😀"}\n'
    assert rows(read(text.encode(order), "jsonl")) == [{"a": "顺丰"}, {"a": "😀"}]
    cut = read(text.encode(order) + b"{", "jsonl")
    assert errors(cut) == [None, None, "unknown_encoding"]


def test_lines_that_are_broken() -> None:
    made = read(
        b'{"a":1\n[1]\n7\n\xff\xff\n{"a":NaN}\n' + b"[" * 100_000 + b'\n{"z":2}\n{"n":' + b"9" * 5000 + b"}",
        "jsonl",
    )
    assert errors(made) == ["malformed_json", "not_an_object", "not_an_object", "unknown_encoding", None,
                            "malformed_json", None, "malformed_json"]  # fmt: skip
    assert [raw.position for raw in made] == list(range(8))
    assert made[3].raw == "\xff\xff\n"
    assert made[0].raw == '{"a":1\n'


def test_a_line_beyond_the_limit_is_passed_over_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT", 100)
    monkeypatch.setattr(lines, "TRUNCATED", 20)
    monkeypatch.setattr(lines, "BLOCK", 16)
    long = b'{"a":"' + b"x" * 500 + b'"}\n'
    for stream in (Trickle(long + b'{"a":2}\n' + long), Trickle(long + b'{"a":2}\n' + long[:-1], 1000)):
        made = list(read_rows(stream, "jsonl"))  # type: ignore[arg-type]
        assert errors(made) == ["line_too_long", None, "line_too_long"]
        assert made[0].raw == '{"a":"' + "x" * 14
        assert [raw.position for raw in made] == [0, 1, 2]


def test_a_line_as_long_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT", 20)
    line = b'{"a":"' + b"x" * 11 + b'"}\n'
    assert errors(read(line + line.replace(b"x", b"xx", 1), "jsonl")) == [None, "line_too_long"]


def test_a_megabyte_is_read() -> None:
    row = {"text": "x" * 1_000_001}
    assert rows(read(json.dumps(row), "jsonl")) == [row]


def test_a_stream_that_gives_little_at_a_time() -> None:
    data = b'{"a":1}\n\n{"a":"\xe4\xbd\xa0"}\n{"b'
    assert list(read_rows(Trickle(data, 1), "jsonl")) == read(data, "jsonl")  # type: ignore[arg-type]


def test_a_quarantined_row_is_parsed_again() -> None:
    assert parse_again('{"a":"你"}', "bad_time", "jsonl", position=7) == RawRow(7, {"a": "你"}, '{"a":"你"}')
    assert parse_again("{broken", "malformed_json", "jsonl", position=7) == RawRow(7, None, "{broken", "malformed_json")
    assert parse_again("\xff\xff\n", "unknown_encoding", "jsonl").error == "unknown_encoding"
    readable_now = '{"a":"你"}'.encode().decode("latin-1")
    assert parse_again(readable_now, "unknown_encoding", "jsonl").row == {"a": "你"}
    assert parse_again('{"a":"é\\udcff"}', "unknown_encoding", "csv").row is None
