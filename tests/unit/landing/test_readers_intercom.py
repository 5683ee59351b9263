"""Intercom: a conversation's source and parts, whose they are."""

import json
from typing import Any

import pytest
from reading import column, dump, errors, read


def part(key: str, kind: str, author: str, body: str | None) -> dict[str, Any]:
    return {
        "type": "conversation_part", "id": key, "part_type": kind, "body": body, "created_at": 1715933600,
        "author": {"type": author, "id": f"{author}-1"},
    }  # fmt: skip


CONVERSATION: dict[str, Any] = {
    "type": "conversation",
    "id": "60",
    "created_at": 1715933550,
    "contacts": {"contacts": [{"id": "c-9"}]},
    "source": {"id": "5", "subject": "", "body": "<p>where is it?</p>", "author": {"type": "lead", "id": "c-9"}},
    "conversation_parts": {
        "conversation_parts": [
            part("1", "comment", "bot", "<p>One moment</p>"),
            part("2", "assignment", "admin", None),
            part("3", "note", "admin", "<p>rude</p>"),
            part("4", "comment", "admin", "<p>On its way</p>"),
            part("5", "comment", "user", "<p>thanks</p>"),
        ]
    },
}
ROLES = ["user", "agent", "system", "system", "agent", "user"]


@pytest.mark.parametrize(
    "content",
    [
        dump(CONVERSATION) + b"\n",
        dump([CONVERSATION]),
        json.dumps({"type": "conversation.list", "pages": {}, "conversations": [CONVERSATION]}, indent=2).encode(),
        dump({"stream": "conversations", "data": CONVERSATION, "emitted_at": 1}) + b"\n",
    ],
)
def test_conversations(content: bytes) -> None:
    made = read(content, name="a.json")
    assert column(made, "role") == ROLES
    assert column(made, "user_id") == ["c-9", "c-9", "c-9", "c-9", "c-9", "user-1"]
    assert set(column(made, "conversation_id")) == {"intercom:60"}
    assert column(made, "turn_id")[::5] == ["intercom:message:5", "intercom:part:5"]
    assert column(made, "occurred_at")[:2] == [1715933550, 1715933600]
    assert column(made, "text")[0] == "<p>where is it?</p>"


def test_parts_by_themselves() -> None:
    alone = part("1", "comment", "user", "hi") | {"conversation_id": 60}
    made = read(dump({"stream": "conversation_parts", "data": alone}) + b"\n" + dump(alone), name="a.jsonl")
    assert column(made, "conversation_id", "user_id", "text") == [("intercom:60", "user-1", "hi")] * 2


def test_what_is_no_conversation() -> None:
    odd = {"source": 7, "conversation_parts": [part("1", "comment", "robot", "x"), 5]}
    made = read(dump([odd, {"id": 1}, 5]), "intercom")
    assert errors(made) == ["not_an_object", None, "not_an_object", "no_messages", "not_an_object"]
    assert column(made, "role") == ["robot"]
