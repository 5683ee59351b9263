"""What a turn says against a value without saying of what it is one: "I meant seven, not eight", 「不是花生是核桃」.

Belongs here: reading such contrasts and changes (``revisions``), and which current fact they mean (``renewed``). Does
not belong here: statements that name their predicate (``facts``), or which fact is true when (``validity``).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memory_pipelines.admission.clauses import Clause
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.ontology import FAMILY, cue, is_place, openings
from memory_pipelines.admission.particulars import scheduled
from memory_pipelines.admission.script import simplified
from memory_pipelines.admission.subject import OTHER, grammar, read_phrase, strip
from memory_pipelines.admission.values import acceptable, article, canonical, seat

_STRENGTH = 0.82
_FIXED = frozenset(("plan", "birthday", "anniversary", "family_member", "order_number"))
"""Predicates that a bare contrast does not correct: their values are not told by a phrase alone."""
_LASTING = frozenset(
    ("allergy", "condition", "blood_type", "name", "language", "pet", "nickname", "origin", "hometown")
)
"""Predicates that nobody changes in passing: to end one and to begin another are two statements."""
_TIME = {
    "zh": re.compile(
        r"(?:上午|下午|早上|晚上|中午|凌晨|傍晚)?(?:\d{1,2}|[一二两三四五六七八九十]{1,3})(?:点(?:半|[一三]刻|\d{1,2}分?)?|:\d\d)"
    ),
    "en": re.compile(
        r"\b(?:\d{1,2}(?:[:.]\d\d)? ?(?:am\b|pm\b|a\.m\.?|p\.m\.?|o'clock)|\d{1,2}[:.]\d\d|noon|midnight)", re.I
    ),
}
_NUMBER = re.compile(r"[\d.,]+")
_LONGEST = {"zh": 14, "en": 7}

# Who is spoken to or what is spoken of is no third person: "you got that wrong", "it is at eight".
_NOT_A_PERSON = re.compile(r"(?:it|that|this|these|those|you)\b|[你您它]", re.I)

_DENIED = {
    "zh": re.compile(
        "(?:[而可但]|我|我(?:说|要|养|住|喜欢)的)?(?:不是|并非|不叫|不在|不住在?|不要|不选)(?P<old>[^，。]{1,14}?)(?:了|啦|哦|啊)?"
    ),
    "en": re.compile(
        r"(?:and |but |it is |that is |i am )?(?:definitely |certainly )?not "
        r"(?:in |at |to |on |with |for |from |called )?(?P<old>[\w:.'& -]{1,40}?)"
        r"(?: any ?more| any longer| as i said| like i said)?",
        re.I,
    ),
}
"""A clause that only denies; what holds stands in the clause beside it."""
_MISTAKEN = {
    "zh": re.compile(
        "(?:上次|之前|刚才|刚刚|前面|我|不小心|给)*(?:说|写|记|打|填|讲)(?:成|的是)了?(?P<old>[^，。]{1,14}?)(?:了|是错的)?"
        "|(?P<old2>[^，。]{1,14}?)(?:是错的|说错了|写错了|记错了|是口误|不对)"
    ),
    "en": re.compile(
        r"(?:earlier |before )?i (?:said|wrote|put|typed|told you|mentioned) (?P<old>[\w:.'& -]{1,40}?)"
        r"(?: last time| before| by mistake| earlier| at first)*"
        r"|(?P<old2>[\w:.'& -]{1,40}?) (?:is|was) (?:wrong|not right|a mistake|a typo|incorrect|a slip)",
        re.I,
    ),
}
"""A clause that says what was wrongly said."""
_WITHIN = {
    "zh": (
        re.compile("(?P<new>.+?)[，,]?(?:而不是|并不是|不是)(?P<old>[^，。]{1,14}?)[了哦啊]?"),
        re.compile("不是(?P<old>.{1,14}?)(?:而是|是|应该是)(?P<new>.+)"),
        re.compile("(?:请|麻烦|帮我)?(?:把|将)(?P<old>.{1,14}?)(?:改成|改为|换成|更正为|更新为)了?(?P<new>.+)"),
    ),
    "en": (
        re.compile(r"(?P<new>.+?) (?:instead of|rather than|and not|not) (?P<old>.+)", re.I),
        re.compile(r"(?:.* )?not (?P<old>.+?) but (?:rather )?(?P<new>.+)", re.I),
        re.compile(
            r"(?:please |can you |could you )?(?:change|switch|swap|correct|replace|update) (?:my |the )?(?P<old>.+?) "
            r"(?:to|for|with|into) (?P<new>.+)",
            re.I,
        ),
    ),
}
"""A contrast in one clause."""
_LEAD = {
    "zh": re.compile(
        "(?:不对|不是|对不起|抱歉|等等|其实|准确说|更正一下|说错了|口误|是说|我?(?:想|要|刚)?(?:说|指|要|选|写|讲)的?(?:其实|应该)?是|我是说|我的意思是|"
        "应该说?是|应该在|应该叫|正确的是|真正的是|实际上?是?|改成|改为|换成|而是|就是|是|叫|在|住在?|[,，])"
    ),
    "en": re.compile(
        r"(?:(?:no|sorry|oops|wait|actually|well|rather|really|but|so|and|please|apologies|correction|i mean"
        r"|i meant to say|i meant|i wanted to say|i should have said|what i meant (?:is|was)|it is|it was"
        r"|it should (?:be|have been)"
        r"|that should (?:be|have been)|that is|make (?:it|that)|the right (?:one|time|answer|name) is|they are|we are"
        r"|at|in|to|on|an?|the|my|called|now|only)\b[ ,]*)",
        re.I,
    ),
}
_TAIL = {
    "zh": re.compile("(?:才对|才是|才是对的|是对的|是正确的|没错|哦|啊|呢|吧|啦|了|请记[住下]|谢谢)$"),
    "en": re.compile(
        r"(?:,| is right| is correct| is what i meant| is the right one| that is| instead| please| now| actually| then"
        r"| these days| from now on| in future| for me| thanks?| any ?more)$",
        re.I,
    ),
}
_COPULA = {
    "zh": re.compile("[^，。]{1,12}?(?:是|叫|在)(?P<new>[^，。]{1,14})"),
    "en": re.compile(r"[\w' ]{2,40}? (?:is|are|am|was|be) (?:called |at |in |on |with )?(?P<new>.+)", re.I),
}
_CORE = re.compile(
    r"^(?:an?|the|my|our|two|three|some) |(?: |\b)seats?\b"
    r"|^(?:[一两二三四五六七八九十几\d]+[只条匹个缸对头盆辆台])|的?(?:座位|位置|位子|座)$|的$",
    re.I,
)
"""What belongs to no value: articles, numbers of things, the word seat."""


@dataclass(frozen=True, slots=True)
class Revision:
    """``new`` stands in the place of ``old``, whatever that is the value of.

    ``old`` is empty for what was stated last in the session; ``within`` tells that it is a clause that names the value
    somewhere. ``new`` is empty if a fact of the same text says it. ``who`` is a relative's prefix or empty."""

    old: str
    new: str
    language: str
    start: int
    end: int
    sentence: tuple[int, int]
    who: str = ""
    within: bool = False


def kind(value: str, language: str) -> str:
    """What sort of thing a phrase is: ``time``, ``number``, ``place`` or ``thing``."""
    if _TIME[language].fullmatch(value):
        return "time"
    if _NUMBER.fullmatch(value):
        return "number"
    return "place" if is_place(canonical(value)) else "thing"


def revisions(said: Sequence[Clause], before: str = "") -> tuple[Revision, ...]:
    """The contrasts and changes that the clauses of one text assert of the speaker or a relative.

    ``before`` is what the other side said last: a value that it proposed is what a bare "no, at nine" corrects."""
    if not any(cue(c.language, "revises").search(c.text) for c in said):
        return ()
    own = [(clause, who) for clause, who in _own(said) if who is not None]
    found = list(_contrasts(own))
    return tuple(found or _changes(own) or _bare(own, before))


def _own(said: Sequence[Clause]) -> Iterable[tuple[Clause, str | None]]:
    """Each clause with whom it is about: a relative's prefix, empty for the speaker; None if it does not count, being
    a question, a supposition, or of a third person, whom a clause without a subject goes on about."""
    sentence, other = (-1, -1), False
    for clause in said:
        phrase = read_phrase(clause.text, clause.language, "")
        if clause.sentence != sentence:
            sentence, other = clause.sentence, False
        if phrase.who == OTHER:
            other = other or not _NOT_A_PERSON.match(_subject_first(clause))
        elif phrase.explicit:
            other = False
        doubtful = clause.hedged and "应该是" not in clause.text
        who = phrase.who if phrase.who.startswith(FAMILY) else ""
        yield clause, None if other or doubtful or not clause.asserted else who


def _subject_first(clause: Clause) -> str:
    rules = grammar(clause.language)
    return strip(strip(strip(clause.text, rules["correction"]), rules["marker"]), rules["adverb"])


def _contrasts(own: Sequence[tuple[Clause, str]]) -> Iterable[Revision]:
    """X, not Y · not Y, X · not Y but X · I said Y, I meant X."""
    for i, (clause, who) in enumerate(own):
        if not cue(clause.language, "revises").search(clause.text):
            continue
        for pattern in _WITHIN[clause.language]:
            if (match := pattern.fullmatch(clause.text)) and (new := _new(match["new"], clause.language)):
                yield _revision(clause, match["old"], new, who)
                break
        else:
            match = _DENIED[clause.language].fullmatch(clause.text) or _MISTAKEN[clause.language].fullmatch(clause.text)
            if match is None:
                continue
            old = match["old"] or match.groupdict().get("old2") or ""
            beside = [own[k] for k in (i - 1, i + 1, i + 2) if 0 <= k < len(own)]
            values = [(c, new) for c, _ in beside if (new := _new(c.text, c.language)) and new != old]
            yield _revision(clause, old, values[0][1] if values else "", who)


def _new(text: str, language: str) -> str:
    """The value in a clause that says what holds; empty if it is no phrase."""
    for body in (_stripped(text, language), _copula(text, language)):
        size = len(body) if language == "zh" else len(body.split())
        fits = 0 < size <= _LONGEST[language] and acceptable(body, language)
        if fits and not cue(language, "no_value").search(body):
            return body
    return ""


def _copula(text: str, language: str) -> str:
    match = _COPULA[language].fullmatch(_stripped(text, language))
    return _stripped(match["new"], language) if match else ""


def _stripped(text: str, language: str) -> str:
    text = text.strip(" ,，")
    while (match := _LEAD[language].match(text)) and match.end() < len(text):
        text = text[match.end() :].strip()
    while match := _TAIL[language].search(text):
        text = text[: match.start()].strip()
    return text


def _revision(clause: Clause, old: str, new: str, who: str, within: bool = False) -> Revision:
    old = old if within else _stripped(old, clause.language)
    return Revision(old, new, clause.language, clause.start, clause.end, clause.sentence, who, within)


def _changes(own: Sequence[tuple[Clause, str]]) -> list[Revision]:
    """A clause that says that something is over, beside one that says what there is now."""
    over = [(clause, who) for clause, who in own if cue(clause.language, "over").search(clause.text)]
    if not over:
        return []
    begun = [new for clause, _ in own for new in _begun(clause)]
    return [_revision(clause, clause.text, begun[0] if begun else "", who, within=True) for clause, who in over]


def _begun(clause: Clause) -> list[str]:
    for pattern in openings(clause.language):
        if match := pattern.search(clause.text):
            return [new for new in (_new(match["v"], clause.language),) if new]
    return []


def _bare(own: Sequence[tuple[Clause, str]], before: str) -> list[Revision]:
    """A value after words of correction, or before them: "No, it is at nine", 「是九点才对」.

    Only of a kind that tells what it is of."""
    if len(own) > 4 or not any(cue(c.language, "mistake").search(c.text) for c, _ in own):
        return []
    for clause, who in own:
        new = _new(clause.text, clause.language)
        if new and kind(new, clause.language) in ("time", "place"):
            proposed = (
                _TIME[clause.language].search(simplified(before)) if kind(new, clause.language) == "time" else None
            )
            return [_revision(clause, proposed[0] if proposed else "", new, who)]
    return []


def meant(earlier: Sequence[Fact], said: Sequence[Clause]) -> Sequence[Fact]:
    """Of what somebody stated last in a conversation, the fact that short clauses may correct: of the kind of the value
    that they name. None if they are of a third person, or tell by themselves what they revise."""
    if any(who is None for _, who in _own(said)):
        return ()
    if revisions(said):
        return ()
    timed = any(_TIME[c.language].search(c.text) for c in said)
    return [f for f in earlier if f.base == "plan" or timed == _timed(f)][-1:]


def denies(clause: Clause) -> bool:
    """Whether a clause speaks against what it names: it states nothing of it."""
    if _DENIED[clause.language].fullmatch(clause.text) or _MISTAKEN[clause.language].fullmatch(clause.text):
        return True
    return cue(clause.language, "over").search(clause.text) is not None


def _timed(fact: Fact) -> bool:
    return bool(_TIME[fact.language].search(fact.object))


def renewed(revision: Revision, current: Sequence[tuple[Fact, bool]], stated: Iterable[Fact]) -> list[Fact]:
    """The facts that a revision comes to: the end of the value that it names, and the value in its place.

    ``current``: what holds when it is said, the latest statement last, each with whether its session is the
    revision's; ``stated``: the facts of the same text."""
    fits = [
        fact
        for fact, near in current
        if fact.base not in _FIXED
        and fact.predicate.startswith(revision.who)
        and (_named(fact, revision) if revision.old else near and _like(fact, revision))
        and not (revision.within and fact.base in _LASTING)
    ]
    exact = [fact for fact in fits if _core(fact.object, fact.language) == _core(revision.old, revision.language)]
    for old in (exact or fits)[-1:]:
        instead = [f for f in stated if f.predicate == old.predicate and not f.ends]
        if any(f.value == old.value for f in instead):
            return []
        ended = replace(_said(old, revision), ends=True, day="")
        if instead:
            return [ended]
        new = _in_place(old, revision) if revision.new else None
        if new is None or new.value == old.value:
            return []
        return [ended, replace(_said(new, revision), ends=False)]
    return []


def _said(fact: Fact, revision: Revision) -> Fact:
    """A fact as the clause of a revision says it."""
    return replace(
        fact,
        language=revision.language,
        strength=_STRENGTH,
        start=revision.start,
        end=revision.end,
        sentence=revision.sentence,
    )


def _core(text: str, language: str) -> str:
    """A value without articles, numbers of things and the word seat."""
    shown, left = "", simplified(text).casefold().strip()
    while shown != left:
        shown, left = left, _CORE.sub("", left).strip()
    return canonical(left) if left else ""


def _named(fact: Fact, revision: Revision) -> bool:
    """Whether the value of a fact is what a revision speaks against."""
    old, shown = simplified(revision.old).casefold(), simplified(fact.object).casefold()
    core = _core(fact.object, fact.language)
    if revision.within:
        return _stands_in(shown, old) or _stands_in(core, old)
    said = _core(old, revision.language)
    if not said:
        return False
    if said in (core, fact.value) or canonical(said) == fact.value:
        return True
    if fact.base == "schedule" or _timed(fact) or ":" in fact.value or fact.value.startswith("no "):
        return _stands_in(said, shown)
    short = len(said) >= (2 if fact.language == "zh" else 4)
    return short and core.startswith(said) and (fact.language == "zh" or core[len(said) :][:1] == " ")


def _stands_in(part: str, whole: str) -> bool:
    """Whether a phrase stands in another, as whole words."""
    if len(part) < 2 and not part.isdigit():
        return False
    if not part.isascii():
        return part in whole
    return re.search(rf"(?<![\w:.]){re.escape(part)}(?![\w:]|\.\d)", whole) is not None


def _like(fact: Fact, revision: Revision) -> bool:
    """Whether a value may stand where a fact's stands: a time for a time, a place for a place."""
    if kind(revision.new, revision.language) == "time":
        return _timed(fact)
    return fact.base in ("home_city", "hometown") or is_place(fact.value)


def _in_place(old: Fact, revision: Revision) -> Fact | None:
    """``old`` with the new value; None if that is of another kind."""
    new, language = revision.new, revision.language
    if time := _TIME[old.language].search(simplified(old.object)):
        said = new if kind(new, language) == "time" else time[0].replace(revision.old, new) if revision.old else ""
        if not _TIME[language].fullmatch(said):
            return None
        if old.base == "schedule" and old.key != old.value:
            value, shown = scheduled(old.key, said, language)
            return replace(old, value=value, object=shown)
        shown = simplified(old.object).replace(time[0], said)
        return replace(old, value=canonical(shown), object=shown, key=canonical(shown) if old.key else "")
    if kind(new, language) == "time" or (kind(new, language) == "number") != (_NUMBER.search(old.object) is not None):
        return None
    if old.base == "seat_preference":
        value, shown = seat(new)
        return replace(old, value=value, object=shown)
    gone, named = canonical(revision.old), old.value.partition(":")
    if named[1] and gone == named[2]:
        shown = re.sub(re.escape(revision.old), new, old.object, flags=re.I)
        return replace(old, value=f"{named[0]}:{new.casefold()}", object=shown)
    shown = re.sub(_CORE, "", new).strip() or new
    prefix = "no " if old.value.startswith("no ") else ""
    value = prefix + canonical(shown)
    if prefix:
        shown = ("不吃" if language == "zh" else "no ") + shown
    if old.base in ("job", "possession", "pet") and language == "en":
        shown = article(shown)
    return replace(old, value=value, object=shown, key=value if old.key == old.value else old.key)
