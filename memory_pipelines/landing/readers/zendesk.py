"""Zendesk: tickets with their comments, and comments by themselves.

Belongs here: tickets as exports and the API give them, in an array, one a line or wrapped. Does not belong
here: stripping HTML (step 1). Who asked is the requester; whoever else comments is an agent, unless the comment
says what its author is. Comments that are not public have the role ``system``.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.messages import objects, odd, own, strays
from memory_pipelines.landing.readers.rows import Context, RawRow, Record, numbered, unreadable, verbatim

WRAPPERS = ("tickets", "results")
_ROLES = {"end-user": "user", "end_user": "user", "agent": "agent", "admin": "agent"}


def read_zendesk(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each comment; of a ticket without any its description."""
    return numbered(_records(stream, context))


def _records(stream: BinaryIO, context: Context) -> Iterator[Record]:
    for element in read_elements(stream, context, WRAPPERS):
        if isinstance(element, RawRow):
            yield element
        elif not isinstance(element, dict):
            yield odd(element, "not_an_object")
        elif isinstance(element.get("ticket"), dict):
            yield from _ticket({**element["ticket"], "comments": _listed(element) or _listed(element["ticket"])})
        elif "requester_id" in element or "comments" in element:
            yield from _ticket(element)
        elif "author_id" in element:
            yield _comment(element, {"id": element.get("ticket_id")})
        else:
            yield unreadable(verbatim(element), "no_messages")


def _listed(ticket: dict[str, Any]) -> Any:
    comments = ticket.get("comments")
    return comments.get("comments") if isinstance(comments, dict) else comments


def _ticket(ticket: dict[str, Any]) -> Iterator[Record]:
    listed = _listed(ticket)
    comments = objects(listed)
    if not comments:
        yield _row(ticket, own("zendesk", "ticket", ticket.get("id")), ticket.get("description"), "user") | {
            "occurred_at": ticket.get("created_at")
        }
    for comment in comments:
        yield _comment(comment, ticket)
    yield from strays(listed)


def _comment(comment: dict[str, Any], ticket: dict[str, Any]) -> dict[str, Any]:
    bodies = (comment.get(name) for name in ("plain_body", "body", "html_body", "value"))
    text = next((body for body in bodies if isinstance(body, str) and body), "")
    author = comment.get("author_id")
    role = "system" if comment.get("public") is False else _role(comment, ticket, author)
    row = _row(ticket, own("zendesk", "comment", comment.get("id")), text, role) | {
        "author": author,
        "occurred_at": comment.get("created_at"),
    }
    if role == "user" and author is not None:
        row["user_id"] = author
    return row


def _role(comment: dict[str, Any], ticket: dict[str, Any], author: Any) -> str | None:
    named = comment.get("author")
    if isinstance(named, dict) and str(named.get("role")) in _ROLES:
        return _ROLES[str(named["role"])]
    if ticket.get("requester_id") is None or author is None:
        return None
    return "user" if author == ticket["requester_id"] else "agent"


def _row(ticket: dict[str, Any], identity: str | None, text: Any, role: str | None) -> dict[str, Any]:
    conversation = own("zendesk", ticket.get("id"))
    return {
        "conversation_id": conversation,
        "session_id": conversation,
        "user_id": ticket.get("requester_id"),
        "turn_id": identity,
        "role": role,
        "author": ticket.get("requester_id"),
        "text": text if isinstance(text, str) else "",
        "origin": "zendesk",
    }
