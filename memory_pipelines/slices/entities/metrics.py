"""How well entities are found in rows that no tagger learned from, and a picture of it.

Belongs here: spans of what the whole step finds, metrics by kind, the rule of promotion, drawing. Does not belong
here: finding (``find``), training (``tagger_training``).
"""

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memory_pipelines.slices.entities.find import mentions
from memory_pipelines.slices.entities.tagger import Span, Tagger
from memory_pipelines.slices.entities.tagger_training import Row, Score, score
from memory_pipelines.slices.resources import Named

DPI = 80
SAID_AT = datetime(2024, 1, 1, tzinfo=UTC)
"""Dates are resolved against it; they are no labelled kind."""


@dataclass(frozen=True)
class EntityMetrics:
    """Counts of entities whose start, end and kind are exact, of all kinds and of each; ``n`` texts."""

    n: int
    all: Score
    kinds: Mapping[str, Score]

    def as_json(self) -> dict[str, Any]:
        return {"n": self.n, **_figures(self.all), "kinds": {kind: _figures(one) for kind, one in self.kinds.items()}}


def evaluate(rows: Sequence[Row], kinds: Collection[str], model_set: Named, tagger: Tagger | None) -> EntityMetrics:
    """Metrics of step 4 with a tagger, or as the model set has it; findings of other ``kinds`` do not count."""
    gold = [row.spans for row in rows]
    found = [_spans(row.text, kinds, model_set, tagger) for row in rows]
    return EntityMetrics(len(rows), score(gold, found), {kind: score(gold, found, kind) for kind in sorted(kinds)})


def _spans(text: str, kinds: Collection[str], model_set: Named, tagger: Tagger | None) -> list[Span]:
    found = ((start, entity) for start, entity in mentions(text, SAID_AT, model_set, tagger) if entity.kind in kinds)
    return [Span(start, start + len(entity.surface), entity.kind) for start, entity in found]


def _figures(one: Score) -> dict[str, float | int]:
    return {
        "entities": one.gold,
        "precision": round(one.precision, 4),
        "recall": round(one.recall, 4),
        "f1": round(one.f1, 4),
    }


def better(champion: EntityMetrics, challenger: EntityMetrics) -> tuple[bool, str]:
    """Whether the challenger wins: F1 over all kinds is higher on the same rows; and why or why not."""
    old, new = round(champion.all.f1, 4), round(challenger.all.f1, 4)
    if new <= old:
        return False, f"F1 {new} is not above what is found now, {old}"
    return True, f"F1 {new} > {old}, n = {challenger.all.gold} entities"


def bars(champion: EntityMetrics, challenger: EntityMetrics) -> bytes:
    """PNG of F1 by kind, what is found now beside what the new tagger finds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kinds = sorted(challenger.kinds)
    figure = Figure(figsize=(4.8, 1.2 + 0.4 * len(kinds)), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, metrics, shift in (("now", champion, 0.2), ("new", challenger, -0.2)):
        places = [at + shift for at in range(len(kinds))]
        axes.barh(places, [metrics.kinds[kind].f1 for kind in kinds], height=0.4, label=name)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.set_xlim(0, 1)
    axes.set_xlabel("F1")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})  # equal figures give equal bytes
    return buffer.getvalue()
