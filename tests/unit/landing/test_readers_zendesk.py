"""Zendesk: comments of tickets, whose they are."""

import json
from typing import Any

import pytest
from reading import column, dump, errors, read

from memory_pipelines.landing.mapping import parse_mapping


def comment(key: int, by: int, body: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "author_id": by, "body": body, "created_at": "2024-05-17T08:12:30Z", "public": True} | more


TICKET = {
    "id": 35,
    "requester_id": 7,
    "description": "where is it?",
    "created_at": "2024-05-17T08:00:00Z",
    "comments": [
        comment(1, 7, "where is it?"),
        comment(2, 9, "asked the carrier", public=False),
        comment(3, 9, "<p>on its way</p>", plain_body="on its way"),
        comment(4, 8, "I wait too", author={"role": "end-user"}),
    ],
}


@pytest.mark.parametrize(
    "content",
    [
        dump(TICKET) + b"\n" + b"\n",
        dump([TICKET]),
        json.dumps({"count": 1, "tickets": [TICKET], "users": []}, indent=1).encode(),
        dump({"ticket": {k: v for k, v in TICKET.items() if k != "comments"}, "comments": TICKET["comments"]}),
        dump(TICKET | {"comments": {"comments": TICKET["comments"]}}),
    ],
)
def test_tickets(content: bytes) -> None:
    made = read(content, name="a.json")
    assert column(made, "role", "user_id", "text") == [
        ("user", 7, "where is it?"),
        ("system", 7, "asked the carrier"),
        ("agent", 7, "on its way"),
        ("user", 8, "I wait too"),
    ]
    assert set(column(made, "conversation_id")) == {"zendesk:35"}
    assert column(made, "turn_id")[0] == "zendesk:comment:1"


def test_a_ticket_without_comments_is_its_description() -> None:
    made = read(dump({k: v for k, v in TICKET.items() if k != "comments"}), "zendesk")
    assert column(made, "turn_id", "role", "text", "occurred_at") == [
        ("zendesk:ticket:35", "user", "where is it?", "2024-05-17T08:00:00Z")
    ]


def test_comments_by_themselves_name_no_role_but_the_mapping_may() -> None:
    content = dump(comment(1, 9, "hi", ticket_id=35)) + b"\n"
    assert column(read(content, name="a.ndjson"), "role", "conversation_id") == [(None, "zendesk:35")]
    assert column(read(content, "zendesk", parse_mapping("roles: {9: agent}")), "role") == ["agent"]


def test_what_is_no_ticket() -> None:
    made = read(dump([{"id": 1}, 5, {"requester_id": 7, "comments": [3]}]), "zendesk")
    assert errors(made) == ["no_messages", "not_an_object", None, "not_an_object"]
