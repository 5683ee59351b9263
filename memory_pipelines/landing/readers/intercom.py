"""Intercom: conversations with their parts, and parts by themselves.

Belongs here: conversations as the API gives them, lists of them, and the records of a connector (``{"stream",
"data"}``). Does not belong here: stripping HTML (step 1). Notes among colleagues and parts that only move a
conversation (assigned, closed) have the role ``system``.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.messages import objects, odd, own, strays
from memory_pipelines.landing.readers.rows import Context, RawRow, Record, numbered, unreadable, verbatim

WRAPPERS = ("conversations",)
_ROLES = {"user": "user", "lead": "user", "contact": "user", "admin": "agent", "team": "agent", "bot": "agent"}


def read_intercom(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """A conversation's source, then its parts."""
    return numbered(_records(stream, context))


def _records(stream: BinaryIO, context: Context) -> Iterator[Record]:
    for element in read_elements(stream, context, WRAPPERS):
        if isinstance(element, RawRow):
            yield element
            continue
        record = element
        if isinstance(element, dict) and "stream" in element and isinstance(element.get("data"), dict):
            record = element["data"]
        if not isinstance(record, dict):
            yield odd(element, "not_an_object")
        elif record.get("type") == "conversation_part" or "part_type" in record:
            yield _part(record, record.get("conversation_id"), None)
        elif "source" in record or "conversation_parts" in record:
            yield from _conversation(record)
        else:
            yield unreadable(verbatim(element), "no_messages")


def _conversation(conversation: dict[str, Any]) -> Iterator[Record]:
    identity, contact = conversation.get("id"), _contact(conversation)
    source = conversation.get("source")
    if isinstance(source, dict):
        yield _row(source, own("intercom", "message", source.get("id")), identity, contact) | {
            "occurred_at": conversation.get("created_at")
        }
    elif source is not None:
        yield odd(source, "not_an_object")
    parts = conversation.get("conversation_parts")
    listed = parts.get("conversation_parts") if isinstance(parts, dict) else parts
    for part in objects(listed):
        yield _part(part, identity, contact)
    yield from strays(listed)


def _contact(conversation: dict[str, Any]) -> Any:
    contacts = conversation.get("contacts")
    listed = objects(contacts.get("contacts") if isinstance(contacts, dict) else contacts)
    return listed[0].get("id") if listed else None


def _part(part: dict[str, Any], conversation: Any, contact: Any) -> dict[str, Any]:
    row = _row(part, own("intercom", "part", part.get("id")), conversation, contact)
    if part.get("part_type") == "note" or not row["text"]:
        row["role"] = "system"
    # updated_at also moves when a part is delivered or read, so it tells of no edit
    return row | {"occurred_at": part.get("created_at")}


def _row(message: dict[str, Any], identity: str | None, conversation: Any, contact: Any) -> dict[str, Any]:
    author = message.get("author")
    author = author if isinstance(author, dict) else {}
    role = _ROLES.get(str(author.get("type")), author.get("type"))
    body = message.get("body")
    subject = message.get("subject")
    return {
        "conversation_id": own("intercom", conversation),
        "session_id": own("intercom", conversation),
        "user_id": author.get("id") if role == "user" else contact,
        "turn_id": identity,
        "role": role,
        "author": author.get("id"),
        "text": "\n".join(text for text in (subject, body) if isinstance(text, str) and text),
        "origin": "intercom",
    }
