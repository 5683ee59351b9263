"""Dates as people say them in service talk, the second revision: tense, ranges, holidays, parts of a month.

Belongs here: what ``dates`` does not read, or reads without regard to the sentence around it. Does not belong here:
names that look like dates (``vetoes``). Texts are folded (``language.fold``).

*Which Friday?* A weekday, a day of the month, a month or a holiday that stands alone is the next one where its
sentence looks ahead (``预计周一送达``, ``arrives on Monday``; today counts), the last one where it looks back
(``周一买的``, ``I bought it on Monday``), else that of the same ISO week, or the nearest. ``next Friday`` and
``下周五`` are the Friday of the next ISO week, ``last Friday`` that of the week before, ``this Friday`` that of this
week: speakers differ, and no text tells which they mean.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

from memory_pipelines.model import utc
from memory_pipelines.slices.entities.dates import (
    COUNT,
    EN,
    MONTH,
    NUMBER,
    SHARED,
    WEEKDAYS,
    ZH,
    DateSpan,
    Rule,
    apply,
    day_of_month,
    iso_day,
    iso_month,
    iso_weekday,
    month_number,
    nearest,
    number,
    shift,
)
from memory_pipelines.slices.language import fold
from memory_pipelines.slices.resources import read_yaml

_CLAUSE = re.compile(r"[，。！？；,.!?;\n]")
_LATIN = re.compile("[a-z/]")
_AROUND = 40
_FORECAST = re.compile(
    r"预计|预期|预定|将[于在会]|[会能可].{0,4}(?:到|送|发)|到期|截止|还款日|改到|改成|改约|推迟到|延期到|之?前(?:必须|一定|能|要|送|到|发)|才[能会到]|提醒|最[晚迟]"
    r"|\b(?:will|'ll|going to|gonna|expected|expects?|estimated|eta|scheduled|rescheduled|due|arrives?|arriving|"
    r"forecast|promised for|remind|should|by|until|before|deadline)\b"
)
_BACK = re.compile(
    r"[了过]|已经?|[刚就]|的时候|上次|当时|以来|买的|下的单|下单|订的|到的|收到|付的|寄出|寄的|发的|送的|签收|说的|投诉"
    r"|\b(?:was|were|did|didn't|had|came|went|got|bought|sent|paid|said|told|ago|since|haven't|hasn't|have|has|left|"
    r"broke|took|made|wrote|met|saw|felt|[a-z]{2,}ed)\b"
)
_AHEAD = re.compile(
    r"[要想约能]|准备|打算|计划|再|等到|下次|出发|安排|希望|可以|送达|到货|前"
    r"|\b(?:can|could|please|plan|planning|need|want|would|let's|have to|next|on its way|leave|leaving)\b"
)


def tense(match: re.Match[str]) -> int:
    """Whether the clause of a match looks ahead (1), back (-1), or does not say (0). A forecast wins over both."""
    text = match.string
    before = text[max(0, match.start() - _AROUND) : match.start()]
    after = text[match.end() : match.end() + _AROUND]
    clause = _CLAUSE.split(before)[-1] + match[0] + _CLAUSE.split(after, maxsplit=1)[0]
    if _FORECAST.search(clause):
        return 1
    if _BACK.search(clause):
        return -1
    return 1 if _AHEAD.search(clause) else 0


def _of_tense(days: Callable[[int], str | None], match: re.Match[str], at: date) -> str | None:
    """Of the days that ``days`` gives for a year, the one that the sentence means."""
    choices = sorted(iso for year in (at.year - 1, at.year, at.year + 1) if (iso := days(year)))
    means = tense(match)
    today = at.isoformat()
    if means > 0:
        return next((iso for iso in choices if iso >= today), None)
    if means < 0:
        return next((iso for iso in reversed(choices) if iso <= today), None)
    return min(choices, key=lambda iso: (abs(date.fromisoformat(iso) - at), iso), default=None)


def _said_weekday(match: re.Match[str], at: date, weekday: int) -> str:
    same_week = date.fromisoformat(iso_weekday(at, 0, weekday))
    means = tense(match)
    if means > 0 and same_week < at:
        same_week += timedelta(weeks=1)
    if means < 0 and same_week > at:
        same_week -= timedelta(weeks=1)
    return same_week.isoformat()


def _said_day(match: re.Match[str], at: date, day: int) -> str | None:
    """The day of the month that is meant, without a month: among last, this and next month's."""
    choices = sorted(iso for step in (-1, 0, 1) if (iso := day_of_month(at, step, day)))
    means, today = tense(match), at.isoformat()
    if means > 0:
        return next((iso for iso in choices if iso >= today), None)
    if means < 0:
        return next((iso for iso in reversed(choices) if iso <= today), None)
    return min(choices, key=lambda iso: (abs(date.fromisoformat(iso) - at), iso), default=None)


def _said_month(match: re.Match[str], at: date, month: int) -> str:
    means = tense(match)
    year = at.year
    if means > 0:
        year += month < at.month
    elif means < 0:
        year -= month > at.month
    else:
        return (nearest(month, 15, at) or "")[:7]
    return f"{year:04}-{month:02}"


def _business_days(at: date, count: int) -> str:
    day = at
    for _ in range(count):
        day += timedelta(days=3 if day.weekday() == 4 else 2 if day.weekday() == 5 else 1)
    return day.isoformat()


def _slashed(match: re.Match[str], at: date) -> str | None:
    """``5/20``: month first, as in the US, unless only the second number can be a month."""
    one, two, year = int(match[1]), int(match[2]), match[3]
    month, day = (two, one) if one > 12 else (one, two)
    if year:
        return iso_day(int(year) + (2000 if len(year) == 2 else 0), month, day)
    return _of_tense(lambda y: iso_day(y, month, day), match, at)


_SHORT = r"mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
_FULL = "|".join(WEEKDAYS)
_YEARS = {"今年": 0, "去年": -1, "前年": -2, "明年": 1, "后年": 2}


def _index(name: str) -> int:
    return next(i for i, day in enumerate(WEEKDAYS) if day.startswith(name[:3]))


_RULES_ZH: list[Rule] = [
    (
        re.compile("每个?(?:周|星期|礼拜)[一二三四五六日天末](?:[到至][周星期礼拜]*[一二三四五六日天])?"),
        lambda m, at: "",
    ),
    (re.compile("(?:周|星期|礼拜)[一二三四五六日天][到至-](?:周|星期|礼拜)?[一二三四五六日天]"), lambda m, at: ""),
    (
        re.compile(f"(今年|去年|前年|明年|后年)({NUMBER})月({NUMBER})[日号]?"),
        lambda m, at: iso_day(at.year + _YEARS[m[1]], number(m[2]), number(m[3])),
    ),
    (
        re.compile(f"(今年|去年|前年|明年|后年)({NUMBER})月"),
        lambda m, at: f"{at.year + _YEARS[m[1]]:04}-{number(m[2]):02}" if 1 <= number(m[2]) <= 12 else None,
    ),
    (
        re.compile(f"(?<![\\d年个])({NUMBER})月({NUMBER})(?:[日号]|(?![\\d个万元块]))"),
        lambda m, at: _of_tense(lambda y: iso_day(y, number(m[1]), number(m[2])), m, at),
    ),
    (
        re.compile("(?<![上下这本每])(?:周|星期|礼拜)([一二三四五六日天])(?!天)"),
        lambda m, at: _said_weekday(m, at, "一二三四五六日天".index(m[1]) if m[1] != "天" else 6),
    ),
    (re.compile("(?<![上下这本每个])周末"), lambda m, at: _said_weekday(m, at, 5)),
    (
        re.compile("(上上|下下|上|下|这|本)?个?月[底末初]"),
        lambda m, at: iso_month(at, {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(m[1] or "", 0)),
    ),
    (re.compile("(今年|去年|明年)?年?底(?<=年底)"), lambda m, at: f"{at.year + _YEARS.get(m[1] or '', 0):04}-12"),
    (
        re.compile(f"再?过({NUMBER})(天|周|个?星期|个?礼拜|个月)(?!内)"),
        lambda m, at: shift(at, m[2].lstrip("个"), number(m[1])),
    ),
    (
        re.compile(
            f"(?<![\\d月第])({NUMBER})号(?=之?前|以前|之?后|以后|左右|到|送|发|才|能|再|开始|截止|上午|下午|中午|晚上|早上|的[飞高火车]|出发|的时候|买|下单|收)"
        ),
        lambda m, at: _said_day(m, at, number(m[1])),
    ),
    (
        re.compile(
            "(?<![\\d个几两半年])(\\d{1,2}|十[一二]?|[一二三四五六七八九])月(?:份|(?!\\d|[一二三四五六七八九十]))"
        ),
        lambda m, at: _said_month(m, at, number(m[1])) if 1 <= number(m[1]) <= 12 else None,
    ),
]
_RULES_EN: list[Rule] = [
    (re.compile(rf"\b(?:every|each) (?:{_FULL})s?\b|\b(?:on )?(?:{_FULL})s\b"), lambda m, at: ""),
    (
        re.compile(
            rf"\b{MONTH} \d{{1,3}}(?= (?:times?|years?|days?|weeks?|months?|hours?|minutes?|"
            r"bucks|dollars|items?|more|of|km|miles?)\b)"
        ),
        lambda m, at: "",
    ),
    (
        re.compile(rf"\b({COUNT}) (week)s? from (today|tomorrow|{_FULL})\b"),
        lambda m, at: (
            timedelta(weeks=number(m[1]))
            + (
                at + timedelta(days=m[3] == "tomorrow")
                if m[3] in ("today", "tomorrow")
                else date.fromisoformat(iso_weekday(at, 0 if _index(m[3]) >= at.weekday() else 1, _index(m[3])))
            )
        ).isoformat(),
    ),
    (
        re.compile(
            rf"(?<!\bi )(?<!\bwe )(?<!\byou )(?<!\bthey )\b({MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?!,? \d{{4}}|:)"
        ),
        lambda m, at: _of_tense(lambda y: iso_day(y, month_number(m[1]), int(m[2])), m, at),
    ),
    (
        re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({MONTH})\b(?!,? \d{{4}})"),
        lambda m, at: _of_tense(lambda y: iso_day(y, month_number(m[2]), int(m[1])), m, at),
    ),
    (
        re.compile(
            rf"(?<!last )(?<!past )(?<!next )(?<!this )(?<!coming )"
            rf"\b(?:(?:on|by|until|before|since) ({_SHORT})|({_FULL}))\b"
        ),
        lambda m, at: _said_weekday(m, at, _index(m[1] or m[2])),
    ),
    (
        re.compile(
            r"\b(?:on|by|until|before|after|since|from|for) the (\d{1,2})(?:st|nd|rd|th)\b"
            r"(?:(?! [a-z])|(?= (?:at|in|and|or|because|but|to|for)\b))"
        ),
        lambda m, at: _said_day(m, at, int(m[1])),
    ),
    (re.compile(r"\b(?:end|beginning|start|middle) of (?:the|this) month\b"), lambda m, at: iso_month(at, 0)),
    (re.compile(r"\b(?:end|beginning|start|middle) of next month\b"), lambda m, at: iso_month(at, 1)),
    (re.compile(r"\bend of (?:the|this) year\b"), lambda m, at: f"{at.year:04}-12"),
    (re.compile(r"(?<![\d/.])(\d{1,2})/(\d{1,2})/(\d{4}|\d\d)(?![\d/])"), _slashed),
    (
        re.compile(
            r"\b(?:on|by|before|until|since|from|due|dated|arrives?|delivered|ordered|placed|shipped|for|eta:?) "
            r"(\d{1,2})/(\d{1,2})()(?![\d/%]| (?:of|stars?|cup|price))"
        ),
        _slashed,
    ),
    (re.compile(r"\bin (?:a couple of|two|2) (day|week|month)s['’]?(?: time)?\b"), lambda m, at: shift(at, m[1], 2)),
    (re.compile(r"\ba couple of (day|week|month)s ago\b"), lambda m, at: shift(at, m[1], -2)),
    (re.compile(r"\bin a fortnight\b"), lambda m, at: shift(at, "week", 2)),
    (re.compile(r"\ba fortnight ago\b"), lambda m, at: shift(at, "week", -2)),
    (re.compile(rf"\bin ({COUNT}) (?:business|working) days?\b"), lambda m, at: _business_days(at, number(m[1]))),
    (
        re.compile(rf"\b(?:in|since|until|by|before|for) ({MONTH})\b(?! \d)"),
        lambda m, at: _said_month(m, at, month_number(m[1])),
    ),
]
_RANGES = (
    re.compile(f"(?<![\\d年])(?P<month>{NUMBER})月(?P<one>{NUMBER})[日号]?(?:到|至|-|~|—|–)(?P<two>{NUMBER})[日号]"),
    re.compile(
        rf"\b(?P<month>{MONTH})\.? (?P<one>\d{{1,2}})(?:st|nd|rd|th)? ?(?:-|–|—|~|to|through|and) ?"
        r"(?P<two>\d{1,2})(?:st|nd|rd|th)?\b"
    ),
)  # fmt: skip


def _ranges(folded: str, at: date) -> Iterator[DateSpan]:
    """Both ends of ``5月20日-22日`` and ``May 20-22``, one date each."""
    for pattern in _RANGES:
        for match in pattern.finditer(folded):
            month = (
                month_number(match["month"])
                if match["month"][:3].isascii() and not match["month"].isdecimal()
                else number(match["month"])
            )
            first = _of_tense(_every_year(month, number(match["one"])), match, at)
            last = first and iso_day(int(first[:4]), month, number(match["two"]))
            if first and last and first < last:
                yield DateSpan(match.start(), match.end("one"), first)
                yield DateSpan(match.start("two"), match.end(), last)


def _every_year(month: int, day: int) -> Callable[[int], str | None]:
    return lambda year: iso_day(year, month, day)


def _nth_weekday(month: int, which: int, weekday: int, after: int) -> Callable[[int], str | None]:
    def of_year(year: int) -> str:
        first = date(year, month, 1)
        return (first + timedelta(days=(weekday - 1 - first.weekday()) % 7 + 7 * (which - 1) + after)).isoformat()

    return of_year


def _listed(days: list[str], first: int) -> Callable[[int], str | None]:
    def of_year(year: int) -> str | None:
        if not 0 <= year - first < len(days):
            return None
        day = days[year - first]
        return f"{year:04}-{day[:2]}-{day[2:]}"

    return of_year


@cache
def _holidays(file: str) -> tuple[re.Pattern[str], list[Rule]]:
    """What a text with a holiday in it matches, and one rule per name, the longer first: 圣诞节 before 圣诞."""
    source: dict[str, Any] = read_yaml(file)
    days: list[tuple[str, Callable[[int], str | None]]] = []
    days += ((names, _every_year(*map(int, key.split("-")))) for key, names in source["days"].items())
    days += ((names, _nth_weekday(*map(int, key.split()))) for key, names in source["weekdays"].items())
    days += (
        (block["names"], _listed(block["days"].split(), source["lunar_from"])) for block in source["lunar"].values()
    )
    rules = [(fold(name.strip()), _holiday(of_year)) for names, of_year in days for name in names.split("|")]
    rules.sort(key=lambda rule: (-len(rule[0]), rule[0]))
    some = re.compile("|".join(re.escape(name) for name, _ in rules))
    return some, [(_named(name), resolve) for name, resolve in rules]


def _named(name: str) -> re.Pattern[str]:
    border = r"(?![a-z])" if name[-1].isascii() else "(?![路街广大道东西南北])"
    before = r"(?:(今年|去年|前年|明年|last|next|this) ?(?:的)?)?(?<![a-z\d])"
    return re.compile(rf"{before}{re.escape(name)}{border}(?!\d)")


def _holiday(of_year: Callable[[int], str | None]) -> Callable[[re.Match[str], date], str | None]:
    def resolve(match: re.Match[str], at: date) -> str | None:
        step = {"last": -1, "next": 1}.get(match[1] or "")
        if step:
            choices = sorted(iso for year in range(at.year - 1, at.year + 2) if (iso := of_year(year)))
            today = at.isoformat()
            later = [iso for iso in choices if iso > today]
            earlier = [iso for iso in choices if iso < today]
            return later[0] if step > 0 and later else earlier[-1] if step < 0 and earlier else None
        if match[1] in _YEARS or match[1] == "this":
            return of_year(at.year + _YEARS.get(match[1], 0))
        return _of_tense(of_year, match, at)

    return resolve


def find_said_dates(folded: str, at: datetime, holidays: str) -> list[DateSpan]:
    """Dates in a folded text said at ``at`` (aware), from left to right, without overlaps.

    ``holidays``: the calendar's file name. What this module does not read is read by ``dates``."""
    day = utc(at).date()
    chinese = not folded.isascii()
    english = not chinese or _LATIN.search(folded) is not None
    some, named = _holidays(holidays)
    rules = [*SHARED, *(named if some.search(folded) else ()), *(_RULES_ZH if chinese else ())]
    rules += [*(_RULES_EN if english else ()), *(ZH if chinese else ()), *(EN if english else ())]
    return apply(rules, folded, day, _ranges(folded, day))
