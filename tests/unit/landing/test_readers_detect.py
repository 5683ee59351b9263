"""Which reader a file is for."""

import io

import pytest

from memory_pipelines.errors import InputError
from memory_pipelines.landing.mapping import FORMATS
from memory_pipelines.landing.readers import READERS, detect_format, read_rows


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.csv", "", "csv"),
        ("a.CSV", "", "csv"),
        ("a.tsv", "", "csv"),
        ("a.pq", "", "parquet"),
        ("a.zip", "PK", "zip"),
        ("a.jsonl", "", "jsonl"),
        ("a.jsonl", '{"text":"messages"}', "jsonl"),
        ("a.jsonl", '{"text":"x","role":"user","requester_id":1,"ts":"1715933550.1"}', "jsonl"),
        ("a.jsonl", '{"kind":"order","occurred_at":1,"messages":[]}', "jsonl"),
        ("a.ndjson", '{broken\n{"messages":[]}', "openai_messages"),
        ("a.ndjson", '\n\n{"messages":[{"role":"user"}]}', "openai_messages"),
        ("a.json", '[{"text":"x"}]', "json"),
        ("a.json", '{"participants":[],"messages":[{"sender_name":"x"}]}', "json"),
        ("a.json", "[]", "json"),
        ("a.json", " \n", "json"),
        ("a.jsonl", '[{"text":"x"}]', "json"),
        ("a.json", '[{"title":"x","mapping":{"a":{"message":', "chatgpt"),
        ("a.json", '{"conversations":[{"mapping":{}}]}', "chatgpt"),
        ("a.json", '{"conversations":[{"id":1}]}', "intercom"),
        ("a.txt", "17/05/24, 08:12 - Ann: hi", "whatsapp"),
        ("a.log", "--- Log opened\n[08:12] <ann> hi\n", "irc"),
    ],
)
def test_formats(name: str, head: str, expected: str) -> None:
    assert detect_format(name, head.encode()) == expected
    if head and name != "a.zip":
        assert detect_format(name, ("\ufeff" + head).encode("utf-16-le")) == expected


@pytest.mark.parametrize(("name", "head"), [("a.txt", "hello"), ("README", "x"), ("a.xml", "<a/>"), ("a.json", "7")])
def test_what_no_reader_is_for(name: str, head: str) -> None:
    with pytest.raises(InputError, match="no reader for"):
        detect_format(name, head.encode())


def test_an_unknown_format() -> None:
    with pytest.raises(InputError, match="unknown format xml"):
        list(read_rows(io.BytesIO(b""), "xml"))


def test_a_mapping_may_name_every_reader() -> None:
    assert tuple(READERS) == FORMATS


def test_a_fault_of_the_stream_goes_through() -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "input/output error")

    for file_format in set(FORMATS) - {"parquet", "zip"}:
        with pytest.raises(OSError, match="input/output error"):
            list(read_rows(Broken(), file_format))  # type: ignore[arg-type]
