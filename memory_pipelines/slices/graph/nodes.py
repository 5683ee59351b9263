"""What takes part in a subject's slice graph, and how its nodes are named.

Belongs here: memories and behaviour events as nodes, entity nodes, their order in time. Does not belong here: edges.

Every node is the subject's own. A memory is named by its id, an entity by ``entity:<canonical id>``, an event of the
behaviour by ``event:<kind>:<hash of its id>``: edges are kept and published under their owner, so the node of an entity
that two people speak of is two nodes, each mapped to the one canonical entity. No node is a text or a name of a person
that the dictionary or the log does not hold.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_pipelines.model import MemoryType, stable_hash

ENTITY, EVENT = "entity:", "event:"
ORDER_NUMBER = "order_number/"

Row = Mapping[str, Any]
Key = tuple[str, str, str]
"""Source, target, kind of an edge."""
Edges = dict[Key, float]


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as a node. ``session`` and ``place``, its position there, are those of its first slice."""

    node: str
    at: datetime
    episodic: bool
    intent: str
    entities: tuple[str, ...]
    orders: frozenset[str]
    slice_ids: tuple[str, ...]
    confidence: float
    session: str | None
    place: int


@dataclass(frozen=True, slots=True)
class Deed:
    """An event of the behaviour; ``order`` is the number it refers to, in normal form."""

    node: str
    at: datetime
    kind: str
    order: str | None


def entity_node(canonical: str) -> str:
    return f"{ENTITY}{canonical}"


def event_node(kind: str, event_id: str) -> str:
    return f"{EVENT}{kind}:{stable_hash('event', event_id)}"


def is_chosen(memory: Row) -> bool:
    """Whether a MEMORIES row is a node: what is routed to the graph, and every long-term episode."""
    episodic_long = memory["memory_type"] == MemoryType.EPISODIC and memory["term"] == "long"
    return episodic_long or "graph" in (memory["stores"] or [])


def memory_node(memory: Row, session: str | None, place: int) -> Memory:
    entities = tuple(sorted(set(memory["entities"] or ())))
    orders = frozenset(order_form(e.removeprefix(ORDER_NUMBER)) for e in entities if e.startswith(ORDER_NUMBER))
    return Memory(
        memory["memory_id"],
        memory["occurred_at"],
        memory["memory_type"] == MemoryType.EPISODIC,
        memory["intent"] or "",
        entities,
        orders,
        tuple(memory["slice_ids"] or ()),
        memory["confidence"] or 0.0,
        session,
        place,
    )


def order_form(number: str) -> str:
    """The form in which a number said and a number logged are equal: letters and digits, in capitals."""
    return "".join(char for char in number.upper() if char.isalnum())


def in_time(memories: Iterable[Memory]) -> list[Memory]:
    return sorted(memories, key=lambda m: (m.at, m.node))
