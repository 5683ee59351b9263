"""Facts that a person states about themself or their family: subject, predicate, object.

Belongs here: whom a clause is about, negation, the patterns of the ontology, corrections within one
text. Does not belong here: which fact is true when (``validity``), or whether it is kept (``gate``).
Questions, hypotheticals, quotations and what is said of third persons state nothing here.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_pipelines.admission.additions import continued, correction
from memory_pipelines.admission.clauses import Clause, clauses, language_of
from memory_pipelines.admission.context import answered, labelled, taken_for_granted, turned_round
from memory_pipelines.admission.corrections import denies, meant
from memory_pipelines.admission.dates import MONTHS, DateHit, find_date, next_day
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.ontology import (
    FAMILY,
    Pattern,
    cue,
    is_place,
    patterns,
    predicate,
    predicates,
    raw_patterns,
    usable_patterns,
)
from memory_pipelines.admission.particulars import meeting, named, regular, scheduled, workplace
from memory_pipelines.admission.plainly import plainer
from memory_pipelines.admission.subject import OTHER, SELF, Phrase, grammar, read_phrase, strip, variants
from memory_pipelines.admission.values import acceptable, article, canonical, seat, shape, split_values, stated
from memory_pipelines.stores.vault import has_token

_OWN_ONLY = frozenset(("order_number", "contact", "nickname", "invoice_title", "family_member", "pronouns"))
"""What is only told of the speaker; everything else may be a relative's."""
PHRASES = frozenset(
    ("schedule", "habit", "skill", "size", "address", "invoice_title", "condition", "age", "origin", "diet")
)
"""Predicates whose value is a phrase: no list is cut, and it may be longer than a name."""
_LONGEST = {"zh": 30, "en": 14}

_GERUND = {"going": "go", "flying": "fly", "travelling": "travel", "traveling": "travel", "moving": "move"}
_GERUND |= {"heading": "head", "driving": "drive"}
_PRO_DROP, _HEDGED = 0.85, 0.6
_DENIAL = {
    "zh": re.compile("(?:并|也)?不是(?P<v>[^，。]{1,10})"),
    "en": re.compile(r"(?:it is |its )?not (?:in |to |at )?(?P<v>(?:an? |the |two )?[\w' -]{2,24})", re.I),
}
"""What is denied before the right thing is said: "not a parrot, we have a corgi"."""
_PRONOUN = {"zh": re.compile("[他她](?!们)"), "en": re.compile(r"(?:he|she)\b ?", re.I)}
"""A pronoun that goes on about the relative who was named last."""


def _who_predicate(who: str, base: str) -> str | None:
    if who == SELF:
        return base
    return None if base in _OWN_ONLY else f"{who}.{base}"


def _plan(
    pattern: Pattern, match: re.Match[str], hit: DateHit | None, language: str, negated: bool
) -> tuple[str, str, str, str]:
    """(value, object, key, day) of a plan."""
    raw = stated(match, language).removesuffix("了")
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
        if "time" not in match.groupdict():
            shown = stated(match, lang)
            if found := meeting(shown, lang):
                event, value, shown = found
                return [replace(common, value=value, object=shown, key=event)]
            return [replace(common, value=canonical(shown), object=shown, key=canonical(shown))]
        event = re.sub("^每|的", "", canonical(match["v"]))
        value, shown = scheduled(event, match["time"], lang)
        return [replace(common, value=value, object=shown, key=event)]
    if pattern.predicate in ("birthday", "anniversary"):
        return _yearly(common, match["v"].strip(), at)
    if pattern.predicate in PHRASES and not pattern.prefix and not (pattern.predicate == "condition" and lang == "en"):
        shown = stated(match, lang)
        key = re.sub(r"[\d一二三四五六七八九十百两.]+.*$", "", canonical(shown)) if pattern.predicate == "size" else ""
        return [replace(common, value=canonical(shown), object=shown, key=key)]
    if pattern.predicate == "seat_preference":
        value, shown = seat(match["v"])
        return [replace(common, value=value, object=shown)]
    facts, taste = [], pattern.predicate in ("likes", "dislikes")
    for value in split_values(stated(match, lang), lang, predicates()[pattern.predicate].cardinality == "multi", taste):
        if pattern.unless and pattern.unless.search(value):
            continue
        key, shown = shape(pattern, match, value, lang)
        facts.append(replace(common, value=key, object=shown))
    job = match.groupdict().get("job") or match.groupdict().get("job2")
    if facts and job and (other := _who_predicate(who, "job")):
        facts.append(replace(common, predicate=other, value=canonical(job), object=job))
    return facts


def _yearly(common: Fact, said: str, at: datetime) -> list[Fact]:
    """A day of the year; ``day`` is the next one, or that of the year that was named."""
    found = find_date(said, at.date(), common.language)
    if found is None:
        return [replace(common, value=canonical(said), object=said)] if re.search("年|19|20", said) else []
    born = found.day
    shown = f"{born.month}月{born.day}日" if common.language == "zh" else f"{born.day} {MONTHS[born.month - 1]}"
    return [replace(common, value=f"{born:%m-%d}", object=shown, day=next_day(born, at.date(), said).isoformat())]


def _holds_for(
    pattern: Pattern, phrase: Phrase, hit: DateHit | None, at: datetime, negated: bool, context: str
) -> bool:
    """Whether a pattern may state a fact here: its subject and context are there, and no date speaks against it."""
    if pattern.affirm and negated:
        return False
    if pattern.later and (hit is None or hit.day <= at.date()):
        return False
    if (pattern.explicit and not phrase.explicit) or (pattern.after and pattern.after != context):
        return False
    return pattern.dated or pattern.anytime or hit is None or hit.day <= at.date()


def _matches(
    clause: Clause, phrase: Phrase, hit: DateHit | None, at: datetime, strength: float, context: str
) -> list[Fact]:
    for text, negated in variants(phrase, clause.language):
        modes = ("noun",) if phrase.own and clause.language == "en" and phrase.who == SELF else ("verb", "noun")
        dated = negated or (hit is not None and hit.day >= at.date())
        for mode in modes:
            for pattern, match in usable_patterns(clause.language, mode, dated).matches(text):
                if not _holds_for(pattern, phrase, hit, at, negated, context):
                    continue
                if made := _made(pattern, match, clause, phrase.who, pattern.strength * strength, negated, hit, at):
                    return made
    return []


def _raw_matches(clause: Clause, phrase: Phrase, at: datetime, strength: float) -> list[Fact]:
    found = next(raw_patterns(clause.language).matches(phrase.text), None)
    if found is None:
        return []
    pattern, match = found
    return _made(pattern, match, clause, phrase.who, pattern.strength * strength, False, None, at)


def _named_relative(clause: Clause, phrase: Phrase) -> list[Fact]:
    """A relative's name: "my daughter Mia", "my daughter's name is Mia", 「我女儿叫小雨」."""
    name = phrase.name or named(phrase.text, clause.language)
    if not name:
        return []
    relation = phrase.who.removeprefix(FAMILY)
    told = f"{FAMILY}{relation}.name"
    return [Fact(told, name.casefold(), name, clause.language, 0.88, clause.start, clause.end, clause.sentence)]


def extract_facts(
    text: str,
    at: datetime,
    language: str,
    *,
    places: Collection[str] = (),
    said: Sequence[Clause] | None = None,
    before: str = "",
    earlier: Sequence[Fact] = (),
) -> list[Fact]:
    """The facts that the speaker of ``text`` asserts at ``at``, or takes for granted, in the order of the text.

    ``language`` (zh, en, mixed) is the text's; each clause is read by its own script. ``places``: casefolded
    surfaces known to be places, which are never employers. ``said``: the text's clauses, if they are at hand.
    ``before``: the other side's turn that the text answers: it says what a bare value is, or is corrected.
    ``earlier``: what the speaker stated last in the conversation, which may be corrected too."""
    said = list(clauses(text)) if said is None else said
    facts = _stated(said, at, language, places)
    if (before or earlier) and not any(f.base != "plan" for f in facts):
        asserted = [clause for clause in said if clause.asserted]
        facts = (
            answered(asserted, before, at, lambda: _supposed_of(before, at, places) or meant(earlier, asserted))
            or facts
        )
    granted = [f for clause in said if not clause.asserted and not clause.supposed for f in taken_for_granted(clause)]
    known_now = {(f.predicate, f.value) for f in facts}
    return facts + [f for f in granted if (f.predicate, f.value) not in known_now and not _is_place(f, places)]


def _supposed_of(before: str, at: datetime, places: Collection[str]) -> list[Fact]:
    """What the other side takes for true of the speaker."""
    turned = turned_round(before)
    asserted = [replace(clause, asserted=not clause.supposed, hedged=False) for clause in clauses(turned)]
    return _stated(asserted, at, language_of(turned), places)


def _stated(said: Sequence[Clause], at: datetime, language: str, places: Collection[str]) -> list[Fact]:
    """What the asserted ones of a text's clauses state, in order."""
    told = _Told(at, language, frozenset(place.casefold() for place in places))
    before: Clause | None = None
    for clause in said:
        if clause.language == "en" and (before is None or clause.sentence != before.sentence):
            told.topic = ""
        if clause.asserted:
            told.hear(clause, before)
        before = clause
    return told.facts


@dataclass(frozen=True, slots=True)
class _Found:
    who: str
    facts: list[Fact]


@dataclass
class _Told:
    """The facts of the clauses so far, and what the next one may go on about.

    ``topic``: whom a clause without a subject is about; ``relative``: whom a pronoun means; ``correcting``: only words
    of correction came since the last fact; ``denied``: a value that was denied before anything was stated."""

    at: datetime
    language: str
    places: frozenset[str]
    facts: list[Fact] = field(default_factory=list)
    topic: str = ""
    relative: str = ""
    correcting: bool = False
    denied: str = ""

    def hear(self, clause: Clause, before: Clause | None) -> None:
        """``before`` is the clause before it, asserted or not: a label, it may be."""
        if self.facts and not strip(clause.text + " ", grammar(clause.language)["correction"]).strip():
            self.correcting = True
            return
        stated = self._stated_by(clause, before)
        self._deny(clause, stated)
        if not stated and self.facts:
            self._add(clause)
        self.facts += [f for f in (*stated, *workplace(clause, stated)) if not _is_place(f, self.places)]
        self.correcting = self.correcting and not stated and " " not in clause.text

    def _stated_by(self, clause: Clause, before: Clause | None) -> list[Fact]:
        dropped = "zh" in (clause.language, self.language) or cue("en", "pro_drop").match(clause.text) is not None
        whom, text = self.topic or (SELF if dropped else ""), clause
        if self.relative and (pronoun := _PRONOUN[clause.language].match(clause.text)):
            whom, text = self.relative, replace(clause, text=clause.text[pronoun.end() :])
        context = self.facts[-1].base if self.facts else ""
        found = _clause_facts(text, self.at, whom, 1.0 if self.topic else _PRO_DROP, context)
        self.topic = found.who or self.topic
        if self.topic == OTHER or self.topic.startswith(FAMILY):
            self.relative = "" if self.topic == OTHER else self.topic
        if told := self._plainly(clause, found):
            return [*found.facts, *told]
        if found.facts or found.who == OTHER:
            return found.facts
        return regular(clause) or labelled(before, clause, self.at) or _loosely(clause) or _event(clause, self.at)

    def _plainly(self, clause: Clause, found: _Found) -> list[Fact]:
        """What plain sentences in the place of the clause state of the speaker or a relative, beside what was found."""
        told: list[Fact] = []
        seen = {fact.predicate for fact in found.facts}
        for sentence in plainer(clause, beside=bool(found.facts), others=found.who == OTHER):
            new = [f for f in _clause_facts(sentence, self.at, "", 1.0, "").facts if f.predicate not in seen]
            told += new
            seen.update(fact.predicate for fact in new)
        return told

    def _deny(self, clause: Clause, stated: Sequence[Fact]) -> None:
        """A denial waits for what holds instead: that tells what the denied value is of."""
        if not self.facts and not stated and (match := _DENIAL[clause.language].fullmatch(clause.text)):
            self.denied = match["v"]
        elif self.denied and (held := [f for f in stated if not f.ends]):
            for value in split_values(self.denied, clause.language, False)[:1]:
                self.facts.append(replace(held[0], value=canonical(value), object=value, ends=True))
            self.denied = ""

    def _add(self, clause: Clause) -> None:
        """A clause that says nothing by itself corrects the fact before it, or goes on with its list."""
        last = self.facts[-1]
        corrected = correction(clause, last, self.correcting)
        if corrected is None:
            self.facts += continued(clause, last)
            return
        if not corrected.ends and not last.ends:
            self.facts.pop()
        self.facts.append(corrected)


def _loosely(clause: Clause) -> list[Fact]:
    """What a clause says of the speaker outside of any grammar, or takes for granted: the first of it."""
    found = [fact for kind in ("anywhere", "presupposed") for fact in taken_for_granted(clause, kind)]
    return [] if found and denies(clause) else found[:1]


_FIRM = re.compile(
    r"\b(?:school|college|clinic|hospital|hotel|bank|museum|university|press|library)\b|学校|医院|酒店|大学|银行|公司",
    re.I,
)
"""Places that people work for."""


def _is_place(fact: Fact, places: Collection[str]) -> bool:
    """Whether an employer is really where somebody works."""
    named = fact.object.casefold()
    return fact.base == "employer" and (is_place(fact.value) or (named in places and not _FIRM.search(named)))


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
    return _Found(phrase.who, [f for f in found if _holds(f)])


def _event(clause: Clause, at: datetime) -> list[Fact]:
    """An event with a day to come that is named without a verb: "job interview in two days", 「周五体检」."""
    hit = None if clause.hedged else find_date(clause.text, at.date(), clause.language)
    if hit is None or hit.day <= at.date():
        return []
    left = clause.text[: hit.start].rstrip() + " " + clause.text[hit.end :]
    match = cue(clause.language, "event_noun").search(left)
    if match is None:
        return []
    shown = re.sub(r"^(?:the|my|our|an?|so|if|is) ", "", match[0].strip(), flags=re.I)
    day = hit.day.isoformat()
    key = shown.casefold()
    told = f"have {article(shown)}" if clause.language == "en" else shown
    return [
        Fact(
            "plan",
            f"{day} {key}",
            told,
            clause.language,
            0.8,
            clause.start,
            clause.end,
            clause.sentence,
            key=key,
            day=day,
        )
    ]


def _holds(fact: Fact) -> bool:
    """Whether the value of a fact names something."""
    if fact.ends or fact.base == "plan":
        return True
    if fact.base not in PHRASES:
        return acceptable(fact.value, fact.language)
    size = len(fact.value) if fact.language == "zh" else len(fact.value.split())
    return 0 < size <= _LONGEST[fact.language] and not has_token(fact.value)
