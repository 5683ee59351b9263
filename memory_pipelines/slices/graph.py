"""Step 7, the pure part: edges of every subject's slice graph.

Belongs here: which memories and entities are linked, why and how strongly. Does not belong here:
writing to a graph store, activation. Every edge lies within one subject; the work grows linearly
with a subject's memories, each looks at a bounded number of others.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import WINDOW, MemoryType
from memory_pipelines.slices.embedding import embed, similar
from memory_pipelines.tables import EDGES

MENTION_FLOOR = 0.1
TOPIC_WINDOW = timedelta(days=30)
TOPIC_NEAREST = 3
CAUSES_KEPT = 8
SIMILAR_FROM = 0.7
_COMPLAINTS = frozenset({"complaint", "issue"})
_EFFECTS = frozenset({"cancel", "refund", "churn", "return", "unsubscribe", "close"})
_FEEDBACK_EFFECTS = ("churn", "refund", "cancel")

Row = dict[str, Any]
Edges = dict[tuple[str, str, str], float]


def _chosen(memory: Row) -> bool:
    """Graph nodes are memories routed to the graph, and every long-term episode."""
    episodic_long = memory["memory_type"] == MemoryType.EPISODIC and memory["term"] == "long"
    return episodic_long or "graph" in (memory["stores"] or [])


def entity_node(canonical: str) -> str:
    return f"entity:{canonical}"


def mention_weight(mentions: int) -> float:
    """Specificity of an entity named by n memories of the subject: 1/√n, at least .1, in (0, 1]."""
    return round(max(MENTION_FLOOR, 1 / math.sqrt(mentions)), 4)


def _mentions(memories: Sequence[Row]) -> Edges:
    counts = Counter(entity for memory in memories for entity in set(memory["entities"] or []))
    return {
        (memory["memory_id"], entity_node(entity), "mentions"): mention_weight(counts[entity])
        for memory in memories
        for entity in set(memory["entities"] or [])
    }


def _words(intent: str | None) -> frozenset[str]:
    return frozenset((intent or "").split("_"))


def cause_weight(shared_entity: bool, same_session: bool, fed_back: bool, after: timedelta) -> float:
    """.95 for a shared entity, .8 for the same session, .7 for the complaint's feedback alone, falling
    linearly by .3 of itself over seven days; 0 if nothing ties the two."""
    base = 0.95 if shared_entity else 0.8 if same_session else 0.7 if fed_back else 0.0
    return round(base * (1 - 0.3 * (after / WINDOW)), 4)


def _causes(episodes: Sequence[Row], slices: dict[str, Row]) -> Edges:
    """Complaint → cancellation, refund, churn within seven days, from at most the eight nearest complaints."""
    edges: Edges = {}
    open_complaints: deque[Row] = deque(maxlen=CAUSES_KEPT)
    for memory in episodes:
        own = slices[memory["slice_ids"][0]]
        words = _words(memory["intent"])
        if words & _EFFECTS:
            for complaint in open_complaints:
                after = memory["occurred_at"] - complaint["occurred_at"]
                source = slices[complaint["slice_ids"][0]]
                shared = bool(set(complaint["entities"] or []) & set(memory["entities"] or []))
                session = source["session_id"] is not None and source["session_id"] == own["session_id"]
                fed_back = any(effect in (source["feedback"] or "") for effect in _FEEDBACK_EFFECTS)
                if after <= WINDOW and (weight := cause_weight(shared, session, fed_back, after)):
                    edges[complaint["memory_id"], memory["memory_id"], "causes"] = weight
        elif words & _COMPLAINTS:
            open_complaints.append(memory)
    return edges


def _next(episodes: Sequence[Row], slices: dict[str, Row], places: dict[str, int]) -> Edges:
    """Consecutive episodes of a session: .6 over the number of slices from one to the other."""
    edges: Edges = {}
    last: dict[str, Row] = {}
    for memory in episodes:
        row = slices[memory["slice_ids"][0]]
        session = row["session_id"]
        if session is None:
            continue
        if before := last.get(session):
            gap = places[row["slice_id"]] - places[before["slice_ids"][0]]
            edges[before["memory_id"], memory["memory_id"], "next"] = round(max(0.1, 0.6 / max(1, gap)), 4)
        last[session] = memory
    return edges


def _same_topic(episodes: Sequence[Row]) -> Edges:
    """Same intent and a shared entity within 30 days, the three nearest earlier ones: .4 + .4 · Jaccard of entities."""
    edges: Edges = {}
    recent: dict[tuple[str, str], deque[Row]] = defaultdict(lambda: deque(maxlen=TOPIC_NEAREST))
    for memory in episodes:
        entities, intent = sorted(set(memory["entities"] or [])), memory["intent"]
        if not intent:
            continue
        earlier = {m["memory_id"]: m for entity in entities for m in recent[intent, entity]}
        since: datetime = memory["occurred_at"] - TOPIC_WINDOW
        near = sorted((m for m in earlier.values() if m["occurred_at"] >= since), key=_order)[-TOPIC_NEAREST:]
        for other in near:
            theirs = set(other["entities"])
            overlap = len(theirs & set(entities)) / len(theirs | set(entities))
            edges[other["memory_id"], memory["memory_id"], "same_topic"] = round(0.4 + 0.4 * overlap, 4)
        for entity in entities:
            recent[intent, entity].append(memory)
    return edges


def _similar(memories: Sequence[Row], edges: Edges) -> Edges:
    """The nearest by graph embedding that no direct edge links yet; weight is the cosine."""
    nodes = sorted({end for source, target, _ in edges for end in (source, target)})
    index = {node: i for i, node in enumerate(nodes)}
    undirected: dict[tuple[int, int], float] = {}
    for (source, target, _), weight in edges.items():
        low, high = sorted((index[source], index[target]))
        undirected[low, high] = max(weight, undirected.get((low, high), 0.0))
    ids = sorted(m["memory_id"] for m in memories if m["memory_id"] in index)
    if len(ids) < 2:
        return {}
    rows = [index[node] for node in ids]
    vectors = embed(nodes, undirected)[rows]
    found = similar(vectors, ids, SIMILAR_FROM)
    return {
        (ids[i], ids[j], "similar"): weight
        for (i, j), weight in found.items()
        if (min(rows[i], rows[j]), max(rows[i], rows[j])) not in undirected
    }


def _order(memory: Row) -> tuple[datetime, str]:
    return memory["occurred_at"], memory["memory_id"]


def _subject_edges(memories: Iterable[Row], slices: dict[str, Row], places: dict[str, int]) -> Edges:
    nodes = sorted(memories, key=_order)
    episodes = [m for m in nodes if m["memory_type"] == MemoryType.EPISODIC]
    edges = _mentions(nodes)
    edges |= _causes(episodes, slices)
    edges |= _next(episodes, slices, places)
    edges |= _same_topic(episodes)
    return edges | _similar(nodes, edges)


def _sessions(slices: Iterable[Row]) -> dict[str, int]:
    """Slice id → its place within its session, in time order."""
    counts: Counter[str | None] = Counter()
    places = {}
    for row in sorted(slices, key=lambda r: (r["occurred_at"], r["slice_id"])):
        places[row["slice_id"]] = counts[row["session_id"]]
        counts[row["session_id"]] += 1
    return places


_SLICE_COLUMNS = ["tenant", "subject", "slice_id", "session_id", "occurred_at", "feedback"]
_MEMORY_COLUMNS = [
    *("tenant", "subject", "memory_id", "memory_type", "term", "slice_ids", "entities"),
    *("intent", "occurred_at", "stores", "owner", "bucket"),
]


def memory_edges(memories: pa.Table, slices: pa.Table) -> pa.Table:
    """The edges (``tables.EDGES``) among the graph's memories and entities, sorted by key.

    ``memories`` are rows of ``tables.MEMORIES``, ``slices`` those of ``tables.SLICES`` that they cite. Pure per
    (tenant, subject). Kinds: mentions, causes, next, same_topic (earlier → later), similar (smaller id first);
    weights in (0, 1], rounded to 4. Raises IntegrityError for an episode whose slice is not among ``slices``."""
    by_owner: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for memory in memories.select(_MEMORY_COLUMNS).to_pylist():
        if _chosen(memory):
            by_owner[memory["tenant"], memory["subject"]].append(memory)
    slices_of: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in slices.select(_SLICE_COLUMNS).to_pylist():
        if (row["tenant"], row["subject"]) in by_owner:
            slices_of[row["tenant"], row["subject"]][row["slice_id"]] = row
    result: list[Row] = []
    for owner in sorted(by_owner):
        own, known = by_owner[owner], slices_of[owner]
        for memory in own:
            if memory["memory_type"] == MemoryType.EPISODIC and memory["slice_ids"][0] not in known:
                raise IntegrityError(f"memory {memory['memory_id']} cites a slice that is not in the table")
        edges = _subject_edges(own, known, _sessions(known.values()))
        for (source, target, kind), weight in sorted(edges.items()):
            row = {"tenant": owner[0], "subject": owner[1], "source": source, "target": target, "kind": kind}
            result.append(row | {"weight": weight, "owner": own[0]["owner"], "bucket": own[0]["bucket"]})
    return pa.Table.from_pylist(result, schema=EDGES.schema)
