"""A publishing batch as the authority records it: enough to roll it forward or back.

Belongs here: what one batch does for each owner, and its JSON. Does not belong here: doing it (``relational``,
``publish``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memory_pipelines.model import Owner


class Pointer(NamedTuple):
    """What readers see of a memory: its version (None: none any more), its tier, and how it was used."""

    memory_id: str
    version: str | None
    tier: str
    accessed_at: datetime | None = None
    activations: int = 0


@dataclass(frozen=True)
class OwnerChange:
    """What one batch does for one owner.

    ``show`` become visible, ``hide`` cease to be; ``graph_version`` is the graph that readers use then, and
    ``old_graph`` the one that they used before.
    """

    owner: Owner
    show: tuple[Pointer, ...] = ()
    hide: tuple[str, ...] = ()
    graph_version: str | None = None
    old_graph: str | None = None
    superseded: tuple[tuple[str, str], ...] = ()
    """(memory id, version) that no reader sees after the commit."""
    slices: tuple[tuple[str, str], ...] = ()
    """(slice id, own turn id) of the owner's current slices."""


@dataclass(frozen=True)
class Batch:
    """A publishing batch as recorded: enough to roll it forward or back."""

    batch_id: str
    bucket: int
    state: str
    changes: tuple[OwnerChange, ...] = field(default=())
    since: datetime | None = field(default=None, compare=False)
    """When it was begun; None: it is being begun."""


def to_json(changes: Sequence[OwnerChange]) -> list[dict[str, Any]]:
    return [
        {
            "tenant": c.owner.tenant,
            "subject": c.owner.subject,
            "show": [_told(pointer) for pointer in c.show],
            "hide": c.hide,
            "graph_version": c.graph_version,
            "old_graph": c.old_graph,
            "superseded": c.superseded,
            "slices": c.slices,
        }
        for c in changes
    ]


def from_json(plan: Sequence[Mapping[str, Any]]) -> tuple[OwnerChange, ...]:
    return tuple(
        OwnerChange(
            Owner(c["tenant"], c["subject"]),
            tuple(_pointer(*pointer) for pointer in c["show"]),
            tuple(c["hide"]),
            c["graph_version"],
            c["old_graph"],
            tuple((m, v) for m, v in c["superseded"]),
            tuple((s, t) for s, t in c["slices"]),
        )
        for c in plan
    )


def _told(pointer: Pointer) -> list[Any]:
    *before, accessed_at, activations = pointer
    return [*before, None if accessed_at is None else accessed_at.isoformat(), activations]


def _pointer(memory_id: str, version: str, tier: str, accessed_at: str | None = None, activations: int = 0) -> Pointer:
    """The last two are not in batches that were recorded before the seventh revision of the schema."""
    at = None if accessed_at is None else datetime.fromisoformat(accessed_at)
    return Pointer(memory_id, version, tier, at, activations)
