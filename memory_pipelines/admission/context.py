"""What a turn says through what it stands in: answers to a question, corrections of a statement, facts that a question
takes for granted.

Belongs here: the other side's turn before, and questions of one's own. Does not belong here: what clauses state
(``facts``).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from memory_pipelines.admission.clauses import Clause, language_of
from memory_pipelines.admission.dates import find_date
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.ontology import FAMILY, any_loose, cue, labels, loose, questions, relation_of
from memory_pipelines.admission.values import acceptable, article, canonical

_TURNED = (
    (re.compile("您|你"), "我"),
    (re.compile(r"\byou(?:'re| are)\b|\bare you\b", re.I), "I am"),
    (re.compile(r"\byou said (?:that )?", re.I), ""),
    (re.compile(r"\byour\b", re.I), "my"),
    (re.compile(r"\b(?:do )?you\b", re.I), "I"),
)
_CUT = re.compile(r"，?(?:对吧|对吗|是吗|是吧|没错吧)|,? (?:right|correct|I believe|is that right|I think)$", re.I)
_ANSWER = {
    "zh": re.compile("^(?:嗯|哦|啊|好的|是的|对|就是|我是|是|叫|我叫|它是|这个是|那款|在|有)*"),
    "en": re.compile(
        r"^(?:yes|yeah|well|um|uh|it is|it's|that is|that's|the|a|an|i am|i'm|i have|mine is|they are|to|in|at)\b[,\s]*",  # noqa: E501
        re.I,
    ),
}
_NO_ANSWER = {
    "zh": re.compile(
        "(?:谢谢|多谢|感谢|抱歉|对不起|不好意思|算了|没事|没什么|不知道|不清楚|不用|再见|拜拜|等等|等一下|稍等|哎呀?|你好|您好"
        "|在吗|[按点发]错)(?:了|你|您|啦|啊|哈|的)*"
    ),
    "en": re.compile(
        "(?:oh|ah|hi|hello|hey|hm+|ok|okay|sure|thanks?|thank you|cheers|sorry|please|nothing|no idea|not sure"
        "|never ?mind|forget it|bye|goodbye|ok bye|wait|hold on|one (?:sec|second|moment)|oops|whoops|none"
        "|i (?:do not|don't) know)(?: (?:a lot|so much|very much|again|then|anyway|now))?",
        re.I,
    ),
}
"""What is said instead of an answer."""
_DENIED = re.compile("不是|并非|不对|没有|\\b(?:not|no)\\b|wrong|mistake", re.I)
_DENIED_VALUE = {
    "zh": re.compile("(?:不是|而不是)(?P<v>.{1,12})$"),
    "en": re.compile(r"(?:^|\s)not (?:in |the |an? |on )?(?P<v>[\w' -]{1,30})$", re.I),
}
_LONGEST_ANSWER = {"zh": 24, "en": 9}


def turned_round(before: str) -> str:
    """The other side's turn with the persons swapped: what it takes for true of the speaker."""
    text = before.rstrip("?？。.!！ ")
    for pattern, other in _TURNED:
        text = pattern.sub(other, text)
    return _CUT.sub("", text)


def answered(said: Sequence[Clause], before: str, at: datetime, supposed: Callable[[], Sequence[Fact]]) -> list[Fact]:
    """The facts of short clauses that answer or correct ``before``; ``supposed`` tells what may be corrected."""
    if not said or len(said) > 4:
        return []
    language = language_of(before)
    corrects = any(cue(c.language, "corrects").search(c.text) for c in said)
    if corrects and (wrong := supposed()):
        return _corrected(said, wrong[0], at)
    if "?" not in before and "？" not in before:
        return []
    asked = next((name for name, pattern in questions(language) if pattern.search(before)), "")
    if not asked:
        return []
    made = [fact for clause in said if (fact := _bare(clause, asked, at))]
    return made if asked in ("allergy", "condition") else made[:1]


def labelled(label: Clause | None, clause: Clause, at: datetime) -> list[Fact]:
    """What is filled in after its name: 「血型：A」, "Allergies: walnuts, sesame"."""
    if label is None or not clause.filled or label.sentence != clause.sentence or len(label.text) > 24:
        return []
    name = next((name for name, pattern in labels(label.language) if pattern.fullmatch(label.text)), "")
    found = _bare(clause, name, at) if name and not re.match("none\\b|no\\b|无|没有", clause.text, re.I) else None
    return [found] if found else []


def _bare(clause: Clause, name: str, at: datetime) -> Fact | None:
    """A clause that is but a value."""
    shown = clause.text
    for _ in range(3):
        shown = _ANSWER[clause.language].sub("", shown).strip(" ,，")
    size = len(shown) if clause.language == "zh" else len(shown.split())
    if (
        not shown
        or size > _LONGEST_ANSWER[clause.language]
        or _DENIED.match(shown)
        or _NO_ANSWER[clause.language].fullmatch(shown)
        or not acceptable(shown[:14], clause.language)
    ):
        return None
    hit = find_date(clause.text, at.date(), clause.language)
    day = hit.day.isoformat() if hit else ""
    told = article(shown) if name in ("possession", "job") and clause.language == "en" else shown
    return Fact(
        predicate=name,
        value=canonical(shown),
        object=told,
        language=clause.language,
        strength=0.8,
        start=clause.start,
        end=clause.end,
        sentence=clause.sentence,
        day=day if name in ("plan", "birthday") else "",
    )


def _corrected(said: Sequence[Clause], wrong: Fact, at: datetime) -> list[Fact]:
    """The value that stands in the place of ``wrong``."""
    stated: list[Fact] = []
    for clause in said:
        text = clause.text
        if denied := _DENIED_VALUE[clause.language].search(text):
            text = text[: denied.start()].strip(" ,，")
        text = re.sub(
            "^(?:等等|不对|错了?|搞错了?啦?|写错了?|说错了?|记错了?|I got that wrong|应该是|改到|改成|改为|是|wrong|no|actually|sorry)[ ,，]*",  # noqa: E501
            "",
            text,
            flags=re.I,
        )
        text = re.sub(
            "^(?:应该是|是|it is|it's|i meant|i said|they've moved me to|they have moved me to|the|to)\\s*",
            "",
            text,
            flags=re.I,
        )
        if wrong.base == "plan":
            hit = find_date(clause.text, at.date(), clause.language)
            if hit and wrong.key:
                day = hit.day.isoformat()
                fact = replace(wrong, value=f"{day} {wrong.key}", day=day, start=clause.start, end=clause.end)
                return [replace(fact, language=clause.language, sentence=clause.sentence, ends=False)]
            continue
        text = text.strip(" ,，")
        size = len(text) if clause.language == "zh" else len(text.split())
        if not text or size > _LONGEST_ANSWER[clause.language] or not acceptable(text[:14], clause.language):
            continue
        value = canonical(text)
        if wrong.base == "schedule":
            text = re.sub(r"(?:才对|是对的|才是对的)$| is right$", "", text).strip()
            value = f"{wrong.key} {canonical(text)}"
            text = f"{wrong.key}{text}" if clause.language == "zh" else f"{wrong.key} at {text}"
        stated.append(
            Fact(
                *(wrong.predicate, value, text, clause.language, 0.82),
                *(clause.start, clause.end, clause.sentence),
                key=wrong.key,
            )
        )
    return stated[:1]


def taken_for_granted(clause: Clause, kind: str = "presupposed") -> list[Fact]:
    """What a question presupposes of the speaker or a relative: 「我家龙华」, "my flat in Hull", "my son's asthma".

    ``kind``: ``anywhere`` for what is stated of the speaker outside of any grammar."""
    made: list[Fact] = []
    if any_loose(clause.language, kind).search(clause.text) is None:
        return made
    for name, pattern, strength in loose(clause.language, kind):
        match = pattern.search(clause.text)
        if match is None or any(fact.base == name for fact in made):
            continue
        relation = match.groupdict().get("rel")
        shown = match["v"].strip()
        if not acceptable(shown, clause.language) and not (name in ("schedule", "habit") and len(shown.split()) < 14):
            continue
        told = f"{FAMILY}{relation_of()[relation.casefold()]}.{name}" if relation else name
        object_ = article(shown) if clause.language == "en" and name in ("possession", "job") else shown
        made.append(
            Fact(told, canonical(shown), object_, clause.language, strength, clause.start, clause.end, clause.sentence)
        )
    return made
