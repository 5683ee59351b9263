"""What exports of messages share: text in parts, ids with their source's name.

Belongs here: parts that several export formats share. Does not belong here: any one format.
"""

import json
from collections.abc import Iterator
from typing import Any

from memory_pipelines.landing.readers.rows import TRUNCATED, RawRow, unreadable

_TEXT_KEYS = ("text", "refusal", "content")


def text_of(content: Any) -> str:
    """Text of a message whose content is a text, or a list of parts; parts that are no text say nothing here."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    return "\n".join(text for text in map(_part, content) if text)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    for key in _TEXT_KEYS:
        value = part.get(key)
        if isinstance(value, dict):  # of an assistant's thread: {"text": {"value": ...}}
            value = value.get("value")
        if isinstance(value, str):
            return value
    return ""


def own(source: str, *parts: Any) -> str | None:
    """An id of a source that counts its rows: ``intercom:part:17``; None if a part is missing.

    Two sources of one tenant may both have a row 17."""
    if any(part is None or part == "" or isinstance(part, dict | list) for part in parts):
        return None
    return ":".join([source, *(str(part) for part in parts)])


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; nothing if it is none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strays(value: Any) -> Iterator[RawRow]:
    """What else stands in a list of messages."""
    for item in value if isinstance(value, list) else []:
        if not isinstance(item, dict):
            yield odd(item, "not_an_object")


def odd(value: Any, error: str) -> RawRow:
    """A value that is no message."""
    return unreadable(json.dumps(value, ensure_ascii=False)[:TRUNCATED], error)
