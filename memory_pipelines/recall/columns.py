"""The rows of one subject as columns: what a recall computes with, without an object a row.

Belongs here: making columns of rows, and those of several subjects one. Does not belong here: masks and what follows
from them (``snapshot``), bytes (``pack``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.model import MemoryType
from memory_pipelines.recall import text
from memory_pipelines.recall.bm25 import Mask, Postings
from memory_pipelines.recall.context import speakers
from memory_pipelines.recall.instants import NEVER, Ints, instants
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.vault import untagged

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """One entry a row, in the order of rows. Times are microseconds since 1970, ``NEVER`` (or its negative, of a
    beginning) where there is none; ``since`` is the last access, else when it occurred; ``language`` and ``predicate``
    number the names in ``languages`` and ``predicates``; ``speakers`` are rows by who spoke."""

    memory_ids: Sequence[str]
    versions: Sequence[str]
    occurred: Ints
    since: Ints
    activations: NDArray[Any]
    expires: Ints
    valid_from: Ints
    valid_to: Ints
    impact: Floats
    trust: Floats
    episodic: Mask
    fact: Mask
    language: NDArray[Any]
    languages: Sequence[str]
    predicate: NDArray[Any]
    predicates: Sequence[str]
    words: Postings
    claims: Postings
    speakers: dict[str, Ints]

    @classmethod
    def of(cls, rows: Sequence[StoredMemory]) -> "Columns":
        """Of one subject's rows in their order."""
        languages, language = _numbered([row.language for row in rows])
        predicates, predicate = _numbered([row.predicate for row in rows])
        facts = [is_fact(row) for row in rows]
        return cls(
            tuple(row.memory_id for row in rows),
            tuple(row.version for row in rows),
            instants((row.occurred_at for row in rows), 0),
            instants((row.accessed_at or row.occurred_at for row in rows), 0),
            np.array([row.activations for row in rows], dtype=np.int64),
            instants((row.expires_at for row in rows), NEVER),
            instants((row.valid_from for row in rows), -NEVER),
            instants((row.valid_to for row in rows), NEVER),
            np.array([row.decision_impact for row in rows], dtype=np.float64),
            np.array([row.trust for row in rows], dtype=np.float64),
            np.array([row.memory_type == MemoryType.EPISODIC for row in rows], dtype=np.bool_),
            np.array(facts, dtype=np.bool_),
            language,
            languages,
            predicate,
            predicates,
            Postings.of([text.tokens(_searchable(row)) for row in rows]),
            Postings.of([text.tokens(_claim(row)) if fact else [] for row, fact in zip(rows, facts, strict=True)]),
            speakers(row.text or row.summary for row in rows),
        )

    def __len__(self) -> int:
        return len(self.occurred)


def is_fact(memory: StoredMemory) -> bool:
    """Whether the memory states a value of a predicate."""
    return memory.memory_type == MemoryType.SEMANTIC and bool(memory.predicate)


def entity_name(canonical: str) -> str:
    """``carrier/sf_express`` as words: ``sf express``."""
    return canonical.rpartition("/")[2].replace("_", " ")


def _searchable(memory: StoredMemory) -> str:
    return untagged(memory.summary if memory.text in memory.summary else f"{memory.summary}\n{memory.text}")


def _claim(memory: StoredMemory) -> str:
    words = (memory.predicate.replace("_", " "), memory.value, memory.summary, *map(entity_name, memory.entities))
    return untagged("\n".join(words))


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """The names in order, and the number of each."""
    known = sorted(set(names))
    number = {name: i for i, name in enumerate(known)}
    return tuple(known), np.array([number[name] for name in names], dtype=np.int64)
