"""Formats and encodings: every row is there, with its position and what was read of it."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memory_pipelines.errors import InputError
from memory_pipelines.landing.readers import FIELD_LIMIT, RawRow, detect_format, read_rows


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def reader(name: str, content: bytes | pa.Table) -> list[RawRow]:
        path = tmp_path / name
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_bytes(content)
        return list(read_rows(path))

    return reader


def rows(raws: list[RawRow]) -> list[dict[str, Any] | None]:
    return [raw.row for raw in raws]


def errors(raws: list[RawRow]) -> list[str | None]:
    return [raw.error for raw in raws]


# ---- JSON lines


def test_json_lines(read: Any) -> None:
    made = read("a.jsonl", b'\xef\xbb\xbf{"a":1}\r\n\n   \n{"a":"\xe4\xbd\xa0"}')
    assert made == [RawRow(0, {"a": 1}, '{"a":1}\r\n'), RawRow(3, {"a": "你"}, '{"a":"你"}')]


def test_json_lines_in_two_encodings(read: Any) -> None:
    text = '{"a":"顺丰还没到"}\n'
    assert rows(read("a.jsonl", text.encode("gbk") + text.encode())) == [{"a": "顺丰还没到"}] * 2


def test_json_lines_that_are_broken(read: Any) -> None:
    made = read("a.jsonl", b'{"a":1\n[1]\n7\n\xff\xff\n{"a":NaN}\n' + b"[" * 100_000 + b"\n" + b'{"z":2}')
    assert errors(made) == ["malformed_json", "not_an_object", "not_an_object", "unknown_encoding", None,
                            "malformed_json", None]  # fmt: skip
    assert [raw.position for raw in made] == list(range(7))
    assert made[3].raw == "\xff\xff\n"
    assert made[0].raw == '{"a":1\n'


# ---- CSV


def test_csv(read: Any) -> None:
    made = read("a.csv", b'\xef\xbb\xbfa,b\r\n1,"x, ""y""\r\nz"\r\n\r\n,2\r\n')
    assert rows(made) == [{"a": "1", "b": 'x, "y"\r\nz'}, {"a": None, "b": "2"}]
    assert [raw.position for raw in made] == [1, 3]
    assert json.loads(made[0].raw) == ["1", 'x, "y"\r\nz']


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "gb18030"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_encodings_and_line_ends(read: Any, encoding: str, end: str) -> None:
    made = read("a.csv", end.join(["编号,text", "1,快递还没到", "2,客服态度差"]).encode(encoding))
    assert rows(made) == [{"编号": "1", "text": "快递还没到"}, {"编号": "2", "text": "客服态度差"}]


def test_one_bad_byte_in_a_csv_spoils_its_row_only(read: Any) -> None:
    good = "1,快递\n".encode()
    made = read("a.csv", b"a,b\n" + good + b"1,\xff\xff\n" + good)
    assert rows(made)[::2] == [{"a": "1", "b": "快递"}] * 2
    assert rows(made)[1] == {"a": "1", "b": "\udcff\udcff"}


def test_csv_rows_that_are_broken(read: Any) -> None:
    made = read("a.csv", b'a,b\n1\n1,2,3\n1,2\x00\n1,"open\nto the,end')
    assert errors(made) == ["wrong_number_of_columns", "wrong_number_of_columns", None, None]
    assert rows(made)[2:] == [{"a": "1", "b": "2\x00"}, {"a": "1", "b": "open\nto the,end"}]


def test_a_huge_csv_field_reaches_quarantine_with_its_text(read: Any) -> None:
    line = "1," + "x" * (FIELD_LIMIT + 1) + "\n"
    made = read("a.csv", ("a,b\n" + line + "3,4\n").encode())
    assert errors(made) == ["malformed_csv", None]
    assert made[0].raw == line
    assert rows(read("b.csv", ("a,b\n1," + "x" * 2_000_000).encode()))[0]["b"] == "x" * 2_000_000


def test_a_csv_whose_header_cannot_be_read(read: Any) -> None:
    with pytest.raises(InputError, match=r"a\.csv is no readable csv file"):
        read("a.csv", b"x" * (FIELD_LIMIT + 1) + b"\n1\n")


def test_a_csv_of_nothing(read: Any) -> None:
    assert read("a.csv", b"") == read("b.csv", b"a,b\n") == []


# ---- Parquet


def test_parquet(read: Any) -> None:
    at = datetime(2024, 5, 17, 8, 12, 30, 5, UTC)
    made = read("a.parquet", pa.table({"n": [1, None], "at": pa.array([at, None], pa.timestamp("us", "UTC"))}))
    assert rows(made) == [{"n": 1, "at": at}, {"n": None, "at": None}]
    assert made[0].raw == '{"n": 1, "at": "2024-05-17T08:12:30.000005+00:00"}'
    assert [raw.position for raw in made] == [0, 1]


def test_parquet_nanoseconds_are_cut_off(read: Any) -> None:
    kind = pa.timestamp("ns", "UTC")
    made = read("a.parquet", pa.table({"at": pa.array([1715933550123456789], kind)}))
    assert rows(made) == [{"at": datetime(2024, 5, 17, 8, 12, 30, 123456, UTC)}]
    assert type(made[0].row["at"]) is datetime


def _strings(*values: bytes) -> pa.Array:
    offsets = pa.array([sum(map(len, values[:i])) for i in range(len(values) + 1)], pa.int32())
    return pa.Array.from_buffers(pa.string(), len(values), [None, offsets.buffers()[1], pa.py_buffer(b"".join(values))])


def test_parquet_values_that_cannot_be_read_spoil_their_row_only(read: Any) -> None:
    table = pa.table(
        {
            "text": _strings(b"ok", b"\xff\xfe", b"fine"),
            "at": pa.array([1715933550000000, 0, 2**62], pa.timestamp("us", "UTC")),
        }
    )
    made = read("a.parquet", table)
    assert errors(made) == [None, "unreadable_value", "unreadable_value"]
    assert made[0].row == {"text": "ok", "at": datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)}
    assert json.loads(made[1].raw) == {"text": "ÿþ", "at": "1970-01-01T00:00:00+00:00"}
    assert json.loads(made[2].raw) == {"text": "fine", "at": 2**62}


def test_a_parquet_file_that_is_none(read: Any, tmp_path: Path) -> None:
    for content in (b"", b"PAR1", b"no parquet at all" * 10):
        with pytest.raises(InputError, match=r"a\.parquet"):
            read("a.parquet", content)
    good = tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": list(range(5_000))}), good, compression="gzip")
    data = bytearray(good.read_bytes())
    data[40:2000] = bytes(1960)
    with pytest.raises(InputError, match=r"c\.parquet"):
        read("c.parquet", bytes(data))


# ---- OpenAI messages


def test_openai_messages(read: Any) -> None:
    conversation = {
        "id": "c1",
        "user": "ann",
        "tenant": "acme",
        "created_at": 1715933550,
        "messages": [
            {"id": "m1", "role": "user", "content": "hi", "created_at": 1715933551},
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text"},
                                              {"type": "text", "text": "b"}]},
            "no message",
        ],
    }  # fmt: skip
    made = read("a.jsonl", json.dumps(conversation).encode() + b'\n{"messages":3}\n{broken\n{"messages":[]}\n')
    common = {"tenant": "acme", "conversation_id": "c1", "session_id": "c1", "user_id": "ann", "origin": "assistant"}
    assert rows(made)[:2] == [
        common | {"turn_id": "m1", "role": "user", "text": "hi", "occurred_at": 1715933551},
        common | {"turn_id": None, "role": "assistant", "text": "a\nb", "occurred_at": None},
    ]
    assert errors(made) == [None, None, "not_an_object", "no_messages", "malformed_json"]
    assert [raw.position for raw in made] == [0, 1, 2, 3, 4]


# ---- files


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"", "csv"),
        ("a.CSV", b"", "csv"),
        ("a.pq", b"", "parquet"),
        ("a.jsonl", b"", "jsonl"),
        ("a.jsonl", b'{"text":"messages"}', "jsonl"),
        ("a.ndjson", b'{broken\n{"messages":[]}', "openai_messages"),
    ],
)
def test_formats(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert detect_format(tmp_path / name) == expected


def _all(path: Path, file_format: str | None = None) -> Iterator[RawRow]:
    yield from read_rows(path, file_format)


@pytest.mark.parametrize("name", ["a.txt", "README", "gone.jsonl", "gone.csv", "gone.parquet"])
def test_what_cannot_be_read_is_one_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "README").write_text("x")
    with pytest.raises(InputError):
        list(_all(tmp_path / name))


def test_a_folder_and_an_unknown_format(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"cannot read a\.jsonl"):
        list(_all(tmp_path / "a.jsonl"))
    with pytest.raises(InputError, match="unknown format xml"):
        list(_all(tmp_path / "a.jsonl", "xml"))
