"""Whom a raw row names."""

import json

import pytest

from memory_pipelines.erasure.naming import conversations, keys_named, keys_of_name, words
from memory_pipelines.model import Owner


def named(raw: object, subject: str, tenant: str = "acme") -> bool:
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    return Owner("acme", subject).key in keys_named(text, tenant)


def test_words_are_runs_of_letters_and_digits_and_what_single_signs_join() -> None:
    assert words("a.b@cc") == ["a.b", "a.b@cc", "b@cc"]
    assert words("to ann-7f3, now") == ["7f3", "ann", "ann-7f3", "now"]
    assert words("我是ann呀") == ["ann", "ann呀", "呀", "我是", "我是ann", "我是ann呀"]
    assert words("x - y  z") == []
    assert words("") == []
    assert "550e8400-e29b-41d4-a716-446655440000" in words('{"id":"550e8400-e29b-41d4-a716-446655440000",')


@pytest.mark.parametrize("number", [0, 1, 200_000])
def test_a_long_text_is_read_in_one_pass(number: int) -> None:
    assert words("ab " * number + "end-1") == ["end", "end-1"]


@pytest.mark.parametrize(
    ("raw", "subject"),
    [
        ({"user_id": "ann"}, "u:ann"),
        ({"user_id": 12}, "u:12"),
        ({"device_id": "f00"}, "d:f00"),
        ({"user": "x"}, "u:x"),
        ({"user_id": None, "text": "from ann@mail.com."}, "u:ann@mail.com"),
        (["7", "text"], "u:7"),
        ([["nested"], 7], "u:7"),
        ("user=ann-7;", "u:ann-7"),
        ("张伟: 你好", "u:张伟"),
    ],
)
def test_named(raw: object, subject: str) -> None:
    assert named(raw, subject)
    assert not named(raw, subject, "globex")


@pytest.mark.parametrize(
    ("raw", "subject"),
    [
        ({"user_id": "bob", "text": "ann"}, "u:ann"),
        ({"text": "7"}, "u:7"),
        (["ann said"], "u:ann"),
        ("anna", "u:ann"),
        ({"user_id": {"id": "ann"}}, "u:ann-"),
        ("[" * 100_000, "u:ann"),
    ],
)
def test_not_named(raw: object, subject: str) -> None:
    assert not named(raw, subject)


def test_a_row_tells_its_tenant_itself() -> None:
    assert named({"tenant": "acme", "user_id": "ann"}, "u:ann", "default")
    assert not named({"tenant": "globex", "user_id": "ann"}, "u:ann")


def test_conversations_of_rows_without_an_id() -> None:
    assert conversations('{"conversation_id": "c", "session_id": 7}') == ["c", "7"]
    assert conversations('{"conversation_id": "c", "user_id": "ann"}') == []
    assert conversations('["c"]') == conversations("c") == conversations("{") == []


def test_file_names() -> None:
    ann = Owner("acme", "u:ann-7f3").key
    assert all(ann in keys_of_name(name, "acme") for name in ("ann-7f3.jsonl", "chat of ann-7f3.txt", "x-ann-7f3.csv"))
    assert ann not in keys_of_name("ann-7f33.jsonl", "acme")
    assert Owner("acme", "u:a b").key in keys_of_name("a b.jsonl", "acme")
