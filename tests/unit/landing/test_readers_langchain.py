"""Messages of LangChain in each of their forms, and what holds them."""

from typing import Any

import pytest
from reading import column, dump, errors, read

DICT: list[dict[str, Any]] = [
    {"type": "human", "data": {"content": "hi", "id": "m1", "additional_kwargs": {"timestamp": "2024-05-17T08:00Z"}}},
    {"type": "ai", "data": {"content": [{"type": "text", "text": "hello"}, {"type": "tool_use", "name": "x"}]}},
    {"type": "tool", "data": {"content": "42"}},
    {"type": "chat", "data": {"content": "moo", "role": "customer"}},
]
FLAT = [{"type": "human", "content": "hi", "created_at": 1715933550}, {"type": "AIMessageChunk", "content": "yes"}]
SERIALISED = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": {"content": text}}
    for name, text in (("HumanMessage", "hi"), ("AIMessage", "hello"), ("SystemMessage", "be kind"))
]


def test_messages_to_dict() -> None:
    made = read(dump(DICT), name="a.json")
    assert column(made, "role", "text") == [("user", "hi"), ("assistant", "hello"), ("tool", "42"), ("customer", "moo")]
    assert column(made, "turn_id", "occurred_at")[:2] == [("m1", "2024-05-17T08:00Z"), (None, None)]


def test_flat_and_serialised() -> None:
    assert column(read(dump(FLAT), name="a.json"), "role", "occurred_at") == [("user", 1715933550), ("assistant", None)]
    assert column(read(dump(SERIALISED), name="a.json"), "role", "text") == [
        ("user", "hi"), ("assistant", "hello"), ("system", "be kind"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "holder",
    [
        {"messages": FLAT},
        {"values": {"messages": FLAT}},
        {"checkpoint": {"channel_values": {"messages": FLAT}}},
        {"inputs": {"messages": [FLAT[:1]]}, "outputs": {"messages": FLAT[1:]}},
    ],
)
def test_what_holds_messages(holder: dict[str, Any]) -> None:
    state = holder | {"config": {"configurable": {"thread_id": "th", "user_id": "ann"}}}
    made = read(dump(state) + b"\n" + dump(state) + b"\n", name="a.jsonl")
    assert column(made, "conversation_id", "user_id", "text") == [("th", "ann", "hi"), ("th", "ann", "yes")] * 2


def test_lists_of_conversations_and_what_is_no_message() -> None:
    made = read(dump([FLAT, {"messages": [3]}, {"a": 1}, 5]), "langchain")
    assert errors(made) == [None, None, "not_an_object", "no_messages", "not_an_object"]


def test_a_message_without_a_type_names_no_role() -> None:
    assert column(read(dump({"messages": [{"content": "x"}]}), "langchain"), "role") == [None]
