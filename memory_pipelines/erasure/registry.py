"""Every place where something of a person may lie: one list, in the order in which it is emptied.

Belongs here: which tables and stores are places, and which hold nothing of a person, and why; ``KINDS`` names
everything that any writer may touch. Does not belong here: how a place is searched. A test fails when a table is in
neither list, and when a run of the whole pipeline touches what no kind names.

The order: projections, then what others quote (it needs the landed turns), then derived tables before the
base tables that they are made from, landed rows, the authority, the ledger last.
"""

import re
from dataclasses import dataclass

from memory_pipelines.erasure.derived import OwnedRows
from memory_pipelines.erasure.labelled import LabelledTexts
from memory_pipelines.erasure.landed import Quarantine, Turns
from memory_pipelines.erasure.linked import LINKED
from memory_pipelines.erasure.online import ColdObjects, Graphs, HotValues, Vectors
from memory_pipelines.erasure.others import QUOTED_EXCHANGES, QUOTED_MEMORIES, QUOTED_SLICES, QuotedVersions
from memory_pipelines.erasure.places import Place
from memory_pipelines.erasure.relational import (
    Batches,
    DeviceLinks,
    FileNames,
    NotedTurns,
    OwnedTable,
    Plans,
    SourceNames,
)
from memory_pipelines.stores import schema
from memory_pipelines.tables import (
    ANNOTATIONS,
    BEHAVIOUR,
    DECISIONS,
    EDGES,
    EMOTIONS,
    ENTITIES,
    EXCHANGES,
    IMPACTS,
    INTENTS,
    MEMORIES,
    REFLECTIONS,
    REWARD_EVENTS,
    SLICES,
)

QUOTES = (QUOTED_EXCHANGES, QUOTED_SLICES, QUOTED_MEMORIES, QuotedVersions(), LINKED)
"""Rows of others, who are then derived anew; exchanges first, the slices' replies are made from them."""

COPIES = HotValues()
PROJECTIONS: tuple[Place, ...] = (COPIES, Vectors(), Graphs(), ColdObjects())

LAKE: tuple[Place, ...] = (
    LabelledTexts(),
    OwnedRows(REFLECTIONS),
    OwnedRows(ANNOTATIONS, "occurred_at"),
    OwnedRows(REWARD_EVENTS, "occurred_at"),
    OwnedRows(EDGES),
    OwnedRows(MEMORIES, "occurred_at"),
    OwnedRows(DECISIONS, "occurred_at"),
    OwnedRows(SLICES, "occurred_at"),
    OwnedRows(IMPACTS, "occurred_at"),
    OwnedRows(ENTITIES, "day"),
    OwnedRows(EMOTIONS, "day"),
    OwnedRows(INTENTS, "day"),
    OwnedRows(EXCHANGES, "started_at"),
    OwnedRows(BEHAVIOUR, "occurred_at"),
    Quarantine(),
    Turns(),
)

RING = (OwnedTable(schema.subject_keys), OwnedTable(schema.sensitive_values))
"""The key first: without it the values are noise, and so is every token in a copy of the lake."""

HIDDEN = (
    *RING,
    OwnedTable(schema.people),
    OwnedTable(schema.journal, "occurred_at"),
    OwnedTable(schema.packs),
    Plans(),
    Batches(),
    OwnedTable(schema.pending),
    OwnedTable(schema.owners),
)
"""What makes a person visible, or may make them visible again, and their key: gone in the first transaction."""

RELATIONAL = (
    OwnedTable(schema.memory_versions, "occurred_at"),
    OwnedTable(schema.memories),
    OwnedTable(schema.slice_turns),
    OwnedTable(schema.suppressions),
    OwnedTable(schema.accesses, "at"),
    OwnedTable(schema.markers, "at"),
    OwnedTable(schema.reflection_tasks),
    DeviceLinks(),
    *HIDDEN,
    NotedTurns(schema.turn_conflicts),
    NotedTurns(schema.turn_days),
    FileNames(),
    SourceNames(),
)

PLACES: tuple[Place, ...] = (*PROJECTIONS, *QUOTES, *LAKE, *RELATIONAL)

NOTHING = {
    "alembic_version": "a number",
    "collections": "names of vector collections and models",
    "counters": "a number",
    "master_key": "the fingerprint of the key that wraps the keys of all",
    "chunks": "counts by rule and reason; they stay, since rows in must stay equal to rows accounted for",
    "readmissions": "counts, and positions of rows in their files",
    "sources": "hashes of addresses, sizes and times",
    "watermarks": "how far a table was read: a value of its ordering column, and hashes of rows",
    "days": "counts by day",
    "manifests": "versions of tables",
    "models": "trees and metrics; the certificate names the models that learnt from the person's rows",
    "promotions": "ids of models",
    "snapshots": "versions of the population snapshot, and counts",
    "erasures": "the request itself: the name is forgotten with the last step, key and certificate stay",
    "tombstones": "the key that keeps the person from coming back",
}
"""Relational tables that hold nothing of a person, and why that is so."""

NOTHING_IN_LAKE = {"population": "how many subjects share a key, hashed, where enough do"}
"""Lake tables that hold nothing of a person, and why that is so."""

_HASH = "[0-9a-f]{32}"


@dataclass(frozen=True)
class Kind:
    """What a store holds under names of a pattern (of the whole name). ``place``: the name of the place that counts
    and empties it; None: it holds nothing of a person, for the reason that ``why`` gives."""

    store: str
    pattern: str
    place: str | None
    why: str = ""


KINDS = (
    *(Kind("lake", place.name.removeprefix("lake."), place.name) for place in LAKE),
    *(Kind("lake", table, None, why) for table, why in NOTHING_IN_LAKE.items()),
    *(Kind("relational", place.table.name, place.name) for place in RELATIONAL),
    *(Kind("relational", table, None, why) for table, why in NOTHING.items()),
    Kind("vector", "memories_[A-Za-z0-9_]+", Vectors().name),
    Kind("graph", "Memory|Entity", Graphs().name),
    Kind("hot", rf"mp:\{{{_HASH}\}}:{_HASH}:(names|v:.+)", COPIES.name),
    Kind("cold", rf"{_HASH}/{_HASH}/{_HASH}\.{_HASH}\.json\.gz", ColdObjects().name),
    Kind("cold", rf"tombstones/{_HASH}\.json", None, "the key and the instant that keep the person from coming back"),
    Kind("home", "data_docs", None, "pages of Great Expectations: expectations and counts, no value of a row"),
    Kind("home", "lake", None, "the tables above"),
    Kind("home", "servers", None, "the data of the embedded servers: the stores above"),
    Kind("home", "inbox", None, "source files as imported: whoever put them there removes them; see REMAINS"),
    Kind("home", "dagster", None, "runs and event logs: ids, counts and error texts without rows"),
    Kind("home", r"master\.key(\.next)?|certificate\.key", None, "keys of the platform"),
)
"""Every table, collection, label, key and file that the platform writes, by store."""


def kind_of(store: str, name: str) -> Kind | None:
    """The kind of what a writer touches; None: the registry does not know it, so an erasure would not reach it."""
    return next((kind for kind in KINDS if kind.store == store and re.fullmatch(kind.pattern, name)), None)


REMAINS = (
    "tombstone, request and certificate by owner key (a hash)",
    "PostgreSQL: dead rows (the wrapped key too) until VACUUM FULL, write-ahead log until it is recycled, its backups",
    "hot store: append-only file until its next rewrite",
    "vector store: deleted entries (ids and numbers, no text) until compaction",
    "graph store: deleted ids, labels and names in its files and transaction log until they are overwritten",
    "cold store: old object versions where the bucket keeps them",
    "impact and feedback of what linked devices (of a device: its user) said: in slices, memories and packs until the"
    " next bucket run, in files which that replaces until the nightly upkeep, in past reflections until made again",
    "running recall processes: the person's rows in memory until the next recall of the person, or a restart",
    "source files as imported, and backups and exports made before",
)
"""What an erasure does not reach, and until when; every certificate says so."""
