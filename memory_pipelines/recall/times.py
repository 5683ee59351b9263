"""The time leg: what lay in the time that a query names.

Belongs here: times in Chinese and English questions, as intervals. Does not belong here: dates of facts (admission
reads those), the order of answers. Weeks begin on Monday, days are of UTC, as everywhere.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.legs import Leg, ranked_rows
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.recall.text import tokens

NAME = "time"
ALONE = 0.5
"""Relevance of a row for a question about nothing but a time."""
BESIDE = 0.2
"""The same where the question has a subject as well: the time alone is no answer."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_EN_NUMBERS = rf"an?|few|couple of|{'|'.join(_COUNTS)}|\d{{1,3}}"
_SMALL = {word: i for i, word in enumerate(_COUNTS)} | {"a": 1, "an": 1, "few": 3, "couple of": 2}
_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "几": 3, "半": 6}
_HAN_NUMBER = r"\d{1,4}|[一二两三四五六七八九十几]{1,3}"


_IDLE = re.compile(
    r"\b(?:happen(?:ed|s)?|did|said|talk(?:ed)?|going|went|events?|things?)\b|[发生做干说聊事情件些过]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Span:
    """A time that a text names: [start, end), and where it stands in the text."""

    start: datetime
    end: datetime
    at: tuple[int, int]


def span(query: str, as_of: datetime) -> Span | None:
    """The first time that ``query`` names as seen at ``as_of`` (aware); None without one. Nothing past ``as_of``
    is left out: plans lie ahead."""
    for pattern, read in _PATTERNS:
        for found in pattern.finditer(query):
            try:
                interval = read(found, as_of.astimezone(UTC))
            except (ValueError, OverflowError):  # 31 February, or long before our era
                continue
            if interval is not None:
                return Span(*interval, found.span())
    return None


def has_subject(query: str, named: Span) -> bool:
    """Whether the question asks about anything besides the time: "what happened last week" does not."""
    start, end = named.at
    return bool(tokens(_IDLE.sub(" ", f"{query[:start]} {query[end:]}")))


def leg(named: Span | None, has_subject: bool, snapshot: Snapshot, usable: Mask) -> Leg:
    """Usable rows that occurred within the time, newest first."""
    if named is None:
        return Leg(NAME, ())
    inside = usable & snapshot.within(named.start, named.end)
    relevance = BESIDE if has_subject else ALONE
    return ranked_rows(NAME, inside.astype(np.float64), np.where(inside, relevance, 0.0))


Interval = tuple[datetime, datetime]


def _day(at: datetime, shift: int = 0) -> Interval:
    start = at.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=shift)
    return start, start + timedelta(days=1)


def _week(at: datetime, shift: int = 0) -> Interval:
    start = _day(at, -at.weekday())[0] + timedelta(weeks=shift)
    return start, start + timedelta(weeks=1)


def _month(year: int, month: int) -> Interval:
    """``month`` may lie outside of 1 to 12: it counts on from January."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return datetime(year, month, 1, tzinfo=UTC), datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _year(year: int) -> Interval:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _ago(at: datetime, count: int, unit: str) -> Interval:
    """Round the instant so long ago: one unit, but of days and weeks no less than a day to either side."""
    if unit == "day":
        return _day(at, -count)
    if unit == "week":
        middle = at - timedelta(weeks=count)
        return _day(middle, -3)[0], _day(middle, 3)[1]
    if unit == "month":
        return _month(at.year, at.month - count)
    return _year(at.year - count)


def _latest(at: datetime, month: int, year: int | None, named: str = "") -> Interval:
    """The named month; without a year the latest one that has begun, "last" means before this month."""
    if year is not None:
        return _month(year, month)
    past = month < at.month or (month == at.month and named != "last")
    return _month(at.year if past else at.year - 1, month)


def _date(at: datetime, year: int | None, month: int, day: int) -> Interval:
    found = datetime(at.year if year is None else year, month, day, tzinfo=UTC)
    if year is None and found > at:
        found = found.replace(year=at.year - 1)
    return _day(found)


def _weekday(at: datetime, weekday: int, weeks: int) -> Interval:
    return _day(_week(at, weeks)[0], weekday)


def _number(word: str) -> int:
    """``12``, ``twelve``, ``十二``."""
    word = word.lower()
    if word.isdecimal():
        return int(word)
    if word in _SMALL:
        return _SMALL[word]
    tens, ten, ones = word.rpartition("十")
    if not ten:
        return _DIGITS[word]
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)


def _month_number(word: str) -> int:
    return _MONTHS.index(word.lower()[:3]) + 1


def _relative(at: datetime, which: str, unit: str) -> Interval:
    shift = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1}[which.lower()]
    unit = unit.lower()
    if unit == "week":
        return _week(at, shift)
    if unit == "month":
        return _month(at.year, at.month + shift)
    if unit == "year":
        return _year(at.year + shift)
    if unit == "weekend":
        start = _week(at, shift)[0]
        return start + timedelta(days=5), start + timedelta(days=7)
    weekday = _WEEKDAYS.index(unit)
    if shift == -1:  # "last Friday" is the latest one before today
        return _day(at, -((at.weekday() - weekday - 1) % 7 + 1))
    return _weekday(at, weekday, shift)


def _han_relative(at: datetime, which: str, unit: str) -> Interval:
    shift = -which.count("上") if "上" in which else which.count("下")
    if unit == "月":
        return _month(at.year, at.month + shift)
    return _week(at, shift)


_HAN_DAYS = {"大前天": -3, "前天": -2, "昨天": -1, "昨晚": -1, "今天": 0, "今晚": 0, "明天": 1, "后天": 2}
_EN_DAYS = {"the day before yesterday": -2, "yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_HAN_YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1}
_HAN_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}

_Read = Callable[[re.Match[str], datetime], Interval | None]


def _year_of(text: str | None) -> int | None:
    return int(text) if text else None


_RULES: tuple[tuple[str, _Read], ...] = (
    (r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)", lambda m, at: _date(at, int(m[1]), int(m[2]), int(m[3]))),
    (
        r"(?:(?P<y>\d{4})年|(?P<r>前年|去年|今年))?(?P<m>\d{1,2}|[一二三四五六七八九十]{1,2})月(?P<d>\d{1,2}|[一二三四五六七八九十]{1,3})[日号]",
        lambda m, at: _date(
            at,
            at.year + _HAN_YEARS[m["r"]] if m["r"] else _year_of(m["y"]),
            _number(m["m"]),
            _number(m["d"]),
        ),
    ),
    (
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH})\b\.?,?(?: (?P<y>\d{{4}}))?",
        lambda m, at: _date(at, _year_of(m["y"]), _month_number(m["m"]), int(m["d"])),
    ),
    (
        rf"\b(?P<m>{_MONTH})\b\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? (?P<y>\d{{4}}))?",
        lambda m, at: _date(at, _year_of(m["y"]), _month_number(m["m"]), int(m["d"])),
    ),
    (
        r"(?:(?P<y>\d{4})年|(?P<r>前年|去年|今年))(?P<m>\d{1,2}|[一二三四五六七八九十]{1,2})月",
        lambda m, at: _month(
            at.year + _HAN_YEARS[m["r"]] if m["r"] else int(m["y"]),
            _number(m["m"]),
        ),
    ),
    (
        rf"\b(?:(?P<w>last|this|in|during|since) )?(?P<m>{_MONTH})\b(?: of)?,? (?P<y>\d{{4}})\b",
        lambda m, at: _latest(at, _month_number(m["m"]), int(m["y"])),
    ),
    (
        rf"\b(?P<w>last|this|in|during) (?P<m>{_MONTH})\b(?! \d)",
        lambda m, at: _latest(at, _month_number(m["m"]), None, m["w"].lower()),
    ),
    (
        rf"(?P<n>{_HAN_NUMBER})个?(?P<u>天|日|周|星期|礼拜|月|年)(?:以)?前",
        lambda m, at: _ago(at, _number(m["n"]), _HAN_UNITS[m["u"]]),
    ),
    (
        rf"\b(?P<n>{_EN_NUMBERS}) (?P<u>day|week|month|year)s? (?:ago|earlier|back)\b",
        lambda m, at: _ago(at, _number(m["n"]), m["u"].lower()),
    ),
    (
        rf"\b(?P<w>last|previous|past|this|next) (?P<u>weekend|week|month|year|{'|'.join(_WEEKDAYS)})\b",
        lambda m, at: _relative(at, m["w"], m["u"]),
    ),
    (
        r"(?P<w>上+|下+|这|本)个?(?:周|星期|礼拜)(?P<d>[一二三四五六日天])",
        lambda m, at: _weekday(at, "一二三四五六日".find(m["d"]) % 7, m["w"].count("下") - m["w"].count("上")),
    ),
    (r"(?P<w>上+|下+|这|本)个?(?P<u>周|星期|礼拜|月)", lambda m, at: _han_relative(at, m["w"], m["u"])),
    (r"大?前天|昨[天晚]|今[天晚]|明天|后天", lambda m, at: _day(at, _HAN_DAYS[m[0]])),
    (r"前年|去年|今年|明年", lambda m, at: _year(at.year + _HAN_YEARS[m[0]])),
    (
        r"\b(the day before yesterday|yesterday|today|tonight|tomorrow)\b",
        lambda m, at: _day(at, _EN_DAYS[m[1].lower()]),
    ),
    (r"\b(?:in|during|since) (\d{4})\b", lambda m, at: _year(int(m[1]))),
    (r"(?<!\d)(\d{4})年", lambda m, at: _year(int(m[1]))),
    (
        r"(?<![\d一二三四五六七八九十])(\d{1,2}|[一二三四五六七八九]|十[一二]?)月份?(?!\d)",
        lambda m, at: _latest(at, _number(m[1]), None),
    ),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), read) for pattern, read in _RULES)
