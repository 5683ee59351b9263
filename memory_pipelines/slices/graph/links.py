"""Edges by rule: mentions, evidence, next in session, same topic.

Belongs here: which memories and entities belong together, and how strongly. Does not belong here: what led to what
(``causes``), what is alike by the graph as a whole (``similar``). Each memory looks at a bounded number of others.

A weight is the share of the linked pairs that belong together for another reason than chance, 1 − 1 / lift, by the more
cautious of the sets that ``benchmarks/graph`` measures (``docs/benchmarks.md``).
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from datetime import timedelta

from memory_pipelines.slices.graph.nodes import Edges, Memory, entity_node, in_time

MENTIONS, EVIDENCE, NEXT, SAME_TOPIC = "mentions", "evidence", "next", "same_topic"
MENTION_HALF = 10
"""Memories that name an entity, at which half of what it says about two of them is gone."""
MENTION_FLOOR = 0.01
NEXT_WEIGHTS, NEXT_FAR = (0.8, 0.7, 0.35), 0.1
EVIDENCE_KEPT = 8
"""Episodes that one fact is linked to: the latest that say it."""
TOPIC_WINDOW = timedelta(days=30)
TOPIC_NEAREST = 3
TOPIC_MENTIONS, TOPIC_WEIGHT = 15, 0.7
_SURELY = 0.01


def mention_weight(mentions: int) -> float:
    """Specificity of an entity named by n memories of the subject: 1 / √(1 + (n / 10)²), at least .01.

    So two memories that share it are tied by 1 / (1 + (n / 10)²)."""
    return round(max(MENTION_FLOOR, 1 / math.sqrt(1 + (mentions / MENTION_HALF) ** 2)), 4)


def mentions(memories: Sequence[Memory]) -> Edges:
    """Memory → the subject's own node of each entity that it names."""
    counts = Counter(entity for memory in memories for entity in memory.entities)
    weights = {entity: mention_weight(count) for entity, count in counts.items()}
    return {(m.node, entity_node(entity), MENTIONS): weights[entity] for m in memories for entity in m.entities}


def evidence(memories: Sequence[Memory]) -> Edges:
    """Fact → the episodes of the slices that it is read from; the weight is the fact's confidence."""
    told: dict[str, Memory] = {}
    for memory in memories:
        if memory.episodic:
            for place, slice_id in enumerate(memory.slice_ids):
                if place == 0 or slice_id not in told:  # its own slice, before one that it only cites
                    told[slice_id] = memory
    edges: Edges = {}
    for fact in memories:
        if not fact.episodic:
            found = {told[s].node: told[s] for s in fact.slice_ids if s in told}
            for episode in in_time(found.values())[-EVIDENCE_KEPT:]:
                edges[fact.node, episode.node, EVIDENCE] = round(min(1.0, max(_SURELY, fact.confidence)), 4)
    return edges


def next_weight(gap: int) -> float:
    """By slices from one to the other, as measured: .8, .7, .35, beyond that .1."""
    return NEXT_WEIGHTS[gap - 1] if 0 < gap <= len(NEXT_WEIGHTS) else NEXT_FAR


def following(episodes: Sequence[Memory]) -> Edges:
    """Consecutive episodes of a session; the weight falls with the number of slices from one to the other."""
    edges: Edges = {}
    last: dict[str, Memory] = {}
    for memory in episodes:
        if memory.session is None:
            continue
        if before := last.get(memory.session):
            edges[before.node, memory.node, NEXT] = next_weight(memory.place - before.place)
        last[memory.session] = memory
    return edges


def same_topic(episodes: Sequence[Memory]) -> Edges:
    """Same intent and an entity that both name within 30 days, the three nearest earlier ones.

    What more than 15 episodes name makes no topic."""
    edges: Edges = {}
    counts = Counter(entity for memory in episodes for entity in memory.entities)
    specific = {entity for entity, count in counts.items() if count <= TOPIC_MENTIONS}
    recent: dict[tuple[str, str], deque[Memory]] = defaultdict(lambda: deque(maxlen=TOPIC_NEAREST))
    for memory in episodes:
        if not memory.intent:
            continue
        own = specific.intersection(memory.entities)
        earlier = {m.node: m for entity in own for m in recent[memory.intent, entity]}
        since = memory.at - TOPIC_WINDOW
        for other in in_time(m for m in earlier.values() if m.at >= since)[-TOPIC_NEAREST:]:
            edges[other.node, memory.node, SAME_TOPIC] = TOPIC_WEIGHT
        for entity in own:
            recent[memory.intent, entity].append(memory)
    return edges
