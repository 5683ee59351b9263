"""The edges of all subjects of a table.

Belongs here: rows to nodes, nodes to edges, edges to rows, one subject at a time. Does not belong here: any rule,
writing to a store, activation. Every edge lies within one subject; the work grows with the number of a subject's
memories and of what they name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.errors import IntegrityError
from memory_pipelines.slices.graph.causes import causes
from memory_pipelines.slices.graph.links import evidence, following, mentions, same_topic
from memory_pipelines.slices.graph.nodes import (
    Deed,
    Edges,
    Memory,
    Row,
    event_node,
    in_time,
    is_chosen,
    memory_node,
    order_form,
)
from memory_pipelines.slices.graph.rules import cause_rules
from memory_pipelines.slices.graph.similar import alike
from memory_pipelines.tables import BEHAVIOUR, EDGES

SLICE_COLUMNS = ("owner", "slice_id", "session_id", "occurred_at")
MEMORY_COLUMNS = (
    *("tenant", "subject", "owner", "bucket", "memory_id", "memory_type", "term", "slice_ids"),
    *("entities", "intent", "confidence", "occurred_at", "stores"),
)
DEED_COLUMNS = ("owner", "event_id", "kind", "occurred_at", "reference")


def memory_edges(memories: pa.Table, slices: pa.Table, behaviour: pa.Table | None = None) -> pa.Table:
    """The edges (``tables.EDGES``) among the graph's memories, entities and events, sorted by owner and key.

    ``memories`` are rows of ``tables.MEMORIES``, ``slices`` those of ``tables.SLICES`` that they cite, ``behaviour``
    those of ``tables.BEHAVIOUR`` that are known, each event once. Pure per owner. Kinds: mentions (memory → entity),
    evidence (fact → episode), causes (cause → effect), next, same_topic (earlier → later), similar (smaller id first);
    weights in (0, 1], rounded to 4. Raises IntegrityError for an episode whose slice is not among ``slices``."""
    chosen: dict[str, list[Row]] = defaultdict(list)
    for memory in memories.select(MEMORY_COLUMNS).to_pylist():
        if is_chosen(memory):
            chosen[memory["owner"]].append(memory)
    places = _places(slices, chosen)
    deeds = _deeds(BEHAVIOUR.schema.empty_table() if behaviour is None else behaviour, chosen)
    result: list[dict[str, object]] = []
    for owner in sorted(chosen):
        own = chosen[owner]
        edges = subject_edges(_nodes(own, places[owner]), deeds[owner])
        shared = {name: own[0][name] for name in ("tenant", "subject", "owner", "bucket")}
        for (source, target, kind), weight in sorted(edges.items()):
            result.append(shared | {"source": source, "target": target, "kind": kind, "weight": weight})
    return pa.Table.from_pylist(result, schema=EDGES.schema)


def subject_edges(memories: Iterable[Memory], deeds: Iterable[Deed]) -> Edges:
    """One subject's graph."""
    nodes = in_time(memories)
    episodes = [memory for memory in nodes if memory.episodic]
    edges = mentions(nodes)
    edges |= evidence(nodes)
    edges |= causes(episodes, deeds)
    edges |= following(episodes)
    edges |= same_topic(episodes)
    return edges | alike(nodes, edges)


Place = tuple[str | None, int]
"""A slice's session and its position there, in time order."""


def _places(slices: pa.Table, owners: Iterable[str]) -> dict[str, dict[str, Place]]:
    """Owner → slice id → its place."""
    result: dict[str, dict[str, Place]] = {owner: {} for owner in owners}
    counts: Counter[tuple[str, str | None]] = Counter()
    rows = slices.select(SLICE_COLUMNS).sort_by([("occurred_at", "ascending"), ("slice_id", "ascending")])
    for row in rows.to_pylist():
        if row["owner"] in result:
            session = row["owner"], row["session_id"]
            result[row["owner"]][row["slice_id"]] = row["session_id"], counts[session]
            counts[session] += 1
    return result


def _nodes(memories: Sequence[Row], places: dict[str, Place]) -> list[Memory]:
    nodes = []
    for memory in memories:
        first = next(iter(memory["slice_ids"] or ()), None)
        if memory["memory_type"] == "episodic" and first not in places:
            raise IntegrityError(f"memory {memory['memory_id']} cites a slice that is not in the table")
        nodes.append(memory_node(memory, *places.get(first or "", (None, 0))))
    return nodes


def _deeds(behaviour: pa.Table, owners: Iterable[str]) -> dict[str, list[Deed]]:
    result: dict[str, list[Deed]] = {owner: [] for owner in owners}
    kinds = pa.array(sorted(cause_rules().kinds), pa.string())
    rows = behaviour.select(DEED_COLUMNS).filter(pc.is_in(behaviour["kind"], value_set=kinds))
    for row in rows.to_pylist():
        if row["owner"] in result:
            order = order_form(row["reference"] or "") or None
            deed = Deed(event_node(row["kind"], row["event_id"]), row["occurred_at"], row["kind"], order)
            result[row["owner"]].append(deed)
    return result
