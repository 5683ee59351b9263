"""Which reader a file is for: by its name, and by how it begins.

Belongs here: telling formats apart. Does not belong here: reading them.
"""

import codecs
import json
import re
from typing import Any

from memory_pipelines.errors import InputError
from memory_pipelines.landing.mapping import FORMATS
from memory_pipelines.landing.readers import irc, whatsapp
from memory_pipelines.landing.readers.langchain import is_message
from memory_pipelines.landing.readers.lines import decode_anyhow

HEAD = 1 << 16
"""So many bytes of a file are enough to tell its format."""
_TABLES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".zip": "zip"}
_JSON = frozenset({".json", ".jsonl", ".ndjson"})
_TEXT = frozenset({".txt", ".log"})
SUFFIXES = frozenset(_TABLES) | _JSON | _TEXT
"""Suffixes of files that some reader may be for, in lower case, without that of a compression."""

_HINTS = (
    ("chatgpt", re.compile(r'"mapping"\s*:\s*\{')),
    ("zendesk", re.compile(r'"(?:requester_id|ticket|tickets)"\s*:')),
    ("intercom", re.compile(r'"(?:conversation_parts|part_type)"\s*:|"type"\s*:\s*"conversation\.list"')),
    ("slack", re.compile(r'"ts"\s*:\s*"\d+\.\d+"')),
    ("langchain", re.compile(r'"type"\s*:\s*"(?:human|ai)"|"lc"\s*:\s*1')),
    ("openai_messages", re.compile(r'"messages"\s*:\s*\[')),
)
"""What tells a document whose first element does not end in its head."""
_DECODER = json.JSONDecoder()


def detect_format(name: str, head: bytes) -> str:
    """Name of the reader for a file.

    ``name``: the file's name without the suffix of a compression; ``head``: its first ``HEAD`` bytes, or all.
    Raises InputError for what no reader is for.
    """
    suffix = _suffix(name)
    if suffix in _TABLES:
        return _TABLES[suffix]
    if suffix in _JSON:
        return _json_format(_text(head), suffix)
    if suffix in _TEXT:
        return _log_format(_text(head))
    raise InputError(f"no reader for {suffix or 'a file without suffix'}; known: {', '.join(FORMATS)}")


def _suffix(name: str) -> str:
    dot = name.rfind(".")
    return name[dot:].lower() if dot > max(name.rfind("/"), name.rfind("\\")) else ""


def _text(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", "replace")
    return "".join(map(decode_anyhow, head.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)))


def _log_format(text: str) -> str:
    if not text.strip():
        return "irc"  # nothing was written yet: no reader finds a row in it
    lines = text.splitlines()
    counts = {"whatsapp": sum(map(whatsapp.begins, lines)), "irc": sum(map(irc.says, lines))}
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        raise InputError("no reader for this text: neither a WhatsApp export nor a log of IRC")
    return best


def _json_format(text: str, suffix: str) -> str:
    start = len(text) - len(text.lstrip())
    array = text.startswith("[", start)
    first = _first_object(text, start + array)
    hinted = next((kind for kind, hint in _HINTS if hint.search(text)), None) if first is None else None
    found = hinted if first is None else _of_object(first)
    if found is not None:
        return found
    if suffix == ".json":
        if text[start:] and not text.startswith(("[", "{"), start):
            raise InputError("no reader for this: it is no JSON")
        return "json"
    return "json" if array else "jsonl"


def _first_object(text: str, at: int) -> dict[str, Any] | None:
    """The first object that can be read: the first element of an array, else that of the first good line."""
    for start in (at, *(found.end() for found in re.finditer(r"\n", text[at : at + HEAD]))):
        begin = start if start == at else at + start
        try:
            value, _ = _DECODER.raw_decode(text, begin + len(text[begin:]) - len(text[begin:].lstrip(" \t\r\n,")))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
        if isinstance(value, list):
            return next((item for item in value if isinstance(item, dict)), None)
    return None


def _of_object(value: dict[str, Any]) -> str | None:
    """The format whose record an object is; None: a row of somebody's own table."""
    if {"role", "text"} <= value.keys() or {"kind", "occurred_at"} <= value.keys():
        return None
    if isinstance(value.get("mapping"), dict):
        return "chatgpt"
    if isinstance(conversations := value.get("conversations"), list):
        inner = next((c for c in conversations if isinstance(c, dict)), {})
        return "chatgpt" if "mapping" in inner else "intercom"
    if "stream" in value and isinstance(value.get("data"), dict):  # a connector's record
        return _of_object(value["data"])
    if "requester_id" in value or isinstance(value.get("ticket"), dict) or isinstance(value.get("tickets"), list):
        return "zendesk"
    if "author_id" in value and ("ticket_id" in value or "html_body" in value):
        return "zendesk"
    if "conversation_parts" in value or "part_type" in value or value.get("type") == "conversation":
        return "intercom"
    if isinstance(messages := value.get("messages"), list):
        return _of_messages(messages)
    if any(
        isinstance(value.get(name), dict) and "messages" in value[name]
        for name in ("values", "channel_values", "inputs", "outputs")
    ) or isinstance(value.get("checkpoint"), dict):
        return "langchain"
    if isinstance(ts := value.get("ts"), str) and re.fullmatch(r"\d{9,11}\.\d{1,6}", ts):
        return "slack"
    if is_message(value):
        return "langchain"
    return "openai_messages" if "role" in value and "content" in value and "text" not in value else None


def _of_messages(messages: list[Any]) -> str | None:
    first = next((m for m in messages if isinstance(m, dict)), {})
    if "ts" in first:
        return "slack"
    if is_message(first) and "role" not in first:
        return "langchain"
    return "openai_messages" if not messages or "role" in first or not first else None
