"""One subject with many slices: seconds, edges and degrees.

Belongs here: an invented subject of any size, and the clock. Does not belong here: quality.

The subject speaks about every five hours, in sessions of five; a memory names up to three goods (few of them often,
most of them rarely), in a third of them an order number, and always the same place, which becomes a hub.
"""

import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_pipelines.slices.graph.nodes import Deed, Edges, Memory

INTENTS = ("logistics_complaint", "cancel_order", "praise", "order_status", "chit_chat", "refund_request")
KINDS = ("order", "cancel", "refund", "churn")


def subject(slices: int) -> "tuple[list[Memory], list[Deed]]":
    from memory_pipelines.slices.graph.nodes import ORDER_NUMBER, Deed, Memory, event_node

    draw = random.Random(slices)
    at = datetime(2024, 1, 1, tzinfo=UTC)
    memories, deeds = [], []
    for i in range(slices):
        at += timedelta(minutes=draw.randint(1, 600))
        goods = [int(draw.paretovariate(0.6)) % slices for _ in range(draw.randint(0, 3))]
        named = {"place/home", *(f"product/p{good}" for good in goods)}
        number = f"SO{draw.randint(max(0, i - 50), i)}"
        orders = frozenset({number} if draw.random() < 0.33 else ())
        entities = tuple(sorted(named | {ORDER_NUMBER + order for order in orders}))
        name, session = f"{draw.getrandbits(64):016x}", f"s{i // 5}"
        memories.append(
            Memory(name, at, draw.random() < 0.8, draw.choice(INTENTS), entities, orders, (name,), 0.9, session, i % 5)
        )
        if draw.random() < 0.3:
            kind = draw.choice(KINDS)
            deeds.append(Deed(event_node(kind, str(i)), at - timedelta(days=2), kind, number))
    return memories, deeds


def timed(slices: int) -> "tuple[float, float, Edges]":
    """Wall and processor seconds, and the edges."""
    from memory_pipelines.slices.graph.edges import subject_edges

    memories, deeds = subject(slices)
    wall, processor = time.perf_counter(), time.process_time()
    edges = subject_edges(memories, deeds)
    return time.perf_counter() - wall, time.process_time() - processor, edges


def degrees(edges: "Edges") -> list[int]:
    """Edges of each memory, but for mentions, in ascending order."""
    counts = Counter(end for (a, b, kind) in edges if kind != "mentions" for end in (a, b))
    return sorted(counts.values())
