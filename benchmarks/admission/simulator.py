"""Facts that change, and duplicates, against the simulator's truth.

Belongs here: the protocol and its counts. Does not belong here: the simulator, or what the gold set measures.

Protocol. People of the simulator with all kinds of noise (corrections, older statements that arrive late, sessions in
two exports, edits; see docs/simulator.md) as rows of dialogue, once in order of arrival and once the other way round.
For each (subject, predicate) of the truth: the values that are current at the end among the memories of that predicate,
against the truth's current value. *right*: the true value is current and, but for tastes, no value that the truth has
ended is; tastes add up in the ontology unless somebody says that one is over. *alone*: no value that the truth has
ended is current, tastes included.
Duplicates: of one subject, memories with the same predicate and value that are current at once, or with summaries equal
but for digits and case within the same day.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.admission.path import Turn, admitted, labelled
from memory_pipelines.admission.script import simplified
from memory_pipelines.model import turn_id
from memory_pipelines.sample import Config, simulate

PEOPLE = 300
PREDICATES = {
    "home_city": ("home_city",),
    "employer": ("employer",),
    "food_preference": ("likes", "diet"),
    "allergy": ("allergy",),
    "seat_preference": ("seat_preference",),
    "child_name": ("name",),
    "pet": ("pet",),
    "hobby": ("likes",),
    "meeting_time": ("schedule",),
}
"""The simulator's predicate → the ontology's."""
ADDED_UP = ("food_preference", "hobby")
"""Tastes: a new one ends none before it, unless somebody says so."""


@dataclass(frozen=True)
class World:
    """``turns`` in order of arrival; ``facts`` are rows of the truth."""

    turns: tuple[Turn, ...]
    facts: tuple[dict[str, Any], ...]
    as_of: datetime


def world(people: int = PEOPLE, seed: int = 7) -> World:
    """One tenant's assistant dialogues of so many people, with the truth of their facts."""
    config = Config.sized(turns=people * 100, seed=seed, tenants=1)
    turns: list[Turn] = []
    facts: list[dict[str, Any]] = []
    for record in simulate(config):
        row = record.row
        if record.stream == "truth/facts" and isinstance(row, dict):
            facts.append(row)
        elif record.stream == "assistant" and isinstance(row, dict):
            turns += _conversation(row)
        elif record.stream == "dialogues" and isinstance(row, dict) and row.get("role") in ("user", "agent"):
            turns += _turn(row)
    return World(tuple(turns), tuple(facts), datetime.fromtimestamp(config.end, UTC))


def _conversation(row: dict[str, Any]) -> list[Turn]:
    turns = []
    for message in row["messages"]:
        if not isinstance(message.get("content"), str) or message["role"] == "system":
            continue
        at = datetime.fromisoformat(str(message["created_at"])).astimezone(UTC)
        role = "user" if message["role"] == "user" else "agent"
        name = turn_id(row["id"], at, role, message["content"], 0)
        turns.append(
            Turn(name, row["id"], row["user"] if role == "user" else "", role, at, message["content"], row["id"])
        )
    return turns


def _time(said: object) -> datetime | None:
    """None for what landing would put into quarantine."""
    try:
        return datetime.fromisoformat(str(said)).astimezone(UTC)
    except ValueError:
        return None


def _turn(row: dict[str, Any]) -> list[Turn]:
    user, text, at = row.get("user_id"), row.get("text"), _time(row.get("occurred_at"))
    if at is None or not isinstance(text, str) or not text or (row["role"] == "user" and not user):
        return []
    conversation = str(row["conversation_id"])
    name = row.get("turn_id") or turn_id(conversation, at, row["role"], text, 0)
    owner = str(user) if row["role"] == "user" else ""
    edited = _time(row.get("edited_at"))
    return [Turn(name, conversation, owner, row["role"], at, text, row.get("session_id"), edited)]


def memories(turns: Sequence[Turn], as_of: datetime) -> list[dict[str, Any]]:
    """MEMORIES rows of all turns, whatever their order."""
    rows: list[dict[str, Any]] = admitted(labelled(turns).slices(as_of), "assistant", as_of).memories.to_pylist()
    return rows


@dataclass(frozen=True)
class Values:
    """Of one (subject, predicate) of the truth: what it says, and what the memories say, folded."""

    predicate: str
    current: str
    ended: frozenset[str]
    found: frozenset[str]

    @property
    def alone(self) -> bool:
        """No value that has ended is current; of two that hold one another (4 and half past 4) the longer is meant."""
        said = [value for value in self.found if not _same(self.current, value)]
        said += [value for value in self.found if _same(self.current, value) for e in self.ended if self.current in e]
        return not any(_same(ended, value) for ended in self.ended for value in said)

    @property
    def right(self) -> bool:
        """The true value is current and, where the ontology has one value at a time, none that has ended is."""
        known = any(_same(self.current, value) for value in self.found)
        return known and (self.alone or self.predicate in ADDED_UP)


def compare(facts: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> list[Values]:
    """Truth beside memories for each (subject, predicate) that has a current value."""
    current: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        if row["predicate"] and row["valid_to"] is None:
            current[row["subject"], row["predicate"].rsplit(".", 1)[-1]].add(_object(row))
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for fact in facts:
        grouped[fact["subject"], fact["predicate"]].append(fact)
    values = []
    for (subject, name), told in sorted(grouped.items()):
        now = [fold(str(f["value"])) for f in told if f["current"]]
        if not now or name not in PREDICATES:
            continue
        ended = frozenset(fold(str(f["value"])) for f in told if not f["current"]) - set(now)
        found = frozenset(v for p in PREDICATES[name] for v in current[subject, p])
        values.append(Values(name, now[-1], ended, found))
    return values


def _object(row: dict[str, Any]) -> str:
    return fold(str(json.loads(row["structured"])["object"]))


def fold(value: str) -> str:
    """A value in simplified characters, without articles, numbers of things and blanks."""
    value = simplified(value)
    value = re.sub(
        r"^(?:an? |the |two |[一两二三][只条匹缸对])|(?:的)?(?:座位|位置| seats?)$", "", value.casefold().strip()
    )
    return re.sub(r"[\s?]|^不吃", "", value)


def _same(one: str, other: str) -> bool:
    return bool(one) and (one in other or other in one)


def duplicates(rows: Sequence[dict[str, Any]]) -> int:
    """Memories that say again what another of the same subject says."""
    facts = Counter(
        (r["subject"], r["predicate"], r["value"]) for r in rows if r["predicate"] and r["valid_to"] is None
    )
    told = Counter(
        (r["subject"], r["occurred_at"].date(), re.sub(r"[\W\d_]+", "", r["summary"].casefold()))
        for r in rows
        if not r["predicate"]
    )
    return sum(n - 1 for n in (*facts.values(), *told.values()))


def main() -> None:
    made = world()
    print(f"\n== simulator: {len({t.user for t in made.turns if t.user})} people, {len(made.turns)} turns")
    results = []
    for name, turns in (("as it arrives", made.turns), ("the other way round", made.turns[::-1])):
        rows = memories(turns, made.as_of)
        values = compare(made.facts, rows)
        results.append(values)
        changed = [v for v in values if v.ended]
        for title, chosen in (("all", values), ("changed", changed)):
            right, alone = sum(v.right for v in chosen), sum(v.alone for v in chosen)
            print(f"{name}: current value right, {title}: {right}/{len(chosen)}; alone {alone}/{len(chosen)}")
        for predicate in PREDICATES:
            of = [v for v in values if v.predicate == predicate]
            print(f"  {predicate}: {sum(v.right for v in of)}/{len(of)}")
        kept = Counter(row["term"] for row in rows)
        print(f"  memories {dict(kept)}, duplicates {duplicates(rows)} ({duplicates(rows) / max(1, len(rows)):.2%})")
    print(f"equal in both orders: {results[0] == results[1]}")
