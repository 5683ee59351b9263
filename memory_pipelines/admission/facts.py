"""Facts that a person states about themself or their family: subject, predicate, object.

Belongs here: whom a clause is about, negation, the patterns of the ontology, corrections within one
text. Does not belong here: which fact is true when (``validity``), or whether it is kept (``gate``).
Questions, hypotheticals, quotations and what is said of third persons state nothing here.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from memory_pipelines.admission.clauses import Clause, clauses
from memory_pipelines.admission.dates import MONTHS, DateHit, find_date
from memory_pipelines.admission.ontology import (
    FAMILY,
    Pattern,
    is_place,
    patterns,
    predicate,
    predicates,
    relations,
)
from memory_pipelines.admission.subject import OTHER, SELF, Phrase, grammar, read_phrase, strip, variants
from memory_pipelines.admission.values import acceptable, article, canonical, shape, split_values

_FAMILY_PREDICATES = frozenset(
    (
        *("allergy", "condition", "diet", "likes", "dislikes"),
        *("home_city", "hometown", "job", "employer", "birthday", "language"),
    )
)

_GERUND = {"going": "go", "flying": "fly", "travelling": "travel", "traveling": "travel", "moving": "move"}
_GERUND |= {"heading": "head", "driving": "drive"}
_PRO_DROP, _HEDGED = 0.85, 0.6


@dataclass(frozen=True, slots=True)
class Fact:
    """One claim of one clause. ``predicate`` is ``family.<relation>.<name>`` when it is about a relative.

    ``value`` is canonical, ``object`` as said; ``key`` tells plans apart; ``ends`` closes the value
    (an empty ``value``: any) instead of stating it; ``strength`` in [0, 1]; ``start``, ``end`` and
    ``sentence`` are spans of the text; ``day`` is an ISO date or empty."""

    predicate: str
    value: str
    object: str
    language: str
    strength: float
    start: int
    end: int
    sentence: tuple[int, int]
    ends: bool = False
    key: str = ""
    day: str = ""

    @property
    def base(self) -> str:
        return self.predicate.rsplit(".", 1)[-1]


def _who_predicate(who: str, base: str) -> str | None:
    if who == SELF:
        return base
    return f"{who}.{base}" if base in _FAMILY_PREDICATES else None


def _plan(
    pattern: Pattern, match: re.Match[str], hit: DateHit | None, language: str, negated: bool
) -> tuple[str, str, str, str]:
    """(value, object, key, day) of a plan."""
    raw = match["v"].strip().removesuffix("了")
    first, _, rest = raw.partition(" ")
    shown = f"{_GERUND[first.casefold()]} {rest}" if first.casefold() in _GERUND else raw
    key = re.sub(r"^(?:have|has|take|attend) (?:an? |my |the )?|^有(?:一?[个场次])?", "", shown.casefold())
    if language == "en" and key == raw.casefold() and " to " not in shown and pattern in patterns("en", "noun"):
        shown = f"have {article(raw)}"
    day = hit.day.isoformat() if hit and not negated else ""
    return ("" if negated else f"{day} {key}"), shown, key, day


def _made(
    pattern: Pattern,
    match: re.Match[str],
    clause: Clause,
    who: str,
    strength: float,
    negated: bool,
    hit: DateHit | None,
    at: datetime,
) -> list[Fact]:
    """The facts of one match; none if its value does not hold up."""
    if pattern.ends and negated:
        return []
    name = _who_predicate(who, pattern.predicate)
    if name is None:
        return []
    lang = clause.language
    common = Fact(
        name, "", "", lang, round(strength, 4), clause.start, clause.end, clause.sentence, ends=pattern.ends or negated
    )
    if pattern.also:
        also = [replace(common, predicate=other) for other in (_who_predicate(who, pattern.also),) if other]
        return [common, *also]
    if pattern.fixed:
        return [replace(common, value=canonical(pattern.fixed), object=pattern.fixed)]
    if pattern.predicate == "plan":
        value, shown, key, day = _plan(pattern, match, hit, lang, common.ends)
        return [replace(common, value=value, object=shown, key=key, day=day)]
    if pattern.predicate == "schedule":
        event = re.sub("^每|的", "", canonical(match["v"]))
        value, shown = _scheduled(event, match["time"], lang)
        return [replace(common, value=value, object=shown, key=event)]
    if pattern.predicate == "birthday":
        found = find_date(match["v"], at.date(), lang)
        if found is None:
            return []
        born = found.day
        shown = f"{born.month}月{born.day}日" if lang == "zh" else f"{born.day} {MONTHS[born.month - 1]}"
        return [replace(common, value=f"{born:%m-%d}", object=shown)]
    facts, taste = [], pattern.predicate in ("likes", "dislikes")
    for value in split_values(match["v"], lang, predicates()[pattern.predicate].cardinality == "multi", taste):
        if pattern.unless and pattern.unless.search(value):
            continue
        key, shown = shape(pattern, match, value, lang)
        facts.append(replace(common, value=key, object=shown))
    job = match.groupdict().get("job") or match.groupdict().get("job2")
    if facts and job and (other := _who_predicate(who, "job")):
        facts.append(replace(common, predicate=other, value=canonical(job), object=job))
    return facts


def _usable(pattern: Pattern, phrase: Phrase, hit: DateHit | None, at: datetime, negated: bool, context: str) -> bool:
    """Whether a pattern may be tried: its subject, date and context are there, and no future date speaks against it."""
    if pattern.raw or (pattern.explicit and not phrase.explicit) or (pattern.after and pattern.after != context):
        return False
    if pattern.dated:
        return negated or (hit is not None and hit.day >= at.date())
    return hit is None or hit.day <= at.date()


def _matches(
    clause: Clause, phrase: Phrase, hit: DateHit | None, at: datetime, strength: float, context: str
) -> list[Fact]:
    for text, negated in variants(phrase, clause.language):
        modes = ("noun",) if phrase.own and clause.language == "en" and phrase.who == SELF else ("verb", "noun")
        for mode in modes:
            for pattern in patterns(clause.language, mode):
                if not _usable(pattern, phrase, hit, at, negated, context):
                    continue
                match = pattern.regex.match(text)
                if match and (
                    made := _made(pattern, match, clause, phrase.who, pattern.strength * strength, negated, hit, at)
                ):
                    return made
    return []


def _raw_matches(clause: Clause, phrase: Phrase, at: datetime, strength: float) -> list[Fact]:
    for pattern in patterns(clause.language, "noun"):
        if pattern.raw and (match := pattern.regex.match(phrase.text)):
            return _made(pattern, match, clause, phrase.who, pattern.strength * strength, False, None, at)
    return []


def _named_relative(clause: Clause, phrase: Phrase) -> list[Fact]:
    """A relative's name: "my daughter Mia", "my daughter's name is Mia", 「我女儿叫小雨」."""
    name = phrase.name
    if not name:
        if clause.language == "zh":
            match = re.match(
                "(?:的?(?:名字|小名|大名)(?:叫做|是叫|叫|是)|叫做|叫)(?P<name>[\u4e00-\u9fff]{1,4}|[A-Z][a-z]+)$",
                phrase.text,
            )
        else:
            match = re.match(r"(?:name is|is called|is named) (?P<name>[A-Z]\w+)", phrase.text)
        name = match["name"] if match else ""
    if not name:
        return []
    relation = phrase.who.removeprefix(FAMILY)
    shown = f"{relation} {name}"
    if clause.language == "zh":
        shown = f"{relations()[relation]['zh_name']}{name}"
    value = f"{relation}:{name.casefold()}"
    return [Fact("family_member", value, shown, clause.language, 0.88, clause.start, clause.end, clause.sentence)]


def _scheduled(event: str, time: str, language: str) -> tuple[str, str]:
    """(value, object) of a regular event at a time of day."""
    return f"{event} {canonical(time)}", f"{event}{time}" if language == "zh" else f"{event} at {time}"


def _correction(clause: Clause, last: Fact, correcting: bool) -> Fact | None:
    """A bare value that corrects the fact just stated: "not London", 「不对，是杭州」, "no, wait, Leeds"."""
    if last.base in ("plan", "birthday", "family_member", "pet") or not last.object:
        return None
    if clause.language == "zh":
        denied = re.fullmatch("(?:而)?不是(?P<v>.{1,10})", clause.text)
        stated = re.fullmatch(
            "(?:是|应该是)?(?P<v>.{1,10})" if correcting else "(?:而?是|应该是)(?P<v>.{1,10})", clause.text
        )
        stated = stated if correcting or last.ends else None
    else:
        denied = re.fullmatch(
            r"(?:and )?not (?:so much |really )?(?:in |to |at |a |an )?(?P<v>[\w' -]{2,30})", clause.text, re.I
        )
        pattern = (
            r"(?:it is |i mean |i meant |make that |rather )*(?:in |to |at |a |an )?(?P<v>[\w'-]+(?: [\w'-]+){0,2})"
        )
        stated = re.fullmatch(pattern, clause.text, re.I) if correcting else None
    match = denied or stated
    if match is None:
        return None
    values = split_values(match["v"], clause.language, False)
    if not values:
        return None
    value, shown = canonical(values[0]), values[0]
    if last.base == "schedule":
        value, shown = _scheduled(last.key, shown, clause.language)
    return Fact(
        *(last.predicate, value, shown, clause.language, last.strength, clause.start, clause.end, clause.sentence),
        ends=bool(denied),
        key=last.key,
    )


def _continues(clause: Clause, last: Fact) -> list[Fact]:
    """Further items of an enumeration that commas cut: "peanuts, shellfish and eggs"."""
    if clause.language != "en" or predicate(last.predicate).cardinality != "multi" or last.end > clause.start:
        return []
    if last.base in ("family_member", "pet", "language", "condition") or clause.sentence != last.sentence:
        return []
    if re.search(
        r"\b(?:i|my|we|you|is|are|am|was|do|not|please|thanks|thank|can|so|it|he|she|they|have|the)\b",
        clause.text,
        re.I,
    ):
        return []
    items = re.split(r"\s+(?:and|or)\s+", re.sub(r"^(?:and|or) ", "", clause.text))
    if any(len(item.split()) > 2 for item in items):
        return []
    prefix = "no " if last.value.startswith("no ") else ""
    return [
        replace(last, value=prefix + canonical(v), object=prefix + v, start=clause.start, end=clause.end)
        for item in items
        for v in split_values(item, "en", False)
    ]


def extract_facts(text: str, at: datetime, language: str, *, places: Collection[str] = ()) -> list[Fact]:
    """The facts that the speaker of ``text`` asserts at ``at``, in the order of the text; empty if none.

    ``language`` (zh, en, mixed) is the text's; each clause is read by its own script. ``places``: casefolded
    surfaces known to be places, which are never employers. Nothing else but the text takes part."""
    facts: list[Fact] = []
    topic, sentence, correcting = "", (-1, -1), False
    known = {place.casefold() for place in places}
    for clause in clauses(text):
        if clause.sentence != sentence:
            sentence = clause.sentence
            if clause.language == "en":
                topic = ""
        if not clause.asserted:
            continue
        if facts and not strip(clause.text + " ", grammar(clause.language)["correction"]).strip():
            correcting = True
            continue
        said = topic or (SELF if clause.language == "zh" or language == "zh" else "")
        found = _clause_facts(clause, at, said, 1.0 if topic else _PRO_DROP, facts[-1].base if facts else "")
        topic = found.who or topic
        if not found.facts and facts:
            corrected = _correction(clause, facts[-1], correcting)
            if corrected:
                if not corrected.ends and not facts[-1].ends:
                    facts.pop()
                facts.append(corrected)
            else:
                facts.extend(_continues(clause, facts[-1]))
        facts.extend(f for f in found.facts if not _is_place(f, known))
        correcting = correcting and not found.facts and clause.text.count(" ") < 1
    return facts


def _is_place(fact: Fact, places: Collection[str]) -> bool:
    """Whether an employer is really where somebody works."""
    return fact.base == "employer" and (is_place(fact.value) or fact.object.casefold() in places)


@dataclass(frozen=True, slots=True)
class _Found:
    who: str
    facts: list[Fact]


def _clause_facts(clause: Clause, at: datetime, topic: str, inherited: float, context: str) -> _Found:
    """Of whom the clause speaks and what it states; ``inherited`` is the strength without an own
    subject, ``context`` the predicate of the fact before."""
    whole = read_phrase(clause.text, clause.language, topic)
    strength = (1.0 if whole.explicit else inherited) * (_HEDGED if clause.hedged else 1.0)
    if whole.who not in ("", OTHER) and (raw := _raw_matches(clause, whole, at, strength)):
        return _Found(whole.who, raw)
    hit = find_date(clause.text, at.date(), clause.language)
    phrase = whole
    if hit:
        gap = "" if clause.language == "zh" else " "
        undated = " ".join((clause.text[: hit.start].rstrip() + gap + clause.text[hit.end :].lstrip()).split())
        phrase = read_phrase(undated, clause.language, topic)
    if phrase.who in ("", OTHER):
        return _Found(phrase.who, [])
    found = _named_relative(clause, phrase) if phrase.who.startswith(FAMILY) else []
    found = found + _matches(clause, phrase, hit, at, strength, context)
    if clause.hedged:
        # A doubtful claim is worth keeping only where ignoring it could hurt.
        found = [f for f in found if predicate(f.predicate).category == "health"]
    return _Found(phrase.who, [f for f in found if f.ends or f.base == "plan" or acceptable(f.value, f.language)])
