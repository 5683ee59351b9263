"""What adds up: where every row is, and whether the stores agree.

Belongs here: accounts over the ledger and the stores. Does not belong here: repair.
"""

from dataclasses import asdict, dataclass
from typing import Any

from memory_pipelines.erasure.requests import erased_rows
from memory_pipelines.wiring import Platform


def store_differences(platform: Platform) -> dict[str, int]:
    """Entries that one store has and the authority does not show, or the other way round."""
    shown, graphs = platform.authority.routed("vector"), platform.authority.graphs()
    vectors_missing = vectors_extra = graphs_missing = graphs_extra = 0
    for owner in platform.authority.owners():
        held = platform.vectors.entry_ids(owner)
        wanted = shown.get(owner.key, set())
        vectors_missing += len(wanted - held)
        vectors_extra += len(held - wanted)
        versions, visible = platform.graph.versions(owner), graphs.get(owner.key)
        graphs_missing += visible is not None and visible not in versions
        graphs_extra += len(versions - {visible})
    return {
        "vectors_missing": vectors_missing,
        "vectors_extra": vectors_extra,
        "graphs_missing": graphs_missing,
        "graphs_extra": graphs_extra,
    }


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
    conflicts = sum(day["conflicts"] for day in days)
    quarantined = dict(landed.quarantined)
    if conflicts:
        quarantined["conflicting_version"] = conflicts
    return Accounts(
        landed.rows,
        sum(day["in_exchanges"] for day in days),
        landed.filtered,
        sum(day["nobody"] for day in days),
        quarantined,
        sum(day["duplicates"] for day in days),
        landed.behaviour,
        erased,
        landed.turns - sum(day["landed"] for day in days) - erased,
    )
