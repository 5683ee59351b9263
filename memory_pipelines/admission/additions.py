"""What a clause adds to the fact before it in one text: a correction, or further items of a list.

Belongs here: clauses that say nothing by themselves. Does not belong here: clauses that state a fact (``facts``), or
what the other side said (``context``).
"""

import re
from dataclasses import replace

from memory_pipelines.admission.clauses import Clause
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.ontology import predicate
from memory_pipelines.admission.particulars import scheduled
from memory_pipelines.admission.values import canonical, seat, split_values


def correction(clause: Clause, last: Fact, correcting: bool) -> Fact | None:
    """A bare value that corrects the fact just stated: "not London", 「不对，是杭州」, "no, wait, Leeds"."""
    if last.base in ("plan", "birthday", "family_member", "pet") or not last.object:
        return None
    if clause.language == "zh":
        denied = re.fullmatch(
            "(?:而)?(?:不是|不住在?|不在|(?:上次|上回|之前|我)*(?:写|说|记|打)成了?)(?P<v>.{1,10}?)了?", clause.text
        )
        stated = re.fullmatch(
            "(?:是|应该是)?(?P<v>.{1,10}?)(?:才对|才是)?" if correcting else "(?:而?是|应该是)(?P<v>.{1,10})",
            clause.text,
        )
        stated = stated if correcting or last.ends else None
    else:
        denied = re.fullmatch(
            r"(?:and )?(?:(?:not|no more) (?:so much |really )?(?:in |to |at |a |an )?(?P<v>[\w': -]{2,30})"
            r"|I (?:wrote|said|typed) (?P<w>[\w' -]{2,30}?) (?:last time|before|by mistake))",
            clause.text,
            re.I,
        )
        pattern = (
            r"(?:it is |i mean |i meant |make that |rather )*(?:in |to |at |a |an )?"
            r"(?P<v>[\w':-]+(?: [\w':-]+){0,2}?)(?: is right)?"
        )
        stated = re.fullmatch(pattern, clause.text, re.I) if correcting else None
    match = denied or stated
    if match is None:
        return None
    values = split_values(match["v"] or match["w"], clause.language, False)
    if not values:
        return None
    value, shown = canonical(values[0]), values[0]
    if last.base == "seat_preference":
        value, shown = seat(values[0])
    if last.base == "schedule":
        value, shown = scheduled(last.key, shown, clause.language)
    return Fact(
        *(last.predicate, value, shown, clause.language, last.strength, clause.start, clause.end, clause.sentence),
        ends=bool(denied),
        key=last.key,
    )


def continued(clause: Clause, last: Fact) -> list[Fact]:
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
