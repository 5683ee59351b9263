"""Whom a clause is about, and whether it is negated or past.

Belongs here: taking discourse markers, subject, adverbs and negation off a clause. Does not belong
here: what the remaining predicate phrase states (``facts``).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from memory_pipelines.admission.ontology import FAMILY, alternatives, cues, relation_of

SELF, OTHER = "self", "other"


@cache
def grammar(language: str) -> dict[str, re.Pattern[str]]:
    """The patterns by which clauses of a language are taken apart."""
    words, kin = cues()[language], alternatives(list(relation_of()))
    marker, adverb = (alternatives([*words[name], *words["hedge"]]) for name in ("marker", "adverb"))
    other = alternatives(words["other"])
    if language == "zh":
        return {
            "marker": re.compile(f"(?:{marker})[\\s:,]*"),
            "adverb": re.compile(f"(?:{adverb})+"),
            "family": re.compile(
                f"(?:(?:我们?|咱们?|俺)(?:的|家的?|家里的?)?)?(?P<rel>{kin})(?!棋|们?们|节)(?P<own>的)?"
            ),
            "other": re.compile(f"(?:{other})"),
            "self": re.compile(
                "(?:家里(?=有|养)|我们?|咱|俺|本人)(?:(?:和|跟|与)[^ ]{1,6}?(?=住|都|一起|养))?(?:都|一起)?(?P<own>的)?"
            ),
            "negation": re.compile(f"(?P<neg>{alternatives(words['negation'])})"),
            "past": re.compile(f"(?:{alternatives(words['past'])})"),
            "correction": re.compile(f"(?:{alternatives(words['correction'])})"),
        }
    return {
        "marker": re.compile(rf"(?:{marker})(?:[\s:,]+|$)", re.I),
        "adverb": re.compile(rf"(?:(?:{adverb})\s+)+", re.I),
        "family": re.compile(
            rf"(?:(?:my|our) (?:\w+ )?|(?:the )?(?=(?:mum|mam|mom|dad|mother|father|gran|granddad|grandad|grandma|grandpa|nan|wife"  # noqa: E501
            rf"|husband|hubby)\b))(?P<rel>{kin})(?P<own>'s)?(?P<name>,? (?-i:[A-Z])\w+)?(?:,? +| *$)",
            re.I,
        ),
        "other": re.compile(
            rf"(?:{other}|my (?:\w+ )?(?:friend|colleague|coworker|boss|neighbou?r|roommate)s?)\b", re.I
        ),
        "self": re.compile(
            r"(?:(?:my [\w ]{1,20} and i|i|we)\b|(?:the )?(?:two|three|four|five|six|both|all|lot) of us\b"
            r"|(?P<own>my|our)\b|(?=(?:call|book|get|give|remind) me\b)"
            r"|(?=there is\b)|(?=the [\w ]{0,20}(?:meeting|class|lesson)))\s*",
            re.I,
        ),
        "negation": re.compile(
            r"(?P<aux>(?:am|is|are|have|has) )?(?:do |does |did )?(?P<neg>not|never|no longer|cannot|can not) ", re.I
        ),
        "past": re.compile(r"used to ", re.I),
        "correction": re.compile(rf"(?:{alternatives(words['correction'])})\W+", re.I),
        "no_more": re.compile(r" (?:any ?more|any longer)$", re.I),
        "inner_adverb": re.compile(
            rf"^((?:am|is|are|have|has|do not|does not|cannot|will) )(?:(?:{adverb})\s+)+", re.I
        ),
    }


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a clause says (``text``) of whom (``who``); ``explicit`` if it names them; ``own`` after "my"."""

    who: str
    text: str
    explicit: bool
    own: bool
    past: bool
    name: str = ""


def strip(text: str, pattern: re.Pattern[str]) -> str:
    """``text`` without what ``pattern`` matches at its start, repeatedly."""
    while (match := pattern.match(text)) and match.end():
        text = text[match.end() :]
    return text


def read_phrase(text: str, language: str, topic: str) -> Phrase:
    """Who a clause speaks of and the rest; without a subject of its own it continues the ``topic``."""
    rules = grammar(language)
    text = strip(text, rules["marker"])
    text = strip(text, rules["adverb"])
    past = bool(language == "zh" and rules["past"].match(text))
    text = strip(text, rules["past"]) if past else text
    for kind in ("family", "other", "self"):
        match = rules[kind].match(text)
        if match is None or (kind == "family" and language == "zh" and _bare(match)):
            continue
        groups = match.groupdict()
        rest = text[match.end() :]
        own = bool(groups.get("own"))
        name = (groups.get("name") or "").strip(", ")
        if kind == "family":
            who = FAMILY + relation_of()[groups["rel"].casefold()]
            if own and language == "en" and not rest.casefold().startswith(("name", "birthday", "job")):
                rest = "is " + rest  # "my mom's allergic"
        else:
            who = OTHER if kind == "other" else SELF
        return Phrase(who, rest, True, own, past, name)
    return Phrase(topic, text, False, False, past)


def _bare(match: re.Match[str]) -> bool:
    """Whether one character stands for a relative without "my": 哥 alone may begin any word."""
    return match["rel"] in ("哥", "弟", "姐", "妹", "娃") and match.start("rel") == match.start()


def variants(phrase: Phrase, language: str) -> Iterator[tuple[str, bool]]:
    """(phrase text to match, whether it was negated), the most literal first."""
    rules, text, past = grammar(language), phrase.text, phrase.past
    if language == "zh":
        if match := rules["past"].match(text):
            past, text = True, text[match.end() :]
        text = strip(text, rules["adverb"])
        if not past and (match := rules["past"].match(text)):
            past, text = True, text[match.end() :]
        yield text, past
        if text.startswith("是"):
            yield strip(text[1:], rules["adverb"]), past
        if match := rules["negation"].match(text):
            rest, neg = strip(text[match.end() :], rules["adverb"]), match["neg"]
            if neg in ("不是", "并非"):
                yield "是" + rest, True
            if neg in ("没有", "没", "并没有", "从来没有"):
                yield "有" + rest, True
            yield rest, True
        return
    text = rules["no_more"].sub("", strip(text, rules["adverb"]))
    if match := rules["past"].match(text):
        past, text = True, text[match.end() :]
    text = rules["inner_adverb"].sub(r"\1", text)
    yield text, past
    if match := rules["negation"].match(text):
        rest = strip(text[match.end() :], rules["adverb"])
        yield (match["aux"] or "") + rest, True
