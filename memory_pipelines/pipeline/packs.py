"""Packs of persons, made after what they copy was published.

Belongs here: which subjects need one, what goes into it within the budget, where it is put. Does not belong here: its
bytes (``recall.pack``), its rows in PostgreSQL (``stores.packs``).

A pack is made again when its epoch, its model or its form is not the current one; vectors of entries that the former
one held are taken over. What does not fit the budget are vectors, of the coldest and then oldest memories first: recall
asks the vector store then. A subject whose pack would be too large even without them has none.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner, Tier
from memory_pipelines.models.base import Embedder
from memory_pipelines.projection import graph_of, in_graph
from memory_pipelines.recall import pack as packed
from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.columns import Columns
from memory_pipelines.recall.instants import Ints
from memory_pipelines.recall.pack import Embedded, Pack
from memory_pipelines.recall.source import TTL_SECONDS, hot_name
from memory_pipelines.stores.base import GraphEdge, Person, StoredMemory, VectorStore
from memory_pipelines.stores.packs import Kept
from memory_pipelines.stores.publish import graph_version
from memory_pipelines.stores.quantise import Int8s, Quantised
from memory_pipelines.tables import EDGES
from memory_pipelines.wiring import Platform

AT_ONCE = 1_000
"""Owners whose edges are read together."""
TIERS = (Tier.HOT, Tier.WARM, Tier.COLD)
BESIDE_VECTOR = 16
"""Bytes that a vector costs besides its numbers, at most."""


@dataclass
class Packed:
    """``packs`` that were made, their ``bytes``; ``left_out``: memories of whom the stores keep what did not fit."""

    packs: int = 0
    bytes: int = 0
    left_out: int = 0


def pack_owners(platform: Platform, owners: Collection[str] | None = None) -> Packed:
    """Make the packs that are not current, of some owners or of everybody. Safe to repeat, and beside publishers."""
    done = Packed()
    if not platform.settings.pack_bytes:
        return done
    embedder, vectors = platform.searched()
    stale = platform.packs.stale(packed.form(embedder.model_id), owners)
    for start in range(0, len(stale), AT_ONCE):
        part = stale[start : start + AT_ONCE]
        edges = _edges(platform, part)
        for owner in part:
            _put(platform, owner, edges.get(owner.key, []), embedder, vectors, done)
    return done


def _put(
    platform: Platform,
    owner: Owner,
    edges: Sequence[dict[str, Any]],
    embedder: Embedder,
    vectors: VectorStore,
    done: Packed,
) -> None:
    """Make the subject's pack and keep it, also in the hot store if some of their memories are hot."""
    person = platform.authority.person(owner)
    rows = packed.in_order(owner, platform.authority.visible(owner))
    links = _graph(platform, person, rows, edges)
    graph = Adjacency.of(links, {row.memory_id: i for i, row in enumerate(rows)})
    pack = Pack(owner, person.epoch, rows, Columns.of(rows), None, graph, made=True)
    wanted = _by_warmth(rows)
    room = platform.settings.pack_bytes - len(packed.dump(pack))
    body, left_out = b"", len(rows)
    if rows and room >= 0:
        chosen = np.sort(wanted[: room // (embedder.dimension + BESIDE_VECTOR)])
        embedded = _embedded(platform, owner, [rows[i].entry_id for i in chosen], chosen, embedder, vectors)
        left_out = len(wanted) - len(chosen)
        body = packed.dump(replace(pack, vectors=replace(embedded, left_out=left_out)))
    if not platform.packs.put(Kept(owner, person.epoch, packed.form(embedder.model_id), body, left_out)):
        return  # somebody publishes the subject, and packs them then
    done.left_out += left_out
    if body:
        done.packs += 1
        done.bytes += len(body)
    if body and any(row.tier == Tier.HOT for row in rows):
        platform.hot.put(owner, hot_name(person.epoch), body, TTL_SECONDS)
    else:
        platform.hot.delete(owner)  # a copy of this epoch may be of another model, or rows that somebody read


def _by_warmth(rows: Sequence[StoredMemory]) -> Ints:
    """Rows that the vector store knows, hot ones first, then newest first."""
    known = [i for i, row in enumerate(rows) if row.tier != Tier.COLD and "vector" in row.stores]
    return np.array(sorted(known, key=lambda i: (TIERS.index(Tier(rows[i].tier)), i)), dtype=np.int64)


# ---- vectors


def _embedded(
    platform: Platform, owner: Owner, entries: Sequence[str], rows: Ints, embedder: Embedder, vectors: VectorStore
) -> Embedded:
    """The entries' vectors, from the former pack or the vector store; one that neither holds is left out."""
    known = _former(platform, owner, embedder)
    fresh = [entry for entry in entries if entry not in known]
    found = vectors.fetch(fresh) if fresh else {}
    if found:
        known |= zip(found, Quantised.of(np.stack(list(found.values()))).numbers, strict=True)
    held = [i for i, entry in enumerate(entries) if entry in known]
    numbers = np.zeros((len(held), embedder.dimension), dtype=np.int8)
    for place, i in enumerate(held):
        numbers[place] = known[entries[i]]
    return Embedded(embedder.model_id, embedder.digest, rows[held], Quantised.held(numbers))


def _former(platform: Platform, owner: Owner, embedder: Embedder) -> dict[str, Int8s]:
    """Entry id → numbers in the subject's former pack, if the same model made them."""
    raw = platform.packs.newest(owner)
    try:
        pack = packed.load(owner, raw) if raw else None
    except IntegrityError:
        pack = None
    if pack is None or pack.vectors is None or pack.vectors.model_id != embedder.model_id:
        return {}
    memories, versions = pack.columns.memory_ids, pack.columns.versions
    names = [f"{memories[row]}.{versions[row]}" for row in pack.vectors.rows.tolist()]
    return dict(zip(names, pack.vectors.vectors.numbers, strict=True))


# ---- graphs


def _edges(platform: Platform, owners: Sequence[Owner]) -> dict[str, list[dict[str, Any]]]:
    """Owner key → EDGES rows."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in platform.lake.read(EDGES, where=[("owner", "in", [owner.key for owner in owners])]).to_pylist():
        found[row["owner"]].append(row)
    return found


def _graph(
    platform: Platform, person: Person, rows: Sequence[StoredMemory], edges: Sequence[dict[str, Any]]
) -> Sequence[GraphEdge]:
    """The edges of the graph that readers use: from the lake, unless it has gone on since."""
    if person.graph_version is None:
        return ()
    nodes, links = graph_of(in_graph(rows), edges)
    if graph_version(nodes, links) == person.graph_version:
        return links
    memories = [row.memory_id for row in rows]
    return platform.graph.neighbourhood(person.owner, person.graph_version, memories)[1]
