"""JSON of any size: one element at a time, and on behind a broken one."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import Trickle, errors, read, rows

from memory_pipelines.landing.mapping import NO_MAPPING
from memory_pipelines.landing.readers import RawRow, json_documents
from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.rows import Context

CONTEXT = Context(NO_MAPPING)


def elements(content: bytes | str, *wrappers: str, piece: int = 1 << 20) -> list[Any]:
    data = content.encode() if isinstance(content, str) else content
    found = read_elements(Trickle(data, piece), CONTEXT, wrappers)  # type: ignore[arg-type]
    return [(e.error, e.raw) if isinstance(e, RawRow) else e for e in found]


@pytest.mark.parametrize(
    "content",
    [
        '[{"a":1},{"a":"]}"}]',
        '\ufeff [ {"a":1} , {"a":"]}"} ] \n',
        json.dumps([{"a": 1}, {"a": "]}"}], indent=2),
        json.dumps([{"a": 1}, {"a": "]}"}], indent=0),
        '{"a":1}\n{"a":"]}"}\n',
        '{"a":1}\r\n\r\n{"a":"]}"}',
        '{"n":2,"items":[{"a":1},{"a":"]}"}],"next":null}',
        '{\n "next": "…",\n "items": [\n  {"a":1},\n  {"a":"]}"}\n ]\n}',
        '{"items":[{"a":1}]}\n{"items":[{"a":"]}"}]}\n',
    ],
)
@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_forms_of_documents(content: str, piece: int) -> None:
    assert elements(content, "items", piece=piece) == [{"a": 1}, {"a": "]}"}]


def test_one_object() -> None:
    assert elements('{"a":\n {"b":2}}') == [{"a": {"b": 2}}]
    assert elements('{"a":{"b":2}}') == [{"a": {"b": 2}}]
    assert elements("") == elements("  \n") == elements("[]") == []


def test_a_broken_element_spoils_itself_only() -> None:
    assert elements('[{"a":1},{"a":tru},{"a":3}]') == [{"a": 1}, ("malformed_json", '{"a":tru}'), {"a": 3}]
    assert elements('[{"a":1},nonsense,{"a":3}]') == [{"a": 1}, ("malformed_json", "nonsense"), {"a": 3}]
    assert elements('{"a":1}\n{"a":tru\n{"a":3}\n') == [{"a": 1}, ("malformed_json", '{"a":tru\n'), {"a": 3}]


def test_an_open_quote_spoils_no_element_on_a_line_of_its_own() -> None:
    pretty = json.dumps([{"a": 1}, {"a": "two"}, {"a": 3}, {"a": 4}], indent=2)
    made = elements(pretty.replace('"two"', '"two'))
    assert made[0] == {"a": 1}
    assert made[1][0] == "malformed_json"
    assert made[2:] == [{"a": 3}, {"a": 4}]


def test_a_document_that_is_cut() -> None:
    assert elements('[{"a":1},{"a"') == [{"a": 1}, ("malformed_json", '{"a"'), ("cut_off", "")]
    assert elements('[{"a":1},') == [{"a": 1}, ("cut_off", "")]
    assert elements('[{"a":1}]{"a":2}') == [{"a": 1}, ("malformed_json", "]"), {"a": 2}, ("cut_off", "")]


@pytest.mark.parametrize("piece", [1, 4, 1000])
def test_a_stray_bracket_ends_no_document(piece: int) -> None:
    broken = ("malformed_json", "]")
    assert elements('[{"a":1}],  {"a":2}]', piece=piece) == [{"a": 1}, broken, {"a": 2}]
    assert elements('{"items":[{"a":1}],{"a":2}],"n":2}', "items", piece=piece) == [{"a": 1}, broken, {"a": 2}]
    assert elements('{"items":[{"a":1}]\n , "n":[{"b":2}]}', "items", piece=piece) == [{"a": 1}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "gb18030", "utf-16"])
def test_encodings(encoding: str) -> None:
    assert (
        elements(json.dumps([{"a": "快递还没到" * 30}] * 3, ensure_ascii=False).encode(encoding), piece=11)
        == [{"a": "快递还没到" * 30}] * 3
    )


def test_a_bad_byte_stays_in_its_element() -> None:
    content = '[{"a":"快递"},{"a":"?"},{"a":"到了"}]'.encode().replace(b"?", b"\xff")
    assert elements(content) == [{"a": "快递"}, {"a": "\udcff"}, {"a": "到了"}]


def test_an_element_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_documents, "ELEMENT_LIMIT", 200)
    monkeypatch.setattr(json_documents, "HEAD", 64)
    monkeypatch.setattr(json_documents, "TRUNCATED", 8)
    long = json.dumps({"a": ['x"}]{' * 300]})
    for piece in (3, 64):
        made = elements(f'[{{"a":1}},{long},{{"a":3}}]', piece=piece)
        assert made == [{"a": 1}, ("record_too_long", long[:8]), {"a": 3}]


def test_memory_is_bounded_by_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    more = json_documents._Text.more

    def noted(self: Any, characters: int) -> None:
        more(self, characters)
        held.append(len(self.buffer))

    monkeypatch.setattr(json_documents._Text, "more", noted)
    data = json.dumps([{"a": "x" * 1000}] * 3000).encode()
    assert len(elements(data, piece=1 << 16)) == 3000
    assert max(held) < 300_000


def test_a_table_in_json() -> None:
    made = read('[{"a":1},7,{"a":2}]', "json")
    assert rows(made) == [{"a": 1}, None, {"a": 2}]
    assert errors(made)[1] == "not_an_object"
    assert [raw.position for raw in made] == [0, 1, 2]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=3), _VALUES, max_size=3), max_size=5),
    st.sampled_from([None, 0, 1, 4]),
    st.integers(1, 40),
    st.booleans(),
)
def test_any_elements_come_back(values: list[Any], indent: int | None, piece: int, ascii_only: bool) -> None:
    assert elements(json.dumps(values, indent=indent, ensure_ascii=ascii_only), piece=piece) == values
    lines = "".join(json.dumps(value, ensure_ascii=ascii_only) + "\n" for value in values)
    assert elements(lines, piece=piece) == values
