"""Dates in a sentence, resolved against the time at which it was said.

Belongs here: absolute and relative days in Chinese and English. Does not belong here: clock times,
durations, or what a date is for. There is no "now": everything counts from the event's own day.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

_ZH_DAYS = {"大后天": 3, "后天": 2, "明天": 1, "明晚": 1, "明早": 1, "今天": 0, "今晚": 0, "昨天": -1, "前天": -2}
_EN_DAYS = {"the day after tomorrow": 2, "tomorrow": 1, "today": 0, "tonight": 0, "yesterday": -1}
_ZH_WEEKDAYS = "一二三四五六日天"
_EN_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_EN_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = {w: i for i, w in enumerate("零一二三四五六七八九十")} | {"两": 2}
_EN_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10}
_MONTH = (
    r"(?P<mon>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)

_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
    *("twentieth", "twenty-first", "twenty-second", "twenty-third", "twenty-fourth", "twenty-fifth", "twenty-sixth"),
    *("twenty-seventh", "twenty-eighth", "twenty-ninth", "thirtieth", "thirty-first"),
)
_ORDINAL = "|".join(sorted(_ORDINALS, key=lambda word: -len(word)))
_HAN_DAY = "[二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"

_ZH = re.compile(
    r"(?P<iso>\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    r"|(?:(?P<y>\d{4})年|(?P<nexty>明年))?(?P<m>\d{1,2})月(?P<d>\d{1,2})[日号]?"
    rf"|(?P<nextz>明年)?(?P<zm>十[一二]?|[一二三四五六七八九])月(?P<zd>{_HAN_DAY})[日号]"
    rf"|(?P<nm>下个?月)(?P<nd>\d{{1,2}}|{_HAN_DAY})[日号]"
    rf"|(?P<day>{'|'.join(_ZH_DAYS)})"
    rf"|(?<!每)(?P<wk>下下个?|下个?|这个?|本)?(?<!每)(?:周|星期|礼拜)(?P<wd>[{_ZH_WEEKDAYS}]|末(?!一般|都|总|常|爱|喜欢|最|大扫除))"
    r"|(?P<n>\d{1,3}|[一两二三四五六七八九十])(?P<unit>天|周|个星期|个月)(?:之)?后"
    r"|(?P<fuzzy>下周|下个?月)"
)
_EN = re.compile(
    r"\b(?<!every )(?<!each )(?:(?:on|by|this coming) )?(?:"
    r"(?P<iso>\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    rf"|(?:the )?{_MONTH} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y>\d{{4}}))?"
    rf"|(?:the )?(?P<d2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH.replace('mon', 'mon2')}\b(?:,? (?P<y2>\d{{4}}))?"
    rf"|(?:the )?(?P<ord>{_ORDINAL}) of {_MONTH.replace('mon', 'mon3')}\b"
    rf"|{_MONTH.replace('mon', 'mon4')} (?:the )?(?P<ord2>{_ORDINAL})"
    rf"|(?P<day>{'|'.join(_EN_DAYS)})"
    rf"|(?P<wk>next |this |last )?(?P<wd>{'|'.join(_EN_WEEKDAYS)})"
    r"|(?P<fuzzy>next week|next month|next weekend|this weekend)"
    r"|in (?P<n>\d{1,3}|a|one|two|three|four|five|six|ten) (?P<unit>day|week|month)s?"
    r")\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class DateHit:
    """A day and the span of text that named it."""

    day: date
    start: int
    end: int


def _safe(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _yearless(month: int, day: int, said: date, month_ago: int = 31) -> date | None:
    """The nearest such day that is not more than a month before it was said."""
    for year in (said.year, said.year + 1):
        found = _safe(year, month, day)
        if found and found >= said - timedelta(days=month_ago):
            return found
    return None


def _add_months(said: date, months: int) -> date:
    index = said.year * 12 + said.month - 1 + months
    day = said.day
    while (found := _safe(index // 12, index % 12 + 1, day)) is None:
        day -= 1
    return found


def _weekday(said: date, weeks: int, weekday: int) -> date:
    monday = said - timedelta(days=said.weekday())
    return monday + timedelta(days=7 * weeks + weekday)


def _iso(text: str) -> date | None:
    year, month, day = (int(part) for part in re.split("[-/]", text))
    return _safe(year, month, day)


def _after(count: int, unit: str, said: date) -> date:
    if "month" in unit or unit == "个月":
        return _add_months(said, count)
    return said + timedelta(days=count * (1 if unit in ("天", "day") else 7))


def _count(digits: str) -> int:
    """21, 二十一, 十 or 三 as a number."""
    if digits.isdigit():
        return int(digits)
    tens, ten, ones = digits.rpartition("十")
    return (10 * (_NUMBERS[tens] if tens else 1) if ten else 0) + (_NUMBERS[ones] if ones else 0)


def _zh(match: re.Match[str], said: date) -> date | None:
    g = match.groupdict()
    if g["iso"]:
        return _iso(g["iso"])
    if g["m"]:
        month, day = int(g["m"]), int(g["d"])
        if g["nexty"]:
            return _safe(said.year + 1, month, day)
        return _safe(int(g["y"]), month, day) if g["y"] else _yearless(month, day, said)
    if g["zm"]:
        month, day = _count(g["zm"]), _count(g["zd"])
        return _safe(said.year + 1, month, day) if g["nextz"] else _yearless(month, day, said)
    if g["nd"]:
        first = _add_months(said.replace(day=1), 1)
        return _safe(first.year, first.month, _count(g["nd"]))
    if g["day"]:
        return said + timedelta(days=_ZH_DAYS[g["day"]])
    if g["wd"]:
        weeks = {"下下": 2, "下": 1}.get((g["wk"] or "").replace("个", ""), 0)
        weekday = 5 if g["wd"] == "末" else min(_ZH_WEEKDAYS.index(g["wd"]), 6)
        found = _weekday(said, weeks, weekday)
        return found + timedelta(days=7) if not g["wk"] and found < said else found
    if g["n"]:
        return _after(int(g["n"]) if g["n"].isdigit() else _NUMBERS[g["n"]], g["unit"], said)
    return _weekday(said, 1, 0) if g["fuzzy"] == "下周" else _add_months(said.replace(day=1), 1)


def _en(match: re.Match[str], said: date) -> date | None:
    g = {k: v.lower() if v else v for k, v in match.groupdict().items()}
    if g["iso"]:
        return _iso(g["iso"])
    if g["mon"] or g["mon2"]:
        month = _EN_MONTHS.index((g["mon"] or g["mon2"])[:3]) + 1
        day, year = int(g["d"] or g["d2"]), g["y"] or g["y2"]
        return _safe(int(year), month, day) if year else _yearless(month, day, said)
    if g["mon3"] or g["mon4"]:
        month = _EN_MONTHS.index((g["mon3"] or g["mon4"])[:3]) + 1
        return _yearless(month, _ORDINALS.index(g["ord"] or g["ord2"]) + 1, said)
    if g["day"]:
        return said + timedelta(days=_EN_DAYS[g["day"]])
    if g["wd"]:
        weekday, which = _EN_WEEKDAYS.index(g["wd"]), (g["wk"] or "").strip()
        if which == "next":
            return _weekday(said, 1, weekday)
        found = _weekday(said, 0, weekday)
        if which == "last":
            return _weekday(said, -1, weekday)
        return found if found >= said else found + timedelta(days=7)
    if g["n"]:
        return _after(int(g["n"]) if g["n"].isdigit() else _EN_NUMBERS[g["n"]], g["unit"], said)
    if g["fuzzy"] == "next month":
        return _add_months(said.replace(day=1), 1)
    if g["fuzzy"] == "next week":
        return _weekday(said, 1, 0)
    return _weekday(said, 1 if g["fuzzy"].startswith("next") else 0, 5)


def find_date(text: str, said: date, language: str) -> DateHit | None:
    """The first day that ``text`` names, seen from the day ``said``; None if it names none or an impossible one.

    A day without a year is the next such day, or one at most a month past. ``language`` is zh or en."""
    pattern, resolve = (_ZH, _zh) if language == "zh" else (_EN, _en)
    match = pattern.search(text)
    if match is None:
        return None
    try:
        found = resolve(match, said)
    except (OverflowError, ValueError):
        return None
    return DateHit(found, match.start(), match.end()) if found else None


def next_day(day: date, said: date, text: str) -> date:
    """The next such day of the year from ``said`` on; the day itself if ``text`` names its year."""
    if re.search(r"\b\d{4}\b|\d{4}年", text):
        return day
    for year in range(said.year, said.year + 5):
        found = _safe(year, day.month, day.day)
        if found and found >= said:
            return found
    return day
