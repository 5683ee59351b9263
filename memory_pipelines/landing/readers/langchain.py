"""Messages of LangChain and LangGraph.

Belongs here: ``messages_to_dict`` (``{"type": "human", "data": {...}}``), flat and serialised (``"lc": 1``)
messages, and what holds lists of them: states of LangGraph threads, checkpoints, runs of LangSmith. Does not
belong here: reading a checkpointer's database. Messages have no time of their own unless somebody wrote one
(``created_at`` or ``timestamp``, in the message, its ``additional_kwargs`` or its ``response_metadata``); a
state's time is none of them and is not taken for one.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.messages import odd, text_of
from memory_pipelines.landing.readers.rows import Context, RawRow, Record, numbered, unreadable, verbatim

TYPES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "function",
    "remove": "system",
}
"""Types of messages and whose they are; ``chat`` names its role itself."""
_TIMES = ("created_at", "timestamp", "create_time", "created")


def read_langchain(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each message; in a dump of a thread's states one with an id may come often, and is one turn all the same."""
    return numbered(_records(stream, context))


def _records(stream: BinaryIO, context: Context) -> Iterator[Record]:
    for element in read_elements(stream, context):
        if isinstance(element, RawRow):
            yield element
        elif isinstance(element, list):  # one conversation an element
            yield from _messages({}, element)
        elif not isinstance(element, dict):
            yield odd(element, "not_an_object")
        elif is_message(element):
            yield _row(element, element)
        else:
            yield from _state(element)


def is_message(value: dict[str, Any]) -> bool:
    """Whether an object is one message, in any of the three forms."""
    if "lc" in value:
        return isinstance(value.get("kwargs"), dict)
    kind = _kind(value.get("type"))
    return (kind in TYPES or kind == "chat") and (isinstance(value.get("data"), dict) or "content" in value)


def _state(element: dict[str, Any]) -> Iterator[Record]:
    """A run has messages both in what it was given and in what it gave."""
    holders = [element, *(element.get(name) for name in ("values", "channel_values", "inputs", "outputs"))]
    checkpoint = element.get("checkpoint")
    if isinstance(checkpoint, dict):
        holders.append(checkpoint.get("channel_values"))
    found = False
    for holder in holders:
        if isinstance(holder, dict) and isinstance(holder.get("messages"), list):
            found = True
            yield from _messages(element, holder["messages"])
    if not found:
        yield unreadable(verbatim(element), "no_messages")


def _messages(state: dict[str, Any], messages: list[Any]) -> Iterator[Record]:
    for message in messages:
        if isinstance(message, list):  # inputs of a run may be batches
            yield from _messages(state, message)
        else:
            yield _row(state, message) if isinstance(message, dict) else odd(message, "not_an_object")


def _row(state: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    body = message.get("data") if isinstance(message.get("data"), dict) else message.get("kwargs")
    data: dict[str, Any] = body if isinstance(body, dict) else message
    config = state.get("config")
    configurable = config.get("configurable") if isinstance(config, dict) else None
    about = [place for place in (state, configurable, state.get("metadata")) if isinstance(place, dict)]
    thread = _first(about, "thread_id", "session_id", "conversation_id")
    return {
        "conversation_id": thread,
        "session_id": thread,
        "user_id": _first(about, "user_id"),
        "turn_id": data.get("id") if isinstance(data.get("id"), str) else None,
        "role": _role(message, data),
        "text": text_of(data.get("content")),
        "occurred_at": _first(
            [p for p in (data, data.get("additional_kwargs"), data.get("response_metadata")) if isinstance(p, dict)],
            *_TIMES,
        ),
        "origin": "langchain",
    }


def _first(places: list[dict[str, Any]], *names: str) -> Any:
    return next((place[name] for place in places for name in names if place.get(name) not in (None, "")), None)


def _role(message: dict[str, Any], data: dict[str, Any]) -> Any:
    kind = data.get("type") if "lc" in message else message.get("type")
    path = message.get("id")
    if kind is None and isinstance(path, list) and path:  # [..., "HumanMessage"]
        kind = path[-1]
    if kind is None:
        kind = message.get("role")
    kind = _kind(kind)
    return data.get("role") if kind == "chat" else TYPES.get(kind, kind) if isinstance(kind, str) else kind


def _kind(name: Any) -> Any:
    """``ai`` of ``AIMessageChunk`` and the like."""
    return name.removesuffix("Chunk").removesuffix("Message").lower() if isinstance(name, str) else None
