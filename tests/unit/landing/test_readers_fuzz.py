"""Whatever the bytes: no reader stops, loses a row, or reads the same bytes in two ways.

What each format promises of a file of which some bytes were changed:

- lines (JSON lines, IRC, WhatsApp) and CSV: whatever still stands in the file stands in some row, read or not;
- JSON documents: elements before the first changed byte come out as they were, and if one behind the change is missing,
  there is a row with an error (the changed one itself may say something else now, if it is still JSON);
- Parquet and zip, which have check sums of their own: rows, errors or one InputError for the file.
"""

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import Trickle

from memory_pipelines.errors import InputError
from memory_pipelines.landing.mapping import parse_mapping
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.readers import READERS, SUFFIXES, RawRow, detect_format, parse_again, read_rows
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS

LANDED = datetime(2026, 6, 1, tzinfo=UTC)
AT = 1715933550
MAPPING = parse_mapping("{timezone: Asia/Shanghai, roles: {Bo: agent}, time_formats: ['%d.%m.%y %H:%M']}")
TEXTS = [f"mark{i} 快递还没到 é😀" for i in range(5)]


def _lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def _pretty(*values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False, indent=2).encode()


def _node(i: int) -> dict[str, Any]:
    said = {"id": f"m{i}", "author": {"role": "user"}, "create_time": AT + i, "content": {"parts": [TEXTS[i]]}}
    return {"id": f"c{i}", "mapping": {"a": {"message": said, "parent": None}}, "current_node": "a"}


_SLACK = [{"type": "message", "user": "U1", "text": text, "ts": f"{AT + i}.000100"} for i, text in enumerate(TEXTS)]
_PEOPLE = [{"role": "user", "text": t, "user_id": "ann", "occurred_at": AT + i} for i, t in enumerate(TEXTS)]
_AUTHOR = {"author": {"type": "user", "id": "u1"}, "created_at": AT, "part_type": "comment"}


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(_PEOPLE), sink)
    return sink.getvalue()


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("general/2024-05-17.json", _pretty(*_SLACK))
        archive.writestr("users.json", b'[{"id":"U9","is_bot":true}]')
    return sink.getvalue()


FILES: dict[str, list[bytes]] = {
    "jsonl": [_lines(*_PEOPLE)],
    "json": [_pretty(*_PEOPLE), json.dumps(_PEOPLE).encode()],
    "csv": [
        ("user_id,role,occurred_at,text\n" + "".join(f'ann,user,{AT},"{t}, ""x"""\n' for t in TEXTS)).encode(),
        ("user_id;role;occurred_at;text\r\n" + "".join(f"ann;user;{AT};{t}\r\n" for t in TEXTS)).encode("gb18030"),
    ],
    "parquet": [_parquet()],
    "openai_messages": [
        _lines(*({"messages": [{"role": "user", "content": text, "created_at": AT}]} for text in TEXTS))
    ],
    "chatgpt": [_pretty(*map(_node, range(5))), json.dumps([_node(i) for i in range(5)], ensure_ascii=False).encode()],
    "langchain": [_lines(*({"type": "human", "data": {"content": t, "created_at": AT}} for t in TEXTS))],
    "whatsapp": [
        "".join(f"2024-05-17, 08:1{i} - Ann: {t}\nmore\n" for i, t in enumerate(TEXTS)).encode(),
        "".join(f"\u200e[2024/5/17 下午8:1{i}:00] Bo: {t}\r\n" for i, t in enumerate(TEXTS)).encode("utf-16"),
    ],
    "slack": [_pretty(*_SLACK)],
    "intercom": [_lines(*({"id": i, "body": t, **_AUTHOR} for i, t in enumerate(TEXTS)))],
    "zendesk": [
        json.dumps(
            {"tickets": [{"id": 5, "requester_id": 7, "description": t, "created_at": AT} for t in TEXTS], "count": 5},
            ensure_ascii=False,
        ).encode()
    ],
    "irc": [
        ("--- Day changed Fri May 17 2024\n" + "".join(f"[08:1{i}] <ann> {t}\n" for i, t in enumerate(TEXTS))).encode()
    ],
    "zip": [_zip()],
}  # fmt: skip
OF_LINES = frozenset({"jsonl", "csv", "whatsapp", "irc"})
OF_ELEMENTS = frozenset({"json", "openai_messages", "chatgpt", "langchain", "slack", "intercom", "zendesk"})


@dataclass(frozen=True)
class Change:
    """Bytes from ``at`` on, ``length`` of them, give way to ``put``."""

    at: float
    length: int
    put: bytes

    def __call__(self, data: bytes) -> tuple[bytes, int]:
        """The changed file, and where the change begins."""
        start = int(self.at * len(data))
        return data[:start] + self.put + data[start + self.length :], start


_SHARP = st.sampled_from([b"", *(b"%c" % char for char in b'"{}[],\n\r\\\0\xff\xe5'), b"\n{"])
CHANGES = st.builds(Change, st.floats(0, 1), st.integers(0, 40), st.binary(max_size=6) | _SHARP)


def read(file_format: str, data: bytes, opened: Callable[[bytes], Any] = io.BytesIO) -> list[RawRow] | None:
    try:
        return list(read_rows(opened(data), file_format, MAPPING, name="chat 2024-05-17.txt"))
    except InputError:
        return None


def checked(file_format: str, data: bytes) -> list[RawRow] | None:
    """The rows, of which all is true that must be of any."""
    made = read(file_format, data)
    assert made == read(file_format, data)
    if file_format != "parquet":
        assert made == read(file_format, data, lambda content: Trickle(content, 13))
    if made is None:
        return None
    positions = [raw.position for raw in made]
    assert positions == sorted(set(positions))
    assert all(position >= 0 for position in positions)
    first, again = (Normaliser("f", "acme", 8, LANDED) for _ in range(2))
    for raw in made:
        assert (raw.row is None) == (raw.error is not None)
        kind, row = first(raw)
        spec = {"turn": TURNS, "behaviour": BEHAVIOUR, "quarantine": QUARANTINE}[kind]
        assert pa.Table.from_pylist([row], schema=spec.schema).num_rows == 1
        held = raw.raw.encode("utf-8", "backslashreplace").decode()  # as quarantine keeps it
        reason = row.get("reason", "bad_time")
        anew = again(parse_again(held, reason, file_format, MAPPING, position=raw.position))
        if raw.row is not None and reason != "unknown_encoding":
            assert anew == (kind, row | ({"raw": anew[1]["raw"]} if kind == "quarantine" else {}))
    return made


def texts(rows: list[RawRow]) -> str:
    return "\n".join(raw.raw for raw in rows)


def test_every_reader_is_here() -> None:
    assert FILES.keys() == READERS.keys()


@pytest.mark.parametrize("file_format", sorted(READERS))
def test_the_files_are_good(file_format: str) -> None:
    for data in FILES[file_format]:
        made = checked(file_format, data)
        assert made is not None
        assert not [raw.error for raw in made if raw.error]
        assert all(text in texts(made) for text in TEXTS)
        normaliser = Normaliser("f", "acme", 8, LANDED)
        assert {normaliser(raw)[0] for raw in made} == {"turn"}


@pytest.mark.parametrize("file_format", sorted(READERS))
@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(file_format: str, data: bytes) -> None:
    checked(file_format, data)


def test_a_lead_byte_before_a_mark_takes_its_letter() -> None:
    good = next(data for data in FILES["csv"] if "快".encode("gbk") in data)
    changed = good.replace(b";mark1", b";\x81mark1")
    assert not _standing("mark1", good, changed)
    assert _standing("mark2", good, changed)
    made = checked("csv", changed)
    assert made is not None
    assert len(made) == len(checked("csv", good) or [])


@pytest.mark.parametrize("file_format", sorted(READERS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_files_with_changed_bytes(file_format: str, data: st.DataObject) -> None:
    good = data.draw(st.sampled_from(FILES[file_format]))
    change = data.draw(CHANGES)
    changed, start = change(good)
    made = checked(file_format, changed)
    if made is None:
        assert file_format in ("parquet", "zip", "csv")
        return
    if file_format in OF_LINES:
        standing = [i for i in range(5) if _standing(f"mark{i}", good, changed)]
        header = file_format == "csv" and start < good.index(b"mark0")
        assert header or all(f"mark{i}" in texts(made) for i in standing)
    if file_format in OF_ELEMENTS:
        before = [i for i in range(5) if _end(good, i) <= start]
        marks = [next((i for i in range(5) if f"mark{i}" in raw.raw), None) for raw in made if raw.error is None]
        assert marks[: len(before)] == before
        end = start + change.length
        others = {i for i in range(5) if _end(good, i) <= start or good.find(f"mark{i - 1}".encode()) > end}
        assert any(raw.error for raw in made) or others <= set(marks)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below a value."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


@pytest.mark.parametrize("file_format", sorted(OF_ELEMENTS | {"jsonl"}))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_value_in_any_place(file_format: str, data: st.DataObject) -> None:
    good = FILES[file_format][0].decode()
    document = json.loads(good) if good[0] == "[" else [json.loads(line) for line in good.splitlines()]
    document = document[0]["tickets"] if file_format == "zendesk" else document
    container, key = data.draw(st.sampled_from(_places(document[0])))
    container[key] = data.draw(_JSON)
    changed = _lines(*document) if file_format == "jsonl" else json.dumps(document).encode()
    made = checked(file_format, changed)
    assert made is not None
    assert all(any(f"mark{i}" in raw.raw for raw in made if raw.error is None) for i in range(1, 5))


def _standing(mark: str, good: bytes, changed: bytes) -> bool:
    """Whether a mark stands in the changed file, where its bytes are read as text."""
    if good[:2] == b"\xff\xfe":  # UTF-16 that lost an odd number of bytes is other text
        return False
    at = changed.find(mark.encode())
    return at == 0 or (at > 0 and changed[at - 1] < 0x80)  # a lead byte of GBK takes the letter after it


def _end(good: bytes, i: int) -> int:
    """Where the element of a mark has ended for sure: the next one has begun."""
    following = good.find(f"mark{i + 1}".encode())
    return len(good) if following < 0 else following


@given(
    st.sampled_from(sorted(SUFFIXES)) | st.text(max_size=5),
    st.binary(max_size=80) | st.sampled_from([data for files in FILES.values() for data in files]),
)
def test_any_file_has_a_format_or_none(suffix: str, head: bytes) -> None:
    with suppress(InputError):
        assert detect_format("a" + suffix, head) in READERS


@pytest.mark.parametrize("file_format", sorted(OF_ELEMENTS - {"json"}))
def test_formats_are_told_by_their_head(file_format: str) -> None:
    for data in FILES[file_format]:
        for size in (len(data), len(data) - 20):
            assert detect_format("a.json", data[:size]) == file_format
