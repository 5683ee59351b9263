"""How much of a person's history goes into one prompt.

Belongs here: which memories, how much text of each, the limits of one call. Does not belong here: the budget of
the run, which the model's meter keeps (``models.llm.CostMeter``).
"""

from heapq import nlargest
from typing import Any

from memory_pipelines.model import iso
from memory_pipelines.models.llm import token_bound
from memory_pipelines.reflection.events import Material, base, plan_day
from memory_pipelines.reflection.schema import MONTH, age_order, clean
from memory_pipelines.stores.authority import StoredMemory

REPLY_TOKENS = 2_000
PROMPT_MEMORIES = 120
PROMPT_BYTES = 24_000
"""Of the memories of one prompt: 6,000 to 12,000 tokens."""
MEMORY_CHARACTERS = 300


def chosen(material: Material) -> list[StoredMemory]:
    """The memories that a prompt shows, oldest first: those of the week, then what changed or is due, then those
    of greatest impact in four weeks, then current facts; within the limits above."""
    ranked = nlargest(PROMPT_MEMORIES, material.scope.memories.values(), key=lambda m: _rank(m, material))
    kept, size = [], 0
    for memory in ranked:
        size += token_bound([str(shown(memory))])
        if size > PROMPT_BYTES or not _rank(memory, material)[0]:
            break
        kept.append(memory)
    return sorted(kept, key=age_order)


def _rank(memory: StoredMemory, material: Material) -> tuple[int, float, float, tuple[object, ...]]:
    scope = material.scope
    day = plan_day(memory) if base(memory.predicate) == "plan" else None
    if material.this_week(memory.occurred_at):
        relevant = 4
    elif (memory.valid_to is not None and material.this_week(memory.valid_to)) or (
        day is not None and day >= scope.week
    ):
        relevant = 3
    elif memory.occurred_at >= scope.end - MONTH:
        relevant = 2
    else:
        relevant = int(bool(memory.predicate) and material.holds(memory))
    return relevant, memory.decision_impact, memory.score, age_order(memory)


def shown(memory: StoredMemory) -> dict[str, Any]:
    """What a prompt tells of a memory: no names of tenant or subject, no turn ids, no empty fields."""
    fields = {
        "memory_id": memory.memory_id,
        "at": iso(memory.occurred_at),
        "type": memory.memory_type,
        "summary": clean(memory.summary, MEMORY_CHARACTERS),
        "text": clean(memory.text, MEMORY_CHARACTERS),
        "intent": memory.intent,
        "predicate": memory.predicate,
        "value": clean(memory.value, MEMORY_CHARACTERS),
        "entities": list(memory.entities[:8]),
        "valid_to": iso(memory.valid_to) if memory.valid_to else "",
        "impact": memory.decision_impact,
    }
    return {name: value for name, value in fields.items() if value not in ("", [])}
