"""One decision told in plain words, from the rows that are kept of it.

Belongs here: the words. Does not belong here: finding the rows (``pipeline.decisions``), or deciding anything.
"""

import json
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]

PARTS = {
    "persistence.horizon": "how long such a thing matters",
    "persistence.strength": "how surely it was stated",
    "persistence.consequence": "how grave what followed was",
    "persistence.impact": "its decision impact (half of it while provisional)",
    "structure.triple": "it is subject, predicate and object",
    "structure.strength": "how surely it was stated",
    "structure.entities": "the entities it names",
    "structure.told": "what is told beside them",
    "structure.intent": "its intent is known",
    "structure.reason": "a reason is given",
    "structure.consequence": "something followed",
    "personalisation.core": "tie to the core of the profile",
    "personalisation.distinctiveness": "how few others share it",
    "personalisation.use": "how likely it is to be of use",
}
RULES = {
    "score": "the score alone",
    "promoted": "it came up three times within a week",
    "health": "health and safety are always kept",
    "impact": "a final decision impact above .7 is always kept",
    "small_talk": "greetings, thanks and acknowledgements are never kept",
    "transient_reasoning": "reasoning on the way to something else is never kept",
    "chit_chat": "chit-chat that names nothing is never kept",
    "secret": "a password, code or card number is not remembered",
    "open_inquiry": "a question waits for its seven days",
    "closed_inquiry": "a question that led to nothing is dropped",
}
OUTCOMES = {"long": "kept long-term", "short": "kept short-term", "discard": "not kept"}


def explain(decision: Row, memory: Row | None, places: Mapping[str, str]) -> list[str]:
    """Lines on a row of ``tables.DECISIONS``, with that of ``tables.MEMORIES`` if it was kept; ``places``: store → id,
    of what is visible."""
    lines = [f"{decision['memory_id']}  {OUTCOMES[decision['outcome']]}, {decision['permanence']}"]
    if memory is not None:
        lines.append(f"  “{memory['summary']}”")
    lines.append(
        f"  {decision['memory_type']}, {decision['category'] or 'no category'}, first said "
        f"{decision['occurred_at']:%Y-%m-%d}, in {_slices(decision['mentions'])}"
        + (f", found by {memory['path']}" if memory is not None else "")
    )
    if memory is not None and memory["expires_at"] is not None:
        lines.append(f"  expires {memory['expires_at']:%Y-%m-%d %H:%M}Z, nine days after its session")
    rule = decision["rule"]
    lines.append(f"  decided by: {RULES.get(rule, rule)}")
    lines.append(f"  score {_number(decision['score'])} = " + " + ".join(_terms(decision)))
    lines.append(
        f"    long-term from {_number(decision['long_from'])}, short-term from {_number(decision['short_from'])} "
        f"({decision['scenario']}, arm {decision['arm']}, population {decision['snapshot']})"
    )
    parts = dict(decision["parts"])
    for dimension in ("persistence", "structure", "personalisation"):
        lines.append(f"  {dimension} {_number(decision[dimension])}, from")
        for name, value in parts.items():
            if name.startswith(f"{dimension}."):
                lines.append(f"    {_number(value)}  {PARTS.get(name, name.partition('.')[2].replace('_', ' '))}")
    fit = sorted(json.loads(decision["fit"]).items(), key=lambda item: (-item[1], item[0]))
    lines.append("  fit: " + ", ".join(f"{store} {_number(value)}" for store, value in fit))
    if places:
        lines.append("  is in: " + ", ".join(f"{store} as {name}" for store, name in sorted(places.items())))
    elif memory is not None:
        lines.append("  is in no store: expired, deleted by age, or not published yet")
    return lines


def _terms(decision: Row) -> list[str]:
    names = ("persistence", "structure", "personalisation")
    return [f"{_number(decision[f'weight_{name}'])} · {name} {_number(decision[name])}" for name in names]


def _slices(number: int) -> str:
    return "1 event slice" if number == 1 else f"{number} event slices"


def _number(value: float) -> str:
    """Two digits, three where the third says something; no zero before the point."""
    text = f"{value:.3f}".removesuffix("0")
    return text.removeprefix("0") if value else "0"
