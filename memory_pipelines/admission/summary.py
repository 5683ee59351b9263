"""One natural sentence per memory, by template, in the language of the text.

Belongs here: wording. Does not belong here: deciding what is worth telling. No model writes here, so
a summary never says what the text and its labels do not.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import Any

from memory_pipelines.admission.dates import MONTHS
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.ontology import FAMILY, Profile, phrases, predicate, relations
from memory_pipelines.admission.worth.model import worth_of_text
from memory_pipelines.stores.vault import uncut

GIST = {"zh": 80, "en": 160}
_SENTENCES = re.compile(r"[^。！？!?.\n]+(?:\.(?!\s|$)[^。！？!?.\n]*)*[。！？!?.]*")


def summary_language(text: str, language: str) -> str:
    """zh or en: the language of the text, for a mixed one that of most of its words."""
    if language in ("zh", "en"):
        return language
    han, words = len(re.findall("[\u3400-\u9fff]", text)), len(re.findall("[A-Za-z]+", text))
    return "zh" if han / 2 >= words and han else "en"


def day_text(day: date, language: str) -> str:
    """``2024-05-17`` in Chinese text, ``17 May 2024`` in English."""
    return day.isoformat() if language == "zh" else f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def gist(text: str, language: str, marks: Sequence[str] = ()) -> str:
    """The sentence that is worth most in the long run (then with most of ``marks``, then the longest), cut at a word if
    it is too long."""
    sentences = [s.strip() for s in _SENTENCES.findall(text) if s.strip()]
    if not sentences:
        return " ".join(text.split())[: GIST[language]]

    def says(sentence: str) -> tuple[int, int, int]:
        worth = round(4 * worth_of_text(sentence).long) if len(sentences) > 1 else 0
        return worth, sum(mark in sentence for mark in marks), min(len(sentence), GIST[language])

    best = " ".join(max(sentences, key=says).split())
    limit = GIST[language]
    if len(best) <= limit:
        return best
    cut = uncut(best[: limit - 1])
    return (cut if language == "zh" else cut.rsplit(" ", 1)[0]) + "…"


def _things(entities: Sequence[Mapping[str, str]], language: str) -> str:
    """ "SF Express (Shenzhen warehouse)": the first named entity, others in brackets."""
    order = {"order_number": 1, "place": 2, "person": 3}
    named = {e["canonical"]: e for e in entities if e["kind"] != "date" and e["surface"]}
    ranked = sorted(named.values(), key=lambda e: (order.get(e["kind"], 0), e["canonical"]))
    names = []
    for entity in ranked[:4]:
        prefix = ("订单" if language == "zh" else "order ") if entity["kind"] == "order_number" else ""
        names.append(prefix + entity["surface"])
    if not names:
        return ""
    if len(names) == 1:
        return names[0]
    return f"{names[0]}（{'、'.join(names[1:])}）" if language == "zh" else f"{names[0]} ({', '.join(names[1:])})"


def _reason(reason: str, language: str) -> str:
    chinese = bool(re.search("[\u3400-\u9fff]", reason))
    if language == "en":
        return "" if chinese else reason.replace("_", " ").strip()
    if chinese:
        return reason
    words = re.findall("[a-z]+", reason.casefold())
    known = phrases()["reasons"]
    return "".join(known[w] for w in words) if words and all(w in known for w in words) else ""


@cache
def intent_phrase(intent: str) -> Mapping[str, str] | None:
    """The phrase of an intent: its own, else that of a word that it contains; None if it has none."""
    table: Mapping[str, Mapping[str, str]] = phrases()["intents"]
    if intent in table:
        return table[intent]
    words = intent.split("_")
    return next((row for key, row in table.items() if key in words), None)


def feedback_phrase(feedback: str, language: str) -> str:
    """What followed, as the end of a sentence; empty for none."""
    for key, zh, en in phrases()["feedback"]:
        if key in feedback:
            return str(zh if language == "zh" else en)
    return ""


def episode_summary(row: Mapping[str, Any], profile: Profile, language: str) -> str:
    """The sentence of an event slice. ``row`` is a row of ``tables.SLICES``."""
    day = day_text(row["occurred_at"].date(), language)
    entities = row["entities"] or []
    followed = feedback_phrase(row["feedback"] or "", language)
    phrase = intent_phrase(row["intent"] or "")
    who = profile.who[language]
    if phrase is None:
        said = gist(row["text"] or "", language, [e["surface"] for e in entities if e["surface"]])
        if language == "zh":
            return f"{day} {who}说：“{said}”" + (f"，{followed}。" if followed else "")
        return f"On {day} {who} said: “{said}”" + (f" and {followed}." if followed else "")
    thing = _things(entities, language) or phrase[f"topic_{language}"]
    why = _reason(row["reason"] or "", language)
    told = phrase[language].replace("{thing}", thing)
    if language == "zh":
        return f"{day} {'因' + why if why else who}{told}{'，' + followed if followed else ''}。"
    cause = f" because of {why}" if why else ""
    return f"On {day} {who} {told}{cause}{' and ' + followed if followed else ''}."


def _who(fact: Fact, profile: Profile, language: str) -> str:
    who = profile.who[language]
    if fact.predicate.startswith(FAMILY):
        relation = fact.predicate.split(".")[1]
        who = f"{who}的{relations()[relation]['zh_name']}" if language == "zh" else f"{who}'s {relation}"
    return who


_OWN_WORDS = {
    "en": {
        "my": "their",
        "our": "their",
        "mine": "theirs",
        "ours": "theirs",
        "me": "them",
        "us": "them",
        "myself": "themselves",
        "ourselves": "themselves",
        "i'm": "they're",
        "i": "they",
        "we": "they",
        "am": "are",
    },
    "zh": {"我们": "他们", "咱们": "他们", "咱": "他们", "我": "自己", "俺": "自己"},
}
_OWN = {
    "en": re.compile(r"\b(?:" + "|".join(_OWN_WORDS["en"]) + r")\b(?!\.)", re.I),
    "zh": re.compile("|".join(_OWN_WORDS["zh"])),
}


def _of_them(said: str, language: str) -> str:
    """What somebody said of themselves, told of them: "my own studio" is "their own studio". US stays."""

    def told(match: re.Match[str]) -> str:
        word = match[0]
        return word if word.isupper() and len(word) > 1 else _OWN_WORDS[language][word.casefold()]

    return _OWN[language].sub(told, said)


_DATED = {"zh": "{date}", "en": " on {date}"}
_THING = re.compile(r"(?:an?|the|some|their|two|three|\d+) |(?!bring|sing|ring|swing|fling|spring)\w{2,}ing\b", re.I)
"""A plan that is no infinitive: "a conference", "having a party"."""


def fact_summary(fact: Fact, profile: Profile, ended: datetime | None) -> str:
    """The sentence of a fact; a closed one (``ended``) is told in the past with the day it ended."""
    language = fact.language
    said = _of_them(fact.object, language)
    templates = predicate(fact.predicate).templates
    name = f"{language}_ended" if ended else language
    template = templates.get(f"{name}_thing", templates[name]) if _THING.match(said) else templates[name]
    told = (template if fact.day else template.replace(_DATED[language], "")).format(
        who=_who(fact, profile, language),
        object=said,
        end=day_text(ended.date(), language) if ended else "",
        date=day_text(date.fromisoformat(fact.day), language) if fact.day else "",
    )
    return told[:1].upper() + told[1:]
