"""The three dimensions of admission: persistence, structure, personalisation, each in [0, 1].

Belongs here: explainable sums of named parts. Does not belong here: weights, thresholds, hard rules
(``gate``). The figures are judgements, to be measured against a gold set; each has one place here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from memory_pipelines.admission.extract import Candidate
from memory_pipelines.admission.ontology import FAMILY, Profile, predicate
from memory_pipelines.admission.summary import intent_phrase

NEUTRAL = 0.5
_HORIZON = {
    "fact": 0.6,
    "preference": 0.7,
    "task": 0.55,
    "inquiry": 0.3,
    "chit_chat": 0.15,
    "transient_reasoning": 0.05,
}
_CORE = {"fact": 0.45, "preference": 0.6, "task": 0.4, "inquiry": 0.2, "chit_chat": 0.1, "transient_reasoning": 0.0}
_CONSEQUENCE = (
    ("churn", 1.0),
    ("refund", 0.85),
    ("cancel", 0.8),
    ("complain", 0.7),
    ("bought", 0.5),
    ("repurchase", 0.5),
    ("order", 0.5),
    ("thank", 0.2),
)
_ENTITIES = (0.2, 0.5, 0.6, 0.65)


@dataclass(frozen=True)
class Snapshot:
    """Population figures of one version: of ``subjects``, how many have each canonical entity or
    ``<predicate>=<value>`` (``counts``). An empty snapshot is neutral."""

    version: str = "empty"
    subjects: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def distinctiveness(self, keys: tuple[str, ...]) -> float:
        """1 for what nobody else has, 0 for what all have: 1 − ln(1 + n) / ln(1 + N) of the rarest key."""
        if self.subjects < 1 or not keys:
            return NEUTRAL
        rarest = min(min(self.counts.get(key, 0), self.subjects) for key in keys)
        return round(1 - math.log1p(rarest) / math.log1p(self.subjects), 4)


@dataclass(frozen=True, slots=True)
class Dimension:
    """A value in [0, 1], rounded to 4 digits, and the named parts that it was made of."""

    value: float
    parts: Mapping[str, float]


def _dimension(value: float, **parts: float) -> Dimension:
    return Dimension(round(min(1.0, max(0.0, value)), 4), {name: round(part, 4) for name, part in parts.items()})


def consequence(feedback: str | None) -> float:
    """How grave what followed was: 1 for churn, 0 for nothing."""
    return next((weight for key, weight in _CONSEQUENCE if key in (feedback or "")), 0.0)


def persistence(candidate: Candidate, profile: Profile) -> Dimension:
    """Will it still matter in seven days?

    Facts: horizon of the predicate (a plan more than a week ahead: .75) · (.7 + .3 · strength). Episodes:
    1 − (1 − horizon) (1 − .6 · consequence) (1 − .4 · impact, half if provisional) ± cues in the text;
    the horizon shrinks by half where facts already keep all that was said."""
    row = candidate.row
    if candidate.claim:
        fact = candidate.claim.fact
        horizon = predicate(fact.predicate).persistence
        if fact.day and (date.fromisoformat(fact.day) - row["occurred_at"].date()).days > 7:
            horizon = 0.75
        return _dimension(horizon * (0.7 + 0.3 * fact.strength), horizon=horizon, strength=fact.strength)
    reading = candidate.reading
    impact = (row["decision_impact"] or 0.0) * (1.0 if row["impact_final"] else 0.5)
    followed = consequence(row["feedback"])
    horizon = _HORIZON.get(candidate.category, 0.4)
    if candidate.category == "inquiry" and not reading.asks:
        horizon = _HORIZON["fact"]
    horizon *= 1 - 0.5 * reading.coverage
    life = profile.life_event if reading.life_event else 0.0
    cues = 0.1 * reading.durable - 0.1 * reading.transient
    value = 1 - (1 - horizon) * (1 - 0.6 * followed) * (1 - 0.4 * impact) + life + cues
    return _dimension(value, horizon=horizon, consequence=followed, impact=impact, life_event=life, cues=cues)


def structure(candidate: Candidate, profile: Profile) -> Dimension:
    """How much of it is data: entity–attribute–value > entities > free text.

    Facts: .6 + .35 · strength (+ .05 with an entity). Episodes: .2, .5, .6, .65 for 0, 1, 2, 3 or more entities,
    + .1 each for a known intent, a reason, a consequence; + .2 for an event of life where the profile counts those."""
    if candidate.claim:
        strength = candidate.claim.fact.strength
        named = 0.05 if candidate.entities else 0.0
        return _dimension(0.6 + 0.35 * strength + named, triple=0.6, strength=0.35 * strength, entities=named)
    row = candidate.row
    kinds = [e["kind"] for e in row["entities"] or []]
    entities = _ENTITIES[min(3, sum(kind != "date" for kind in kinds))]
    intent = 0.1 if intent_phrase(row["intent"] or "") else 0.0
    reason = 0.1 if row["reason"] else 0.0
    followed = 0.1 if consequence(row["feedback"]) else 0.0
    told = 0.2 if candidate.reading.life_event and profile.life_event else 0.0
    value = entities + intent + reason + followed + told
    return _dimension(value, entities=entities, intent=intent, reason=reason, consequence=followed, life_event=told)


def snapshot_keys(candidate: Candidate) -> tuple[str, ...]:
    """What a population snapshot counts for a candidate."""
    if candidate.claim:
        return (f"{candidate.predicate}={candidate.value}",)
    return candidate.entities


def personalisation(candidate: Candidate, profile: Profile, snapshot: Snapshot) -> Dimension:
    """How much it is this person's own: core attributes, distinctiveness, expected use.

    Facts: .5 · core + .2 · distinctiveness + .3 · use of the predicate (core · .9 for a relative's). Episodes:
    .4 · core of the category + .3 · distinctiveness + .3 · use, where use = .4 + .3 · consequence + .3 · |emotion|."""
    distinct = snapshot.distinctiveness(snapshot_keys(candidate))
    if candidate.claim:
        entry = predicate(candidate.predicate)
        core = entry.core * (0.9 if candidate.predicate.startswith(FAMILY) else 1.0)
        use = entry.use
        return _dimension(0.5 * core + 0.2 * distinct + 0.3 * use, core=core, distinctiveness=distinct, use=use)
    row = candidate.row
    core = _CORE.get(candidate.category, 0.3)
    if candidate.reading.life_event and profile.life_event:
        core = max(core, 0.7)
    if any(e["kind"] in ("person", "order_number") for e in row["entities"] or []):
        core += 0.1
    use = 0.4 + 0.3 * consequence(row["feedback"]) + 0.3 * abs(row["emotion_score"] or 0.0)
    return _dimension(0.4 * core + 0.3 * distinct + 0.3 * use, core=core, distinctiveness=distinct, use=use)
