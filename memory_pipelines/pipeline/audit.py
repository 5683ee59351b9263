"""What adds up: where every row is, and whether the stores agree.

Belongs here: accounts over the ledger and the stores. Does not belong here: repair.
"""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from memory_pipelines.erasure.requests import erased_rows
from memory_pipelines.model import Owner, day_of, stable_hash
from memory_pipelines.slices.events import CONFLICTING_EVENT
from memory_pipelines.stores.base import cold_key
from memory_pipelines.tables import CONFLICTING_VERSION
from memory_pipelines.wiring import Platform


def store_differences(platform: Platform) -> dict[str, int]:
    """Entries that one store has and the authority does not show, or the other way round.

    Graphs are compared one by one; vectors only where their number is wrong, since asking for all is dear."""
    shown = platform.authority.routed("vector")
    visible, held = set(platform.authority.graphs().items()), platform.graph.all_versions()
    missing = extra = 0
    if platform.vectors.count() != sum(len(entries) for entries in shown.values()):
        for owner in platform.authority.owners():
            entries = platform.vectors.entry_ids(owner)
            missing += len(shown.get(owner.key, set()) - entries)
            extra += len(entries - shown.get(owner.key, set()))
    return {
        "vectors_missing": missing,
        "vectors_extra": extra,
        "graphs_missing": len(visible - held),
        "graphs_extra": len(held - visible),
    }


MOST_FOLLOWED = 200
"""Owners whose references are followed in one check; which ones changes from day to day."""


@dataclass(frozen=True)
class Followed:
    """References of memory rows to stores that were looked up: how many by store, and how many led nowhere."""

    owners: int
    references: Counter[str]
    lost: Counter[str]


def follow_references(platform: Platform, most: int = MOST_FOLLOWED) -> Followed:
    """Look up what memory rows say of where they are in the other stores, of ``most`` owners."""
    day = day_of(platform.clock.now())
    owners = sorted(platform.authority.owners(), key=lambda owner: stable_hash(day, owner.key))[:most]
    graphs, places = platform.authority.graphs(), platform.authority.places([owner.key for owner in owners])
    references, lost = Counter[str](), Counter[str]()
    for owner in owners:
        named: dict[str, set[str]] = defaultdict(set)
        for stores in places.get(owner.key, {}).values():
            for store, name in stores.items():
                named[store].add(name)
        found = {
            "vector": platform.vectors.entry_ids(owner) if named["vector"] else set(),
            "graph": _nodes(platform, owner, graphs.get(owner.key), named["graph"]),
            "cold": platform.cold.keys(cold_key(owner, "").removesuffix(".json.gz")) if named["cold"] else set(),
        }
        for store, ids in found.items():
            references[store] += len(named[store])
            lost[store] += len(named[store] - ids)
    return Followed(len(owners), references, lost)


def _nodes(platform: Platform, owner: Owner, version: str | None, ids: set[str]) -> set[str]:
    nodes = [] if version is None or not ids else platform.graph.nodes(owner, version)
    return {node.node_id for node in nodes}


@dataclass(frozen=True)
class Accounts:
    """Rows in = in exchanges + filtered + nobody + quarantined + duplicates + behaviour + erased + uncut."""

    rows: int
    in_exchanges: int
    filtered: dict[str, int]
    nobody: int
    quarantined: dict[str, int]
    duplicates: int
    behaviour: int
    """Behaviour events, each once; what says an event again is only known once its owner is derived."""
    erased: int
    """Turns that were landed and then erased with their person."""
    uncut: int
    """Landed turns of days that no day job has cut yet."""

    @property
    def balance(self) -> int:
        """0 where every row is accounted for."""
        known = self.in_exchanges + self.nobody + self.duplicates + self.behaviour + self.erased + self.uncut
        return self.rows - known - sum(self.filtered.values()) - sum(self.quarantined.values())

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"balance": self.balance}


def accounts(platform: Platform) -> Accounts:
    """Where every row that was ever read is now."""
    landed = platform.ledger.landed()
    erased = erased_rows(platform.engine)["turns"]
    days = list(platform.ledger.day_counts().values())
    repeated, conflicting = platform.ledger.repeated_events()
    conflicts = {CONFLICTING_VERSION: sum(day["conflicts"] for day in days), CONFLICTING_EVENT: conflicting}
    quarantined = landed.quarantined | {reason: number for reason, number in conflicts.items() if number}
    return Accounts(
        landed.rows,
        sum(day["in_exchanges"] for day in days),
        landed.filtered,
        sum(day["nobody"] for day in days),
        quarantined,
        sum(day["duplicates"] for day in days) + repeated,
        landed.behaviour - repeated - conflicting,
        erased,
        landed.turns - sum(day["landed"] for day in days) - erased,
    )
