"""A small world to forget somebody in: two tenants, a dialogue of two people, something in every place.

All that is Ann's bears ``SECRET``, a turn id that begins with ``a-``, or her key; nothing else does.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from suites import publish_world
from suites.publish_world import DIMENSION, draft, state

from memory_pipelines import erasure
from memory_pipelines.erasure.registry import NOTHING_IN_LAKE
from memory_pipelines.landing.land import land_file
from memory_pipelines.model import Owner, Tier, stable_hash
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.slices.exchanges import cut_exchanges
from memory_pipelines.stores import database, schema
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, Lake, Replace, VectorStore, cold_key
from memory_pipelines.stores.exclusion import Exclusion
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryLake, MemoryVectors
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.relational import PostgresAuthority
from memory_pipelines.stores.statements import upsert
from memory_pipelines.tables import (
    ALL,
    ANNOTATIONS,
    DECISIONS,
    EDGES,
    EMOTIONS,
    ENTITIES,
    EXCHANGES,
    IMPACTS,
    INTENTS,
    LABELLED,
    MEMORIES,
    POPULATION,
    QUARANTINE,
    REFLECTIONS,
    REWARD_EVENTS,
    SLICES,
    TURNS,
    TableSpec,
)

DAY = datetime(2024, 5, 17, 8, tzinfo=UTC)
LANDED_AT = datetime(2024, 6, 1, tzinfo=UTC)
ERASED_AT = datetime(2024, 6, 2, tzinfo=UTC)
SECRET = b"a secret for signatures"
ANN, BOB, TWIN = Owner("acme", "u:ann-7f3"), Owner("acme", "u:bob-2c1"), Owner("globex", "u:ann-7f3")
PEOPLE = (ANN, BOB, TWIN)
BUCKETS = 8
PLANTED = {
    "hot": 2,
    "vectors": 4,
    "graph": 1,
    "cold": 1,
    "lake.exchanges of others": 2,
    "lake.slices of others": 2,
    "lake.memories of others": 2,
    "lake.reward_events of linked subjects": 0,
    "postgres.memory_versions of others": 2,
    **{f"lake.{spec.name}": 5 for spec in ALL if spec.name not in NOTHING_IN_LAKE},
    "lake.behaviour": 2,
    "lake.labelled": 2,
    "lake.quarantine": 6,
    "lake.turns": 12,
    "postgres.memory_versions": 5,
    "postgres.memories": 5,
    "postgres.slice_turns": 6,
    "postgres.suppressions": 1,
    "postgres.accesses": 2,
    "postgres.markers": 1,
    "postgres.reflection_tasks": 1,
    "postgres.identity_links": 1,
    "postgres.subject_keys": 1,
    "postgres.sensitive_values": 2,
    "postgres.people": 1,
    "postgres.journal": 2,
    "postgres.packs": 1,
    "postgres.plans": 1,
    "postgres.batches": 1,
    "postgres.pending": 1,
    "postgres.owners": 1,
    "postgres.turn_conflicts": 2,
    "postgres.turn_days": 9,
    "postgres.files": 1,
    "postgres.source_faults": 1,
}
"""What each place holds of Ann."""
BOOKKEEPING = {"counters", "days", "manifests", "plans", "batches", "owners", "people", "files", "source_faults"}
BOOKKEEPING |= {"erasures", "tombstones", "identity_links", "packs"}
"""What changes for others as well: touches, pinned versions, epochs; packs of those who quote the person go."""
COMMON = "just a line that everybody says"

LABELS: list[dict[str, Any]] = [
    {"kind": "intent", "text": "I have a SECRETONE peanut allergy\n第二行 SECRETTWO 😀", "intent": "share_fact"},
    {"kind": "emotion", "text": "A version SECRETOLD that WAS edited", "score": -0.2},
    {"kind": "intent", "text": COMMON, "intent": "chit_chat"},
    {"kind": "intent", "text": "good morning, my order 12 please", "intent": "order_status"},
]
"""Labelled rows: two with lines of Ann's, one that Bob says as well, one of his."""
HASHED = {stable_hash("acme", f"a-{i}") for i in range(20)}
"""As the ledger knows her turns."""

Row = dict[str, Any]


class Killed(BaseException):
    """The process died here: no handler may see it."""


def said(turn_id: str, who: Owner | None, text: str, minute: int, role: str = "user", **more: Any) -> Row:
    row = {"turn_id": turn_id, "occurred_at": (DAY + timedelta(minutes=minute)).isoformat(), "role": role, "text": text}
    return row | ({} if who is None else {"tenant": who.tenant, "user_id": who.subject[2:]}) | more


def log() -> list[Row | str]:
    """What the sources hold."""
    day, s1, s2, duo = 24 * 60, {"session_id": "s1"}, {"session_id": "s2"}, {"session_id": "duo"}
    stream, early = {"conversation_id": "long"}, 2 * 24 * 60
    order = {"kind": "order", "occurred_at": "2024-05-19T08:00:00Z", "value": 9.5}
    return [
        said("a-1", ANN, "I have a SECRETONE peanut allergy\n第二行 SECRETTWO 😀", 0, **s1),
        said("a-2", None, "Dear SECRETREPLY, noted: no nuts", 1, "agent", **s1),
        said("a-3", ANN, "your parcel SECRETNAMED is late", 2, "agent", **s1),
        said("a-4", ANN, COMMON, 3, **s1),
        said("1", ANN, "the id of this SECRETTHREE is used twice", 4, **s1),
        said("a-5", ANN, "a version SECRETOLD that was edited", 5, **s1),
        said("a-5", ANN, "a version SECRETNEW that came later", 5, edited_at="2024-05-17T09:00:00Z", **s1),
        said("b-1", BOB, "good morning, my order 12 please", 0, **s2),
        said("b-2", None, "your order 12 is on its way", 1, "agent", **s2),
        said("1", BOB, "the id of this is used twice as well", 2, **s2),
        said("b-3", BOB, COMMON, 9, **s2),
        said("a-6", ANN, "SECRETLONG I write first here", early, **stream),
        said("a-6", ANN, "SECRETTWIN the same id on another day", early + day, **stream),
        said("a-7", None, "SECRETALONE an answer to that", early + 1, "agent", **stream),
        said("b-4", BOB, "days later it is Bob who writes", early + 2 * day, **stream),
        said("b-5", None, "and Bob gets an answer", early + 2 * day + 1, "agent", **stream),
        said("b-6", BOB, "shall we meet for lunch?", day, **duo),
        said("a-8", ANN, "SECRETDUO yes, at the usual place", day + 1, **duo),
        said("g-1", None, "a table for two is reserved", day + 2, "agent", **duo),
        said("b-7", BOB, "fine, see you there", day + 3, **duo),
        said("a-9", ANN, "SECRETLAST and bring the papers", day + 4, **duo),
        said("t-1", TWIN, "same name, other company", 0, session_id="s1"),
        said("t-2", None, "an answer in the other company", 1, "agent", session_id="s1", tenant="globex"),
        {"tenant": "acme", "user_id": "ann-7f3", "reference": "SECRETORDER"} | order,
        {"tenant": "acme", "user_id": "ann-7f3", "reference": "SECRETORDER2"} | order | {"value": 3},
        {"tenant": "acme", "user_id": "bob-2c1"} | order,
        {"tenant": "globex", "user_id": "ann-7f3"} | order,
        said("a-10", ANN, "SECRETBROKEN", 7, "robot"),
        said("a-11", None, "SECRETUNNAMED", 8, "robot", session_id="s1"),
        '{"user_id": "ann-7f3", "text": "SECRETMALFORMED',
        said("b-8", BOB, "a broken row of Bob", 7, "robot"),
        said("t-3", TWIN, "a broken row of the other company", 7, "robot"),
        '{"nothing": of anybody',
    ]


def write(path: Path, rows: Iterable[Row | str]) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@dataclass
class World:
    """All stores; ``stores`` are the same stores as an erasure takes them."""

    engine: sa.Engine
    lake: Lake
    vectors: VectorStore
    graph: GraphStore
    hot: HotStore
    cold: ColdStore
    exclusion: Exclusion = field(init=False)

    def __post_init__(self) -> None:
        self.exclusion = Exclusion(self.engine)

    @property
    def stores(self) -> erasure.Stores:
        return erasure.Stores(self.engine, self.lake, [self.vectors], self.graph, self.hot, self.cold, self.exclusion)

    @property
    def published(self) -> publish_world.Stores:
        authority = PostgresAuthority(self.engine)
        return publish_world.Stores(self.engine, authority, self.vectors, self.graph, self.hot, self.cold)

    def land(self, path: Path, *, forget: bool = False, chunk_rows: int = 7, landed_at: datetime = LANDED_AT) -> Any:
        return land_file(
            path, lake=self.lake, ledger=Ledger(self.engine), clean=_clean, default_tenant="acme", buckets=BUCKETS,
            landed_at=landed_at, chunk_rows=chunk_rows,
            forget=(lambda: erasure.Forgotten(erasure.load_tombstones(self.engine))) if forget else None,
        )  # fmt: skip

    def erase(self, owner: Owner, at: datetime = ERASED_AT) -> erasure.Certificate:
        request = erasure.request(self.engine, owner, "desk", at)
        erasure.approve(self.engine, request, "officer", at)
        return erasure.execute(self.stores, request, at, SECRET, patience_seconds=5)

    def rows(self, spec: TableSpec) -> list[Row]:
        return sorted(self.lake.read(spec).to_pylist(), key=repr)

    def table(self, table: sa.Table) -> list[Row]:
        with self.engine.begin() as connection:
            return sorted((dict(row) for row in connection.execute(sa.select(table)).mappings()), key=repr)

    def everything(self) -> dict[str, list[Row]]:
        """All rows of all tables."""
        lake = {f"lake.{spec.name}": self.rows(spec) for spec in ALL}
        return lake | {f"postgres.{t.name}": self.table(t) for t in schema.metadata.sorted_tables}


def _clean(turns: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    made = clean_turns(turns)
    return made.turns, made.filtered


def is_anns(row: Row) -> bool:
    """Whether a row is Ann's or quotes her."""
    text = repr(row)
    named = row.get("tenant", "acme") == "acme" and ANN.subject in (row.get("subject"), row.get("user_subject"))
    return named or "SECRET" in text or "'a-" in text or ANN.key in text or row.get("turn") in HASHED


def in_memory() -> World:
    vectors = MemoryVectors()
    vectors.ensure(DIMENSION)
    engine = database.connect("sqlite://")
    return World(engine, MemoryLake(), vectors, MemoryGraph(), MemoryHot(), MemoryCold())


def cut(world: World) -> None:
    """Exchanges of all landed days, as the day job cuts them."""
    turns = world.lake.read(TURNS)
    days = sorted(set(turns["day"].to_pylist()))
    made = cut_exchanges(turns, days, BUCKETS)
    world.lake.write(EXCHANGES, made.exchanges, [Replace("day", tuple(days))])
    world.lake.write(QUARANTINE, made.conflicts, [Replace("file_id", tuple(f"day:{day}" for day in days))])
    ledger = Ledger(world.engine)
    touches = ledger.day_touches(days)
    ledger.days_written({day: (touches[day], made.counts[day].as_dict()) for day in days})
    versions = {spec.name: world.lake.version(spec) for spec in (EXCHANGES, INTENTS, EMOTIONS, ENTITIES)}
    ledger.commit_days(ledger.written_days(days), versions=versions, model_set="base-1", at=LANDED_AT)


def fill(world: World, folder: Path) -> World:
    """Land the log, then derive, publish and note something of everybody in every place."""
    rows = log()
    world.land(write(folder / "ann-7f3.jsonl", rows[:7]))
    world.land(write(folder / "rest.jsonl", rows[7:]))
    ledger = Ledger(world.engine)
    ledger.source_failed("named", "9:1", ("ann-7f3.zip", "cannot read ann-7f3.zip: it is damaged"))
    ledger.source_failed("other", "9:1", ("b.zip", "cannot read b.zip: it is damaged"))
    cut(world)
    _derive(world)
    _publish(world)
    _note(world)
    return world


def _table(spec: TableSpec, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(spec.schema.names) | row for row in rows], schema=spec.schema)


def _derive(world: World) -> None:
    """A row of every derived table for each exchange."""
    made: dict[str, list[Row]] = {spec.name: [] for spec in ALL}
    for x in world.lake.read(EXCHANGES).to_pylist():
        own = {name: x[name] for name in ("tenant", "subject", "owner", "bucket")}
        key = own | {"exchange_id": x["exchange_id"], "model_set": "base-1", "occurred_at": x["started_at"]}
        label = own | {"exchange_id": x["exchange_id"], "model_set": "base-1", "day": x["day"], "month": x["month"]}
        slice_id, memory_id = f"evt_{x['exchange_id']}", stable_hash("memory", x["exchange_id"])
        turns = {"own_turn_ids": x["own_turn_ids"], "source_turn_ids": x["turn_ids"]}
        dated = own | {"occurred_at": x["started_at"]}
        for spec in (INTENTS, EMOTIONS, ENTITIES):
            made[spec.name].append(label)
        made["impacts"].append(key)
        made["reward_events"].append({k: v for k, v in key.items() if k != "model_set"})
        human = {"impact": 0.5, "source": "answers.csv"}
        made["annotations"].append({k: v for k, v in key.items() if k != "model_set"} | human)
        texts = {"text": x["own_text"], "reply_text": x["other_text"], "exchange_ids": [x["exchange_id"]]}
        made["slices"].append(dated | turns | texts | {"slice_id": slice_id})
        made["decisions"].append(dated | {"memory_id": memory_id, "slice_id": slice_id})
        summary = {"summary": f"said: {x['own_text']}", "text": x["own_text"], "slice_ids": [slice_id]}
        made["memories"].append(dated | turns | summary | {"memory_id": memory_id})
        made["edges"].append(own | {"source": memory_id, "target": "entity:x", "kind": "mentions", "weight": 0.5})
        insight = {"insight_id": memory_id, "week": "2024-05-13", "own_turn_ids": x["own_turn_ids"]}
        made["reflections"].append(own | insight | {"text": f"often says: {x['own_text']}"})
    owned = (IMPACTS, REWARD_EVENTS, ANNOTATIONS, SLICES, DECISIONS, MEMORIES, EDGES, REFLECTIONS)
    for spec in (INTENTS, EMOTIONS, ENTITIES, *owned):
        owners = tuple(sorted({row["owner"] for row in made[spec.name]}))
        world.lake.write(spec, _table(spec, made[spec.name]), [Replace("owner", owners)])
    world.lake.write(LABELLED, _table(LABELLED, [{"source": "l.csv"} | row for row in LABELS]), [])
    counted = {"snapshot": "20240517-0a", "tenant": ANN.tenant, "key": "likes tea", "subjects": 12}
    world.lake.write(POPULATION, _table(POPULATION, [counted]), [])


def states(world: World, tier: Tier = Tier.HOT) -> list[Any]:
    """What is to be published: a memory per derived one, the first of each owner cold."""
    rows = sorted(world.rows(MEMORIES), key=lambda row: (row["owner"], row["occurred_at"], row["memory_id"]))
    result = []
    for owner in PEOPLE:
        own = [row for row in rows if row["owner"] == owner.key]
        drafts = [
            draft(
                owner, i, tier=tier if i else Tier.COLD, memory_id=row["memory_id"], summary=row["summary"],
                text=row["text"], source_turn_ids=row["source_turn_ids"], slice_ids=row["slice_ids"],
                occurred_at=row["occurred_at"],
            )
            for i, row in enumerate(own)
        ]  # fmt: skip
        turns = {row["slice_ids"][0]: row["own_turn_ids"] for row in own}
        result.append(state(owner, drafts, turns))
    return result


def _publish(world: World) -> None:
    world.published.publish(0, states(world), LANDED_AT)
    for owner in PEOPLE:
        person = world.published.authority.person(owner)
        world.hot.put(owner, "person", b"SECRETCOPY" if owner == ANN else b"copy", 3600)
        world.hot.put(owner, f"pack:{person.epoch}", b"SECRETCOPY" if owner == ANN else b"copy", 3600)


def _note(world: World) -> None:
    """The tables that jobs and agents fill beside."""
    turn = {ANN: "a-1", BOB: "b-1", TWIN: "t-1"}
    with world.engine.begin() as connection:
        for owner in PEOPLE:
            key = {"owner": owner.key}
            bucket = {"tenant": owner.tenant, "bucket": owner.bucket(BUCKETS)}
            noted = key | {"turn_id": turn[owner]}
            upsert(connection, schema.pending, [key | bucket | {"announcement": 7, "day": "2024-05-17"}])
            touched = {"touched": 3, "derived": 2, "due_at": None}
            upsert(connection, schema.owners, [key | bucket | touched])
            upsert(connection, schema.suppressions, [noted | {"until": LANDED_AT}])
            access = [noted | {"at": LANDED_AT, "kind": kind} for kind in ("presented", "echo")]
            upsert(connection, schema.accesses, access, update=())
            upsert(connection, schema.markers, [noted | {"claim": "episodic:", "at": LANDED_AT}])
            upsert(connection, schema.subject_keys, [key | {"wrapped": b"wrapped"}])
            for name, role in ((turn[owner], "user"), ("answer", "agent")):
                words = "SECRETNOTED good evening" if owner == ANN else "good evening"
                spoken = {"tenant": owner.tenant, "of_subject": owner.subject, "conversation_id": "now", "role": role}
                spoken |= {"turn_id": name, "text": words, "content_hash": name, "occurred_at": DAY, "noted_at": DAY}
                spoken |= {"subject": owner.subject if role == "user" else None}
                connection.execute(schema.journal.insert().values(**key, **spoken))
            values = [key | {"token": f"[{kind}:abcdefghijkm]", "cipher": b"cipher"} for kind in ("phone", "email")]
            upsert(connection, schema.sensitive_values, values)
            body = b"SECRETPACK" if owner == ANN else b"a pack"
            pack = {"tenant": owner.tenant, "epoch": 1, "form": "f", "size": len(body), "left_out": 0, "body": body}
            upsert(connection, schema.packs, [key | pack])
            secret = "SECRETTASK" if owner == ANN else "a task"
            task = {"week": "2024-05-13", "kind": "follow_up", "text": secret, "due_at": None, "done": False}
            upsert(connection, schema.reflection_tasks, [key | {"task_id": stable_hash("task", owner.key)} | task])
            device = Owner(owner.tenant, "d:f00-1")
            login = {"link_id": stable_hash("link", owner.key), "tenant": owner.tenant, "linked_at": LANDED_AT}
            login |= {"device_owner": device.key, "device_subject": device.subject}
            login |= {"user_owner": owner.key, "user_subject": owner.subject}
            upsert(connection, schema.identity_links, [login])
        plan = {"as_of": LANDED_AT, "model_set": "base-1", "versions": {"exchanges": 0}, "everything": False}
        upsert(connection, schema.plans, [plan | {"bucket": 1, "owners": {ANN.key: 3, BOB.key: 2}}])
        upsert(connection, schema.plans, [plan | {"bucket": 2, "owners": {TWIN.key: 2}}])
        change = {"show": [], "hide": [], "graph_version": None, "old_graph": None, "superseded": [], "slices": []}
        changes = [change | {"tenant": o.tenant, "subject": o.subject} for o in (ANN, BOB)]
        batch = {"batch_id": "left", "bucket": 9, "state": "preparing", "created_at": LANDED_AT, "plan": changes}
        upsert(connection, schema.batches, [batch])
        for name, first in (("m1", DAY - timedelta(days=1)), ("m2", DAY + timedelta(days=300))):
            model = {"kind": "reward", "created_at": LANDED_AT, "data_hash": "h", "rows": 1, "metrics": {}}
            model |= {"verdict": "promoted", "body": "tree", "data_from": first, "data_to": first + timedelta(days=9)}
            upsert(connection, schema.models, [{"model_id": name} | model])


def quoting(world: World) -> set[str]:
    """Exchange, slice and memory ids of Bob's side of the dialogue with Ann."""
    ids = {r["exchange_id"] for r in world.rows(EXCHANGES) if r["owner"] == BOB.key and r["session_id"] == "duo"}
    return ids | {f"evt_{i}" for i in ids} | {stable_hash("memory", i) for i in ids}


def ids_of(row: Row) -> set[str]:
    """The ids by which ``quoting`` knows a row."""
    return {str(row[name]) for name in ("exchange_id", "slice_id", "memory_id") if row.get(name) is not None}


def of_others(world: World) -> dict[str, Any]:
    """All that has nothing to do with Ann, without what she is quoted in and without bookkeeping."""
    kept = {name: rows for name, rows in world.everything().items() if name.partition(".")[2] not in BOOKKEEPING}
    quoted = quoting(world)
    rows = {name: [r for r in rows if not is_anns(r) and not (ids_of(r) & quoted)] for name, rows in kept.items()}
    online = {}
    for owner in (BOB, TWIN):
        person = world.published.authority.person(owner)
        online[owner] = (
            sorted(world.vectors.entry_ids(owner)),
            person.graph_version,
            world.graph.nodes(owner, str(person.graph_version)),
            world.graph.edges(owner, str(person.graph_version)),
            {key: world.cold.get(key) for key in world.cold.keys(cold_key(owner, "").removesuffix(".json.gz"))},
        )
    return {"rows": rows, "online": online, "hot": world.hot.get(TWIN, "person")}
