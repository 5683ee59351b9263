"""The slice graph of a snapshot as arrays, whole and among the rows that may take part.

Belongs here: edges by position, degrees under a mask, one step of relaxation. Does not belong here: activation
(``ripple``), reading a graph store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.stores.base import GraphEdge

ENTITY = "entity:"
SPARSE = 4
"""One source in so many reached: to look for its links costs less than to multiply all."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Links:
    """Directed weighted links, each pair once, sorted by (target, source)."""

    source: Ints
    target: Ints
    weight: Floats

    @classmethod
    def of(
        cls, source: Sequence[int] | Ints, target: Sequence[int] | Ints, weight: Sequence[float] | Floats
    ) -> "Links":
        """Links given in any order, each pair once."""
        sources, targets = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        order = np.lexsort((sources, targets))
        return cls(sources[order], targets[order], np.asarray(weight, dtype=np.float64)[order])

    def __len__(self) -> int:
        return len(self.source)

    def kept(self, those: Mask) -> "Links":
        """Some of the links; ``those``: one truth value a link."""
        return self if those.all() else Links(self.source[those], self.target[those], self.weight[those])

    @cached_property
    def turned(self) -> "Links":
        """The same links the other way round."""
        return Links.of(self.target, self.source, self.weight)

    def relax(self, values: Floats, size: int) -> Floats:
        """Per target the largest value · weight over its sources; 0 without one. ``values``: a row per spread, a column
        per source; the result the same with a column per target."""
        out = np.zeros((len(values), size))
        for spread, best in zip(values, out, strict=True):
            reached: Mask = spread > 0
            if SPARSE * np.count_nonzero(reached) < len(reached):
                live = np.flatnonzero(reached[self.source])
                np.maximum.at(best, self.target[live], spread[self.source[live]] * self.weight[live])
            else:
                np.maximum.at(best, self.target, spread[self.source] * self.weight)
        return out

    def source_of(
        self, target: int, value: float, values: Floats, damping: Floats | None = None, factor: float = 1.0
    ) -> int | None:
        """The first source with values · damping · weight · factor = ``value``; no damping: 1."""
        first, end = int(self.target.searchsorted(target)), int(self.target.searchsorted(target + 1))
        sources = self.source[first:end]
        products = values[sources] if damping is None else values[sources] * damping[sources]
        products = products * self.weight[first:end] * factor
        equal = (products == value).tolist()
        return int(sources[equal.index(True)]) if True in equal else None


@dataclass(frozen=True)
class Web:
    """What may take part: memories by position in the snapshot, entities by position in ``entities``.

    ``direct`` joins memories, each pair both ways; ``up`` leads from memory to entity, ``down`` back; the dampings are
    1 / √degree."""

    entities: Sequence[str]
    usable: Mask
    direct: Links
    up: Links
    down: Links
    damping: Floats
    entity_damping: Floats


class Adjacency:
    """Edges of a graph between rows of a snapshot, and between rows and entities; parallel edges are one, with the
    largest weight."""

    def __init__(self, entities: Sequence[str], direct: Links, mentions: Links) -> None:
        """``direct``: each pair both ways; ``mentions``: from memory to entity."""
        self.entities = entities
        self.direct = direct
        self.mentions = mentions
        self._last: Web | None = None

    @classmethod
    def of(cls, edges: Sequence[GraphEdge], position: Mapping[str, int]) -> "Adjacency":
        """``position``: of each memory's row. An edge with an end that is neither a row nor an entity is left out."""
        direct: dict[tuple[int, int], float] = {}
        mentions: dict[tuple[str, int], float] = {}
        for edge in edges:
            a, b = position.get(edge.source), position.get(edge.target)
            if a is not None and b is not None:
                if a != b:
                    pair = (a, b) if a < b else (b, a)
                    direct[pair] = max(edge.weight, direct.get(pair, 0.0))
                continue
            entity, row = (edge.source, b) if a is None else (edge.target, a)
            if row is not None and entity.startswith(ENTITY):
                mentions[entity, row] = max(edge.weight, mentions.get((entity, row), 0.0))
        entities = sorted({entity for entity, _ in mentions})
        number = {entity: i for i, entity in enumerate(entities)}
        one, other = [a for a, _ in direct], [b for _, b in direct]
        return cls(
            entities,
            Links.of(one + other, other + one, list(direct.values()) * 2),
            Links.of([row for _, row in mentions], [number[e] for e, _ in mentions], list(mentions.values())),
        )

    @classmethod
    def joined(cls, parts: Sequence[tuple["Adjacency", Ints]]) -> "Adjacency":
        """Graphs of several subjects as one; what both mention joins them. ``parts``: with the position that each row
        has in the whole."""
        entities = sorted({entity for part, _ in parts for entity in part.entities})
        number = {entity: i for i, entity in enumerate(entities)}
        known = [np.array([number[e] for e in part.entities], dtype=np.int64) for part, _ in parts]
        direct = [(at[p.direct.source], at[p.direct.target], p.direct.weight) for p, at in parts]
        mentions = [
            (at[p.mentions.source], names[p.mentions.target], p.mentions.weight)
            for (p, at), names in zip(parts, known, strict=True)
        ]
        return cls(entities, Links.of(*_end_to_end(direct)), Links.of(*_end_to_end(mentions)))

    def among(self, usable: Mask) -> Web:
        """The graph of usable rows, with the degrees that it has among them. Entities that one row only mentions lead
        nowhere and are left out."""
        last = self._last  # two recalls at once may each make one: both are right
        if last is None or not np.array_equal(last.usable, usable):
            last = self._last = self._among(usable)
        return last

    def _among(self, usable: Mask) -> Web:
        direct = self.direct.kept(usable[self.direct.source] & usable[self.direct.target])
        mentions = self.mentions.kept(usable[self.mentions.source])
        holders = np.bincount(mentions.target, minlength=len(self.entities))
        up = mentions.kept(holders[mentions.target] > 1)
        degree = np.bincount(direct.target, minlength=len(usable)) + np.bincount(up.source, minlength=len(usable))
        return Web(
            self.entities,
            usable,
            direct,
            up,
            up.turned,
            1 / np.sqrt(np.maximum(degree, 1)),
            1 / np.sqrt(np.maximum(holders, 1).astype(np.float64)),
        )


def _end_to_end(parts: Sequence[tuple[Ints, Ints, Floats]]) -> tuple[Ints, Ints, Floats]:
    source, target, weight = zip(*parts, strict=True)
    return np.concatenate(source), np.concatenate(target), np.concatenate(weight)
