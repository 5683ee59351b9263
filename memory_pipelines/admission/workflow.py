"""Workflows: how somebody does something, in steps.

Belongs here: telling a workflow from other text, its steps. Does not belong here: whether it is kept (``gate``).
One text must name three steps, or two and say that it is always so: a plan for this evening has an order too.
"""

import re

from memory_pipelines.admission.clauses import language_of
from memory_pipelines.admission.ontology import cue

MOST_STEPS = 12
SHORTEST = {"zh": 26, "en": 70}
"""Below so many characters an order of things is that of an evening, unless it says that it is always so."""
_CUT = {
    "zh": re.compile(r"[，。；：、！\n,;:]+"),
    "en": re.compile(r"[.;:,\n!]+\s+|\s-\s|\s+(?:and )?then\s+", re.I),
}
_LEAD = {
    "zh": re.compile(
        "^(?:我|我们|都|是|得|要)*(?:先|再|然后|最后|接着|首先|其次|头|第[一二三四五六七八九十]步|第[一二三四五六七八九十]遍)"
    ),
    "en": re.compile(r"^(?:and |only )*(?:first|second|third|next|then|after that|finally|last)\b,?\s*", re.I),
}


def steps_of(text: str) -> tuple[str, ...]:
    """The steps of the workflow that a text tells, in its words; empty if it tells none."""
    language = language_of(text)
    order = cue(language, "order")
    marks = {match[0].casefold() for match in order.finditer(text)}
    always = cue(language, "manner").search(text) is not None
    if "?" in text or "？" in text or len(marks) + 2 * always < 3 or (not always and len(text) < SHORTEST[language]):
        return ()
    if cue(language, "soon").search(text) or cue(language, "hypothetical").search(text):
        return ()
    parts = [part.strip() for part in _CUT[language].split(text)]
    steps = [cleaned for part in parts if part and (cleaned := _LEAD[language].sub("", part).strip())]
    return tuple(steps[:MOST_STEPS]) if len(steps) >= 3 else ()
