"""What an answer did with memories, noted in the ledger.

Belongs here: an answer's items as uses. Does not belong here: what a use counts for (``lifecycle``, ``quality``).
"""

from memory_pipelines.recall import Answer
from memory_pipelines.recall.ripple import Path
from memory_pipelines.stores.base import AccessKind
from memory_pipelines.wiring import Platform


def note_answer(platform: Platform, answer: Answer) -> None:
    """Note every item as presented at the answer's ``as_of``, and those that the ripple reached as activated."""
    for item in answer.items:
        owner, turns = item.memory.owner.key, item.memory.source_turn_ids
        platform.accesses.record(owner, turns, AccessKind.PRESENTED, answer.as_of)
        if any(_spread(path) for path in item.reasons.paths):
            platform.accesses.record(owner, turns, AccessKind.ACTIVATED, answer.as_of)


def _spread(path: Path) -> bool:
    """Whether a path leads to its end from another memory, not from itself."""
    return bool(path.hops)
