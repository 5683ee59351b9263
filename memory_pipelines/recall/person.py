"""A person as a view over subjects: who is read for whom, and the rows of several subjects as one snapshot.

Belongs here: following links, noting that a link has shown, the cache of joint snapshots. Does not belong
here: which links there are (``stores.links``), reading one subject's rows (``source``).
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.recall.snapshot import MAX_SNAPSHOTS, Snapshot
from memory_pipelines.stores.authority import Links

MAX_NOTED = 10_000
"""Users whose noted links one process remembers; a forgotten one is noted again, which changes nothing."""


def of_one_tenant(owner: Owner, linked: Iterable[Owner]) -> tuple[Owner, ...]:
    """The owner first, then the others once each; nobody of another tenant, whatever a store says."""
    return owner, *dict.fromkeys(o for o in linked if o != owner and o.tenant == owner.tenant)


class Subjects:
    """Who answers for whom; without ``links`` everybody for themselves."""

    def __init__(self, links: Links | None) -> None:
        self._links = links
        self._lock = threading.Lock()
        self._noted: OrderedDict[Owner, frozenset[Owner]] = OrderedDict()

    def of(self, owner: Owner, missing: set[str]) -> tuple[Owner, ...]:
        """The owner first, then whoever is linked now.

        Links that cannot be read join nobody: one may have been undone."""
        if self._links is None:
            return (owner,)
        try:
            linked = self._links.linked(owner)
        except StoreUnavailableError:
            missing.add("relational")
            return (owner,)
        return of_one_tenant(owner, linked)

    def shown(self, owner: Owner, others: Sequence[Owner], at: datetime) -> None:
        """Note links whose memories could be used, once per process and link; a store that is down is left alone. What
        is linked no more is noted anew when it is linked again."""
        if self._links is None:
            return
        with self._lock:
            noted = self._noted.pop(owner, frozenset()) & frozenset(others)
            if noted:
                self._noted[owner] = noted
        for other in others:
            if other in noted:
                continue
            try:
                self._links.seen(other, owner, at)
            except StoreUnavailableError:
                return
            with self._lock:
                self._noted[owner] = self._noted.pop(owner, frozenset()) | {other}
                while len(self._noted) > MAX_NOTED:
                    self._noted.popitem(last=False)


class JointSnapshots:
    """Least recently used snapshots of several owners, one per first owner.

    One is good for exactly the snapshots it was made from. Those are one per owner and epoch while they are
    held; rows read between two commits belong to no epoch, so an epoch's number would not do as the key."""

    def __init__(self, size: int = MAX_SNAPSHOTS) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._held: OrderedDict[Owner, tuple[tuple[Snapshot, ...], Snapshot]] = OrderedDict()

    def join(self, parts: Sequence[Snapshot]) -> Snapshot:
        """The rows of all parts as one; a part alone is itself. What was held of the first owner is dropped."""
        first, filled = parts[0], tuple(part for part in parts if len(part))
        if len(filled) < 2:
            with self._lock:
                self._held.pop(first.owner, None)
            return filled[0] if filled else first
        with self._lock:
            held = self._held.get(first.owner)
            if held is not None and _same(held[0], filled):
                self._held.move_to_end(first.owner)
                return held[1]
        joint = Snapshot.joined(first.owner, filled)
        with self._lock:
            self._held.pop(first.owner, None)
            self._held[first.owner] = (filled, joint)
            while len(self._held) > self._size:
                self._held.popitem(last=False)
        return joint

    def __len__(self) -> int:
        return len(self._held)


def _same(held: Sequence[Snapshot], parts: Sequence[Snapshot]) -> bool:
    return len(held) == len(parts) and all(old is new for old, new in zip(held, parts, strict=True))
