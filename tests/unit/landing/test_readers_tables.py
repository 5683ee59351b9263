"""CSV and Parquet: every row is there, whatever the delimiter, the encoding or the fault of another row."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import errors, read, rows

from memory_pipelines.errors import InputError
from memory_pipelines.landing.readers import RawRow, lines, parse_again, tables
from memory_pipelines.landing.readers.rows import LINE_LIMIT


def csv(content: bytes | str) -> list[RawRow]:
    return read(content, "csv")


def parquet(table: pa.Table | bytes, **options: Any) -> list[RawRow]:
    if isinstance(table, bytes):
        return read(table, "parquet")
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return read(sink.getvalue(), "parquet")


# ---- CSV


def test_csv() -> None:
    made = csv(b'\xef\xbb\xbfa,b\r\n1,"x, ""y""\r\nz"\r\n\r\n,2\r\n')
    assert rows(made) == [{"a": "1", "b": 'x, "y"\r\nz'}, {"a": None, "b": "2"}]
    assert [raw.position for raw in made] == [1, 3]
    assert json.loads(made[0].raw) == rows(made)[0]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiters(delimiter: str) -> None:
    content = delimiter.join(["a", "b"]) + "\n" + delimiter.join(["1", '"x,;y"']) + "\n"
    assert rows(csv(content)) == [{"a": "1", "b": "x,;y"}]


def test_csv_of_one_column() -> None:
    assert rows(csv("text\nhi\n")) == [{"text": "hi"}]


def test_csv_columns_have_names_of_their_own() -> None:
    assert rows(csv("a, a ,,\n1,2,3,4\n")) == [{"a": "1", "a_2": "2", "column_3": "3", "column_4": "4"}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "gb18030", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_encodings_and_line_ends(encoding: str, end: str) -> None:
    made = csv(end.join(["编号,text", "1,快递还没到", "2,客服态度差"]).encode(encoding))
    assert rows(made) == [{"编号": "1", "text": "快递还没到"}, {"编号": "2", "text": "客服态度差"}]


def test_one_bad_byte_in_a_csv_spoils_its_row_only() -> None:
    good = "1,快递\n".encode()
    made = csv(b"a,b\n" + good + b"1,\xff\xff\n" + good)
    assert rows(made)[::2] == [{"a": "1", "b": "快递"}] * 2
    assert rows(made)[1] == {"a": "1", "b": "\udcff\udcff"}


def test_csv_rows_that_are_broken() -> None:
    made = csv(b'a,b\n1\n1,2,3\n1,2\x00\n1,"open\nto the,end')
    assert errors(made) == ["wrong_number_of_columns", "wrong_number_of_columns", None, None]
    assert made[1].raw == "1,2,3\n"
    assert rows(made)[2:] == [{"a": "1", "b": "2\x00"}, {"a": "1", "b": "open\nto the,end"}]


def test_a_csv_record_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT", 100)
    monkeypatch.setattr(tables, "LINE_LIMIT", 100)
    monkeypatch.setattr(tables, "TRUNCATED", 10)
    made = csv("a,b\n1," + "x" * 200 + '\n3,4\n5,"' + "y\n" * 60 + "\n7,8\n")
    assert errors(made)[:3] == ["line_too_long", None, "line_too_long"]
    assert made[0].raw == "1," + "x" * 8
    assert rows(made)[1] == {"a": "3", "b": "4"}
    assert rows(made)[-1] == {"a": "7", "b": "8"}


def test_a_csv_with_a_message_of_two_megabytes() -> None:
    assert rows(csv("a,b\n1," + "x" * 2_000_000))[0]["b"] == "x" * 2_000_000


def test_a_csv_whose_header_cannot_be_read() -> None:
    with pytest.raises(InputError, match="no readable csv file"):
        csv(b"x" * (LINE_LIMIT + 1) + b"\n1\n")


def test_a_csv_of_nothing() -> None:
    assert csv(b"") == csv(b"a,b\n") == []


def test_a_csv_row_is_parsed_again_from_its_fields() -> None:
    made = csv("a,b\n1,\n")[0]
    assert parse_again(made.raw, "bad_time", "csv", position=1) == made
    assert parse_again("1,2,3\n", "wrong_number_of_columns", "csv").error == "wrong_number_of_columns"


# ---- Parquet


def test_parquet() -> None:
    at = datetime(2024, 5, 17, 8, 12, 30, 5, UTC)
    made = parquet(pa.table({"n": [1, None], "at": pa.array([at, None], pa.timestamp("us", "UTC"))}))
    assert rows(made) == [{"n": 1, "at": at}, {"n": None, "at": None}]
    assert made[0].raw == '{"n": 1, "at": "2024-05-17T08:12:30.000005+00:00"}'
    assert [raw.position for raw in made] == [0, 1]


def test_parquet_nanoseconds_are_cut_off() -> None:
    made = parquet(pa.table({"at": pa.array([1715933550123456789], pa.timestamp("ns", "UTC"))}))
    assert rows(made) == [{"at": datetime(2024, 5, 17, 8, 12, 30, 123456, UTC)}]
    assert type(made[0].row["at"]) is datetime  # type: ignore[index]


def _strings(*values: bytes) -> pa.Array:
    offsets = pa.array([sum(map(len, values[:i])) for i in range(len(values) + 1)], pa.int32())
    return pa.Array.from_buffers(pa.string(), len(values), [None, offsets.buffers()[1], pa.py_buffer(b"".join(values))])


def test_parquet_values_that_cannot_be_read_spoil_their_row_only() -> None:
    table = pa.table(
        {
            "text": _strings(b"ok", b"\xff\xfe", b"fine"),
            "at": pa.array([1715933550000000, 0, 2**62], pa.timestamp("us", "UTC")),
        }
    )
    made = parquet(table)
    assert errors(made) == [None, "unreadable_value", "unreadable_value"]
    assert made[0].row == {"text": "ok", "at": datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)}
    assert json.loads(made[1].raw) == {"text": "ÿþ", "at": "1970-01-01T00:00:00+00:00"}
    assert json.loads(made[2].raw) == {"text": "fine", "at": 2**62}


def test_a_parquet_file_that_is_none() -> None:
    for content in (b"", b"PAR1", b"no parquet at all" * 10):
        with pytest.raises(InputError, match="no readable parquet file"):
            parquet(content)
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(5_000))}), sink, compression="gzip")
    data = bytearray(sink.getvalue())
    data[40:2000] = bytes(1960)
    with pytest.raises(InputError, match="the Parquet file is damaged"):
        parquet(bytes(data))
