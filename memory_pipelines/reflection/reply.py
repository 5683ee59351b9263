"""From a language model's words to drafts: find the JSON, check each insight, say what is wrong.

Belongs here: the JSON schema of a reply and its validation; nothing in a reply is trusted. Does not belong here:
citations, which are checked for both paths alike (``schema``), or the model itself (``llm``).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from memory_pipelines.model import stable_hash
from memory_pipelines.reflection.schema import ACTION_ITEM, KINDS, MAX_TEXT, Draft, Scope
from memory_pipelines.stores.authority import StoredMemory

NAME = "reflection"
MAX_INSIGHTS = 20
MAX_REPLY = 100_000
MAX_STARTS = 20
LATEST_DUE = timedelta(days=366)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "insights": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "enum": list(KINDS)},
                    "text": {"type": "string"},
                    "memory_ids": {"type": "array", "items": {"type": "string"}},
                    "confidence": {"type": "number"},
                    "due_date": {"type": ["string", "null"]},
                },
                "required": ["kind", "text", "memory_ids", "confidence", "due_date"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["insights"],
    "additionalProperties": False,
}
"""Within what every provider's strict mode takes: no lengths, no patterns; ``read`` checks those."""

_PLACES = re.compile(
    r"(?:https?://|www\.)[!-~]+|[\w.+-]+@[\w-]+\.[\w.-]+|\b[a-z0-9-]+\.(?:com|net|org|cn|io|info|biz|ru|xyz|top|shop)\b"
    r"|\d{3,4}[ -]\d{3,4}[ -]?\d{3,4}|\d{5,}",
    re.I | re.A,
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """``drafts`` is None if the reply holds no insights object at all; ``errors`` quote nothing of the reply."""

    drafts: tuple[Draft, ...] | None
    errors: tuple[str, ...]


def read(text: str, truncated: bool, scope: Scope) -> Parsed:
    """The usable insights of a reply, and what is wrong with the rest."""
    if truncated:
        return Parsed(None, ("the reply was cut at the length limit: send fewer and shorter insights",))
    found = _document(text)
    if found is None:
        return Parsed(None, ('the reply holds no JSON object with a list "insights"',))
    errors = [] if found.keys() == {"insights"} else ['there are other keys than "insights"']
    items = found["insights"]
    if len(items) > MAX_INSIGHTS:
        errors.append(f"there are more than {MAX_INSIGHTS} insights")
    drafts = []
    for number, item in enumerate(items[:MAX_INSIGHTS], 1):
        wrong = _wrong(item, scope)
        if wrong:
            errors.append(f"insight {number}: {wrong}")
        else:
            drafts.append(_draft(item))
    return Parsed(tuple(drafts), tuple(errors))


def _document(text: str) -> dict[str, Any] | None:
    """The first JSON object with a list ``insights``, whatever stands around it (a fence, a sentence)."""
    if len(text) > MAX_REPLY:
        return None
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    for start in [m.start() for m in re.finditer(r"\{", text)][:MAX_STARTS]:
        try:
            found, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("insights"), list):
            return found
    return None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _wrong(item: object, scope: Scope) -> str:
    """What is wrong with an insight; empty if nothing is."""
    if not isinstance(item, dict):
        return "it is no object"
    if item.keys() != set(SCHEMA["properties"]["insights"]["items"]["required"]):
        return "it must have exactly the keys kind, text, memory_ids, confidence, due_date"
    if item["kind"] not in KINDS:
        return "kind is not one of the kinds"
    text, ids, sure, due = item["text"], item["memory_ids"], item["confidence"], item["due_date"]
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        return f"text must have 1 to {MAX_TEXT} characters"
    if not isinstance(ids, list) or not ids or not all(isinstance(i, str) for i in ids):
        return "memory_ids must be a list of one id or more"
    if isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1:
        return "confidence must be a number from 0 to 1"
    first, last = due_range(scope)
    if item["kind"] == ACTION_ITEM and not (isinstance(due, str) and (day := _day(due)) and first <= day <= last):
        return "an action_item needs a due_date YYYY-MM-DD in the range that the rules give"
    return ""


def due_range(scope: Scope) -> tuple[date, date]:
    """First and last day for which something may be due."""
    return scope.end.date(), (scope.end + LATEST_DUE).date()


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None


def _draft(item: Mapping[str, Any]) -> Draft:
    """Its subject is what it cites, so that its id does not hang on the model's wording."""
    ids = tuple(dict.fromkeys(item["memory_ids"]))
    day = _day(item["due_date"]) if item["kind"] == ACTION_ITEM else None
    due = datetime.combine(day, time(), UTC) if day else None
    return Draft(item["kind"], stable_hash("cites", *sorted(ids)), item["text"], ids, float(item["confidence"]), due)


def invents(draft: Draft, cited: Mapping[str, StoredMemory]) -> bool:
    """Whether a text names a web page, an e-mail address or a number of five digits or more that none of its
    memories has: what a planted instruction would slip in, and what a model makes up worst."""
    places = [place.rstrip(".,;:!?)") for place in _PLACES.findall(draft.text)]
    sources = [cited[m] for m in draft.memory_ids if m in cited]
    return any(
        not any(place in field for m in sources for field in (m.text, m.summary, m.value, m.structured))
        for place in places
    )
