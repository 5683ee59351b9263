"""The gold set through the gate, and what came out beside what should have.

Belongs here: reading the labelled turns and running them. Does not belong here: scores (``scores``).

Protocol. Each turn is a conversation of its own with a person of its own: the turn that it answers, if any, is the
agent's, a minute before. The gate decides as of a day after the turn (an inquiry's window is still open), in the
scenario that the row names. A turn's outcome is the best of its memories: long, else short, else discard.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.admission.path import Turn, admitted, labelled

FOLDER = Path(__file__).parent / "gold"
LANGUAGES = ("zh", "en")
PARAPHRASES = ("paraphrases_dev", "paraphrases")
"""Ways of saying single facts, alternately for tuning and for measuring."""
SPLITS = ("dev", "test", "fresh", *PARAPHRASES)
"""The tuning half, the other half, the part written after all tuning, and the paraphrases."""
PREDICATES = frozenset(
    [
        "name",
        "birthday",
        "home_city",
        "hometown",
        "job",
        "employer",
        "language",
        "family_member",
        "pet",
        "allergy",
        "condition",
        "diet",
        "likes",
        "dislikes",
        "seat_preference",
        "possession",
        "schedule",
        "plan",
    ]
)
"""The predicates that labels name; all others are ``other``."""


@dataclass(frozen=True)
class GoldFact:
    """``predicate``: the ontology's name, or ``other``; ``value`` in the words of the text."""

    who: str
    predicate: str
    value: str
    ends: bool
    date: str


@dataclass(frozen=True)
class Gold:
    """One labelled turn; ``remember`` is long, short or discard; ``type`` and ``permanence`` are empty if discarded."""

    id: str
    language: str
    stratum: str
    scenario: str
    said_at: datetime
    before: str
    text: str
    remember: str
    type: str
    permanence: str
    facts: tuple[GoldFact, ...]


@dataclass(frozen=True)
class Result:
    """What the gate made of one turn: ``type`` and ``permanence`` of its most lasting memory, empty if discarded."""

    remember: str
    type: str
    permanence: str
    facts: tuple[GoldFact, ...]


def load(split: str, languages: Sequence[str] = LANGUAGES) -> list[Gold]:
    """The labelled turns of one of ``SPLITS``, languages one after the other."""
    rows: list[Gold] = []
    for language in languages:
        lines = (FOLDER / f"{split}_{language}.jsonl").read_text(encoding="utf-8").splitlines()
        rows.extend(parse(json.loads(line), language) for line in lines)
    return rows


def parse(row: dict[str, Any], language: str) -> Gold:
    facts = tuple(
        GoldFact(f["who"], f["predicate"].partition(":")[0], f["value"], f["ends"], f["date"] or "")
        for f in row["facts"]
    )
    return Gold(
        id=row["id"],
        language=language,
        stratum=row["stratum"],
        scenario=row["scenario"],
        said_at=datetime.fromisoformat(row["said_at"]),
        before=row["before"],
        text=row["text"],
        remember=row["remember"],
        type=row["type"] or "",
        permanence=row["permanence"] or "",
        facts=facts,
    )


def run(rows: Sequence[Gold]) -> list[Result]:
    """The gate's result for each turn, in order."""
    everything = labelled(turn for row in rows for turn in _turns(row))
    results = []
    for row in rows:
        as_of = row.said_at + timedelta(days=1)
        slices = everything.of(f"u:{row.id}").slices(as_of)
        results.append(result(admitted(slices, row.scenario, as_of).memories.to_pylist()))
    return results


def _turns(row: Gold) -> Iterable[Turn]:
    if row.before:
        yield Turn(f"{row.id}/before", row.id, "", "agent", row.said_at - timedelta(minutes=1), row.before)
    yield Turn(f"{row.id}/own", row.id, row.id, "user", row.said_at, row.text)


_LASTING = ("permanent", "task", "long", "short")


def result(memories: Sequence[dict[str, Any]]) -> Result:
    """What MEMORIES rows of one turn come to."""
    if not memories:
        return Result("discard", "", "", ())
    best = min(
        memories, key=lambda m: (m["term"] != "long", m["memory_type"] != "semantic", _LASTING.index(m["permanence"]))
    )
    facts = [fact for m in memories if m["predicate"] for fact in [_fact(m)]]
    return Result(best["term"], best["memory_type"], best["permanence"], tuple(facts))


def _fact(memory: dict[str, Any]) -> GoldFact:
    triple = json.loads(memory["structured"])
    predicate = triple["predicate"]
    ended = memory["valid_to"] is not None
    return GoldFact(
        triple["subject"],
        predicate if predicate in PREDICATES else "other",
        triple["object"],
        ended,
        triple.get("date", ""),
    )
