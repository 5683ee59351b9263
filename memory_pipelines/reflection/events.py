"""From memories to the events and facts that are counted.

Belongs here: one event per slice however many memories stem from it, when a fact was mentioned, what a
memory's structured part says. Does not belong here: any judgement about them.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

from memory_pipelines.model import MemoryType
from memory_pipelines.reflection.schema import MONTH, Scope
from memory_pipelines.stores.authority import StoredMemory

_SLICE_DAY = re.compile(r"evt_(\d{8})_")


@dataclass(frozen=True, slots=True)
class Event:
    """One slice as the memories know it. ``exact``: its time is known, not only its day (UTC)."""

    at: datetime
    exact: bool
    intent: str
    entities: tuple[str, ...]
    memory_id: str


@dataclass(frozen=True)
class Material:
    """A person's memories up to the week's end, counted once for all rules."""

    scope: Scope

    @cached_property
    def facts(self) -> list[StoredMemory]:
        return [m for m in self.scope.memories.values() if m.memory_type == MemoryType.SEMANTIC]

    @cached_property
    def by_slice(self) -> dict[str, Event]:
        """Slice id → event. A slice that several memories name belongs to the episode made of it, else to the
        fact first stated in it, else to whoever cites it."""
        best: dict[str, tuple[bool, bool, str]] = {}
        owners: dict[str, StoredMemory] = {}
        for memory in self.scope.memories.values():
            for i, name in enumerate(memory.slice_ids or (memory.memory_id,)):
                rank = (i > 0, memory.memory_type != MemoryType.EPISODIC, memory.memory_id)
                if name not in best or rank < best[name]:
                    best[name], owners[name] = rank, memory
        made = {name: _event(name, memory, not best[name][0]) for name, memory in owners.items()}
        return {name: event for name, event in made.items() if event.at < self.scope.end}

    @cached_property
    def events(self) -> list[Event]:
        """All events in order of time."""
        return sorted(self.by_slice.values(), key=lambda e: (e.at, e.memory_id))

    @cached_property
    def recent(self) -> list[Event]:
        """The events of the last four weeks."""
        return self.between(self.scope.end - MONTH, self.scope.end)

    @cached_property
    def before(self) -> list[Event]:
        """The events of the four weeks before those."""
        return self.between(self.scope.end - 2 * MONTH, self.scope.end - MONTH)

    def between(self, start: datetime, end: datetime) -> list[Event]:
        return [e for e in self.events if start <= e.at < end]

    def this_week(self, at: datetime) -> bool:
        return self.scope.start <= at < self.scope.end

    def mentions(self, fact: StoredMemory) -> list[datetime]:
        """When a fact was stated, before the week's end."""
        names = dict.fromkeys(fact.slice_ids or (fact.memory_id,))
        return sorted(self.by_slice[name].at for name in names if name in self.by_slice)

    @cached_property
    def closed(self) -> list[StoredMemory]:
        """The facts that stopped being true within the week."""
        return [f for f in self.facts if f.valid_to is not None and self.this_week(f.valid_to)]

    def holds(self, fact: StoredMemory) -> bool:
        """Whether a fact is true at the week's end, as far as was known then."""
        return fact.valid_to is None or fact.valid_to >= self.scope.end


def _event(name: str, memory: StoredMemory, first: bool) -> Event:
    at = memory.occurred_at
    if not first:
        at = _day_of(name) or at
    own = first or memory.memory_type == MemoryType.EPISODIC
    return Event(at, first, memory.intent if own else "", memory.entities if own else (), memory.memory_id)


def _day_of(slice_id: str) -> datetime | None:
    """The day that a slice id carries, for slices whose own memory was not kept."""
    found = _SLICE_DAY.match(slice_id)
    try:
        return datetime.strptime(found[1], "%Y%m%d").replace(tzinfo=UTC) if found else None
    except ValueError:
        return None


def structured(memory: StoredMemory) -> Mapping[str, Any]:
    """The memory's structured part; empty if it is no JSON object."""
    try:
        found = json.loads(memory.structured or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def base(predicate: str) -> str:
    """``family.mother.allergy`` → ``allergy``."""
    return predicate.rsplit(".", 1)[-1]


def shown_value(memory: StoredMemory) -> str:
    """A fact's value as the person said it, else its canonical form."""
    said = structured(memory).get("object")
    return said if isinstance(said, str) and said else memory.value


def plan_day(memory: StoredMemory) -> date | None:
    """The day for which a fact or episode plans something, None if it names none."""
    day = structured(memory).get("date")
    if isinstance(day, str):
        return _iso_day(day)
    days = [d for e in memory.entities if e.startswith("date/") and (d := _iso_day(e.removeprefix("date/")))]
    return min((d for d in days if d >= memory.occurred_at.date()), default=None)


def _iso_day(text: str) -> date | None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def support(count: int, memories: Iterable[StoredMemory]) -> float:
    """Confidence of what ``count`` mentions say: Laplace's rule of succession, (n + 1) / (n + 2), times the mean
    confidence of the memories."""
    values: Sequence[float] = [m.confidence for m in memories]
    return (count + 1) / (count + 2) * sum(sorted(values)) / len(values) if values else 0.0


def monday(at: datetime) -> date:
    return at.date() - timedelta(days=at.weekday())
