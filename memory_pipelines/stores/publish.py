"""Publishing: derived memories become visible in every store at once, or not at all.

Belongs here: the two-phase protocol over the stores, and its recovery. Does not belong here: what a
memory is. The stores share no transaction manager, so:

1. *prepare* records the batch in PostgreSQL, then writes new versions beside the old ones everywhere;
2. *commit* is one PostgreSQL transaction that moves the pointers;
3. *finish* removes what no reader sees any more, then forgets the batch.

Readers take ids from vectors and graph but drop what PostgreSQL does not show, and a graph is read by the
version that PostgreSQL names; so at no moment is half a batch seen. A batch that was left behind is rolled
back before the commit and forward after it, by whoever holds its bucket next (``recover``).
"""

import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory_pipelines.model import Owner, Tier, canonical_json, stable_hash
from memory_pipelines.stores.authority import NEVER, Use
from memory_pipelines.stores.base import (
    ColdStore,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStore,
    HotStore,
    Vector,
    VectorRow,
    VectorStore,
    cold_key,
)
from memory_pipelines.stores.batches import Batch, OwnerChange, Pointer
from memory_pipelines.stores.quantise import rounded
from memory_pipelines.stores.relational import PostgresAuthority

BATCH_MEMORIES = 2_000
"""Memories per batch, as far as one owner's are not more: an owner is published whole."""


@dataclass(frozen=True)
class Step:
    """One step of the protocol: its phase, what it does, and the call that does it (``store.method``)."""

    phase: str
    name: str
    call: str


STEPS = (
    Step("prepare", "batch recorded, versions written beside", "authority.prepare"),
    Step("prepare", "new vectors beside", "vectors.upsert"),
    Step("prepare", "new graphs beside", "graph.write"),
    Step("prepare", "texts archived and read back", "cold.archive"),
    Step("commit", "pointers moved", "authority.commit"),
    Step("finish", "superseded vectors removed", "vectors.delete"),
    Step("finish", "superseded texts removed", "cold.delete"),
    Step("finish", "superseded graphs removed", "graph.drop"),
    Step("finish", "hot copies forgotten", "hot.delete"),
    Step("finish", "superseded versions and the batch forgotten", "authority.finish"),
)
"""All that a publish does, in its order; a test fails when it does anything else."""

Embed = Callable[[Sequence[str]], Sequence[Vector]]


@dataclass(frozen=True)
class Draft:
    """One memory as it shall be visible. ``payload``: the columns of ``memory_versions`` but for the version."""

    payload: Mapping[str, Any]
    tier: Tier
    embedded_text: str | None
    """What the vector stands for, a function of ``summary`` and ``text`` of the payload; None: this memory is not in
    the vector store."""
    use: Use = NEVER


@dataclass(frozen=True)
class OwnerState:
    """Everything of one owner that shall be visible after the publish."""

    owner: Owner
    memories: Sequence[Draft] = ()
    nodes: Sequence[GraphNode] = ()
    edges: Sequence[GraphEdge] = ()
    slices: Sequence[tuple[str, str]] = ()


@dataclass
class Published:
    """What a publish did, by owners and memories."""

    owners: int = 0
    unchanged_owners: int = 0
    shown: int = 0
    hidden: int = 0
    vectors: int = 0
    graphs: int = 0
    archived: int = 0

    def add(self, other: "Published") -> None:
        """Add another publish's numbers to these."""
        for name, number in vars(other).items():
            setattr(self, name, getattr(self, name) + number)


@dataclass
class _Prepared:
    """One batch, gathered in memory before anything is written."""

    changes: list[OwnerChange] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    to_embed: list[tuple[dict[str, Any], Owner, str]] = field(default_factory=list)
    former: dict[str, str] = field(default_factory=dict)
    """Memory id → version so far, of those to embed."""
    graphs: list[Graph] = field(default_factory=list)
    archive: dict[str, bytes] = field(default_factory=dict)


class Publisher:
    """Publishes owner states bucket by bucket. One publisher per bucket at a time; others wait."""

    def __init__(
        self,
        authority: PostgresAuthority,
        vectors: VectorStore,
        graph: GraphStore,
        hot: HotStore,
        cold: ColdStore,
        embed: Embed,
    ) -> None:
        self._authority = authority
        self._vectors = vectors
        self._graph = graph
        self._hot = hot
        self._cold = cold
        self._embed = embed

    def publish(self, bucket: int, states: Sequence[OwnerState], at: datetime) -> Published:
        """Make ``states`` visible, in batches of whole owners; ``at`` becomes *admitted at* of what is new.

        Publishing the same states again writes nothing.
        """
        done = Published()
        with self._authority.publishing(bucket):
            self.recover(bucket)
            for part in _batches(states):
                prepared = self._gather(part, done)
                if prepared.changes:
                    self._run(bucket, prepared, at)
        return done

    def recover(self, bucket: int) -> list[Batch]:
        """Bring open batches of the bucket to an end; returns them as they were. The caller holds the bucket."""
        batches = self._authority.open_batches(bucket)
        for batch in batches:
            if batch.state == "committed":
                self._finish(batch)
            else:
                self._roll_back(batch)
        return batches

    def _gather(self, states: Sequence[OwnerState], done: Published) -> _Prepared:
        keys = [state.owner.key for state in states]
        pointers = self._authority.pointers(keys)
        graphs = self._authority.graphs(keys)
        slices = self._authority.current_slices(keys)
        prepared = _Prepared()
        for state in states:
            done.owners += 1
            key = state.owner.key
            now = {p.memory_id: p for p in pointers.get(key, [])}
            wanted = {row["memory_id"]: (row, draft) for row, draft in map(_versioned, state.memories)}
            pointed = {memory: _pointer(row, draft) for memory, (row, draft) in wanted.items()}
            changed = {memory: wanted[memory] for memory in wanted if now.get(memory) != pointed[memory]}
            hide = sorted(set(now) - set(wanted))
            old_graph = graphs.get(key)
            graph = graph_version(state.nodes, state.edges)
            if not changed and not hide and graph == old_graph and slices.get(key, set()) == set(state.slices):
                done.unchanged_owners += 1
                continue
            gone = [(m, now[m].version) for m in hide]
            gone += [(m, now[m].version) for m in changed if m in now and now[m].version != changed[m][0]["version"]]
            prepared.changes.append(
                OwnerChange(
                    state.owner,
                    tuple(pointed[memory] for memory in sorted(changed)),
                    tuple(hide),
                    graph,
                    old_graph,
                    tuple(sorted((m, v) for m, v in gone if v is not None)),
                    tuple(sorted(state.slices)),
                )
            )
            for memory, (row, draft) in changed.items():
                if memory in now and now[memory].version == row["version"]:
                    continue  # only its tier moves, or it was used
                prepared.rows.append(row)
                if draft.embedded_text is not None:
                    prepared.to_embed.append((row, state.owner, draft.embedded_text))
                    before = now[memory].version if memory in now else None
                    if before is not None:
                        prepared.former[memory] = before
                if draft.tier == Tier.COLD:
                    name = cold_key(state.owner, f"{row['memory_id']}.{row['version']}")
                    prepared.archive[name] = archived_copy(draft.payload["text"])
            if graph is not None and graph != old_graph:
                prepared.graphs.append(Graph(state.owner, graph, state.nodes, state.edges))
            done.shown += len(changed)
            done.hidden += len(hide)
        done.vectors += len(prepared.to_embed)
        done.graphs += len(prepared.graphs)
        done.archived += len(prepared.archive)
        return prepared

    def _run(self, bucket: int, prepared: _Prepared, at: datetime) -> None:
        changes = tuple(prepared.changes)
        batch = Batch(stable_hash("batch", bucket, at.isoformat(), repr(changes)), bucket, "preparing", changes)
        self._authority.prepare(batch, prepared.rows, at)
        self._write_vectors(prepared)
        if prepared.graphs:
            self._graph.write(prepared.graphs)
        if prepared.archive:  # read back: after the commit the texts are nowhere else online
            self._cold.archive(prepared.archive)
        self._authority.commit(batch, at)
        self._finish(batch)

    def _write_vectors(self, prepared: _Prepared) -> None:
        if not prepared.to_embed:
            return
        vectors = self._kept(prepared)
        new = {row["memory_id"]: text for row, _, text in prepared.to_embed if row["memory_id"] not in vectors}
        vectors |= zip(new, rounded(self._embed(list(new.values()))) if new else (), strict=True)
        self._vectors.upsert(
            [
                VectorRow(f"{m}.{row['version']}", owner, vectors[m], row["language"], row["occurred_at"])
                for row, owner, _ in prepared.to_embed
                for m in (row["memory_id"],)
            ]
        )

    def _kept(self, prepared: _Prepared) -> dict[str, Vector]:
        """By memory id the vectors of versions so far with the same words: a new score does not change a meaning."""
        words = self._authority.words(prepared.former.items())
        same = {
            f"{memory}.{prepared.former[memory]}": memory
            for row, _, _ in prepared.to_embed
            if (memory := row["memory_id"]) in prepared.former
            and words.get((memory, prepared.former[memory])) == (row["summary"], row["text"])
        }
        return {same[entry_id]: vector for entry_id, vector in self._vectors.fetch(same).items()} if same else {}

    def _finish(self, batch: Batch) -> None:
        gone = [(change.owner, f"{m}.{v}") for change in batch.changes for m, v in change.superseded]
        if gone:
            self._vectors.delete([entry_id for _, entry_id in gone])
            self._cold.delete(cold_key(owner, entry_id) for owner, entry_id in gone)
        for change in batch.changes:
            if change.old_graph is not None and change.old_graph != change.graph_version:
                self._graph.drop(change.owner, change.old_graph)
            self._hot.delete(change.owner)
        self._authority.finish(batch)

    def _roll_back(self, batch: Batch) -> None:
        visible: dict[str, set[tuple[str, str | None]]] = {}
        for owner, pointers in self._authority.pointers([c.owner.key for c in batch.changes]).items():
            visible[owner] = {(p.memory_id, p.version) for p in pointers}
        for change in batch.changes:
            seen = visible.get(change.owner.key, set())
            written = [(m, v) for m, v, *_ in change.show if (m, v) not in seen]
            self._vectors.delete([f"{m}.{v}" for m, v in written])
            self._cold.delete(cold_key(change.owner, f"{m}.{v}") for m, v in written)
            if change.graph_version is not None and change.graph_version != change.old_graph:
                self._graph.drop(change.owner, change.graph_version)
        self._authority.roll_back(batch)


def _versioned(draft: Draft) -> tuple[dict[str, Any], Draft]:
    """The row with its version: a hash of its whole content, so equal content is never written twice."""
    row = dict(draft.payload)
    if draft.tier == Tier.COLD:
        row["text"] = ""  # its text moves to the cold store; the summary is the entry that legs see
    content = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in draft.payload.items()}
    in_vectors = draft.embedded_text is not None
    row["version"] = stable_hash("version", canonical_json(content), draft.tier == Tier.COLD, in_vectors)
    row["places"] = _places(Owner(row["tenant"], row["subject"]), row, cold=draft.tier == Tier.COLD, vector=in_vectors)
    return row, draft


def _pointer(row: Mapping[str, Any], draft: Draft) -> Pointer:
    use = draft.use
    return Pointer(row["memory_id"], row["version"], draft.tier.value, use.accessed_at, use.activations)


def _places(owner: Owner, row: Mapping[str, Any], *, cold: bool, vector: bool) -> dict[str, str]:
    """Store → the id under which the row's version is there. All of it is a function of what the version hashes."""
    entry_id = f"{row['memory_id']}.{row['version']}"
    places = {"relational": entry_id}
    if vector:
        places["vector"] = entry_id
    if "graph" in row["stores"] and not cold:
        places["graph"] = row["memory_id"]
    if cold:
        places["cold"] = cold_key(owner, entry_id)
    return places


def graph_version(nodes: Iterable[GraphNode], edges: Iterable[GraphEdge]) -> str | None:
    """A graph's version: a hash of its whole content; None of an empty one, which is not stored."""
    found = sorted((n.node_id, n.kind, n.label, n.weight, str(n.occurred_at)) for n in nodes)
    if not found:
        return None
    joined = sorted((e.source, e.target, e.kind, e.weight) for e in edges)
    return stable_hash("graph", canonical_json([found, joined]))


def archived_copy(text: str) -> bytes:
    """A text as the cold store keeps it."""
    return gzip.compress(canonical_json({"text": text}).encode(), mtime=0)


def _batches(states: Sequence[OwnerState]) -> Sequence[Sequence[OwnerState]]:
    parts: list[list[OwnerState]] = []
    size = BATCH_MEMORIES
    for state in states:
        if size >= BATCH_MEMORIES:
            parts.append([])
            size = 0
        parts[-1].append(state)
        size += max(1, len(state.memories))
    return parts
