"""English people, organisations, places and street addresses by lists of names and the words around them.

Belongs here: names written with a capital that no dictionary has an id for. Does not belong here: names behind a
phrase such as "my name is" (``rules``), nor the lists (``entity_names.yaml``).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from memory_pipelines.slices.entities.rules import COMPANY, NAMED, PERSON, PLACE, Finding, normal_form, split_bars
from memory_pipelines.slices.entities.vetoes import is_us_postcode
from memory_pipelines.slices.resources import read_yaml

_WORD = re.compile(r"[A-Z][a-z]+(?:['’-][A-Z][a-z]+)*|[A-Z]\.|[A-Z]{2,}\b")
_CAPITAL = r"[A-Z][\w&'’-]{0,29}"
_HOUSE = re.compile(
    r"\b\d{1,5}[A-Z]? (?:(?:N|S|E|W|North|South|East|West)\.? )?(?:[A-Z][a-z]+|\d{1,3}(?:st|nd|rd|th))"
    r"(?: [A-Z][a-z]+){0,2}? (?:Street|St|Avenue|Ave|"
    r"Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Way|Court|Ct|Square|Sq|Place|Pl|"
    r"Terrace|Parkway|Pkwy|Highway|Hwy)\b"
)
_SYLLABLE = r"(?:[bpmfdtnlgkhjqxzcsrwy]|zh|ch|sh)?[aeiouv]{1,3}(?:ng|n|r)?"
_PINYIN = re.compile(rf"(?:{_SYLLABLE}){{1,2}}")
_WORDS_TOO = frozenset({"long", "song", "tan", "pan", "he", "sun", "ma", "hu", "shi", "an"})
"""Chinese surnames that are English words, too: Long Time No See."""
_NEAR = 32


@dataclass(frozen=True)
class _Lists:
    given: frozenset[str]
    cued: frozenset[str]
    surnames: frozenset[str]
    pinyin: frozenset[str]
    never: frozenset[str]
    after: re.Pattern[str]
    before: re.Pattern[str]
    organisation: re.Pattern[str]
    of: re.Pattern[str]
    facilities: frozenset[str]


@cache
def _lists(file: str) -> _Lists:
    source = read_yaml(file)
    facilities = split_bars(source["facility_words"])
    words = "|".join(sorted({*split_bars(source["organisation_words"]), *facilities}, key=len, reverse=True))
    after = "|".join(re.escape(word) for word in split_bars(source["after_person"]))
    before = "|".join(re.escape(word) for word in split_bars(source["before_person"]))
    return _Lists(
        given=frozenset(source["given"].split()),
        cued=frozenset(source["given_cued"].split()),
        surnames=frozenset(source["surnames_en"].split()),
        pinyin=frozenset(source["surnames_pinyin"].split()),
        never=frozenset(split_bars(source["not_in_names"])),
        after=re.compile(f" ?(?:{after})\\b", re.IGNORECASE),
        before=re.compile(rf"\b(?:{before}),? $", re.IGNORECASE),
        organisation=re.compile(rf"\b((?:{_CAPITAL} (?:and |& |of )?){{1,4}}({words}))\b(?! [A-Z])"),
        of=re.compile(
            r"\b((University|College|Bank|Ministry|Department|Bureau|Institute|Port|Isle|Lake|Mount|Museum) "
            rf"of (?:the )?{_CAPITAL}(?: {_CAPITAL})?)"
        ),
        facilities=frozenset({*facilities, "Port", "Isle", "Lake", "Mount"}),
    )


def find_english(text: str, file: str, known: Sequence[Finding]) -> Iterator[Finding]:
    """Findings in a normalised text; ``known``: what the dictionary found in it."""
    lists = _lists(file)
    yield from _people(text, lists, known)
    for pattern in (lists.organisation, lists.of):
        for match in pattern.finditer(text):
            start, name = match.start(1), match[1]
            while (first := name.partition(" ")[0]).lower() in lists.never and " " in name:
                start += len(first) + 1
                name = name[len(first) + 1 :]
            if " " in name:
                kind = "place" if match[2] in lists.facilities else "company"
                yield Finding(COMPANY, start, start + len(name), kind, f"{kind}/{normal_form(name)}")
    for match in _HOUSE.finditer(text):
        yield Finding(COMPANY, *match.span(), "place", f"place/{normal_form(match[0])}")
    for match in re.finditer(r"\b([A-Z][a-z]+(?: [A-Z][a-z]+)?), ([A-Z]{2}) (\d{5}(?:-\d{4})?)\b", text):
        if is_us_postcode(text, *match.span(3)):
            yield Finding(PLACE, *match.span(1), "place", f"place/{normal_form(match[1])}")


def _people(text: str, lists: _Lists, known: Sequence[Finding]) -> Iterator[Finding]:
    listed = {(f.start, f.end) for f in known}
    found = [match.span() for match in _WORD.finditer(text)]
    i = 0
    while i < len(found):
        taken = 1
        start, end = found[i]
        run = [text[start:end]]
        while len(run) < 4 and i + len(run) < len(found):
            following = found[i + len(run)]
            if text[found[i + len(run) - 1][1] : following[0]] != " ":
                break
            run.append(text[slice(*following)])
        length, sure = _length(run, lists)
        if length:
            end = found[i + length - 1][1]
            cued = bool(lists.before.search(text[max(0, start - _NEAR) : start]) or lists.after.match(text, end))
            if cued and length == 1 and len(run) > 1 and _may_follow(run[1], lists):
                length, end = 2, found[i + 1][1]  # President Bill Clinton
            if sure or cued:
                rank = NAMED if length > 1 or cued or (start, end) in listed else PERSON
                yield Finding(rank, start, end, "person", f"person/{normal_form(text[start:end])}")
                taken = length
        i += taken


def _may_follow(word: str, lists: _Lists) -> bool:
    """Whether a word with a capital may be the surname of the given name before it."""
    return len(word) > 3 and not word.isupper() and word.lower() not in lists.never and word not in lists.facilities


def _length(run: Sequence[str], lists: _Lists) -> tuple[int, bool]:
    """How many of the words are one person's name, and whether they are without a cue."""
    first = run[0].lower()
    if first in lists.never:
        return 0, False
    initial = len(run) > 2 and len(run[1]) == 2 and run[1].endswith(".")
    last = 2 if initial else 1
    follows = run[last] if len(run) > last else ""
    family = follows.lower() in lists.surnames or follows.lower() in lists.cued
    if first in lists.given:
        return (last + 1 if family or _may_follow(follows, lists) else 1), True
    if first in lists.cued:
        return (last + 1, True) if follows.lower() in lists.surnames and follows.lower() != first else (1, False)
    if len(run) > 1:
        second = run[1].lower()
        if first in lists.pinyin and _PINYIN.fullmatch(second) and second not in lists.never:
            return 2, first not in _WORDS_TOO
        if second in lists.pinyin - _WORDS_TOO and _PINYIN.fullmatch(first):
            return 2, True
    return 0, False
