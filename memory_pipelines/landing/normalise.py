"""A raw row becomes a turn or a behaviour event, or a reason for quarantine.

Belongs here: types, times, roles, keys of one row. Does not belong here: what is noise and what is
not (step 1's rules), or anything that looks at more than one row, but for the ordinal of equal rows.
"""

import math
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memory_pipelines.landing.mapping import TIME_NAMES
from memory_pipelines.landing.readers import RawRow
from memory_pipelines.model import (
    FIRST_DAY,
    Owner,
    Role,
    canonical_json,
    day_of,
    day_start,
    device_subject,
    iso,
    own_event_id,
    stable_hash,
    turn_id,
    user_subject,
    utc,
)

MAX_TEXT = 1_000_000
"""Bytes of UTF-8; a longer message is no message."""
ORDINAL_MEMORY = 200_000
"""Equal rows without ids are counted among this many latest distinct ones."""

ROLES = {
    "user": Role.USER,
    "customer": Role.USER,
    "client": Role.USER,
    "human": Role.USER,
    "assistant": Role.AGENT,
    "agent": Role.AGENT,
    "bot": Role.AGENT,
    "service": Role.AGENT,
    "staff": Role.AGENT,
    "system": Role.SYSTEM,
    "tool": Role.SYSTEM,
    "event": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "function": Role.SYSTEM,
}
_ROLES = ROLES | {Role.UNCHOSEN.value: Role.UNCHOSEN}
_EPOCH = re.compile(r"\d{10}(\d{3})?(\.\d+)?")
"""Epoch seconds or milliseconds as text, as in CSV."""
_FIRST = day_start(FIRST_DAY)


class _Broken(Exception):
    """A reason for quarantine."""


@dataclass
class Normaliser:
    """Turns raw rows of one file into landed rows.

    ``landed_at`` bounds event times: a later one is in the future and goes to quarantine.
    """

    file_id: str
    default_tenant: str
    buckets: int
    landed_at: datetime
    _seen: OrderedDict[tuple[str, str], int] = field(default_factory=OrderedDict)

    def __call__(self, raw: RawRow) -> tuple[str, dict[str, Any]]:
        """``("turn" | "behaviour" | "quarantine", row)``; a row of the table of that kind."""
        if raw.row is None:
            return "quarantine", self._quarantined(raw, raw.error or "unreadable", self.default_tenant, None)
        tenant, day = self.default_tenant, None
        try:
            tenant = _text(raw.row, "tenant", required=False) or self.default_tenant
            at = parse_time(_first(raw.row))
            if at > self.landed_at:
                raise _Broken("future_time")
            day = day_of(at)
            if raw.row.get("text") is None and raw.row.get("kind") is not None:
                return "behaviour", self._behaviour(raw, raw.row, tenant, at, day)
            return "turn", self._turn(raw, raw.row, tenant, at, day)
        except _Broken as broken:
            return "quarantine", self._quarantined(raw, str(broken), tenant, day)

    def _turn(self, raw: RawRow, row: Mapping[str, Any], tenant: str, at: datetime, day: str) -> dict[str, Any]:
        said = row.get("role")
        role = _ROLES.get(said) if isinstance(said, str) else None
        if role is None:
            role = _ROLES.get((_text(row, "role") or "").lower())
        if role is None:
            raise _Broken("unknown_role")
        text = row.get("text")
        if not isinstance(text, str):
            raise _Broken("no_text")
        _check_text(text)
        session = _text(row, "session_id", required=False)
        subject = _subject(row)
        conversation = _text(row, "conversation_id", required=False) or session or subject or ""
        given = _text(row, "turn_id", required=False)
        edited = row.get("edited_at")
        clock = row.get("vector_clock")
        return {
            "tenant": tenant,
            "turn_id": given or self._own_id(tenant, conversation, at, role, text),
            "conversation_id": conversation,
            "session_id": session,
            "subject": subject,
            "role": role.value,
            "occurred_at": at,
            "text": text,
            "origin": _text(row, "origin", required=False),
            "edited_at": None if edited is None or edited == "" else parse_time(edited),
            "vector_clock": _vector_clock(clock),
            "content_hash": stable_hash(conversation, session, subject, role, iso(at), text),
            "file_id": self.file_id,
            "position": raw.position,
            "day": day,
        }

    def _own_id(self, tenant: str, conversation: str, at: datetime, role: Role, text: str) -> str:
        first = turn_id(conversation, at, role, text, 0)
        key = (tenant, first)
        ordinal = self._seen.pop(key, -1) + 1
        self._seen[key] = ordinal
        if len(self._seen) > ORDINAL_MEMORY:
            self._seen.popitem(last=False)
        return first if ordinal == 0 else turn_id(conversation, at, role, text, ordinal)

    def _behaviour(self, raw: RawRow, row: Mapping[str, Any], tenant: str, at: datetime, day: str) -> dict[str, Any]:
        subject = _subject(row)
        if subject is None:
            raise _Broken("no_subject")
        kind = (_text(row, "kind") or "").lower()
        value = _number(row, "value")
        dwell = _number(row, "dwell_seconds")
        if (value is not None and value < 0) or (dwell is not None and dwell < 0):
            raise _Broken("negative_amount")
        bounce = _flag(row.get("bounce"))
        reference = _text(row, "reference", required=False)
        content = stable_hash(subject, kind, iso(at), repr(value), repr(dwell), repr(bounce), reference)
        owner = Owner(tenant, subject)
        return {
            "tenant": tenant,
            "event_id": _text(row, "event_id", required=False) or own_event_id(content),
            "subject": subject,
            "kind": kind,
            "occurred_at": at,
            "value": value,
            "dwell_seconds": dwell,
            "bounce": bounce,
            "reference": reference,
            "content_hash": content,
            "file_id": self.file_id,
            "position": raw.position,
            "day": day,
            "owner": owner.key,
            "bucket": owner.bucket(self.buckets),
        }

    def _quarantined(self, raw: RawRow, reason: str, tenant: str, day: str | None) -> dict[str, Any]:
        return {
            "tenant": tenant,
            "file_id": self.file_id,
            "position": raw.position,
            "reason": reason,
            # Parquet and Arrow strings are UTF-8: a lone surrogate is kept in escaped form
            "raw": raw.raw.encode("utf-8", "backslashreplace").decode("utf-8"),
            "day": day,
        }


def _first(row: Mapping[str, Any]) -> Any:
    for name in TIME_NAMES:
        value = row.get(name)
        if value is not None:
            return value
    return None


def parse_time(value: Any) -> datetime:
    """RFC 3339 text, epoch seconds or milliseconds, or a datetime; without a zone it is UTC.

    Raises the quarantine reason ``no_time`` or ``bad_time``.
    """
    if value is None or value == "":
        raise _Broken("no_time")
    try:
        if isinstance(value, datetime):
            at = value
        elif isinstance(value, bool):
            raise _Broken("bad_time")
        elif isinstance(value, str) and value[4:5] != "-" and _EPOCH.fullmatch(value.strip()):
            return parse_time(float(value))
        elif isinstance(value, int | float):
            at = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
        elif isinstance(value, str):
            at = datetime.fromisoformat(value.strip())
        else:
            raise _Broken("bad_time")
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else utc(at)
    except (ValueError, OverflowError, OSError):
        raise _Broken("bad_time") from None
    if at < _FIRST:
        raise _Broken("bad_time")
    return at


def _text(row: Mapping[str, Any], name: str, *, required: bool = True) -> str | None:
    value = row.get(name)
    if type(value) is str and value and value.isascii() and len(value) <= MAX_TEXT and "\x00" not in value:
        return value  # most are: the rest of the way says why not
    if value is None or value == "":
        if required:
            raise _Broken(f"no_{name}")
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _Broken(f"bad_{name}")
    text = str(value)
    _check_text(text)
    return text


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise _Broken("nul_byte")
    try:
        size = len(text) if text.isascii() else len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise _Broken("unknown_encoding") from None
    if size > MAX_TEXT:
        raise _Broken("text_too_long")


def _subject(row: Mapping[str, Any]) -> str | None:
    user = _text(row, "user_id", required=False)
    if user is not None:
        return user_subject(user)
    device = _text(row, "device_id", required=False)
    return None if device is None else device_subject(device)


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _Broken(f"bad_{name}") from None
    if not math.isfinite(number):
        raise _Broken(f"bad_{name}")
    return number


def _flag(value: Any) -> bool | None:
    if value is None or value == "":
        return None
    flag = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}.get(str(value).lower())
    if flag is None:
        raise _Broken("bad_bounce")
    return flag


def _vector_clock(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, dict) or not all(
        isinstance(k, str) and isinstance(v, int) and not isinstance(v, bool) and v >= 0 for k, v in value.items()
    ):
        raise _Broken("bad_vector_clock")
    for replica in value:
        _check_text(replica)
    return canonical_json(value)
