"""Step 5: decision impact of each exchange, from what the person did in the 7 days after.

Belongs here: the score and its two stages. Does not belong here: feedback itself (``events``).

The score joins three independent signs by noisy-or, weighted by how far the intent concerns decisions at all
(``data/impact.yaml``):

    impact = relevance · (1 − (1 − feedback) · (1 − w_h · habit) · (1 − w_e · |emotion|))

``habit`` in [0, 1) is the change of orders against the person's own weekly rate. While its 7 days are open an
exchange has the provisional score, to which feedback and habit add nothing: no future is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.model import WINDOW
from memory_pipelines.slices.events import History, Labelled, feedback_after, group_events, words_of
from memory_pipelines.slices.resources import read_yaml
from memory_pipelines.tables import IMPACTS

_WEEK = timedelta(days=7)
RULES = "rules"
"""Who has scored where no model has."""
Stages = tuple[float, float]
"""A decision impact by what is known, and the provisional one, which knows nothing of the 7 days after."""
PRIOR_WEEKS = 4.0
"""The person's own rate is shrunk towards ``PRIOR_RATE`` orders a week as if seen for this long."""
PRIOR_RATE = 0.5


@dataclass(frozen=True)
class Weights:
    """The rule set of ``data/impact.yaml``."""

    relevance: Mapping[str, float]
    otherwise: float
    feedback: Mapping[str, float]
    habit: float
    emotion: float

    def relevance_of(self, intent: str) -> float:
        """Of the intent for decisions, in [0, 1]."""
        return self.relevance.get(intent, self.otherwise)


def load_weights() -> Weights:
    return Weights(**read_yaml("impact.yaml"))


def score_impacts(
    labelled: Mapping[str, list[Labelled]],
    histories: Mapping[str, History],
    *,
    as_of: datetime,
    model_set: str,
    predicted: Mapping[str, Stages] | None = None,
    scored_by: str = RULES,
) -> pa.Table:
    """IMPACTS rows of all exchanges; ``as_of`` decides which windows are closed.

    ``predicted``: exchange id → both stages by the reward model ``scored_by``; without one the rules score. Talk whose
    intent has no relevance for decisions at all keeps the impact 0: a model only sees what else happened then."""
    weights = load_weights()
    rows: list[dict[str, Any]] = []
    for owner, items in labelled.items():
        history, words = histories.get(owner), words_of(items)
        for event in group_events(items):
            feedback = feedback_after(event, words, history, as_of)
            for item in event:
                final = item.started_at + WINDOW <= as_of
                if predicted is not None and weights.relevance_of(item.intent) > 0:
                    impact, provisional = predicted[item.exchange_id]
                else:
                    provisional = _impact(item, history, "none", False, weights)
                    impact = _impact(item, history, feedback, True, weights) if final else provisional
                rows.append(
                    {
                        **{name: item.row[name] for name in ("tenant", "subject", "exchange_id", "owner", "bucket")},
                        "occurred_at": item.started_at,
                        "decision_impact": impact,
                        "impact_final": final,
                        "provisional_impact": provisional,
                        "scored_by": scored_by,
                        "feedback": feedback,
                        "model_set": model_set,
                    }
                )
    return pa.Table.from_pylist(rows, schema=IMPACTS.schema)


def _impact(item: Labelled, history: History | None, feedback: str, final: bool, weights: Weights) -> float:
    signs = _signs(item, history, feedback, final, weights)
    rest = 1.0
    for sign in signs.values():
        rest *= 1 - sign
    return round(weights.relevance_of(item.intent) * (1 - rest), 4)


def _signs(item: Labelled, history: History | None, feedback: str, final: bool, weights: Weights) -> dict[str, float]:
    """The signs that are joined by noisy-or."""
    return {
        "feedback": weights.feedback[feedback],
        "habit": weights.habit * (habit_change(history, item.started_at) if final else 0.0),
        "emotion": weights.emotion * abs(item.row["emotion_score"]),
    }


def rules_in_words(item: Labelled, history: History | None, row: Mapping[str, Any]) -> list[str]:
    """How the rules came to the impact of an IMPACTS row of the exchange: a line about it, and one for each sign."""
    weights, final = load_weights(), row["impact_final"]
    signs = _signs(item, history, row["feedback"] if final else "none", final, weights)
    relevance = weights.relevance_of(item.intent)
    score = f"decision impact {row['decision_impact']:.2f} by rules"
    return [
        f"{score}: {relevance:.2f}, for {item.intent}, of what these signs join to",
        f"{signs['feedback']:.2f}  what followed: {row['feedback'] if final else 'not known yet'}",
        f"{signs['habit']:.2f}  change of orders against the person's own habit" + ("" if final else ": not known yet"),
        f"{signs['emotion']:.2f}  how strongly it was felt ({item.row['emotion_score']:+.2f} of −1 to 1)",
    ]


def habit_change(history: History | None, at: datetime) -> float:
    """Change of orders in the 7 days after ``at`` against the person's own rate before, in [0, 1).

    |expected − seen| / (expected + seen + 1); the rate is shrunk towards a prior, since most people order rarely.
    """
    if history is None or history.first_seen is None or history.first_seen >= at + WINDOW:
        return 0.0  # what begins after the window must not change a final score
    weeks = max(0.0, (at - history.first_seen) / _WEEK)
    expected = (history.before("order", at) + PRIOR_WEEKS * PRIOR_RATE) / (weeks + PRIOR_WEEKS)
    seen = history.count("order", at, at + WINDOW)
    return abs(expected - seen) / (expected + seen + 1)
