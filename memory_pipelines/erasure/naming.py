"""Whom a piece of raw text names: owner keys, so that it can be asked without knowing a name.

Belongs here: reading of rows as they came from a source. Does not belong here: what is done with them.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from memory_pipelines.model import Owner, device_subject, stable_hash, user_subject
from memory_pipelines.stores.vault import untagged

SHORTEST = 3
"""Bytes (a Chinese name of two characters has six); a shorter word of a broken text names nobody."""
SHORTEST_LINE = 8
"""Characters; a shorter line identifies nobody."""
ID_FIELDS = ("user_id", "device_id", "user")
CONVERSATION_FIELDS = ("conversation_id", "session_id")
_PART = re.compile(r"[0-9A-Za-z]+|[^\W0-9A-Za-z_]+")
MOST_PARTS = 6
"""Of one id: an e-mail address or a UUID has fewer."""


def parsed(raw: str) -> Any:
    """The JSON value of a raw row; None if it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def keys_named(raw: str, tenant: str) -> frozenset[str]:
    """Keys of all owners whom a raw row may name.

    A row with an id field names those ids. A list (CSV) may name each of its elements, whole; anything else
    each of its words. Where the row does not tell its tenant, it is ``tenant``.
    """
    value = parsed(raw)
    if isinstance(value, dict):
        tenant = str(value.get("tenant") or tenant)
        named = [str(value[name]) for name in ID_FIELDS if isinstance(value.get(name), str | int)]
        return _keys(tenant, named or [w for text in _strings(value) for w in words(text)])
    if isinstance(value, list):
        return _keys(tenant, [str(item) for item in value if isinstance(item, str | int)])
    return _keys(tenant, words(raw))


def keys_of_name(name: str, tenant: str) -> frozenset[str]:
    """Keys of all owners whom a file's name may name: by all of it, without its ending, or by a word."""
    return _keys(tenant, [name, name.rpartition(".")[0], *words(name)])


def conversations(raw: str) -> list[str]:
    """Conversations that a raw row without an id field belongs to."""
    value = parsed(raw)
    if not isinstance(value, dict) or any(value.get(name) for name in ID_FIELDS):
        return []
    return [str(value[name]) for name in CONVERSATION_FIELDS if isinstance(value.get(name), str | int)]


def line_keys(text: str | None) -> frozenset[str]:
    """Hashes of the lines of a text that are long enough to be somebody's; case and tags of tokens do not count."""
    lines = (line.strip() for line in untagged(text or "").casefold().split("\n"))
    return frozenset(stable_hash("line", line) for line in lines if len(line) >= SHORTEST_LINE)


def words(text: str) -> list[str]:
    """What in a text may be an id: runs of letters and digits, alone and as they are joined by single signs."""
    parts = [match.span() for match in _PART.finditer(text)]
    found: set[str] = set()
    for i, (start, end) in enumerate(parts):
        found.add(text[start:end])
        for after, until in parts[i + 1 : i + MOST_PARTS]:
            gap = text[end:after]
            if len(gap) > 1 or gap.isspace():
                break
            end = until
            found.add(text[start:end])
    return sorted(word for word in found if len(word.encode()) >= SHORTEST)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _keys(tenant: str, names: list[str]) -> frozenset[str]:
    subjects = [make(name) for name in names for make in (user_subject, device_subject)]
    return frozenset(Owner(tenant, subject).key for subject in subjects)
