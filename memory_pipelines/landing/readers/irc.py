"""Logs of IRC channels.

Belongs here: the lines that the common clients and loggers write. Does not belong here: the zone of their clock
(``mapping``). Each nick is a user; joins, topics and notices have the role ``system``. Lines mostly carry a
clock time only. The day is that of the latest line that names one (``--- Day changed``, ``Log opened``), else
``date`` of the mapping, else the day in the file's name; it goes on by one where the clock falls by more than
``SET_BACK``. A clock that goes from 12 to 1 and knows no other hours within the first ``HEAD`` lines counts half
days; it is taken to begin as it is written. Without a day, a row has no time.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import chain, pairwise
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.lines import text_lines
from memory_pipelines.landing.readers.rows import TRUNCATED, Context, RawRow, Record, beginning, numbered, unreadable

HEAD = 2000
"""So many lines tell whether the clock counts half days."""
SET_BACK = 2 * 3600
"""Seconds. A clock that falls by less was set back, or lines of one minute changed places."""
_DAY = 24 * 3600

_LINE = re.compile(
    r"\[?(?:(?P<date>\d{4}-\d\d-\d\d)[T ])?(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?:\.\d+)?Z?\]?"
    r"\s+(?P<rest>.*)",
    re.S | re.A,
)
_SAID = re.compile(r"<[ @+%&~!]?(?P<nick>[^\s<>]{1,64}) ?>(?: (?P<text>.*)|$)", re.S)
_TABBED = re.compile(r"[@+%&~!]?(?P<nick>[^\s<>=*-][^\s<>]{0,63})\t(?P<text>.*)", re.S)
_ACTION = re.compile(r"\*\s+(?P<nick>[^\s*]{1,64}) (?P<text>.*)", re.S)
_EVENT = re.compile(r"(?:===|-!-|\*\*\*|---|-->|<--|--|-[^\s-]+-|\* )\s?(?P<text>.*)", re.S)
_TURNS = re.compile(
    r"day changed|log opened|begin logging|session (?:start|time)|conversation (?:with|at)|^#? ?\d{4}-\d\d-\d\d$", re.I
)
_ISO = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)", re.A)
_WORDS = re.compile(
    r"(?:\w{3} )?(?P<first>\w{3,9}|\d{1,2}) +(?P<second>\w{3,9}|\d{1,2})(?: \d\d:\d\d:\d\d)?(?: [A-Z]{3,4})?,? "
    r"(?P<year>\d{4})"
)
_IN_NAME = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)", re.A)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def says(line: str) -> bool:
    """Whether a line is somebody's, as loggers write it."""
    found = _LINE.match(line)
    return found is not None and any(form.match(found["rest"]) for form in (_SAID, _ACTION))


def read_irc(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each non-empty line; one of no known form is yielded as ``malformed_line``."""
    return numbered(_records(stream, context))


def _records(stream: BinaryIO, context: Context) -> Iterator[Record]:
    channel = _channel(context.name)
    lines = text_lines(stream)
    head = beginning(lines, HEAD, lambda line: len(line[0]))
    clock = _Clock(context.mapping.date or _day_in(context.name), half=_counts_half_days(line for line, _ in head))
    for line, too_long in chain(head, lines):
        if not line.strip():
            continue
        if too_long:
            yield unreadable(line[:TRUNCATED], "line_too_long")
            continue
        found = _LINE.match(line)
        if found is None:
            if (event := _EVENT.match(line)) is None and _TURNS.search(line) is None:
                yield unreadable(line, "malformed_line")
                continue
            if _TURNS.search(line) is not None and (named := _day_of(line)) is not None:
                clock.begin(named)
            yield _row(channel, clock.at, "system", None, line if event is None else event["text"])
            continue
        try:
            now = time(int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
            if found["date"]:
                clock.day, clock.half, clock.last = date.fromisoformat(found["date"]), False, None
            clock.tell(now)
        except (ValueError, OverflowError):
            yield unreadable(line, "malformed_line")
            continue
        said = _SAID.match(found["rest"]) or _TABBED.match(found["rest"]) or _ACTION.match(found["rest"])
        if said is not None:
            yield _row(channel, clock.at, "user", said["nick"], said["text"] or "")
        elif (event := _EVENT.match(found["rest"])) is not None:
            yield _row(channel, clock.at, "system", None, event["text"])
        else:
            yield unreadable(line, "malformed_line")


@dataclass
class _Clock:
    """Day and time of the latest line. ``half``: the clock counts to twelve."""

    day: date | None
    half: bool
    last: int | None = None
    """Seconds of the day."""

    def begin(self, day: date) -> None:
        self.day, self.last = day, 0

    def tell(self, now: time) -> None:
        """What the clock says next. Raises OverflowError behind the last day there is."""
        seconds = now.hour * 3600 + now.minute * 60 + now.second
        if self.last is not None:
            turn = _DAY // 2 if self.half else _DAY
            seconds = seconds % turn + self.last // turn * turn
            if self.last - seconds > SET_BACK:
                seconds += turn
        if seconds >= _DAY and self.day is not None:
            self.day += timedelta(days=1)
        self.last = seconds % _DAY

    @property
    def at(self) -> str | None:
        """Local time, None without a day."""
        return (
            None
            if self.day is None
            else (datetime.combine(self.day, time(0)) + timedelta(seconds=self.last or 0)).isoformat()
        )


def _counts_half_days(lines: Iterable[str]) -> bool:
    found = (_LINE.match(line) for line in lines)
    hours = [int(line["hour"]) for line in found if line is not None and line["date"] is None]
    return all(1 <= hour <= 12 for hour in hours) and (12, 1) in pairwise(hours)


def _row(channel: str, at: str | None, role: str, nick: str | None, text: str) -> dict[str, Any]:
    return {
        "conversation_id": channel,
        "user_id": nick,
        "role": role,
        "author": nick,
        "text": text,
        "occurred_at": at,
        "origin": "irc",
    }


def _day_of(line: str) -> date | None:
    """The day that a line of the logger names, in figures or in English words."""
    if (figures := _ISO.search(line)) is not None:
        return _checked(*figures.groups())
    for words in _WORDS.finditer(line):
        first, second, year = words["first"], words["second"], words["year"]
        month, day = (first, second) if second.isdecimal() else (second, first)
        if month[:3].lower() in _MONTHS and day.isdecimal():
            return _checked(year, str(_MONTHS.index(month[:3].lower()) + 1), day)
    return None


def _day_in(name: str) -> date | None:
    found = _IN_NAME.search(name)
    return None if found is None else _checked(*found.groups())


def _checked(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _channel(name: str) -> str:
    """The channel in a file's name: what is left without the day, a counter and suffixes."""
    stem = re.split(r"[/\\]", name)[-1]
    stem = re.sub(r"(?:\.(?:txt|log|raw|weechatlog|irc))+$", "", stem, flags=re.I)
    stem = re.sub(_IN_NAME.pattern + r"(?:[_-]\d{1,3})?(?![^\W_])", "", stem)
    return stem.strip(" \t._-") or "irc"
