"""Conversations in the form of OpenAI's chat messages.

Belongs here: ``{"id", "user", "messages": [{"role", "content", ...}]}``, one a line, in an array or alone, and
messages that stand by themselves. Does not belong here: the tree of ``conversations.json`` (``chatgpt``).
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.messages import odd, text_of
from memory_pipelines.landing.readers.rows import Context, RawRow, Record, numbered, unreadable, verbatim


def read_openai_messages(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each message. One without a time of its own takes no other's: it is yielded without one."""
    return numbered(_records(stream, context))


def _records(stream: BinaryIO, context: Context) -> Iterator[Record]:
    for element in read_elements(stream, context):
        if isinstance(element, RawRow):
            yield element
        elif not isinstance(element, dict):
            yield odd(element, "not_an_object")
        elif isinstance(element.get("messages"), list):
            for message in element["messages"]:
                yield _row(element, message) if isinstance(message, dict) else odd(message, "not_an_object")
        elif "role" in element and "messages" not in element:
            yield _row(element, element)
        else:
            yield unreadable(verbatim(element), "no_messages")


def _row(conversation: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    identity = conversation.get("conversation_id") if conversation is message else conversation.get("id")
    text = text_of(message.get("content"))
    if not text and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    times = (message.get(name) for name in ("created_at", "create_time", "timestamp"))
    return {
        "tenant": conversation.get("tenant"),
        "conversation_id": identity,
        "session_id": conversation.get("session_id") or identity,
        "user_id": conversation.get("user") or conversation.get("user_id"),
        "turn_id": message.get("id"),
        "role": message.get("role"),
        "text": text,  # a message that only calls a tool says nothing: step 1 counts it as empty
        "occurred_at": next((time for time in times if time is not None), None),
        "origin": conversation.get("origin", "assistant"),
    }
