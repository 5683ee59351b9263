"""What is made of a person's behaviour for the other subjects that identity links join with it.

Belongs here: the training rows of those subjects, and who has to be derived anew. Does not belong here: the links
themselves (``relational``), or what others' rows quote (``others``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memory_pipelines.erasure.places import Stores, Target
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.persons import ever_linked
from memory_pipelines.stores.statements import among, parts, translated
from memory_pipelines.tables import REWARD_EVENTS


@dataclass(frozen=True)
class LinkedTrainingRows:
    """Their features and labels count what the person did; the next retraining collects them anew. Links that were
    undone count too: a row may be older than that. Of somebody who has come back nothing is looked for: they may make
    links again."""

    name: str = f"lake.{REWARD_EVENTS.name} of linked subjects"
    found_by: str = "identity links"

    def owners(self, stores: Stores, target: Target) -> list[str]:
        """Keys of all linked subjects that the ledger knows: their impacts count what the person did."""
        if target.until is not None:
            return []
        table, known = schema.owners, list[str]()
        with translated(), stores.engine.begin() as connection:
            for part in parts(sorted(ever_linked(connection, target.key))):
                these = among(connection, table.c.owner, part)
                known += connection.execute(sa.select(table.c.owner).where(these)).scalars()
        return known

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        rows = {target.key: self._rows(stores, self.owners(stores, target)) for target in targets}
        return {key: len(owners) for key, owners in rows.items() if owners}

    def delete(self, stores: Stores, target: Target) -> None:
        found = sorted(set(self._rows(stores, self.owners(stores, target))))
        for part in parts(found):
            stores.lake.write(REWARD_EVENTS, REWARD_EVENTS.schema.empty_table(), [Replace("owner", tuple(part))])

    @staticmethod
    def _rows(stores: Stores, owners: Sequence[str]) -> list[str]:
        """The owner of each training row of these."""
        if not owners:
            return []
        rows = stores.lake.read(REWARD_EVENTS, columns=["owner"], where=[("owner", "in", sorted(owners))])
        found: list[str] = rows["owner"].to_pylist()
        return found


LINKED = LinkedTrainingRows()
