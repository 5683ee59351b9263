"""From derived rows to what the stores shall show of each owner.

Belongs here: the mapping of MEMORIES, EDGES and SLICES rows to publishing drafts, with the tier that
their age deserves. Does not belong here: the protocol of publishing (``stores.publish``).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from memory_pipelines.lifecycle.tiers import Profile, tier_of
from memory_pipelines.lifecycle.tiers import profile as life_profile
from memory_pipelines.model import MemoryType, Owner, Tier
from memory_pipelines.stores.base import GraphEdge, GraphNode
from memory_pipelines.stores.publish import Draft, OwnerState

ENTITY = "entity:"
SHORT_TERM = "short"
EMBEDDED_CHARACTERS = 400
"""Of summary and text together: the encoder averages over a text, so more of it says less, and costs more."""

Row = Mapping[str, Any]


def owner_states(
    owners: Collection[str],
    *,
    memories: pa.Table,
    edges: pa.Table,
    slices: pa.Table,
    known: Mapping[str, Owner],
    as_of: datetime,
    profile: str,
) -> list[OwnerState]:
    """The whole visible state of each owner key in ``owners``; one without rows shall show nothing.

    ``known``: owners that were published before, to name those that have no rows any more.
    """
    rows, links, events = _by_owner(memories), _by_owner(edges), _by_owner(slices)
    ages = life_profile(profile)
    states = []
    for key in sorted(owners):
        own = rows.get(key, [])
        found = next(iter((*own, *events.get(key, []))), None)
        owner = known.get(key) if found is None else Owner(found["tenant"], found["subject"])
        if owner is not None:
            states.append(_state(owner, own, links.get(key, []), events.get(key, []), as_of, ages))
    return states


def _by_owner(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    result: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in table.to_pylist():
        result[row["owner"]].append(row)
    return result


def _state(
    owner: Owner, memories: Sequence[Row], edges: Sequence[Row], slices: Sequence[Row], as_of: datetime, ages: Profile
) -> OwnerState:
    memories = [m for m in memories if m["expires_at"] is None or m["expires_at"] > as_of]
    current = [m for m in memories if m["memory_type"] == MemoryType.SEMANTIC and _is_current(m, as_of)]
    cited = {slice_id for m in current for slice_id in m["slice_ids"]}
    drafts = [_draft(m, as_of, ages, cited) for m in sorted(memories, key=lambda m: str(m["memory_id"]))]
    linked = {
        d.payload["memory_id"]: d.payload for d in drafts if d.tier != Tier.COLD and "graph" in d.payload["stores"]
    }
    kept = [e for e in edges if _in_graph(e["source"], linked) and _in_graph(e["target"], linked)]
    return OwnerState(
        owner,
        drafts,
        [*(_memory_node(p) for p in linked.values()), *_entity_nodes(kept)],
        [GraphEdge(e["source"], e["target"], e["kind"], e["weight"]) for e in kept],
        sorted((s["slice_id"], turn) for s in slices for turn in s["own_turn_ids"]),
    )


def _is_current(memory: Row, as_of: datetime) -> bool:
    return memory["valid_to"] is None or memory["valid_to"] > as_of


def _in_graph(node: str, linked: Mapping[str, Row]) -> bool:
    return node.startswith(ENTITY) or node in linked


def _draft(memory: Row, as_of: datetime, ages: Profile, cited: Collection[str]) -> Draft:
    tier = tier_of(
        memory_type=memory["memory_type"],
        permanence=memory["permanence"],
        current=_is_current(memory, as_of),
        cited=any(s in cited for s in memory["slice_ids"]),
        occurred_at=memory["occurred_at"],
        last_access=None,
        as_of=as_of,
        ages=ages,
    )
    payload = {k: v for k, v in memory.items() if k not in {"own_turn_ids", "owner", "bucket"}}
    payload["owner"] = memory["owner"]
    for name in ("predicate", "value", "structured", "intent", "text", "language"):
        payload[name] = payload[name] or ""
    payload["decision_impact"] = payload["decision_impact"] or 0.0
    if memory["term"] == SHORT_TERM:
        payload["stores"] = ["relational"]  # the session buffer: never in a projection that outlives it
    in_vectors = "vector" in payload["stores"] and tier != Tier.COLD
    text = f"{memory['summary']}\n{memory['text'] or ''}"[:EMBEDDED_CHARACTERS]
    return Draft(payload, tier, text if in_vectors else None)


def _memory_node(payload: Row) -> GraphNode:
    semantic = payload["memory_type"] == MemoryType.SEMANTIC
    return GraphNode(
        payload["memory_id"],
        "fact" if semantic else "slice",
        payload["predicate"] if semantic else payload["intent"],
        payload["decision_impact"],
        payload["occurred_at"],
    )


def _entity_nodes(edges: Sequence[Row]) -> list[GraphNode]:
    names = sorted({n for e in edges for n in (e["source"], e["target"]) if n.startswith(ENTITY)})
    return [GraphNode(name, "entity", name.removeprefix(ENTITY), 0.0, None) for name in names]
