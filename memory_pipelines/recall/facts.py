"""The facts leg, and the rule that a superseded value never outranks the current one.

Belongs here: what follows from validity windows. Does not belong here: opening or closing them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from memory_pipelines.model import micros
from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.legs import Leg, ranked_rows
from memory_pipelines.recall.snapshot import Snapshot

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
    instant, found_rows = micros(as_of), np.array(sorted(found), dtype=np.int64)
    closed = found_rows[snapshot.fact[found_rows] & (snapshot.valid_to[found_rows] <= instant)].tolist()
    if not closed:
        return {}
    current: dict[int, list[int]] = {}
    for row in np.flatnonzero(usable & snapshot.current_facts(as_of)).tolist():
        current.setdefault(int(snapshot.predicate[row]), []).append(row)
    starts: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(usable & snapshot.fact).tolist():
        starts.setdefault((int(snapshot.predicate[row]), int(snapshot.valid_from[row])), row)
    out = {}
    for row in closed:
        standing = tuple(current.get(int(snapshot.predicate[row]), ()))
        out[row] = Closed(standing, _successor(row, standing, starts, snapshot))
    return out


def _successor(
    row: int, standing: tuple[int, ...], starts: Mapping[tuple[int, int], int], snapshot: Snapshot
) -> int | None:
    passed, ended, predicate = {row}, snapshot.valid_to[row], int(snapshot.predicate[row])
    at: int | None = row
    while at is not None and at not in standing:
        at = starts.get((predicate, int(snapshot.valid_to[at])))
        if at in passed:
            at = None
        elif at is not None:
            passed.add(at)
    if at is None and len(standing) == 1 and snapshot.valid_from[standing[0]] >= ended:
        at = standing[0]
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
