"""Slack: day files of a channel, alone or in an export's zip.

Belongs here: messages of ``<channel>/<day>.json``. Does not belong here: opening the zip (``archive``). Every
person is a user; bots are agents; joining, renaming and the like have the role ``system``. A thread is a
conversation of its own within its channel. Mentions keep their user ids, so that a day file alone gives the
same text as the whole export.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.messages import odd, own
from memory_pipelines.landing.readers.rows import Context, RawRow, Record, numbered

WRAPPERS = ("messages",)
DAY_FILE = re.compile(r"(?:^|/)\d{4}-\d\d-\d\d\.json$")
_TALK = (None, "", "me_message", "thread_broadcast", "reply_broadcast", "file_share", "file_comment")
_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_ESCAPE = re.compile("&(?:lt|gt|amp);")
_ESCAPES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def read_slack(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each message of one day file; its folder in ``context.name`` is the channel."""
    return numbered(day_records(stream, context, PurePosixPath(context.name).parent.name or "slack", frozenset()))


def day_records(stream: BinaryIO, context: Context, channel: str, bots: frozenset[str]) -> Iterator[Record]:
    """Messages of one day of ``channel``; ``bots`` are the user ids that no person has."""
    for element in read_elements(stream, context, WRAPPERS):
        if isinstance(element, RawRow):
            yield element
        elif isinstance(element, dict):
            yield _row(element, channel, bots)
        else:
            yield odd(element, "not_an_object")


def _row(message: dict[str, Any], channel: str, bots: frozenset[str]) -> dict[str, Any]:
    author = message.get("user") or message.get("bot_id") or message.get("username")
    thread = message.get("thread_ts")
    role = _role(message, bots)
    edited = message.get("edited")
    return {
        "conversation_id": own(channel, thread) or channel,
        "user_id": author if role == "user" else None,
        "turn_id": own("slack", message.get("ts"), author),
        "role": role,
        "author": author,
        "text": _plain(message.get("text")),
        "occurred_at": _time(message.get("ts")),
        "edited_at": _time(edited.get("ts")) if isinstance(edited, dict) else None,
        "origin": "slack",
    }


def _role(message: dict[str, Any], bots: frozenset[str]) -> str:
    subtype = message.get("subtype")
    if subtype == "bot_message":
        return "agent"
    if subtype not in _TALK or message.get("type", "message") != "message":
        return "system"
    return "agent" if message.get("bot_id") or str(message.get("user")) in bots else "user"


def _time(ts: Any) -> Any:
    """Slack's ``<seconds>.<count>`` to the microsecond, which a float would lose."""
    if not isinstance(ts, str) or not re.fullmatch(r"\d{9,11}\.\d{1,6}", ts, re.A):
        return ts
    seconds, fraction = ts.split(".")
    try:
        at = datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(fraction.ljust(6, "0")))
    except (ValueError, OverflowError, OSError):
        return ts
    return at.isoformat()


def _plain(text: Any) -> str:
    """Slack's mark-up as one reads it: ``@U123``, ``#general``, a link's label and address."""
    if not isinstance(text, str):
        return ""
    if "<" in text:
        text = _MARK.sub(_shown, text)
    if "&" in text:
        text = _ESCAPE.sub(lambda found: _ESCAPES[found.group()], text)
    return str(text)


def _shown(found: re.Match[str]) -> str:
    kind, target, label = (str(group or "") for group in found.groups())
    if kind == "@":
        return f"@{target}"
    if kind == "#":
        return f"#{label or target}"
    if kind == "!":
        return label or f"@{target.split('^')[0]}"
    return f"{label} ({target})" if label and label != target else target
