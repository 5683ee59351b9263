"""Ways of saying that come to one plain sentence: "as a nurse, I …" to "I am a nurse", the object first to last.

Belongs here: rewriting one clause by the frames of the package data. Does not belong here: what the plain sentence
states (``facts``). A frame moves words and adds a subject or a verb; the value stays in the words of the text.
"""

import re
from dataclasses import replace

from memory_pipelines.admission.clauses import Clause
from memory_pipelines.admission.ontology import any_frame, frames

_DEPTH = 2
"""A frame may stand in another: a setting before an object that comes first."""
_GROUP = re.compile(r"\\g<(\w+)>")
_SPEAKER = {"s": "我"}
"""Whose it is if nobody is named."""


def plainer(clause: Clause, *, beside: bool, others: bool) -> list[Clause]:
    """Plain sentences that state what the clause does, at its place in the text; none if it has no known frame.

    ``beside``: only those that hold beside what it states as it stands; ``others``: only those that hold although it
    speaks of another person."""
    found: list[Clause] = []
    tried = [clause]
    for _ in range(_DEPTH):
        tried = [made for one in tried for made in _once(one, beside, others)]
        found += tried
    return found


def _once(clause: Clause, beside: bool, others: bool) -> list[Clause]:
    if any_frame(clause.language).search(clause.text) is None:
        return []
    made = []
    for frame in frames(clause.language):
        usable = (frame.beside or not beside) and (frame.others or not others)
        match = frame.regex.search(clause.text) if usable else None
        if match and (text := _filled(frame.to, match)) != clause.text:
            made.append(replace(clause, text=text))
    return made


def _filled(template: str, match: re.Match[str]) -> str:
    return _GROUP.sub(lambda group: match[group[1]] or _SPEAKER.get(group[1], ""), template).strip()
