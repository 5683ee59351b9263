"""From derived rows to what the stores shall show of each owner.

Belongs here: the mapping of MEMORIES, EDGES and SLICES rows to publishing drafts, with the tier that
their age deserves. Does not belong here: the protocol of publishing (``stores.publish``).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from memory_pipelines.lifecycle.plan import claim_of, is_current, is_marked
from memory_pipelines.lifecycle.scores import Denials, use_of
from memory_pipelines.lifecycle.tiers import Life, Profile, next_move, tier_of
from memory_pipelines.lifecycle.tiers import profile as life_profile
from memory_pipelines.model import MemoryType, Owner, Permanence, Tier, canonical_json, memory_id
from memory_pipelines.stores.authority import StoredMemory, Use
from memory_pipelines.stores.base import GraphEdge, GraphNode
from memory_pipelines.stores.publish import Draft, OwnerState
from memory_pipelines.tables import MEMORIES

ENTITY = "entity:"
SHORT_TERM = "short"
EMBEDDED_CHARACTERS = 400
"""Of summary and text together: the encoder averages over a text, so more of it says less, and costs more."""

Row = Mapping[str, Any]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class _Past:
    """What happened to memories since they were admitted; the arguments of ``owner_states``."""

    accesses: Mapping[str, Sequence[datetime]]
    related: Mapping[str, int]
    admitted: Mapping[str, datetime]
    horizons: Mapping[str, timedelta]
    markers: Mapping[str, Collection[tuple[str, str]]]
    denials: Mapping[str, Denials]
    presented: Mapping[str, Sequence[datetime]]


def owner_states(
    owners: Collection[str],
    *,
    memories: pa.Table,
    edges: pa.Table,
    slices: pa.Table,
    known: Mapping[str, Owner],
    as_of: datetime,
    profile: str,
    accesses: Mapping[str, Sequence[datetime]] = _NOTHING,
    related: Mapping[str, int] = _NOTHING,
    admitted: Mapping[str, datetime] = _NOTHING,
    horizons: Mapping[str, timedelta] = _NOTHING,
    markers: Mapping[str, Collection[tuple[str, str]]] = _NOTHING,
    denials: Mapping[str, Denials] = _NOTHING,
    presented: Mapping[str, Sequence[datetime]] = _NOTHING,
) -> list[OwnerState]:
    """The whole visible state of each owner key in ``owners``; one without rows shall show nothing.

    ``known``: owners that were published before, to name those that have no rows any more. By memory id:
    ``accesses`` and those of them when it was ``presented``, ``related`` nodes, when it was ``admitted`` (one that was
    not yet: at ``as_of``), and ``denials``: a memory is trusted less by the share of its uses that were denied.
    By owner key: ``horizons``, and ``markers`` (turn id, claim) of what age has deleted: such a memory is not shown
    again, unless it has become a current fact or permanent, which nothing deletes by age.
    """
    rows, links, events = _by_owner(memories), _by_owner(edges), _by_owner(slices)
    ages, past = life_profile(profile), _Past(accesses, related, admitted, horizons, markers, denials, presented)
    states = []
    for key in sorted(owners):
        own = rows.get(key, [])
        found = next(iter((*own, *events.get(key, []))), None)
        owner = known.get(key) if found is None else Owner(found["tenant"], found["subject"])
        if owner is not None:
            states.append(_state(owner, own, links.get(key, []), events.get(key, []), as_of, ages, past))
    return states


INSIGHT = "insight."
INSIGHT_SCORE = 0.9
INSIGHT_TRUST = 0.7


def insight_memories(reflections: pa.Table, as_of: datetime, model_set: str) -> pa.Table:
    """REFLECTIONS rows that hold at ``as_of`` as MEMORIES rows: high-priority, with a validity window.

    Their predicate names one insight, so none supersedes another."""
    rows = []
    for row in reflections.to_pylist():
        if not row["own_turn_ids"] or not (row["valid_from"] <= as_of < row["valid_to"]):
            continue
        owner = Owner(row["tenant"], row["subject"])
        predicate = f"{INSIGHT}{row['kind']}.{row['insight_id'][:8]}"
        rows.append(
            {
                **{name: row[name] for name in ("tenant", "subject", "language", "valid_from", "valid_to", "owner")},
                "memory_id": memory_id(owner, MemoryType.SEMANTIC, row["own_turn_ids"][0], predicate),
                "memory_type": MemoryType.SEMANTIC.value,
                "permanence": Permanence.LONG.value,
                "term": "long",
                "summary": row["text"],
                "text": "",
                "predicate": predicate,
                "value": "",
                "structured": canonical_json({"cites": row["memory_ids"], "kind": row["kind"], "week": row["week"]}),
                "confidence": row["confidence"],
                "trust": INSIGHT_TRUST,
                "score": INSIGHT_SCORE,
                "slice_ids": [],
                "own_turn_ids": row["own_turn_ids"],
                "source_turn_ids": row["own_turn_ids"],
                "entities": [],
                "intent": "",
                "decision_impact": 0.0,
                "occurred_at": row["valid_from"],
                "stores": ["relational", "vector"],
                "path": row["path"],
                "model_set": model_set,
                "bucket": row["bucket"],
            }
        )
    return pa.Table.from_pylist(rows, schema=MEMORIES.schema)


SLICE_COLUMNS = ("tenant", "subject", "owner", "slice_id", "own_turn_ids")
"""What ``owner_states`` needs of SLICES."""
VIEW_COLUMNS = ("owner", "memory_id", "occurred_at", "expires_at")
"""What ``next_views`` needs of MEMORIES."""


def next_views(
    memories: pa.Table, as_of: datetime, profile: str, accesses: Mapping[str, Sequence[datetime]] = _NOTHING
) -> dict[str, datetime]:
    """Owner key → when time alone next changes what the stores show: a memory expires or outgrows its tier.

    Scores and horizons also move memories: those the daily plan finds.
    """
    ages = life_profile(profile)
    result: dict[str, datetime] = {}
    rows = memories.select(VIEW_COLUMNS).to_pylist()
    for row in rows:
        last_access = max((at for at in accesses.get(row["memory_id"], ()) if at <= as_of), default=None)
        expires, moves = row["expires_at"], next_move(row["occurred_at"], last_access, as_of, ages)
        if expires is not None and expires <= as_of:
            continue  # not shown any more
        for at in (expires, moves):
            if at is not None:
                result[row["owner"]] = min(at, result.get(row["owner"], at))
    return result


def _by_owner(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    result: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in table.to_pylist():
        result[row["owner"]].append(row)
    return result


def _state(
    owner: Owner,
    memories: Sequence[Row],
    edges: Sequence[Row],
    slices: Sequence[Row],
    as_of: datetime,
    ages: Profile,
    past: _Past,
) -> OwnerState:
    memories = [m for m in memories if m["expires_at"] is None or m["expires_at"] > as_of]
    current = (m for m in memories if m["memory_type"] == MemoryType.SEMANTIC and is_current(m["valid_to"], as_of))
    cited = {slice_id for m in current for slice_id in m["slice_ids"]}
    shown = []
    for memory in sorted(memories, key=lambda m: str(m["memory_id"])):
        life = _life(memory, as_of, cited, past)
        if life.lasts or not _deleted(memory, past):
            name = memory["memory_id"]
            denied = past.denials.get(name)
            trust = memory["trust"] if denied is None else round(memory["trust"] * (1 - denied.rate(as_of)), 4)
            use = use_of(past.accesses.get(name, ()), past.presented.get(name, ()), as_of)
            shown.append(_draft(dict(memory, trust=trust), tier_of(life, as_of, ages), use))
    nodes, links = graph_of((d.payload for d in shown if d.tier != Tier.COLD and "graph" in d.payload["stores"]), edges)
    turns = sorted((s["slice_id"], turn) for s in slices for turn in s["own_turn_ids"])
    return OwnerState(owner, shown, nodes, links, turns)


def graph_of(memories: Iterable[Row], edges: Sequence[Row]) -> tuple[list[GraphNode], list[GraphEdge]]:
    """The graph of the memories that are routed there, joined by those EDGES rows that have both ends in it."""
    linked = {m["memory_id"]: m for m in memories}
    kept = [e for e in edges if _in_graph(e["source"], linked) and _in_graph(e["target"], linked)]
    nodes = [*(_memory_node(m) for m in linked.values()), *_entity_nodes(kept)]
    return nodes, [GraphEdge(e["source"], e["target"], e["kind"], e["weight"]) for e in kept]


def in_graph(memories: Iterable[StoredMemory]) -> Iterator[Row]:
    """Those of visible memories that are nodes, as ``graph_of`` takes them."""
    names = ("memory_id", "memory_type", "predicate", "intent", "decision_impact", "occurred_at")
    for memory in memories:
        if memory.tier != Tier.COLD and "graph" in memory.stores:
            yield {name: getattr(memory, name) for name in names}


def _in_graph(node: str, linked: Mapping[str, Row]) -> bool:
    return node.startswith(ENTITY) or node in linked


def _life(memory: Row, as_of: datetime, cited: Collection[str], past: _Past) -> Life:
    name = memory["memory_id"]
    return Life(
        memory_type=memory["memory_type"],
        permanence=memory["permanence"],
        current=is_current(memory["valid_to"], as_of),
        cited=any(s in cited for s in memory["slice_ids"]),
        gate_score=memory["score"],
        related=past.related.get(name, 0),
        occurred_at=memory["occurred_at"],
        admitted_at=past.admitted.get(name, as_of),
        accesses=past.accesses.get(name, ()),
        horizon=past.horizons.get(memory["owner"]),
    )


def _deleted(memory: Row, past: _Past) -> bool:
    claim = claim_of(memory["memory_type"], memory["predicate"])
    return is_marked(memory["own_turn_ids"], claim, past.markers.get(memory["owner"], ()))


def _draft(memory: Row, tier: Tier, use: Use) -> Draft:
    payload = {k: v for k, v in memory.items() if k not in {"own_turn_ids", "owner", "bucket"}}
    payload["owner"] = memory["owner"]
    for name in ("predicate", "value", "structured", "intent", "text", "language"):
        payload[name] = payload[name] or ""
    payload["decision_impact"] = payload["decision_impact"] or 0.0
    if memory["term"] == SHORT_TERM:
        payload["stores"] = ["relational"]  # the session buffer: never in a projection that outlives it
    in_vectors = "vector" in payload["stores"] and tier != Tier.COLD
    return Draft(payload, tier, embedded_text(memory["summary"], memory["text"] or "") if in_vectors else None, use)


def embedded_text(summary: str, text: str) -> str:
    """What the vector of a memory stands for."""
    return f"{summary}\n{text}"[:EMBEDDED_CHARACTERS]


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
