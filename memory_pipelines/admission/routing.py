"""Which stores a memory is routed to, with every store's fit.

Belongs here: fit scores and the choice. Does not belong here: writing. The relational authority holds
every memory's row whatever is chosen here; ``relational`` in the choice means structured look-up.
"""

import math
from dataclasses import dataclass

from memory_pipelines.model import MemoryType

GRAPH, VECTOR, RELATIONAL = "graph", "vector", "relational"
SECOND, NEAR = 0.5, 0.3
LOW_STRUCTURE, STRICT_VECTOR = 0.4, 0.75


@dataclass(frozen=True, slots=True)
class Routing:
    """``stores`` best first; ``fit`` of each store in [0, 1], rounded to 4 digits."""

    stores: tuple[str, ...]
    fit: dict[str, float]


def route(kind: MemoryType, category: str, structure: float, entities: int, consequence: float, text: str) -> Routing:
    """Score graph, vector and relational store and take the best one or two (a preference: up to three).

    A second store joins if it fits at ≥ .5 and within .3 of the best. Low structure (< .4) goes to
    the vector store only at a fit ≥ .75. ``consequence`` in [0, 1]: how grave what followed was;
    ``text`` is what would be embedded."""
    episodic = kind == MemoryType.EPISODIC
    linked = min(1.0, entities / 3)
    # A text says more the longer it is, with falling returns; 64 characters of Chinese are a lot, of English a line.
    wording = min(1.0, math.log1p(len(text)) / math.log1p(160))
    graph = 0.25 + 0.35 * linked + (0.2 + 0.2 * consequence if episodic else 0.3 if category == "preference" else 0.2)
    vector = (0.45 if episodic else 0.35) + 0.4 * wording + (0.1 if category in ("fact", "preference") else 0.0)
    relational = 0.2 + 0.4 * structure + (0.0 if episodic else 0.3)
    scores = {GRAPH: graph, VECTOR: vector, RELATIONAL: relational}
    fit = {store: min(1.0, round(score, 4)) for store, score in scores.items()}
    eligible = [s for s in fit if s != VECTOR or structure >= LOW_STRUCTURE or fit[VECTOR] >= STRICT_VECTOR]
    ranked = sorted(eligible, key=lambda store: (-fit[store], store))
    most = 3 if category == "preference" else 2
    best = fit[ranked[0]]
    chosen = [s for s in ranked[:most] if s == ranked[0] or (fit[s] >= SECOND and fit[s] >= best - NEAR)]
    return Routing(tuple(chosen), fit)
