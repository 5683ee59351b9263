"""Each store made again: the authority from lake and ledger, the others from the authority and the lake.

Belongs here: what a store has to hold, written over what it holds; a hash of its content. Does not belong here:
finding what is wrong (``pipeline.agreement``), another embedding model (``pipeline.reembed``).

A rebuild changes nothing that a reader sees of a whole store: the ids and versions are the same. It works bucket by
bucket while it holds the bucket, so publishers wait for one bucket at most.
"""

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

import sqlalchemy as sa

from memory_pipelines.erasure.places import KnownByKey
from memory_pipelines.errors import InputError
from memory_pipelines.model import Owner, bucket_of, canonical_json, iso
from memory_pipelines.models.base import Embedder
from memory_pipelines.pipeline.life import publish_owners
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.owned import placed, rows_of
from memory_pipelines.pipeline.packs import pack_owners
from memory_pipelines.projection import embedded_text, graph_of, in_graph
from memory_pipelines.recall import pack
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import Graph, GraphEdge, GraphNode, VectorRow, VectorStore, cold_key
from memory_pipelines.stores.batches import Pointer
from memory_pipelines.stores.publish import archived_copy, graph_version
from memory_pipelines.stores.quantise import rounded
from memory_pipelines.stores.statements import translated
from memory_pipelines.stores.vault import untagged
from memory_pipelines.tables import EDGES, MEMORIES
from memory_pipelines.wiring import Platform

STORES = ("relational", "vector", "graph", "hot", "cold", "packs")
AT_ONCE = 1_000
"""Entries that are embedded, fetched or deleted together."""

T = TypeVar("T")


@dataclass(frozen=True)
class Rebuilt:
    """``written``: entries, graphs, objects or memories; ``removed``: what the store held too much;
    ``lost``: what cannot be made again, whose owners have to be derived anew."""

    store: str
    written: int
    removed: int
    lost: int


@uses_lake
def rebuild(platform: Platform, store: str) -> Rebuilt:
    """Make one of ``STORES`` again. Safe to repeat; killed, the next one does the rest.

    Raises InputError for an unknown store."""
    if store not in STORES:
        raise InputError(f"{store} is no store: choose among {', '.join(STORES)}")
    if store == "relational":
        return _authority(platform)
    if store == "packs":
        return _packs(platform)
    written = removed = lost = 0
    for bucket, owners in by_bucket(_known_owners(platform), platform.settings.buckets).items():
        with platform.authority.publishing(bucket):
            platform.publisher.recover(bucket)
            did = remake(platform, store, owners)
            written, removed, lost = written + did.written, removed + did.removed, lost + did.lost
    return Rebuilt(store, written, removed, lost)


def remake(platform: Platform, store: str, owners: Collection[str]) -> Rebuilt:
    """Make a store's part of some owners again. The caller holds their buckets, without open batches."""
    if store == "vector":
        embedder, vectors = platform.searched()
        return _vectors(platform, embedder, vectors, owners)
    if store == "graph":
        return _graphs(platform, owners)
    if store == "cold":
        return _archive(platform, owners)
    for owner in platform.authority.people(owners).values():
        platform.hot.delete(owner)  # copies: whoever recalls makes them again
    return Rebuilt(store, 0, len(owners), 0)


def _packs(platform: Platform) -> Rebuilt:
    """All packs from what is visible. Whoever recalls meanwhile reads the stores."""
    platform.packs.clear()
    return Rebuilt("packs", pack_owners(platform).packs, 0, 0)


# ---- vectors


def embed_into(platform: Platform, embedder: Embedder, vectors: VectorStore, entries: Collection[str]) -> int:
    """Write the vectors of visible entries; those that are not visible any more are left out. Returns how many."""
    written = 0
    for part in _parts(sorted(entries)):
        wanted = set(part)
        rows = [m for m in platform.authority.shown({e.partition(".")[0] for e in part}) if m.entry_id in wanted]
        texts = [untagged(embedded_text(m.summary, m.text)) for m in rows]
        made = zip(rows, rounded(embedder.encode(texts)) if rows else (), strict=True)
        vectors.upsert([VectorRow(m.entry_id, m.owner, vector, m.language, m.occurred_at) for m, vector in made])
        written += len(rows)
    return written


def _vectors(platform: Platform, embedder: Embedder, vectors: VectorStore, owners: Collection[str]) -> Rebuilt:
    wanted = {entry for entries in platform.authority.routed("vector", owners).values() for entry in entries}
    held = {entry for owner in platform.authority.people(owners).values() for entry in vectors.entry_ids(owner)}
    written = embed_into(platform, embedder, vectors, wanted)
    vectors.delete(held - wanted)
    return Rebuilt("vector", written, len(held - wanted), 0)


# ---- graphs


def _graphs(platform: Platform, owners: Collection[str]) -> Rebuilt:
    versions = platform.authority.graphs(owners)
    edges: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in platform.lake.read(EDGES, where=rows_of(placed(owners, platform.settings.buckets))).to_pylist():
        edges[row["owner"]].append(row)
    written = removed = lost = 0
    for key in sorted(owners):
        version, owner = versions.get(key), KnownByKey("", key)
        for other in platform.graph.versions(owner) - {version or ""}:
            platform.graph.drop(owner, other)
            removed += 1
        if version is None:
            continue
        whole = platform.authority.people([key])[key]
        nodes, links = graph_of(in_graph(platform.authority.visible(whole)), edges[key])
        if graph_version(nodes, links) != version:
            lost += 1  # the lake has gone on: the next derivation publishes another version
            continue
        if _stored_graph(platform, whole, version) != _comparable(nodes, links):
            platform.graph.drop(whole, version)
            platform.graph.write([Graph(whole, version, nodes, links)])
            written += 1
    return Rebuilt("graph", written, removed, lost)


def _stored_graph(platform: Platform, owner: Owner, version: str) -> list[list[Any]]:
    return _comparable(platform.graph.nodes(owner, version), platform.graph.edges(owner, version))


def _comparable(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> list[list[Any]]:
    found = [[n.node_id, n.kind, n.label, n.weight, n.occurred_at and iso(n.occurred_at)] for n in nodes]
    joined = [[e.source, e.target, e.kind, e.weight] for e in edges]
    return [*sorted(found, key=str), *sorted(joined, key=str)]


# ---- cold objects


def _archive(platform: Platform, owners: Collection[str]) -> Rebuilt:
    wanted = platform.authority.archived(owners)
    columns = ["memory_id", "text", "summary"]
    rows = platform.lake.read(
        MEMORIES, columns=columns, where=rows_of(placed(owners, platform.settings.buckets))
    ).to_pylist()
    texts = {row["memory_id"]: (row["summary"], row["text"] or "") for row in rows}
    removed = lost = 0
    copies: dict[str, bytes] = {}
    for key, owner in sorted(platform.authority.people(owners).items()):
        keys = wanted.get(key, set())
        extra = platform.cold.keys(cold_key(owner, "").removesuffix(".json.gz")) - keys
        platform.cold.delete(extra)
        removed += len(extra)
        for memory in platform.authority.visible(owner):
            name = cold_key(owner, memory.entry_id)
            if name not in keys:
                continue
            summary, text = texts.get(memory.memory_id, (None, ""))
            if summary == memory.summary:
                copies[name] = archived_copy(text)
            elif platform.cold.get(name) is None:
                lost += 1
    platform.cold.archive(copies)
    return Rebuilt("cold", len(copies), removed, lost)


# ---- the authority


def _authority(platform: Platform) -> Rebuilt:
    """Pointers to lost versions are taken back, everybody is published from the lake, unseen versions go.

    When a memory was admitted, and the epoch, are the authority's alone: what of it is lost begins anew."""
    authority = platform.authority
    with authority.publishing(*range(platform.settings.buckets)):
        for bucket in range(platform.settings.buckets):
            platform.publisher.recover(bucket)
        stored = {entry for entries in authority.stored_versions().values() for entry in entries}
        named = {entry for entries in authority.pointed().values() for entry in entries}
        authority.unpoint(named - stored)
        authority.drop_unseen(stored - named)
    manifest, night = platform.ledger.manifest(), platform.ledger.last_night()
    if manifest is None:
        return Rebuilt("relational", 0, len(stored - named), 0)
    as_of = max(manifest.landed_through, night or datetime.min.replace(tzinfo=UTC))
    shown = 0
    for owners in _parts(sorted(_known_owners(platform))):
        shown += publish_owners(platform, owners, as_of).shown
    return Rebuilt("relational", shown, len(stored - named), 0)


# ---- content


def content(platform: Platform, store: str) -> str:
    """Hash of all that a store holds, whatever order it lies in; of the hot store nothing, it is a cache.

    Of the authority: what is visible, not when it was admitted nor how often it changed; of packs all but the epoch."""
    digest = hashlib.blake2b(digest_size=16)
    for item in _CONTENT[store](platform) if store in _CONTENT else ():
        digest.update(canonical_json(item).encode())
    return digest.hexdigest()


def _vector_content(platform: Platform) -> Iterator[Any]:
    for part in _parts(sorted(platform.vectors.entries())):
        vectors = platform.vectors.fetch([entry for entry, _ in part])
        yield from ([entry, owner, vectors[entry].tobytes().hex()] for entry, owner in part)


def _graph_content(platform: Platform) -> Iterator[Any]:
    held: dict[str, list[str]] = defaultdict(list)
    for key, version in sorted(platform.graph.all_versions()):
        held[key].append(version)
    known = platform.authority.people(held)
    for key, versions in held.items():
        yield from ([key, v, _stored_graph(platform, known[key], v) if key in known else []] for v in versions)


def _cold_content(platform: Platform) -> Iterator[Any]:
    for key in sorted(platform.cold.keys()):
        if key.endswith(".json.gz"):
            yield [key, json.loads(gzip.decompress(platform.cold.get(key) or b""))]


def _pack_content(platform: Platform) -> Iterator[Any]:
    for owner in platform.authority.owners():
        raw = platform.packs.newest([owner.key]).get(owner.key)
        held = b"" if raw is None else pack.dump(replace(pack.load(owner, raw), epoch=0))
        yield [owner.key, hashlib.blake2b(held, digest_size=16).hexdigest()]


def _relational_content(platform: Platform) -> Iterator[Any]:
    people, memories, turns = schema.people, schema.memories, schema.slice_turns
    pointers = [memories.c[name] for name in ("owner", *Pointer._fields)]
    for query in (
        sa.select(people.c.owner, people.c.tenant, people.c.subject, people.c.graph_version).order_by(people.c.owner),
        sa.select(*pointers).where(memories.c.version.is_not(None)).order_by(memories.c.memory_id),
        sa.select(schema.memory_versions).order_by(*schema.memory_versions.primary_key),
        sa.select(turns).where(turns.c.current).order_by(*turns.primary_key),
    ):
        with translated(), platform.engine.begin() as connection:
            for row in connection.execute(query):
                yield [iso(value) if isinstance(value, datetime) else value for value in row]


_CONTENT = {
    "vector": _vector_content,
    "graph": _graph_content,
    "cold": _cold_content,
    "relational": _relational_content,
    "packs": _pack_content,
}


# ---- owners


def _known_owners(platform: Platform) -> set[str]:
    """Keys of everybody who is published or has derived memories."""
    derived = platform.lake.read(MEMORIES, columns=["owner"])["owner"].unique().to_pylist()
    return {owner.key for owner in platform.authority.owners()}.union(derived)


def by_bucket(owners: Collection[str], buckets: int) -> dict[int, list[str]]:
    """Owner keys by their bucket."""
    result: dict[int, list[str]] = defaultdict(list)
    for key in sorted(owners):
        result[bucket_of(key, buckets)].append(key)
    return dict(sorted(result.items()))


def _parts(items: Sequence[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while part := list(islice(rest, AT_ONCE)):
        yield part
