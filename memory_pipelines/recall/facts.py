"""The facts leg, and the rule that a superseded value never outranks the current one.

Belongs here: what follows from validity windows. Does not belong here: opening or closing them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.legs import Leg, ranked_rows
from memory_pipelines.recall.snapshot import Snapshot, is_fact, validity

NAME = "facts"
BELOW = 0.999
"""A superseded value's score at most, as a share of the current one's."""


def leg(query: Sequence[str], snapshot: Snapshot, usable: Mask, as_of: datetime) -> Leg:
    """Current facts whose predicate, value, entities or sentence share words with the query, by BM25."""
    scores, coverage = snapshot.claims.score(query, usable & snapshot.current_facts(as_of))
    return ranked_rows(NAME, scores, coverage)


@dataclass(frozen=True, slots=True)
class Closed:
    """A superseded fact: ``current`` are the current facts of its predicate by row, newest first;
    ``successor`` is the one that took its place, if one did."""

    current: tuple[int, ...]
    successor: int | None


def superseded(found: Collection[int], snapshot: Snapshot, usable: Mask, as_of: datetime) -> dict[int, Closed]:
    """The superseded facts among the rows ``found``.

    A successor starts when its predecessor ends, over as many values as there were; a lone current
    value that started later counts as one as well. Values that merely share a predicate do not
    (a liking that ended is not replaced by another liking)."""
    rows = snapshot.rows
    closed = [r for r in sorted(found) if is_fact(rows[r]) and validity(rows[r], as_of) == "superseded"]
    if not closed:
        return {}
    current: dict[str, list[int]] = {}
    for row in map(int, np.flatnonzero(usable & snapshot.current_facts(as_of))):
        current.setdefault(rows[row].predicate, []).append(row)
    starts: dict[tuple[str, datetime | None], int] = {}
    for row in map(int, np.flatnonzero(usable)):
        if is_fact(rows[row]):
            starts.setdefault((rows[row].predicate, rows[row].valid_from), row)
    out = {}
    for row in closed:
        standing = tuple(current.get(rows[row].predicate, ()))
        out[row] = Closed(standing, _successor(row, standing, starts, snapshot))
    return out


def _successor(
    row: int, standing: tuple[int, ...], starts: Mapping[tuple[str, datetime | None], int], snapshot: Snapshot
) -> int | None:
    passed, ended, predicate = {row}, snapshot.rows[row].valid_to, snapshot.rows[row].predicate
    at: int | None = row
    while at is not None and at not in standing:
        at = starts.get((predicate, snapshot.rows[at].valid_to))
        if at in passed:
            at = None
        elif at is not None:
            passed.add(at)
    if at is None and len(standing) == 1 and ended is not None:
        began = snapshot.rows[standing[0]].valid_from
        at = standing[0] if began is not None and began >= ended else None
    return at


def demote(
    scores: Mapping[int, float], relevance: Mapping[int, float], closed: Mapping[int, Closed]
) -> tuple[dict[int, float], dict[int, float]]:
    """Scores and relevances in which each superseded fact stands below the current ones of its predicate.

    A successor that was not found takes its predecessor's place: who asks with the old value's words
    wants the value that holds. Superseded facts of one predicate keep their order."""
    scores, relevance = dict(scores), dict(relevance)
    for row, fact in closed.items():
        if fact.successor is not None:
            scores[fact.successor] = max(scores[row], scores.get(fact.successor, 0.0))
            relevance[fact.successor] = max(relevance[row], relevance.get(fact.successor, 0.0))
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, fact in closed.items():
        groups.setdefault(fact.current, []).append(row)
    for current, old in groups.items():
        top = max(scores[row] for row in old)
        ceiling = BELOW * min((scores[row] for row in current if row in scores), default=top / BELOW)
        if top > ceiling:
            for row in old:
                scores[row] *= ceiling / top
    return scores, relevance
