"""What adds up: where every row is, and whether the stores agree.

Belongs here: accounts over the ledger and the stores. Does not belong here: repair.
"""

from dataclasses import asdict, dataclass
from typing import Any

from memory_pipelines.erasure.requests import erased_rows
from memory_pipelines.slices.events import CONFLICTING_EVENT
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
