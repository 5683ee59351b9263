"""Dates in a text, resolved against the time it was said: ISO 8601 days, weeks, months or years.

Belongs here: Chinese and English date expressions. Does not belong here: times of day, durations,
and what a date means for a fact. Texts are folded (``language.fold``).
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from typing import NamedTuple

from memory_pipelines.model import utc


class DateSpan(NamedTuple):
    """A date expression; ``iso`` is ``YYYY-MM-DD``, ``YYYY-Www``, ``YYYY-MM`` or ``YYYY``."""

    start: int
    end: int
    iso: str


_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
NUMBER = "(?:\\d{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
COUNT = f"(?:\\d{{1,3}}|an?|{'|'.join(_WORDS[1:])})"
_DAYS_ZH = {
    "大前天": -3, "前天": -2, "前晚": -2, "昨天": -1, "昨晚": -1, "昨日": -1,
    "今天": 0, "今晚": 0, "今早": 0, "今日": 0, "明天": 1, "明早": 1, "明晚": 1, "明日": 1, "后天": 2, "大后天": 3,
}  # fmt: skip
_DAYS_EN = {
    "the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1,
    "the day after tomorrow": 2,
}  # fmt: skip
_STEPS = {"上上": -2, "上": -1, "这": 0, "本": 0, "": 0, "下": 1, "下下": 2, "last": -1, "past": -1, "next": 1}


def number(word: str) -> int:
    if word.isdecimal():
        return int(word)
    if word in ("a", "an"):
        return 1
    if word in _WORDS:
        return _WORDS.index(word)
    tens, ten, ones = word.rpartition("十")
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(ones, 0)


def iso_day(year: int, month: int, day: int) -> str | None:
    if 1900 <= year <= 2200 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]:
        return f"{year:04}-{month:02}-{day:02}"
    return None


def nearest(month: int, day: int, at: date) -> str | None:
    """The day of that name that lies nearest to ``at``: people leave a year out when it is plain."""
    choices = [iso for year in (at.year - 1, at.year, at.year + 1) if (iso := iso_day(year, month, day))]
    return min(choices, key=lambda iso: (abs(date.fromisoformat(iso) - at), iso), default=None)


def iso_month(at: date, step: int) -> str:
    index = at.year * 12 + at.month - 1 + step
    return f"{index // 12:04}-{index % 12 + 1:02}"


def day_of_month(at: date, step: int, day: int) -> str | None:
    year, month = iso_month(at, step).split("-")
    return iso_day(int(year), int(month), day)


def iso_week(at: date, step: int) -> str:
    year, week, _ = (at + timedelta(weeks=step)).isocalendar()
    return f"{year:04}-W{week:02}"


def iso_weekday(at: date, step: int, weekday: int) -> str:
    """The weekday of the ISO week ``step`` weeks from ``at``'s."""
    return (at + timedelta(days=7 * step + weekday - at.weekday())).isoformat()


def shift(at: date, unit: str, count: int) -> str:
    if unit in ("天", "日", "day"):
        return (at + timedelta(days=count)).isoformat()
    if unit in ("周", "星期", "礼拜", "week"):
        return (at + timedelta(weeks=count)).isoformat()
    return iso_month(at, count) if unit in ("月", "month") else f"{at.year + count:04}"


def month_number(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


Rule = tuple[re.Pattern[str], Callable[[re.Match[str], date], str | None]]
"""Gives an ISO form, None where the expression is no date, or ``""`` where no later rule may read it as one."""

SHARED: list[Rule] = [
    (
        re.compile(r"(?<![\d.-])(\d{4})(?:[-/.]|\s?年\s?)(\d{1,2})(?:[-/.]|\s?月\s?)(\d{1,2})(?!\d)\s?[日号]?"),
        lambda m, at: iso_day(int(m[1]), int(m[2]), int(m[3])),
    ),
]
ZH: list[Rule] = [
    (
        re.compile(f"([今明后去前])年({NUMBER})月({NUMBER})[日号]"),
        lambda m, at: iso_day(
            at.year + {"今": 0, "明": 1, "后": 2, "去": -1, "前": -2}[m[1]], number(m[2]), number(m[3])
        ),
    ),
    (
        re.compile(f"(?<!\\d)({NUMBER})月({NUMBER})(?:[日号]|(?![\\d个]))"),
        lambda m, at: nearest(number(m[1]), number(m[2]), at),
    ),
    (
        re.compile("(?<!\\d)(\\d{4})年(\\d{1,2})月"),
        lambda m, at: iso_day(int(m[1]), int(m[2]), 1) and f"{m[1]}-{int(m[2]):02}",
    ),
    (
        re.compile(f"([上下这本])个?月({NUMBER})[日号]"),
        lambda m, at: day_of_month(at, _STEPS[m[1]], number(m[2])),
    ),
    (
        re.compile("(上上|下下|[上下这本])?个?(?:周|星期|礼拜)([一二三四五六日天])(?!天)"),
        lambda m, at: iso_weekday(at, _STEPS[m[1] or ""], "一二三四五六日天".index(m[2]) if m[2] != "天" else 6),
    ),
    (
        re.compile("(上上|下下|[上下这本])?个?周末"),
        lambda m, at: iso_weekday(at, _STEPS[m[1] or ""], 5),
    ),
    (
        re.compile(f"({NUMBER})个?(天|日|周|星期|礼拜|月|年)(?:之|以)?([前后])"),
        lambda m, at: shift(at, m[2], number(m[1]) * (1 if m[3] == "后" else -1)),
    ),
    (
        re.compile(f"(?<!以)(?:{'|'.join(sorted(_DAYS_ZH, key=len, reverse=True))})"),
        lambda m, at: shift(at, "天", _DAYS_ZH[m[0]]),
    ),
    (
        re.compile("(上上|下下|[上下])个?(?:周|星期|礼拜)(?![一二三四五六日天末])"),
        lambda m, at: iso_week(at, _STEPS[m[1]]),
    ),
    (re.compile("(上上|下下|[上下])个?月(?!亮)"), lambda m, at: iso_month(at, _STEPS[m[1]])),
    (re.compile("([明后去前])年"), lambda m, at: f"{at.year + {'明': 1, '后': 2, '去': -1, '前': -2}[m[1]]:04}"),
    (re.compile("(?<!\\d)((?:19|20)\\d{2})年"), lambda m, at: m[1]),
]
EN: list[Rule] = [
    (
        re.compile(
            r"(?<!\bi )(?<!\bwe )(?<!\byou )(?<!\bthey )"
            rf"\b({MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?\b(?!:)"
        ),
        lambda m, at: (
            iso_day(int(m[3]), month_number(m[1]), int(m[2])) if m[3] else nearest(month_number(m[1]), int(m[2]), at)
        ),
    ),
    (
        re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({MONTH})\b(?:,? (\d{{4}})\b)?"),
        lambda m, at: (
            iso_day(int(m[3]), month_number(m[2]), int(m[1])) if m[3] else nearest(month_number(m[2]), int(m[1]), at)
        ),
    ),
    (re.compile(rf"\b({MONTH}),? (\d{{4}})\b"), lambda m, at: f"{m[2]}-{month_number(m[1]):02}"),
    (
        re.compile(rf"\b(?:{'|'.join(sorted(_DAYS_EN, key=len, reverse=True))})\b"),
        lambda m, at: shift(at, "day", _DAYS_EN[m[0]]),
    ),
    (
        re.compile(rf"\b(last|past|next|this(?: coming)?|on|by|until|coming) ({'|'.join(WEEKDAYS)})\b"),
        lambda m, at: iso_weekday(at, _STEPS.get(m[1], 0), WEEKDAYS.index(m[2])),
    ),
    (re.compile(r"\b(last|next|this) weekend\b"), lambda m, at: iso_weekday(at, _STEPS.get(m[1], 0), 5)),
    (re.compile(r"\b(last|next) week\b"), lambda m, at: iso_week(at, _STEPS[m[1]])),
    (re.compile(r"\b(last|next) month\b"), lambda m, at: iso_month(at, _STEPS[m[1]])),
    (re.compile(r"\b(last|next) year\b"), lambda m, at: f"{at.year + _STEPS[m[1]]:04}"),
    (re.compile(rf"\b({COUNT}) (day|week|month|year)s? ago\b"), lambda m, at: shift(at, m[2], -number(m[1]))),
    (re.compile(rf"\bin ({COUNT}) (day|week|month|year)s?\b"), lambda m, at: shift(at, m[2], number(m[1]))),
    (
        re.compile(rf"\b({COUNT}) (day|week|month|year)s? (?:later|from now)\b"),
        lambda m, at: shift(at, m[2], number(m[1])),
    ),
    (
        re.compile(rf"\b(?:in|since|last|next|this) ({MONTH})\b(?! \d)"),
        lambda m, at: (nearest(month_number(m[1]), 15, at) or "")[:7],
    ),
]


def find_dates(folded: str, at: datetime) -> list[DateSpan]:
    """Dates in a folded text said at ``at`` (aware), from left to right, without overlaps.

    A weekday without a word before it is that of the same ISO week; a month and day without a
    year are the nearest ones; impossible dates are skipped. Of overlapping ones the earlier rule wins."""
    return apply(SHARED + (EN if folded.isascii() else ZH + EN), folded, utc(at).date())


def apply(rules: Iterable[Rule], folded: str, day: date, found: Iterable[DateSpan] = ()) -> list[DateSpan]:
    """Dates by the rules, the earlier first, where ``found`` leaves room; from left to right."""
    taken = bytearray(len(folded))
    spans = []
    for span in found:
        taken[span.start : span.end] = b"\1" * (span.end - span.start)
        spans.append(span)
    for pattern, resolve in rules:
        for match in pattern.finditer(folded):
            start, end = match.span()
            if any(taken[start:end]):
                continue
            try:
                iso = resolve(match, day)
            except (OverflowError, ValueError):  # outside of the calendar: years 1 to 9999
                continue
            if iso is not None:
                taken[start:end] = b"\1" * (end - start)
                spans.append(DateSpan(start, end, iso))
    return sorted(span for span in spans if span.iso)
