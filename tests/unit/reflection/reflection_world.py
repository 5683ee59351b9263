"""Memories for the reflection tests: a week in May 2024, one Chinese and one English person."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

from memory_pipelines.model import Owner
from memory_pipelines.reflection import Reflection, reflect
from memory_pipelines.stores.authority import StoredMemory

WANG = Owner("acme", "u:wang")
WEEK = date(2024, 5, 13)
START = datetime(2024, 5, 13, tzinfo=UTC)
END = START + timedelta(days=7)


def at(text: str) -> datetime:
    """``05-14`` or ``05-14 09`` of 2024, UTC; noon where no hour is given."""
    day, _, hour = text.partition(" ")
    return datetime.fromisoformat(f"2024-{day}").replace(hour=int(hour or 12), tzinfo=UTC)


def memory(memory_id: str, when: datetime, **changes: Any) -> StoredMemory:
    """A Chinese episode with a slice and a turn of its own, confidence .9."""
    values: dict[str, Any] = {
        "memory_id": memory_id,
        "version": "v1",
        "owner": WANG,
        "memory_type": "episodic",
        "permanence": "long",
        "term": "long",
        "summary": f"概要 {memory_id}",
        "text": "",
        "language": "zh",
        "predicate": "",
        "value": "",
        "structured": "{}",
        "confidence": 0.9,
        "trust": 0.85,
        "score": 0.8,
        "decision_impact": 0.4,
        "intent": "",
        "entities": (),
        "slice_ids": (f"evt_{when:%Y%m%d}_{memory_id}",),
        "source_turn_ids": (f"turn-{memory_id}",),
        "stores": ("vector",),
        "occurred_at": when,
        "valid_from": None,
        "valid_to": None,
        "expires_at": None,
        "admitted_at": when,
        "tier": "hot",
        "path": "rules",
        "model_set": "base-1",
    }
    return StoredMemory(**(values | changes))


def fact(memory_id: str, when: datetime, predicate: str, value: str, **changes: Any) -> StoredMemory:
    """A fact as admission makes it, valid from when it was said."""
    said = changes.pop("said", value)
    parts = {"object": said, "value": value, "category": changes.pop("category", "preference")}
    day = changes.pop("day", "")
    fixed = {
        "memory_type": "semantic",
        "permanence": "permanent",
        "predicate": predicate,
        "value": value,
        "structured": json.dumps(parts | ({"date": day} if day else {}), ensure_ascii=False),
        "valid_from": when,
        "intent": "share_fact",
    }
    return memory(memory_id, when, **(fixed | changes))


def plan(memory_id: str, when: datetime, day: str, said: str, **changes: Any) -> StoredMemory:
    fixed: dict[str, Any] = {"category": "plan", "day": day, "said": said, "permanence": "task"}
    return fact(memory_id, when, "plan", f"{day} {said}", **(fixed | changes))


def run(*memories: StoredMemory, week: date = WEEK, **options: Any) -> Reflection:
    return reflect(memories, week, owner=WANG, bucket=3, **options)


def told(reflection: Reflection, kind: str) -> list[str]:
    """The texts of one kind, sorted."""
    return sorted(i.text for i in reflection.insights if i.kind == kind)


def cited(reflection: Reflection, kind: str) -> list[tuple[str, ...]]:
    return sorted(i.memory_ids for i in reflection.insights if i.kind == kind)
