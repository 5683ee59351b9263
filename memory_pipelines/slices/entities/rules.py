"""Rules for names that no dictionary can list: order numbers, people, companies, places.

Belongs here: patterns with a cue beside the name. Does not belong here: the dictionary and how
overlapping findings are settled (``find``), dates (``dates``). Texts are normalised, case kept.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from memory_pipelines.slices.resources import Named, label_files, read_yaml


class Finding(NamedTuple):
    """A span that may be an entity. ``rank``: lower wins where findings overlap."""

    rank: int
    start: int
    end: int
    kind: str
    canonical: str


ORDER, DATE, WAREHOUSE, NAMED, COMPANY, DICTIONARY, PERSON, PLACE = range(8)

_HAN = "\u4e00-\u9fff"
_NAME_EN = r"[A-Z][a-z]+(?:['-][A-Z][a-z]+)?"
_ORDER_CUES = re.compile(
    r"(?:订单号码?|订单编号|运单号码?|快递单号|物流单号|单号|编号|订单)[是为:\s#]{0,3}([A-Za-z]{0,4}\d[\dA-Za-z-]{4,29})"
    r"|(?i:(?:order|tracking|invoice|reference|shipment|package|parcel)(?: (?:number|no\.?|id|code))?)"
    r"(?: is|:)? ?#?([A-Za-z]{0,4}\d[\dA-Za-z-]{4,29})"
    r"|#([A-Za-z]{0,4}\d[\dA-Za-z-]{3,29})"
    r"|(?<![A-Za-z\d])([A-Z]{1,4}\d{8,20})(?![A-Za-z\d])"
)
_COMPANY_ZH = re.compile(
    f"(?:^|[^{_HAN}]|[在是到去给从向和叫])([{_HAN}]{{2,12}}?(?:有限责任公司|股份有限公司|有限公司|集团|科技公司))"
)
_COMPANY_EN = re.compile(
    r"\b((?:[A-Z][\w&'-]{0,29} ){1,4}(?:Inc|Ltd|LLC|Corp|Corporation|GmbH|Company|Group|Bank|Holdings))\b"
)
_EMPLOYER_EN = re.compile(
    r"\b(?i:work|works|worked|working|job) (?:at|for) ((?:[A-Z][\w&'-]{1,29})(?: [A-Z][\w&'-]{1,29}){0,2})"
)
_PLACE_EN = re.compile(
    r"\b(?i:live|lives|living|lived|moved?|moving|travell?(?:ing|ed)|travel|fly|flying|flew|trip|based|born|grew up|"
    r"vacation|holiday|go|goes|going|went|come|came|i'm|am|back|home|arrived?)(?: back)? (?:in|to|from) "
    r"([A-Z][a-z]+(?: [A-Z][a-z]+){0,2})"
    r"|\b(?i:visit(?:ed|ing)?|explor(?:ed|ing)) ([A-Z][a-z]+(?: [A-Z][a-z]+){0,2})"
)
_TIME_WORD = re.compile("[今明昨后前去][天年日晚]|[年月日]|来自|来[了到]|到了")
_COMPANY_CUE = re.compile("^.*[在是到去给从向叫](?=.{2})")
_COMPANY_TAILS = ("股份有限公司", "有限责任公司", "有限公司", "科技公司", "集团")


@dataclass(frozen=True)
class _Rules:
    """Patterns that need the word lists of ``entity_cues.yaml``."""

    surnames: frozenset[str]
    not_given: frozenset[str]
    not_names: frozenset[str]
    not_names_zh: frozenset[str]
    not_places_zh: tuple[str, ...]
    titles: re.Pattern[str]
    named_zh: re.Pattern[str]
    related_zh: re.Pattern[str]
    nick_zh: re.Pattern[str]
    place_zh: re.Pattern[str]
    named_en: re.Pattern[str]
    weak_en: re.Pattern[str]


@cache
def _rules(model_set: Named) -> _Rules:
    cues: dict[str, Any] = read_yaml(label_files(model_set, "entities")["cues"])
    relations = "|".join(sorted(cues["relations_zh"].split(), key=len, reverse=True))
    relations_en = "|".join(sorted(split_bars(cues["relations_en"]), key=len, reverse=True))
    compound = "|".join(cues["compound_surnames"].split())
    surnames = cues["surnames"].replace(" ", "")
    name = f"(?:(?:{compound})[{_HAN}]{{1,2}}|[{surnames}][{_HAN}]{{1,2}}|[小老阿][{_HAN}]|{_NAME_EN}(?: {_NAME_EN})?)"
    suffixes = "|".join(sorted(cues["place_suffixes_zh"].split(), key=len, reverse=True))
    return _Rules(
        surnames=frozenset(surnames) | frozenset(cues["compound_surnames"].split()),
        not_given=frozenset(cues["not_given"]),
        not_names=frozenset(split_bars(cues["names_not"])),
        not_names_zh=frozenset(cues["names_not_zh"].split()),
        not_places_zh=tuple(cues["places_not_zh"].split()),
        titles=re.compile("|".join(sorted(cues["titles"].split(), key=len, reverse=True))),
        named_zh=re.compile(
            f"(?:我叫|名叫|名字叫|名字是|叫做|姓名[:是]?|收[件货]人[:是]?(?:改成|换成|改为)?|联系人[:是]?|[他她]叫|"
            f"(?:{relations})(?:的名字)?叫) ?({name}|([{_HAN}])\\2(?![{_HAN}])|"
            f"(?<=[儿子婆公友弟妹哥姐宝的字]叫)[{_HAN}]{{2,3}}(?![{_HAN}]))"
        ),
        related_zh=re.compile(f"(?:{relations}|我是|本人) ?((?:{compound}|[{surnames}])[{_HAN}]{{1,2}})"),
        nick_zh=re.compile(f"(?:[和跟给找约让请问同陪]|叫我)([小老阿][{surnames}])(?![{_HAN}]?师)"),
        place_zh=re.compile(
            f"(?:住在|搬到|搬去|来自|老家在?|去过?|到了?|飞往?|送到|寄到|改成|人在|家在)([{_HAN}]{{2,4}}?(?:{suffixes}))"
        ),
        named_en=re.compile(
            rf"\b(?:(?i:my name is|my name's|name is|i am called|call me|named|called)|"
            rf"(?i:my|his|her|our|their) (?i:{relations_en})(?:,| is called| is named| is| named| called|'s name is)?|"
            rf"(?:Mr|Mrs|Ms|Miss|Dr|Prof)\.?) ({_NAME_EN}(?: {_NAME_EN})?)"
        ),
        weak_en=re.compile(
            rf"\b(?i:hi|hey|hello|thanks|thank you|dear|bye|goodbye|congrats|congratulations|wow),? ({_NAME_EN})"
            rf"(?=[,.!? ]|$)"
            rf"|\b(?i:i'm|i am|this is) ({_NAME_EN}(?: {_NAME_EN})?)(?=[,.!]| and | from | here| speaking|$)"
            rf"|\b(?i:with|met|meet|meeting|text(?:ed)?|told|asked|tell|ask|call(?:ed)?) ({_NAME_EN})"
            rf"(?=[,.!?]| and | at | on | for | to |$)"
        ),
    )


def split_bars(block: str) -> list[str]:
    """The names of a bar-separated block of package data."""
    return [name.strip() for name in str(block).split("|") if name.strip()]


def normal_form(surface: str) -> str:
    """Lower case, single underscores for white space: the part of a canonical id after its kind."""
    return "_".join(surface.lower().split())


def find_by_rules(text: str, model_set: Named) -> Iterator[Finding]:
    """Findings of all rules in a normalised text, in no order."""
    rules = _rules(model_set)
    for match in _ORDER_CUES.finditer(text):
        group = match.lastindex or 1
        number = match[group].replace("-", "").upper()
        yield Finding(ORDER, *match.span(group), "order_number", f"order_number/{number}")
    if not text.isascii():
        yield from _chinese(text, rules)
    if any("A" <= char <= "Z" for char in text):
        yield from _english(text, rules)


def _chinese(text: str, rules: _Rules) -> Iterator[Finding]:
    for match in rules.named_zh.finditer(text):
        start, end = match.span(1)
        if text[start] in rules.surnames or text[start : start + 2] in rules.surnames:
            end = _trim_given(text, start, end, rules)
        if end - start > 1:
            yield _person(NAMED, text, start, end)
    for match in rules.related_zh.finditer(text):
        start, end = match.start(1), _trim_given(text, match.start(1), match.end(1), rules)
        if (
            end - start > 1
            and text[start:end] not in rules.not_names_zh
            and text[start : start + 2] not in rules.not_names_zh
        ):
            after = text[end : end + 1]
            if not ("\u4e00" <= after <= "\u9fff") or after in rules.not_given:
                yield _person(PERSON, text, start, end)
    for match in rules.titles.finditer(text):
        found = _before_title(text, match.start(), rules)
        if found is not None:
            bare = match.start() - found == 1
            name = text[found : match.end() if bare else match.start()]
            yield Finding(PERSON, found, match.end(), "person", f"person/{normal_form(name)}")
    for match in rules.nick_zh.finditer(text):
        yield _person(PERSON, text, *match.span(1))
    for match in _COMPANY_ZH.finditer(text):
        start = match.start(1)
        cue = _COMPANY_CUE.match(match[1].removesuffix(_tail(match[1])))
        start += cue.end() if cue else 0
        name = text[start : match.end(1)].removesuffix(_tail(match[1]))
        if len(name) > 1:
            yield Finding(COMPANY, start, match.end(1), "company", f"company/{name}")
    for match in rules.place_zh.finditer(text):
        if match[1][0] not in rules.not_given and not match[1].endswith(rules.not_places_zh):
            yield Finding(PLACE, *match.span(1), "place", f"place/{match[1]}")


def _english(text: str, rules: _Rules) -> Iterator[Finding]:
    for rank, kind, pattern in (
        (NAMED, "person", rules.named_en),
        (PERSON, "person", rules.weak_en),
        (COMPANY, "company", _COMPANY_EN),
        (COMPANY, "company", _EMPLOYER_EN),
        (PLACE, "place", _PLACE_EN),
    ):
        for match in pattern.finditer(text):
            start, end = match.span(match.lastindex or 1)
            words = text[start:end].split(" ")
            while words and words[-1].lower() in rules.not_names:
                words.pop()
            if words and words[0].lower() not in rules.not_names:
                name = " ".join(words)
                yield Finding(rank, start, start + len(name), kind, f"{kind}/{normal_form(name)}")


def _person(rank: int, text: str, start: int, end: int) -> Finding:
    return Finding(rank, start, end, "person", f"person/{normal_form(text[start:end])}")


def _tail(company: str) -> str:
    return next(tail for tail in _COMPANY_TAILS if company.endswith(tail))


def _trim_given(text: str, start: int, end: int, rules: _Rules) -> int:
    """The end of a Chinese name without the function word that a greedy pattern took with it."""
    head = 2 if text[start : start + 2] in rules.surnames else 1
    for i in range(start + head, end):
        if text[i] in rules.not_given or _TIME_WORD.match(text, i):
            return i if i > start + head else start
    return end


def _before_title(text: str, title: int, rules: _Rules) -> int | None:
    """Where a name right before a title begins: surname, surname and given name, else None."""
    for length in (1, 2, 3):
        start = title - length
        if start < 0 or not "\u4e00" <= text[start] <= "\u9fff" or text[start] in rules.not_given:
            return None
        if text[start] in rules.surnames or (length > 1 and text[start : start + 2] in rules.surnames):
            return start
    return None
