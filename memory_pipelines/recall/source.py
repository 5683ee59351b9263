"""Where a recall's rows come from: packs (of this process, of the hot store, of the jobs), else the authority.

Belongs here: reading person and rows so that they are of one epoch, and what was noted so that no publish falls
between the two; the copies in the hot store, texts of cold memories. Does not belong here: what is done with the rows.

A pack is good for the epoch that the authority says now, and for no other. Rows that had to be read are left in the hot
store as a pack without vectors and graph; the jobs' own pack takes its place as soon as there is one.

Every ``missing`` argument collects the roles of stores that did not answer.
"""

import gzip
import json
import zlib
from dataclasses import dataclass, replace
from datetime import datetime

from memory_pipelines.errors import IntegrityError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.recall import pack as packed
from memory_pipelines.recall.buffer import Buffers
from memory_pipelines.recall.person import JointSnapshots, of_one_tenant
from memory_pipelines.recall.snapshot import Held, Snapshot, SnapshotCache, dump_person, load_person
from memory_pipelines.stores.authority import Authority, Head, Packs, Person, StoredMemory, VectorCollection
from memory_pipelines.stores.base import ColdStore, HotStore, cold_key

PERSON = "person"
TTL_SECONDS = 24 * 3600
ATTEMPTS = 3


def hot_name(epoch: int) -> str:
    """The name under which the hot store keeps a pack."""
    return f"pack:{epoch}"


@dataclass(frozen=True, slots=True)
class Found:
    """What one recall may draw from. ``persons``: of the subject that was asked for, then of those linked to it, whose
    rows are all in ``snapshot``; ``buffer``: what was said and is not consolidated (None: nothing); ``live``: the
    vector collection (None: not known)."""

    persons: tuple[Person, ...]
    snapshot: Snapshot
    buffer: Snapshot | None
    live: VectorCollection | None


class Source:
    """Reads persons, rows, noted turns and cold texts."""

    def __init__(
        self,
        authority: Authority,
        hot: HotStore,
        cold: ColdStore,
        packs: Packs | None = None,
        buffers: Buffers | None = None,
    ) -> None:
        self._authority = authority
        self._hot = hot
        self._cold = cold
        self._packs = packs
        self._buffers = buffers
        self._cache = SnapshotCache()
        self._joint = JointSnapshots()

    def find(self, owner: Owner, as_of: datetime, missing: set[str]) -> Found:
        """The person as the authority shows it now, the rows of those epochs, and what was noted by ``as_of``.

        Rows that the authority does not give come from their copies in the hot store; a linked subject without copies
        is left out. Where links cannot be read the subject is alone: one may have been undone. Raises the authority's
        StoreUnavailableError where there is no copy of the subject that was asked for."""
        try:
            head, buffer = self._head(owner, as_of, missing)
        except StoreUnavailableError:
            copies = self._copies(owner, missing)
            if copies is None:
                raise
            missing.add("relational")
            buffer = None if self._buffers is None else self._buffers.read((owner,), as_of, missing)
            return Found(copies[:1], copies[1], buffer, None)
        read = [self._rows(person, missing, asked=owner) for person in head.persons]
        persons, snapshots = zip(*filter(None, read), strict=True)
        return Found(persons, self._joint.join(snapshots), buffer, head.live)

    def _head(self, owner: Owner, as_of: datetime, missing: set[str]) -> tuple[Head, Snapshot | None]:
        """Where the person stands, and what was noted."""
        head = self._standing(owner, as_of)
        if self._buffers is None:
            return head, None
        copies = self._buffers.copies(head.marks, as_of, missing)
        if {one: mark for one, (mark, _) in copies.items()} != head.marks:
            # turns of another moment: what a publish took over since the head is in memories of a later one
            head = self._standing(owner, as_of)
        return head, self._buffers.joined(owner, copies)

    def _standing(self, owner: Owner, as_of: datetime) -> Head:
        """As the authority says it, but of nobody of another tenant, whatever it says."""
        head = self._authority.head(owner, as_of)
        by_owner = {person.owner: person for person in head.persons}
        owners = of_one_tenant(owner, by_owner)
        marks = {one: head.marks[one] for one in owners if one in head.marks}
        return Head(tuple(by_owner[one] for one in owners), marks, head.live)

    def _rows(self, person: Person, missing: set[str], *, asked: Owner) -> tuple[Person, Snapshot] | None:
        """A person's rows, with the person as it was when they were read; None for a linked subject without any at
        hand."""
        try:
            return self._of_epoch(person, missing)
        except StoreUnavailableError:
            copies = self._copies(person.owner, missing)
            if copies is None and person.owner == asked:
                raise
            missing.add("relational")
            if copies is None:
                return None
            copy, snapshot = copies
            return replace(copy, suppressed=copy.suppressed | person.suppressed), snapshot

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

    def _of_epoch(self, person: Person, missing: set[str]) -> tuple[Person, Snapshot]:
        """The rows of the person's epoch; of a later one, with the person as it is then, where they had to be read."""
        owner = person.owner
        snapshot = Snapshot(owner, ())
        for _ in range(ATTEMPTS):
            held = self._cache.get(owner, person.epoch)
            if held is None or (person.packed and not held.best):
                held = self._from_packs(owner, person, missing) or held
            if held is not None:
                self._copy_person(owner, person, held, missing)
                return person, held.snapshot
            snapshot = Snapshot(owner, self._authority.visible(owner))
            now = self._authority.person(owner)
            if now.epoch == person.epoch:
                self._keep(owner, now, snapshot, person.packed, missing)
                return now, snapshot
            # A commit came in between: rows of one epoch must not meet the graph of another.
            person = now
        return person, snapshot

    def _from_packs(self, owner: Owner, person: Person, missing: set[str]) -> Held | None:
        """The pack of the person's epoch: from the hot store; the one that the jobs made, where they have made one."""
        held = self._held_in_hot(owner, person.epoch, missing)
        if self._packs is None or not person.packed or (held is not None and held.best):
            return held
        raw = self._packs.get(owner, person.epoch)
        made = None if raw is None else self._held(owner, person.epoch, raw)
        if raw is not None and made is not None:
            self._put(owner, hot_name(person.epoch), raw, missing)
        elif held is not None:
            held.best = True  # the jobs' one cannot be read: it is not asked for with every recall
        return made or held

    def _keep(self, owner: Owner, person: Person, snapshot: Snapshot, best: bool, missing: set[str]) -> None:
        """Leave what was read in this process and in the hot store; ``best``: a pack of the jobs could not be read."""
        (pack, _), *_ = snapshot.parts
        raw = packed.dump(replace(pack, epoch=person.epoch)) if len(snapshot) else b""
        held = Held(person.epoch, snapshot, len(raw), best)
        self._cache.put(owner, held)
        if raw:
            self._put(owner, hot_name(person.epoch), raw, missing)
            self._copy_person(owner, person, held, missing)

    def _held_in_hot(self, owner: Owner, epoch: int, missing: set[str]) -> Held | None:
        raw = self._get(owner, hot_name(epoch), missing)
        return None if raw is None else self._held(owner, epoch, raw)

    def _held(self, owner: Owner, epoch: int, raw: bytes) -> Held | None:
        """The pack in this process; None if the bytes are damaged or of another epoch."""
        try:
            pack = packed.load(owner, raw)
        except IntegrityError:
            return None
        if pack.epoch != epoch:
            return None
        held = Held(epoch, Snapshot.of(pack), pack.size, pack.made)
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
        held = self._cache.get(owner, person.epoch) or self._held_in_hot(owner, person.epoch, missing)
        return None if held is None else (person, held.snapshot)

    def _copy_person(self, owner: Owner, person: Person, held: Held, missing: set[str]) -> None:
        """Keep the hot copy of the person's row as new as this process has seen it."""
        if held.copied != person and len(held.snapshot):
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
