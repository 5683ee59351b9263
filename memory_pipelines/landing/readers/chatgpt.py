"""ChatGPT's ``conversations.json``: an array of conversations, each a tree of messages.

Belongs here: which branch of a tree was the dialogue. Does not belong here: what step 1 does with the rest. The
branch that ends in ``current_node`` is the dialogue. Messages of other branches (answers that were generated
anew, prompts that were edited) have the role ``unchosen``: they are landed rows that step 1 counts under
``unchosen_branch``, so that nothing is lost silently and no rejected answer becomes a memory. What the user
never saw (hidden, of weight 0, calls of tools) has the role ``system``. The export names no user: see
``constants`` in the mapping.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.messages import odd
from memory_pipelines.landing.readers.rows import Context, RawRow, Record, numbered, unreadable, verbatim
from memory_pipelines.model import Role

WRAPPERS = ("conversations",)


def read_chatgpt(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each message of each tree: the dialogue from its beginning, then the other branches as they are written."""
    return numbered(chatgpt_records(stream, context))


def chatgpt_records(stream: BinaryIO, context: Context) -> Iterator[Record]:
    """The messages, without positions."""
    for element in read_elements(stream, context, WRAPPERS):
        if isinstance(element, RawRow):
            yield element
        elif not isinstance(element, dict):
            yield odd(element, "not_an_object")
        elif not isinstance(element.get("mapping"), dict):
            yield unreadable(verbatim(element), "no_messages")
        else:
            yield from _conversation(element)


def _conversation(conversation: dict[str, Any]) -> Iterator[Record]:
    nodes: dict[str, Any] = conversation["mapping"]
    chosen = _chosen(nodes, conversation.get("current_node"))
    for key in [*chosen, *(key for key in nodes if key not in chosen)]:
        node = nodes[key]
        if not isinstance(node, dict):
            yield odd(node, "not_an_object")
            continue
        message = node.get("message")
        if isinstance(message, dict):
            yield _row(conversation, key, message, chosen=key in chosen)
        elif message is not None:
            yield odd(message, "not_an_object")


def _chosen(nodes: dict[str, Any], current: Any) -> dict[str, None]:
    """The keys from the root to ``current``; if that names no node, to the leaf that follows the latest children."""
    path: list[str] = []
    seen: set[str] = set()
    key = current if isinstance(current, str) and current in nodes else _latest_leaf(nodes)
    while isinstance(key, str) and key in nodes and key not in seen:
        seen.add(key)
        path.append(key)
        key = nodes[key].get("parent") if isinstance(nodes[key], dict) else None
    return dict.fromkeys(reversed(path))


def _latest_leaf(nodes: dict[str, Any]) -> str | None:
    key = next((k for k, node in nodes.items() if isinstance(node, dict) and node.get("parent") not in nodes), None)
    seen: set[str] = set()
    while key is not None and key not in seen:
        seen.add(key)
        children = nodes[key].get("children") if isinstance(nodes[key], dict) else None
        known = [c for c in children if isinstance(c, str) and c in nodes] if isinstance(children, list) else []
        if not known:
            return key
        key = known[-1]
    return key


def _row(conversation: dict[str, Any], key: str, message: dict[str, Any], *, chosen: bool) -> dict[str, Any]:
    identity = conversation.get("conversation_id") or conversation.get("id")
    role = _role(message)
    at = message.get("create_time")
    if at is None and role == Role.SYSTEM:  # the root of nearly every tree; step 1 only counts it
        at = conversation.get("create_time")
    return {
        "conversation_id": identity,
        "session_id": identity,
        "turn_id": message.get("id") or key,
        "role": role if chosen or role == Role.SYSTEM else Role.UNCHOSEN,
        "text": _text(message.get("content")),
        "occurred_at": at,
        "edited_at": message.get("update_time"),
        "origin": "chatgpt",
    }


def _role(message: dict[str, Any]) -> Any:
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    aside = message.get("recipient") not in (None, "all") or message.get("weight") in (0, 0.0)
    return Role.SYSTEM if hidden or aside or role in ("system", "tool") else role


def _text(content: Any) -> str:
    """Text parts; a picture or a file among them says nothing here."""
    if not isinstance(content, dict):
        return ""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return content["text"] if isinstance(content.get("text"), str) else ""
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str) and text)
