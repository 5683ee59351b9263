"""Why an event has the decision impact that it has, in plain words.

Belongs here: what each feature gave to one score, and sentences about it. Does not belong here: the score itself
(``fit``), who asks.

A model multiplies: starting from the usual number of orders, each feature leaves a share of them (its Shapley value,
Lundberg et al. 2018, as an exponential). The impact is what is missing in the end.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_pipelines.reward.features import NAMES
from memory_pipelines.reward.fit import RewardModel
from memory_pipelines.reward.timeline import Floats

LEAST_SHARE = 0.02
"""Features that change the orders by less are not worth a sentence."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A feature leaves ``factor`` of the orders (below 1: it raises the impact); ``value`` is NaN where unknown."""

    feature: str
    value: float
    factor: float
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """``usual``: the factor before any feature is known; times those of all features it is 1 − ``impact``, unless that
    lies outside of [0, 1]. ``reasons``: the strongest first, weak ones left out."""

    impact: float
    usual: float
    reasons: tuple[Reason, ...]


def explain(model: RewardModel, features: Floats, intents: Sequence[str]) -> list[Explanation]:
    """Of each row of features (columns as ``features.NAMES``); ``intents`` are the rows' names."""
    shares = model.contributions(features)
    found = []
    for row, share, impact, intent in zip(features, shares, model.predict(features).tolist(), intents, strict=True):
        values = dict(zip(NAMES, row.tolist(), strict=True))
        reasons = [
            Reason(name, values[name], round(math.exp(log), 4), _sentence(name, values[name], intent, log))
            for name, log in zip(model.used, share[:-1].tolist(), strict=True)
            if abs(math.expm1(log)) >= LEAST_SHARE
        ]
        reasons.sort(key=lambda reason: (-abs(math.log(reason.factor)), reason.feature))
        found.append(Explanation(impact, round(math.exp(share[-1]), 4), tuple(reasons)))
    return found


def in_words(explanation: Explanation) -> list[str]:
    """One line about the score, and one for each reason."""
    impact = explanation.impact
    what = f"decision impact {impact:.2f}: {impact:.0%} of the usual orders are missing because of it"
    if not impact:
        what = "decision impact 0.00: nothing speaks of fewer orders than usual"
    return [what, *(reason.text for reason in explanation.reasons)]


def _sentence(name: str, value: float, intent: str, log: float) -> str:
    what = f"what it is about: {intent}" if name == "intent" else _words(name, value)
    change = abs(math.expm1(log))
    return f"{'−' if log < 0 else '+'}{change:.0%} orders  {what}"


def _words(name: str, value: float) -> str:
    label, tell = WORDS.get(name, (name.replace("_", " "), _count))  # a former model may see what none sees today
    return f"{label}: {'not known' if math.isnan(value) else tell(value)}"


def _count(value: float) -> str:
    return f"{value:g}"


def _yes(value: float) -> str:
    return "yes" if value else "no"


def _score(value: float) -> str:
    return f"{value:+.2f} of −1 (angry) to 1 (glad)"


def _change(value: float) -> str:
    if abs(value) < 0.05:
        return "as usual"
    return f"{'less' if value < 0 else 'more'} than usual ({value:+.2f} of −1 to 1)"


WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "emotion": ("how it was said", _score),
    "soon_emotion": ("how the person spoke in the two hours after", _score),
    "after_emotion": ("how the person spoke in the 7 days after", _score),
    "before_repeats": ("times the person brought this up in 7 days, this one included", _count),
    "after_repeats": ("times the person brought it up again within 7 days", _count),
    "visit_change": ("visits in the 7 days after", _change),
    "dwell_change": ("time spent on a visit in the 7 days after", _change),
    "bounce_change": ("visits left at once in the 7 days after", _change),
    "after_coupons": ("coupons given within 7 days", _count),
    "after_refunds": ("refunds within 7 days", _count),
    "after_cancels": ("cancelled orders within 7 days", _count),
    "churned": ("left for good within 7 days", _yes),
    "compensated": ("compensated within 7 days", _yes),
}
"""Feature → what it is called, and how a value of it is told."""
