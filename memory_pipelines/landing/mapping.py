"""A user's own mapping: which column is which field, who speaks, in which zone the clocks stood.

Belongs here: ``mapping.yaml`` and what it does to one row. Does not belong here: formats (``readers``)
and what the fields then mean (``normalise``). A value that the mapping cannot turn into a time stays as
it is, so that its row reaches quarantine with what was read.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from datetime import date as Day
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory_pipelines.errors import InputError
from memory_pipelines.model import Role, canonical_json, stable_hash

FILE_NAME = "mapping.yaml"
MOST_BYTES = 1 << 20
MOST_DEPTH = 8
MARK_LENGTH = 16
"""Hex digits of a mark."""

FORMATS = (
    "jsonl",
    "json",
    "csv",
    "parquet",
    "openai_messages",
    "chatgpt",
    "langchain",
    "whatsapp",
    "slack",
    "intercom",
    "zendesk",
    "irc",
    "zip",
)
"""What ``format`` may be: the names of the readers."""

TURN_FIELDS = (
    "tenant",
    "turn_id",
    "conversation_id",
    "session_id",
    "user_id",
    "device_id",
    "role",
    "text",
    "occurred_at",
    "origin",
    "edited_at",
    "vector_clock",
)
BEHAVIOUR_FIELDS = ("event_id", "kind", "value", "dwell_seconds", "bounce", "reference")
TARGETS = frozenset(TURN_FIELDS + BEHAVIOUR_FIELDS)
"""The fields of a landed row that a mapping may fill."""
TIME_NAMES = ("occurred_at", "created_at", "timestamp", "time")
"""Names under which a row may carry its time; the first that has a value counts."""
DATE_ORDERS = ("dmy", "mdy", "ymd")
_TIMES = frozenset((*TIME_NAMES, "edited_at"))


class BrokenMappingError(InputError):
    """A mapping that cannot be read. ``mark`` is a hash of the file as it is, for the ledger's note."""

    def __init__(self, message: str, mark: str) -> None:
        super().__init__(message)
        self.mark = mark


@dataclass(frozen=True)
class Mapping:
    """What a ``mapping.yaml`` says; without arguments it changes nothing.

    ``columns``: target field -> source column, or a dotted path into nested objects; None: the source has none.
    ``constants``: target field -> value, over whatever the row says. ``roles``: what the source calls a speaker
    (or, in dialogues of people, an author) -> user, agent or system. ``timezone``: IANA name of the zone of times
    that have none. ``date_order``: of dates such as 03/04/24. ``date``: the day on which a log of bare clock times
    begins. ``time_formats``: ``strptime`` patterns. ``files``: name patterns that the mapping is for; none: all.
    """

    format: str | None = None
    columns: Dict[str, str | None] = field(default_factory=dict)
    constants: Dict[str, Any] = field(default_factory=dict)
    roles: Dict[str, str] = field(default_factory=dict)
    timezone: str | None = None
    date_order: str | None = None
    date: Day | None = None
    time_formats: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def covers(self, name: str) -> bool:
        """Whether the mapping is for a file of this name."""
        return not self.files or any(fnmatch(name, pattern) for pattern in self.files)

    @cached_property
    def mark(self) -> str:
        """Hash of the content, for the ledger's note."""
        content = canonical_json({k: str(v) for k, v in vars(self).items() if k in _KEYS})
        return stable_hash("mapping", content)[:MARK_LENGTH]

    @cached_property
    def _roles(self) -> dict[str, str]:
        return {name.strip().lower(): role for name, role in self.roles.items()}

    @cached_property
    def _zone(self) -> tzinfo | None:
        return ZoneInfo(self.timezone) if self.timezone else None

    @cached_property
    def _steps(self) -> tuple[Callable[[dict[str, Any]], None], ...]:
        """The parts of ``apply`` that this mapping needs, in order."""
        steps: list[Callable[[dict[str, Any]], None]] = []
        if self.columns:
            steps.append(self._move)
        if self.roles:
            steps.append(self._name_roles)
        if self.constants:
            steps.append(lambda row: row.update(self.constants))
        if self.timezone or self.time_formats:
            steps.append(self._place_times)
        return tuple(steps)

    def apply(self, row: Dict[str, Any]) -> dict[str, Any]:
        """A copy of ``row`` with the target fields filled; what is not mapped keeps its name."""
        made = dict(row)
        for step in self._steps:
            step(made)
        return made

    def _move(self, row: dict[str, Any]) -> None:
        found = {target: None if path is None else _at(row, path) for target, path in self.columns.items()}
        if "occurred_at" in found:  # the other names of the time are columns of something else then
            for name in TIME_NAMES[1:]:
                row.pop(name, None)
        row.update(found)

    def _name_roles(self, row: dict[str, Any]) -> None:
        role = self._roles.get(str(row.get("role")).strip().lower())
        author = self._roles.get(str(row.get("author")).strip().lower())
        if author is not None and row.get("role") != Role.SYSTEM:
            role = author
            if author != Role.USER and row.get("user_id") == row.get("author"):
                row["user_id"] = None
        if role is not None:
            row["role"] = role

    def _place_times(self, row: dict[str, Any]) -> None:
        for name in _TIMES & row.keys():
            row[name] = self._placed(row[name])

    def _placed(self, value: Any) -> Any:
        at = value
        if isinstance(value, str):
            at = self._parsed(value.strip())
        if not isinstance(at, datetime) or at.tzinfo is not None or self._zone is None:
            return at
        try:
            return at.replace(tzinfo=self._zone).astimezone(UTC)
        except OverflowError:  # of the year 1 or 9999
            return value

    def _parsed(self, value: str) -> datetime | str:
        """A time that may have no zone yet; the text where it is none."""
        for pattern in self.time_formats:
            try:
                return datetime.strptime(value, pattern)  # noqa: DTZ007
            except ValueError:
                continue
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return value


NO_MAPPING = Mapping()
_KEYS = frozenset(NO_MAPPING.__dataclass_fields__)


def _at(row: Dict[str, Any], path: str) -> Any:
    """The value of a column, or at the end of a dotted path; None if there is none."""
    if path in row or "." not in path:
        return row.get(path)
    value: Any = row
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def find_mapping(path: Path, root: Path) -> Path | None:
    """The nearest ``mapping.yaml`` in the folder of ``path`` or above it, up to ``root``; None if there is none."""
    folder, top = Path(os.path.realpath(path)).parent, Path(os.path.realpath(root))
    while True:
        if os.path.isfile(folder / FILE_NAME):  # unlike those of Path it raises nothing, whatever the path is
            return folder / FILE_NAME
        if folder == top or folder == folder.parent or not folder.is_relative_to(top):
            return None
        folder = folder.parent


def load_mapping(path: Path) -> Mapping:
    """Read a mapping. Raises BrokenMappingError that names the fault."""
    content = b""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"{path.name} is too large for a mapping")
        return parse_mapping(content.decode("utf-8-sig"), path.name)
    except OSError as error:
        fault = f"cannot read {path.name}: {error.strerror}"
    except UnicodeDecodeError:
        fault = f"{path.name} is not UTF-8"
    except InputError as error:
        fault = str(error)
    raise BrokenMappingError(fault, hashlib.blake2b(fault.encode() + content, digest_size=MARK_LENGTH // 2).hexdigest())


def parse_mapping(text: str, name: str = FILE_NAME) -> Mapping:
    """A mapping from its YAML; ``name`` is what errors call it. Raises InputError that names the fault."""
    import yaml

    try:
        _check_size(yaml.parse(text, yaml.SafeLoader), name)
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        raise InputError(f"{name} is no YAML" + ("" if line is None else f" (line {line + 1})")) from None
    if content is None:
        return NO_MAPPING
    if not isinstance(content, dict):
        raise InputError(f"{name}: expected keys such as columns, constants, timezone")
    given = {str(key): value for key, value in content.items()}
    if unknown := sorted(given.keys() - _KEYS):
        raise InputError(f"{name}: unknown key {unknown[0]}; known: {', '.join(sorted(_KEYS))}")
    return Mapping(**{key: _CHECKS[key](value, f"{name}: {key}") for key, value in given.items() if value is not None})


def _check_size(events: Iterable[Any], name: str) -> None:
    """A few lines of YAML can stand for millions of values, or take hours: by aliases, or by depth."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise InputError(f"{name}: write values out; aliases (*name) are not read")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise InputError(f"{name}: it is nested too deep")


def _one_of(known: tuple[str, ...]) -> Callable[[Any, str], str]:
    def check(value: Any, where: str) -> str:
        if value not in known:
            raise InputError(f"{where} is one of {', '.join(known)}")
        return str(value)

    return check


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} is a list of name: value")
    return {str(key): item for key, item in value.items()}


def _fields(value: Any, where: str) -> dict[str, Any]:
    found = _object(value, where)
    if unknown := sorted(found.keys() - TARGETS):
        raise InputError(f"{where}: unknown field {unknown[0]}; known: {', '.join(sorted(TARGETS))}")
    return found


def _columns(value: Any, where: str) -> dict[str, str | None]:
    found = _fields(value, where)
    for target, column in found.items():
        if not (column is None or (isinstance(column, str) and column)):
            raise InputError(f"{where}.{target} is the name of a column, or null")
    return found


def _constants(value: Any, where: str) -> dict[str, Any]:
    found = _fields(value, where)
    for target, constant in found.items():
        if isinstance(constant, dict | list):
            raise InputError(f"{where}.{target} is a single value")
    return found


def _roles(value: Any, where: str) -> dict[str, str]:
    roles = _object(value, where)
    for name, role in roles.items():
        if role not in (Role.USER, Role.AGENT, Role.SYSTEM):
            raise InputError(f"{where}.{name} is one of user, agent, system")
    return {name: str(role) for name, role in roles.items()}


def _zone(value: Any, where: str) -> str:
    try:
        return ZoneInfo(value).key
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InputError(f"{where} is the name of a zone, such as Asia/Shanghai") from None


def _day(value: Any, where: str) -> Day:
    try:
        return value if type(value) is Day else Day.fromisoformat(value)
    except (ValueError, TypeError):
        raise InputError(f"{where} is a day, such as 2024-05-17") from None


def _texts(value: Any, where: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise InputError(f"{where} is a text or a list of texts")
    return tuple(texts)


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "format": _one_of(FORMATS),
    "columns": _columns,
    "constants": _constants,
    "roles": _roles,
    "timezone": _zone,
    "date_order": _one_of(DATE_ORDERS),
    "date": _day,
    "time_formats": _texts,
    "files": _texts,
}
