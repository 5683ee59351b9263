"""What a recall gives back.

Belongs here: frozen types, and the prompt text that an answer renders to. Does not belong here:
how an item was found.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memory_pipelines.recall import prompt
from memory_pipelines.recall.legs import Leg
from memory_pipelines.recall.ripple import Path
from memory_pipelines.recall.snapshot import Validity
from memory_pipelines.stores.authority import StoredMemory


@dataclass(frozen=True, slots=True)
class LegScore:
    """One leg's view of a memory: ``rank`` from 1; ``score`` in the leg's own unit (BM25, z-score of
    the cosine, activation, BM25 over claims, 1 within the time); ``relevance`` in [0, 1], comparable between legs."""

    leg: str
    rank: int
    score: float
    relevance: float


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why an item is there. ``relevance`` is the largest of its legs, or a share of that of a row beside it;
    ``recency`` and ``trust`` are the multipliers of its score; ``paths`` the ripple's best path from each
    anchor, and where no explanation was asked for only the strongest one from another memory; ``superseded_by`` the
    memory whose value took this one's place."""

    legs: tuple[LegScore, ...]
    relevance: float
    recency: float
    trust: float
    paths: tuple[Path, ...]
    validity: Validity
    superseded_by: str | None
    tier: str


@dataclass(frozen=True, slots=True)
class Item:
    """A recalled memory. ``score`` orders relevance within one answer only, and apart for what is not
    ``consolidated``: a turn that was just noted, as it was said."""

    memory: StoredMemory
    score: float
    reasons: Reasons
    why: str
    consolidated: bool = True


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the whole answer came about, by memory id.

    ``legs``: each leg's ranking, best first; ``anchors``: (memory id, match); ``suppressed``,
    ``expired`` and ``later``: visible rows that no leg used, because of a suppression, their expiry, or
    since they occurred after ``as_of``; ``passed_over``: candidates that were not selected, and why
    (``unrelated``, ``duplicate``, ``superseded``, ``budget`` or ``limit``); ``owners``: keys of the subjects
    whose memories could be used, the one that was asked for first; ``noted``: the legs' rankings of what was just
    noted, which is in none of the others.
    """

    legs: Mapping[str, tuple[tuple[str, LegScore], ...]]
    anchors: tuple[tuple[str, float], ...]
    suppressed: tuple[str, ...]
    expired: tuple[str, ...]
    later: tuple[str, ...]
    passed_over: tuple[tuple[str, str], ...]
    owners: tuple[str, ...]
    noted: Mapping[str, tuple[tuple[str, LegScore], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """``items`` newest first; ``missing``: roles of stores that did not answer, sorted
    (cold, graph, hot, relational, vector)."""

    query: str
    language: str
    as_of: datetime
    items: tuple[Item, ...]
    missing: tuple[str, ...]
    explanation: Explanation | None = None

    def prompt(self) -> str:
        """The text to put before a language model: rules, slices in natural language, the query."""
        return prompt.render(self.query, [item.memory for item in self.items], self.as_of, self.language)


def leg_scores(leg: Leg, rows: Collection[int] | None = None) -> dict[int, LegScore]:
    """Row → what the leg says of it; ``rows``: of these alone."""
    return {
        f.row: LegScore(leg.name, rank, f.score, f.relevance)
        for rank, f in enumerate(leg.found, start=1)
        if rows is None or f.row in rows
    }
