"""Lake tables that know whose each row is.

Belongs here: tables with a column ``owner``. Does not belong here: tables of landed rows (``landed``), or
what others' rows quote of a person (``others``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipelines.erasure.places import Stores, Target, tally
from memory_pipelines.stores.base import Replace
from memory_pipelines.tables import TableSpec


@dataclass(frozen=True)
class OwnedRows:
    """One table. ``time``: the column that tells when the row's matter happened; None: none does."""

    spec: TableSpec
    time: str | None = None
    found_by: str = "owner"

    @property
    def name(self) -> str:
        return f"lake.{self.spec.name}"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        by_key = {target.key: target for target in targets}
        columns = ["owner"] if self.time is None else ["owner", self.time]
        rows = stores.lake.read(self.spec, columns=columns, where=[("owner", "in", sorted(by_key))])
        owners = rows["owner"].to_pylist()
        times = [None] * len(owners) if self.time is None else rows[self.time].to_pylist()
        return tally(key for key, at in zip(owners, times, strict=True) if by_key[key].counts(at))

    def delete(self, stores: Stores, target: Target) -> None:
        stores.lake.write(self.spec, self.spec.schema.empty_table(), [Replace("owner", (target.key,))])
