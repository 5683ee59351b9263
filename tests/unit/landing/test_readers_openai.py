"""Conversations of chat messages: each message is a row, with a time only where it has one."""

import json

from reading import column, dump, errors, read, rows

from memory_pipelines.landing.readers import parse_again

CONVERSATION = {
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


def test_openai_messages() -> None:
    made = read(dump(CONVERSATION) + b'\n{"messages":3}\n{broken\n{"messages":[]}\n', "openai_messages")
    common = {"tenant": "acme", "conversation_id": "c1", "session_id": "c1", "user_id": "ann", "origin": "assistant"}
    assert rows(made)[:2] == [
        common | {"turn_id": "m1", "role": "user", "text": "hi", "occurred_at": 1715933551},
        common | {"turn_id": None, "role": "assistant", "text": "a\nb", "occurred_at": None},
    ]
    assert errors(made) == [None, None, "not_an_object", "no_messages", "malformed_json"]
    assert [raw.position for raw in made] == [0, 1, 2, 3, 4]


def test_an_array_and_one_object() -> None:
    conversation = {"id": "c1", "messages": [{"role": "user", "content": "hi"}]}
    for content in (dump([conversation]), dump(conversation), json.dumps([conversation], indent=1).encode()):
        assert column(read(content, name="a.json"), "conversation_id", "text") == [("c1", "hi")]


def test_messages_by_themselves() -> None:
    lone = {"role": "user", "content": "hi", "user_id": "ann", "conversation_id": "c1", "timestamp": 1715933551}
    for name, content in (("a.json", dump([lone])), ("a.jsonl", dump(lone) + b"\n")):
        made = read(content, name=name)
        assert column(made, "conversation_id", "user_id", "text", "occurred_at") == [("c1", "ann", "hi", 1715933551)]


def test_content_of_every_form() -> None:
    contents = [
        {"content": None, "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]},
        {"content": None, "refusal": "I cannot."},
        {"content": [{"type": "output_text", "text": "x"}, {"type": "refusal", "refusal": "no"}, "y"]},
        {"content": [{"type": "text", "text": {"value": "of a thread", "annotations": []}}]},
    ]
    made = read(dump({"messages": [{"role": "assistant", **c} for c in contents]}), "openai_messages")
    assert column(made, "text") == ["", "I cannot.", "x\nno\ny", "of a thread"]


def test_a_message_is_parsed_again() -> None:
    made = read(dump(CONVERSATION), "openai_messages")[1]
    assert parse_again(made.raw, "no_time", "openai_messages", position=1) == made
