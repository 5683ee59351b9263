"""The ripple: activation that spreads from anchors over one person's slice graph.

Belongs here: the formula, in memory. Does not belong here: the same in a graph store (``stores.ripple``), edges and
degrees (``adjacency``), choosing the anchors.

Activation of memory t from anchor a:

    A(a, t) = match(a) · base_weight(t) · freshness(t)
              · max over paths [ Π edge weights / Π √degree(node between) · exp(−hops · rate(t)) ]

over undirected simple paths of at most 3 hops; over anchors 1 − Π(1 − A). How it is read here:

- base_weight, freshness and the exponential enter once per path. The exponential depends on the
  path's hops, so it stands inside the maximum.
- memory–entity–memory is one hop: the product of both mention weights, with the entity as a node
  between (1 / √degree of the entity). A memory in the middle of a path is a node between as well.
- A path of no hops counts: an anchor activates itself with match · base_weight · freshness.
- Parallel edges of two nodes are one edge with the largest weight.
- A degree is the number of distinct neighbours among the nodes that may take part: in the owner's whole graph less
  suppressed or otherwise unusable memories, and less entities that only one usable memory mentions (they lead nowhere).

All factors are in (0, 1], hence no walk that visits a node twice beats the path without the loop,
and three rounds of maximum-product relaxation give the exact maximum in O(3 · edges).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from memory_pipelines.model import HIGH_ABOVE, LOW_BELOW, ImpactLabel, micros
from memory_pipelines.recall.adjacency import Floats, Ints, Web
from memory_pipelines.recall.instants import DAY
from memory_pipelines.stores.ripple import (
    DAILY,
    LEAST_FRESH,
    MAX_ANCHORS,
    MAX_HOPS,
    MOST_WINDOWS,
    RATES,
    UNKNOWN_IMPACT,
    WINDOW_BONUS,
)


@dataclass(frozen=True, slots=True)
class Field:
    """All rows of a snapshot, each with what the formula asks of it, and the graph of those that may take part.

    ``impact`` in [0, 1], NaN where unknown; ``since``: last access, else when it occurred, in microseconds;
    ``windows``: disjoint 7-day windows in which it was presented five times or more."""

    ids: Sequence[str]
    position: Mapping[str, int]
    impact: Floats
    since: Ints
    windows: Ints
    web: Web


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop; ``via`` is the entity between (or None), ``carried`` = match · product so far, which
    includes the degrees of the nodes between that have been passed."""

    source: str
    target: str
    via: str | None
    carried: float


@dataclass(frozen=True, slots=True)
class Path:
    """The best path from one anchor; ``activation`` = carried of the last hop (match where there is
    none) · base_weight · freshness · decay."""

    anchor: str
    match: float
    hops: tuple[Hop, ...]
    base_weight: float
    freshness: float
    decay: float
    activation: float


def base_weight(impact: Floats, windows: Ints) -> Floats:
    """min(1, impact + .1 · k); impact .5 if unknown, k at most 2."""
    return np.minimum(1.0, _known(impact) + WINDOW_BONUS * np.minimum(MOST_WINDOWS, windows))


def freshness(since: Ints, as_of: int) -> Floats:
    """max(.5, .98^days), of times in microseconds; one after ``as_of`` counts as just now."""
    return np.maximum(LEAST_FRESH, DAILY ** np.maximum(0.0, (as_of - since) / DAY))


def rate(impact: Floats) -> Floats:
    """Decay per hop by impact label; an unknown impact is medium."""
    known = _known(impact)
    ends = [RATES[ImpactLabel.LOW], RATES[ImpactLabel.HIGH]]
    return np.select([known < LOW_BELOW, known > HIGH_ABOVE], ends, RATES[ImpactLabel.MEDIUM])


def _known(impact: Floats) -> Floats:
    return np.where(np.isnan(impact), UNKNOWN_IMPACT, impact)


class Ripple:
    """Activations of one recall: ``activation`` by memory id, in the order of rows, only what is above 0."""

    def __init__(self, anchors: Mapping[str, float], field: Field, as_of: datetime) -> None:
        """``anchors``: match in [0, 1] by memory id; one that may not take part takes none. At most 5 anchors."""
        usable = field.web.usable
        able = ((a, m) for a, m in anchors.items() if m > 0 and a in field.position and usable[field.position[a]])
        self._anchors = sorted(able, key=lambda am: (-am[1], am[0]))[:MAX_ANCHORS]
        self._field = field
        self._rounds = self._spread()
        self._reached = np.flatnonzero(np.any([reach.any(axis=0) for reach, _ in self._rounds], axis=0))
        best = np.stack([reach[:, self._reached] for reach, _ in self._rounds])
        impact, since = field.impact[self._reached], field.since[self._reached]
        self._base = base_weight(impact, field.windows[self._reached])
        self._fresh = freshness(since, micros(as_of))
        self._decay = np.exp(-np.arange(MAX_HOPS + 1)[:, None] * rate(impact))
        decayed = best * self._decay[:, None, :]
        self._hops = decayed.argmax(axis=0)
        strength = decayed.max(axis=0) * (self._base * self._fresh)
        matched = strength * np.array([match for _, match in self._anchors]).reshape(-1, 1)
        combined = 1 - np.prod(1 - matched, axis=0)
        self.rows, self.values = self._reached[combined > 0], combined[combined > 0]
        """Rows with their activations."""

    @property
    def activation(self) -> dict[str, float]:
        return {
            self._field.ids[row]: value for row, value in zip(self.rows.tolist(), self.values.tolist(), strict=True)
        }

    @property
    def anchors(self) -> tuple[tuple[str, float], ...]:
        """(memory id, match), best first."""
        return tuple(self._anchors)

    def _spread(self) -> list[tuple[Floats, Floats]]:
        """Per number of hops: best product that reaches each row (anchors × rows), and the
        best product at each entity on the way to the next hop (anchors × entities)."""
        web, size = self._field.web, len(self._field.ids)
        best = np.zeros((len(self._anchors), size))
        for k, (anchor, _) in enumerate(self._anchors):
            best[k, self._field.position[anchor]] = 1.0
        rounds = []
        for hop in range(MAX_HOPS):
            leaving = best if hop == 0 else best * web.damping
            at_entity = web.up.relax(leaving, len(web.entities)) * web.entity_damping
            rounds.append((best, at_entity))
            best = np.maximum(web.direct.relax(leaving, size), web.down.relax(at_entity, size))
        rounds.append((best, np.zeros((len(self._anchors), len(web.entities)))))
        return rounds

    def paths(self, memory: str, *, every: bool = True) -> tuple[Path, ...]:
        """The best path from each anchor that reaches ``memory``, strongest first; of one that is reached from another
        memory, without ``every`` only the strongest such path."""
        row = self._field.position.get(memory, -1)
        at = int(np.searchsorted(self._reached, row))
        if at == len(self._reached) or self._reached[at] != row:
            return ()
        base, fresh = float(self._base[at]), float(self._fresh[at])
        found = []
        for k, (anchor, match) in enumerate(self._anchors):
            count = int(self._hops[k, at])
            product = float(self._rounds[count][0][k, row])
            if product > 0:
                decay = float(self._decay[count, at])
                found.append((-(match * product * decay * base * fresh), anchor, k, count, match, decay))
        found.sort()
        chosen = found if every else [one for one in found if one[3]][:1] or found
        return tuple(
            Path(anchor, match, self._walk_back(row, k, count, match), base, fresh, decay, -strength)
            for strength, anchor, k, count, match, decay in chosen
        )

    def _walk_back(self, at: int, k: int, count: int, match: float) -> tuple[Hop, ...]:
        """The hops that gave the best product, found by redoing the same multiplications; of equal
        ones the direct, then the first in the order of entities and rows."""
        web, ids, hops = self._field.web, self._field.ids, []
        for hop in range(count, 0, -1):
            value = self._rounds[hop][0][k, at]
            before, at_entity = self._rounds[hop - 1]
            leaving, damping = before[k], None if hop == 1 else web.damping
            source, via = web.direct.source_of(at, value, leaving, damping), None
            if source is None:
                entity = web.down.source_of(at, value, at_entity[k])
                assert entity is not None
                via = web.entities[entity]
                source = web.up.source_of(
                    entity, at_entity[k, entity], leaving, damping, float(web.entity_damping[entity])
                )
                assert source is not None
            hops.append(Hop(ids[source], ids[at], via, match * float(value)))
            at = source
        return tuple(reversed(hops))
