"""Packs of persons, made after what they copy was published.

Belongs here: which subjects need one, what goes into it within the budget, where it is put. Does not belong here: its
bytes (``recall.pack``), its rows in PostgreSQL (``stores.packs``).

A pack is made again when its epoch, its model or its form is not the current one; vectors of entries that the former
one held are taken over. What does not fit the budget are vectors, of the coldest and then oldest memories first: recall
asks the vector store then. A subject whose pack would be too large even without them has none.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner, Tier
from memory_pipelines.models.base import Embedder
from memory_pipelines.pipeline.owned import placed, rows_of
from memory_pipelines.projection import graph_of, in_graph
from memory_pipelines.recall import pack as packed
from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.columns import Columns
from memory_pipelines.recall.instants import Ints
from memory_pipelines.recall.pack import Embedded, Pack
from memory_pipelines.recall.source import TTL_SECONDS, hot_name
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.base import GraphEdge, VectorStore
from memory_pipelines.stores.packs import Kept
from memory_pipelines.stores.publish import graph_version
from memory_pipelines.stores.quantise import Int8s, Quantised
from memory_pipelines.tables import EDGES
from memory_pipelines.wiring import Platform

MEMORIES_AT_ONCE, OWNERS_AT_ONCE = 10_000, 1_000
"""That are read together, as far as one owner's are not more: what it costs to ask a store is paid once."""
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
    form = packed.form(embedder.model_id)
    for group in _groups(platform, platform.packs.stale(form, owners)):
        made = [_made(platform.settings.pack_bytes, one, embedder.dimension) for one in _published(platform, group)]
        found = _vectors(platform, made, embedder, vectors)
        _keep(platform, [_kept(one, form, embedder, found) for one in made], done)
    return done


def _groups(platform: Platform, owners: Sequence[Owner]) -> Iterator[list[Owner]]:
    """Owners whose memories are read together."""
    sizes = platform.authority.sizes([owner.key for owner in owners])
    group: list[Owner] = []
    memories = 0
    for owner in owners:
        size = sizes.get(owner.key, 0)
        if group and (memories + size > MEMORIES_AT_ONCE or len(group) >= OWNERS_AT_ONCE):
            yield group
            group, memories = [], 0
        group.append(owner)
        memories += size
    if group:
        yield group


def _published(platform: Platform, owners: Sequence[Owner]) -> Iterator[Pack]:
    """What is published of the owners, without vectors."""
    keys = [owner.key for owner in owners]
    states = platform.authority.states(keys)  # before the rows: a pack of older rows than its epoch would be kept else
    visible = platform.authority.visible_of(owners)
    edges = _edges(platform, keys)
    for owner in owners:
        epoch, graph_version = states.get(owner.key, (0, None))
        rows = packed.in_order(owner, visible[owner])
        links = _graph(platform, owner, graph_version, rows, edges.get(owner.key, []))
        graph = Adjacency.of(links, {row.memory_id: i for i, row in enumerate(rows)})
        yield Pack(owner, epoch, rows, Columns.of(rows), None, graph, made=True)


@dataclass(frozen=True)
class _Made:
    """A pack that lacks its vectors, and the rows whose vectors fit the budget; of ``left_out`` more they do not.
    ``fits``: whether there is anything to keep, within the budget."""

    pack: Pack
    chosen: Ints
    left_out: int
    fits: bool

    @property
    def entries(self) -> list[str]:
        return [self.pack.rows[row].entry_id for row in self.chosen]


def _made(budget: int, pack: Pack, dimension: int) -> _Made:
    room = budget - len(packed.dump(pack))
    if not pack.rows or room < 0:
        return _Made(pack, np.zeros(0, np.int64), len(pack.rows), fits=False)
    wanted = _by_warmth(pack.rows)
    chosen = np.sort(wanted[: room // (dimension + BESIDE_VECTOR)])
    return _Made(pack, chosen, len(wanted) - len(chosen), fits=True)


def _kept(made: _Made, form: str, embedder: Embedder, vectors: Mapping[str, Int8s]) -> tuple[Kept, bool]:
    """The pack as it is kept, and whether it belongs into the hot store: some of the memories are hot."""
    pack, body = made.pack, b""
    if made.fits:
        entries = made.entries
        held = [i for i, entry in enumerate(entries) if entry in vectors]
        numbers = np.zeros((len(held), embedder.dimension), dtype=np.int8)
        for place, i in enumerate(held):
            numbers[place] = vectors[entries[i]]
        embedded = Embedded(
            embedder.model_id, embedder.digest, made.chosen[held], Quantised.held(numbers), made.left_out
        )
        body = packed.dump(replace(pack, vectors=embedded))
    hot = bool(body) and any(row.tier == Tier.HOT for row in pack.rows)
    return Kept(pack.owner, pack.epoch, form, body, made.left_out), hot


def _keep(platform: Platform, packs: Sequence[tuple[Kept, bool]], done: Packed) -> None:
    """Keep packs, also in the hot store where they belong there."""
    kept = platform.packs.put([pack for pack, _ in packs])
    for pack, hot in packs:
        if pack.owner not in kept:
            continue  # somebody publishes the subject, and packs them then
        done.left_out += pack.left_out
        done.packs += bool(pack.body)
        done.bytes += len(pack.body)
        if hot:
            platform.hot.put(pack.owner, hot_name(pack.epoch), pack.body, TTL_SECONDS)
        else:
            platform.hot.delete(pack.owner)  # a copy of this epoch may be of another model, or rows that somebody read


def _by_warmth(rows: Sequence[StoredMemory]) -> Ints:
    """Rows that the vector store knows, hot ones first, then newest first."""
    known = [i for i, row in enumerate(rows) if row.tier != Tier.COLD and "vector" in row.stores]
    return np.array(sorted(known, key=lambda i: (TIERS.index(Tier(rows[i].tier)), i)), dtype=np.int64)


# ---- vectors


def _vectors(platform: Platform, packs: Sequence[_Made], embedder: Embedder, vectors: VectorStore) -> dict[str, Int8s]:
    """Entry id → numbers, from former packs or the vector store; what neither holds is missing."""
    wanted = [entry for made in packs for entry in made.entries]
    owners = {made.pack.owner.key: made.pack.owner for made in packs if made.fits}
    known: dict[str, Int8s] = {}
    for key, raw in platform.packs.newest(owners).items():
        known |= _held(owners[key], raw, embedder)
    fresh = [entry for entry in wanted if entry not in known]
    found = vectors.fetch(fresh) if fresh else {}
    if found:
        known |= zip(found, Quantised.of(np.stack(list(found.values()))).numbers, strict=True)
    return known


def _held(owner: Owner, raw: bytes, embedder: Embedder) -> dict[str, Int8s]:
    """Entry id → numbers in a former pack, if the same model made them."""
    try:
        pack = packed.load(owner, raw)
    except IntegrityError:
        return {}
    if pack.vectors is None or pack.vectors.model_id != embedder.model_id:
        return {}
    memories, versions = pack.columns.memory_ids, pack.columns.versions
    names = [f"{memories[row]}.{versions[row]}" for row in pack.vectors.rows.tolist()]
    return dict(zip(names, pack.vectors.vectors.numbers, strict=True))


# ---- graphs


def _edges(platform: Platform, owners: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Owner key → EDGES rows."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in platform.lake.read(EDGES, where=rows_of(placed(owners, platform.settings.buckets))).to_pylist():
        found[row["owner"]].append(row)
    return found


def _graph(
    platform: Platform,
    owner: Owner,
    version: str | None,
    rows: Sequence[StoredMemory],
    edges: Sequence[dict[str, Any]],
) -> Sequence[GraphEdge]:
    """The edges of the graph that readers use: from the lake, unless it has gone on since."""
    if version is None:
        return ()
    nodes, links = graph_of(in_graph(rows), edges)
    if graph_version(nodes, links) == version:
        return links
    return platform.graph.edges(owner, version)
