"""The ripple: activation that spreads from anchors over one person's slice graph.

Belongs here: the formula, in memory, from edges. Does not belong here: reading a graph store, or
choosing the anchors.

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
- A degree is the number of distinct neighbours among the nodes that may take part. The
  neighbourhood of 3 hops holds every edge of every node that can lie between, so this is the
  degree in the owner's whole graph less suppressed or otherwise unusable memories, and less
  entities that only one usable memory mentions (they lead nowhere).

All factors are in (0, 1], hence no walk that visits a node twice beats the path without the loop,
and three rounds of maximum-product relaxation give the exact maximum in O(3 · edges).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.model import ImpactLabel, impact_label
from memory_pipelines.stores.base import GraphEdge

MAX_HOPS = 3
MAX_ANCHORS = 5
UNKNOWN_IMPACT = 0.5
RATES = {ImpactLabel.HIGH: 0.3, ImpactLabel.MEDIUM: 0.5, ImpactLabel.LOW: 0.7}
ENTITY = "entity:"

_DAY = timedelta(days=1)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Access:
    """How a memory was used: ``windows`` is the number (0 to 2) of disjoint 7-day windows in which
    it was presented five times or more, ``last`` the last access (or the end of such a window)."""

    windows: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A memory that may take part; ``impact`` in [0, 1], NaN where unknown."""

    impact: float
    occurred_at: datetime
    access: Access = Access()


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


def base_weight(impact: float, windows: int = 0) -> float:
    """min(1, impact + .1 · k); impact .5 if unknown, k at most 2."""
    return min(1.0, (UNKNOWN_IMPACT if math.isnan(impact) else impact) + 0.1 * min(2, windows))


def freshness(since: datetime, as_of: datetime) -> float:
    """max(.5, .98^days); a time after ``as_of`` counts as just now."""
    return float(max(0.5, 0.98 ** max(0.0, (as_of - since) / _DAY)))


def rate(impact: float) -> float:
    """Decay per hop by impact label; an unknown impact is medium."""
    return RATES[impact_label(UNKNOWN_IMPACT if math.isnan(impact) else impact)]


class Ripple:
    """Activations of one recall: ``activation`` by memory id, in id order, only what is above 0."""

    def __init__(
        self, anchors: Mapping[str, float], edges: Sequence[GraphEdge], nodes: Mapping[str, Node], as_of: datetime
    ) -> None:
        """``anchors``: match in [0, 1] by memory id; ``nodes``: every memory that may take part.

        An anchor or an edge's end that is not in ``nodes`` takes no part. At most 5 anchors."""
        ranked = sorted(((a, m) for a, m in anchors.items() if a in nodes and m > 0), key=lambda am: (-am[1], am[0]))
        self._anchors = ranked[:MAX_ANCHORS]
        self._nodes = nodes
        self._as_of = as_of
        self._graph = _Graph.of(edges, nodes, [a for a, _ in self._anchors])
        self._rounds = self._spread()
        reach = np.stack([best for best, _ in self._rounds])
        rates = np.array([rate(nodes[m].impact) for m in self._graph.memories])
        self._decay = np.exp(-np.arange(MAX_HOPS + 1)[:, None] * rates)[:, :, None]
        decayed = reach * self._decay
        self._hops = decayed.argmax(axis=0)
        strength = decayed.max(axis=0) * np.array([self._node_factor(m) for m in self._graph.memories]).reshape(-1, 1)
        matched = strength * np.array([match for _, match in self._anchors])
        combined = 1 - np.prod(1 - matched, axis=1)
        self.activation = {m: float(v) for m, v in zip(self._graph.memories, combined, strict=True) if v > 0}

    @property
    def anchors(self) -> tuple[tuple[str, float], ...]:
        """(memory id, match), best first."""
        return tuple(self._anchors)

    def _node_factor(self, memory: str) -> float:
        node = self._nodes[memory]
        return base_weight(node.impact, node.access.windows) * freshness(
            node.access.last or node.occurred_at, self._as_of
        )

    def _spread(self) -> list[tuple[Floats, Floats]]:
        """Per number of hops: best product that reaches each memory (memories × anchors), and the
        best product at each entity on the way to the next hop (entities × anchors)."""
        graph = self._graph
        best = np.zeros((len(graph.memories), len(self._anchors)))
        for k, (anchor, _) in enumerate(self._anchors):
            best[graph.position[anchor], k] = 1.0
        rounds = []
        for hop in range(MAX_HOPS):
            leaving = best if hop == 0 else best * graph.damping[:, None]
            at_entity = graph.up.relax(leaving, len(graph.entities)) * graph.entity_damping[:, None]
            rounds.append((best, at_entity))
            best = np.maximum(
                graph.direct.relax(leaving, len(best)),
                graph.down.relax(at_entity, len(best)),
            )
        rounds.append((best, np.zeros((len(graph.entities), len(self._anchors)))))
        return rounds

    def paths(self, memory: str) -> tuple[Path, ...]:
        """The best path from each anchor that reaches ``memory``, strongest first."""
        at = self._graph.position.get(memory)
        if at is None:
            return ()
        node = self._nodes[memory]
        base = base_weight(node.impact, node.access.windows)
        fresh = freshness(node.access.last or node.occurred_at, self._as_of)
        found = []
        for k, (anchor, match) in enumerate(self._anchors):
            count = int(self._hops[at, k])
            product = float(self._rounds[count][0][at, k])
            if product <= 0:
                continue
            decay = float(self._decay[count, at, 0])
            hops = self._walk_back(at, k, count, match)
            found.append(Path(anchor, match, hops, base, fresh, decay, match * product * decay * base * fresh))
        return tuple(sorted(found, key=lambda p: (-p.activation, p.anchor)))

    def _walk_back(self, at: int, k: int, count: int, match: float) -> tuple[Hop, ...]:
        """The hops that gave the best product, found by redoing the same multiplications; of equal
        ones the direct, then the smallest id."""
        graph, hops = self._graph, []
        for hop in range(count, 0, -1):
            value = self._rounds[hop][0][at, k]
            before, at_entity = self._rounds[hop - 1]
            leaving = before[:, k] if hop == 1 else before[:, k] * graph.damping
            source, via = graph.direct.source_of(at, value, leaving), None
            if source is None:
                entity = graph.down.source_of(at, value, at_entity[:, k])
                assert entity is not None
                via = graph.entities[entity]
                source = graph.up.source_of(entity, at_entity[entity, k], leaving, float(graph.entity_damping[entity]))
                assert source is not None
            hops.append(Hop(graph.memories[source], graph.memories[at], via, match * float(value)))
            at = source
        return tuple(reversed(hops))


@dataclass(frozen=True)
class _Links:
    """Directed weighted links, sorted by (target, source)."""

    source: Ints
    target: Ints
    weight: Floats

    @classmethod
    def of(cls, source: Sequence[int], target: Sequence[int], weight: Sequence[float]) -> "_Links":
        """Links given in any order, each pair once."""
        sources, targets = np.array(source, dtype=np.int64), np.array(target, dtype=np.int64)
        order = np.lexsort((sources, targets))
        return cls(sources[order], targets[order], np.array(weight, dtype=np.float64)[order])

    def relax(self, values: Floats, size: int) -> Floats:
        """Per target the largest value · weight over its sources; 0 without one."""
        out = np.zeros((size, values.shape[1]))
        if len(self.target):
            targets, starts = np.unique(self.target, return_index=True)
            out[targets] = np.maximum.reduceat(values[self.source] * self.weight[:, None], starts, axis=0)
        return out

    def source_of(self, target: int, value: float, values: Floats, factor: float = 1.0) -> int | None:
        """The first source with values · weight · factor = ``value``."""
        first, end = np.searchsorted(self.target, [target, target + 1])
        products = values[self.source[first:end]] * self.weight[first:end] * factor
        equal = np.flatnonzero(products == value)
        return int(self.source[first + equal[0]]) if len(equal) else None


@dataclass(frozen=True)
class _Graph:
    """What may take part, by position; memories and entities in id order."""

    memories: list[str]
    entities: list[str]
    position: dict[str, int]
    direct: _Links
    up: _Links
    down: _Links
    damping: Floats
    entity_damping: Floats

    @classmethod
    def of(cls, edges: Sequence[GraphEdge], nodes: Mapping[str, Node], anchors: Sequence[str]) -> "_Graph":
        direct: dict[tuple[str, str], float] = {}
        mentions: dict[str, dict[str, float]] = {}
        for edge in edges:
            a, b, weight = edge.source, edge.target, edge.weight
            if a in nodes and b in nodes:
                if a != b:
                    pair = (a, b) if a < b else (b, a)
                    direct[pair] = max(weight, direct.get(pair, 0.0))
                continue
            entity, memory = (a, b) if b in nodes else (b, a)
            if memory in nodes and entity.startswith(ENTITY):
                holders = mentions.setdefault(entity, {})
                holders[memory] = max(weight, holders.get(memory, 0.0))
        mentions = {entity: holders for entity, holders in mentions.items() if len(holders) > 1}
        memories = sorted({*anchors, *chain.from_iterable(direct), *chain.from_iterable(mentions.values())})
        position = {memory: i for i, memory in enumerate(memories)}
        entities = sorted(mentions)
        one = [position[a] for a, _ in direct]
        other = [position[b] for _, b in direct]
        holding = [position[memory] for entity in entities for memory in mentions[entity]]
        held = [e for e, entity in enumerate(entities) for _ in mentions[entity]]
        strength = [weight for entity in entities for weight in mentions[entity].values()]
        degree = np.bincount(np.array(one + other + holding, dtype=np.int64), minlength=len(memories))
        return cls(
            memories,
            entities,
            position,
            _Links.of(one + other, other + one, list(direct.values()) * 2),
            _Links.of(holding, held, strength),
            _Links.of(held, holding, strength),
            1 / np.sqrt(np.maximum(degree, 1)),
            1 / np.sqrt(np.array([len(mentions[e]) for e in entities], dtype=np.float64)),
        )
