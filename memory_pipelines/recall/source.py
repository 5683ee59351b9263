"""Where a recall's rows come from: the authority, with the hot store beside it.

Belongs here: reading person and rows so that they are of one epoch, the copies in the hot store,
and texts of cold memories. Does not belong here: what is done with the rows.

Every ``missing`` argument collects the roles of stores that did not answer.
"""

import gzip
import json
import zlib
from collections.abc import Sequence

from memory_pipelines.errors import IntegrityError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.recall.person import JointSnapshots
from memory_pipelines.recall.snapshot import (
    Held,
    Snapshot,
    SnapshotCache,
    dump_person,
    dump_rows,
    load_person,
    load_rows,
)
from memory_pipelines.stores.base import Authority, ColdStore, HotStore, Person, StoredMemory, cold_key

PERSON = "person"
TTL_SECONDS = 24 * 3600
ATTEMPTS = 3


class Source:
    """Reads persons, rows and cold texts."""

    def __init__(self, authority: Authority, hot: HotStore, cold: ColdStore) -> None:
        self._authority = authority
        self._hot = hot
        self._cold = cold
        self._cache = SnapshotCache()
        self._joint = JointSnapshots()

    def read(self, owner: Owner, missing: set[str]) -> tuple[Person, Snapshot]:
        """The person as the authority shows it now, and the rows of that epoch.

        With the authority down, both from their copies in the hot store; without copies the
        authority's StoreUnavailableError is raised."""
        try:
            return self._from_authority(owner, missing)
        except StoreUnavailableError:
            copies = self._copies(owner, missing)
            if copies is None:
                raise
            missing.add("relational")
            return copies

    def read_all(self, owners: Sequence[Owner], missing: set[str]) -> tuple[tuple[Person, ...], Snapshot]:
        """The persons of linked owners and their rows as one snapshot.

        Only the first must be readable; of the others those that are not are left out."""
        person, snapshot = self.read(owners[0], missing)
        persons, parts = [person], [snapshot]
        for owner in owners[1:]:
            try:
                person, snapshot = self.read(owner, missing)
            except StoreUnavailableError:
                missing.add("relational")
                continue
            persons.append(person)
            parts.append(snapshot)
        return tuple(persons), self._joint.join(parts)

    def cold_text(self, memory: StoredMemory, missing: set[str]) -> str | None:
        """The archived text of a memory; None if the cold store does not have it, or not readably."""
        try:
            raw = self._cold.get(cold_key(memory.owner, memory.entry_id))
        except StoreUnavailableError:
            missing.add("cold")
            return None
        if raw is None:
            return None
        try:
            return str(json.loads(gzip.decompress(raw))["text"])
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
            missing.add("cold")
            return None

    def _from_authority(self, owner: Owner, missing: set[str]) -> tuple[Person, Snapshot]:
        person = self._authority.person(owner)
        snapshot = Snapshot(owner, ())
        for _ in range(ATTEMPTS):
            held = self._cache.get(owner, person.epoch) or self._held_in_hot(owner, person.epoch, missing)
            if held is not None:
                self._copy_person(owner, person, held, missing)
                return person, held.snapshot
            rows = self._authority.visible(owner)
            now = self._authority.person(owner)
            snapshot = Snapshot(owner, rows)
            if now.epoch == person.epoch:
                held = Held(now.epoch, snapshot)
                self._cache.put(owner, held)
                if snapshot.rows:
                    self._put(owner, f"rows:{now.epoch}", dump_rows(snapshot.rows), missing)
                    self._copy_person(owner, now, held, missing)
                return now, snapshot
            # A commit came in between: rows of one epoch must not meet the graph of another.
            person = now
        return person, snapshot

    def _held_in_hot(self, owner: Owner, epoch: int, missing: set[str]) -> Held | None:
        raw = self._get(owner, f"rows:{epoch}", missing)
        if raw is None:
            return None
        try:
            held = Held(epoch, Snapshot(owner, load_rows(owner, raw)))
        except IntegrityError:
            return None
        self._cache.put(owner, held)
        return held

    def _copies(self, owner: Owner, missing: set[str]) -> tuple[Person, Snapshot] | None:
        raw = self._get(owner, PERSON, missing)
        if raw is None:
            return None
        try:
            person = load_person(owner, raw)
        except IntegrityError:
            return None
        held = self._held_in_hot(owner, person.epoch, missing)
        return None if held is None else (person, held.snapshot)

    def _copy_person(self, owner: Owner, person: Person, held: Held, missing: set[str]) -> None:
        """Keep the hot copy of the person's row as new as this process has seen it."""
        if held.copied != person and held.snapshot.rows:
            held.copied = person if self._put(owner, PERSON, dump_person(person), missing) else None

    def _get(self, owner: Owner, name: str, missing: set[str]) -> bytes | None:
        try:
            return self._hot.get(owner, name)
        except StoreUnavailableError:
            missing.add("hot")
            return None

    def _put(self, owner: Owner, name: str, value: bytes, missing: set[str]) -> bool:
        try:
            self._hot.put(owner, name, value, TTL_SECONDS)
        except StoreUnavailableError:
            missing.add("hot")
            return False
        return True
