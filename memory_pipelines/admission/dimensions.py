"""The three dimensions of admission: persistence, structure, personalisation, each in [0, 1].

Belongs here: values that named parts explain. Does not belong here: weights, thresholds, hard rules (``gate``). The
figures are judgements, but for the two that the gold set decided (``LASTING``, ``PASSING``); each has one place here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from memory_pipelines.admission.extract import Candidate, Reading
from memory_pipelines.admission.ontology import FAMILY, predicate
from memory_pipelines.admission.snapshot import Snapshot, snapshot_keys
from memory_pipelines.admission.summary import intent_phrase

LASTING, PASSING = 0.6, 0.45
"""Share of the worth model from which a text counts in full as lasting, and (with the lasting share) as passing; the
first is where precision and recall of the tuning half of the gold set meet."""
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


@dataclass(frozen=True, slots=True)
class Dimension:
    """A value in [0, 1], rounded to 4 digits, and what it was made of: ``<dimension>.<part>`` → value."""

    value: float
    parts: dict[str, float]


def _dimension(value: float, parts: Mapping[str, float]) -> Dimension:
    return Dimension(round(min(1.0, max(0.0, value)), 4), {name: round(part, 4) for name, part in parts.items()})


def consequence(feedback: str | None) -> float:
    """How grave what followed was: 1 for churn, 0 for nothing."""
    if feedback:
        for key, weight in _CONSEQUENCE:
            if key in feedback:
                return weight
    return 0.0


def worth_of(reading: Reading) -> float:
    """The worth of a text as one figure: 1 for what lasts, up to .5 for what passes, towards 0 for junk.

    A workflow lasts; what is only supposed or doubted passes."""
    worth = reading.worth
    if reading.steps and worth.long > worth.discard:
        return 1.0
    passing = 0.5 * min(1.0, (worth.long + worth.short) / PASSING)
    if reading.unsure:
        return round(passing, 4)
    return round(max(min(1.0, worth.long / LASTING), passing), 4)


def _unsaid(candidate: Candidate) -> float:
    """The worth that an episode has beside the facts, which are kept by themselves."""
    return worth_of(candidate.reading) * (1 - candidate.reading.coverage)


def persistence(candidate: Candidate) -> Dimension:
    """Will it still matter in seven days?

    Facts: horizon of the predicate (a plan for the same day: .4) · (.7 + .3 · strength). Episodes: 1 − (1 − horizon)
    (1 − .6 · consequence) (1 − .4 · impact, half if provisional), where the horizon is .05 + .85 · worth of the text
    beside its facts."""
    row = candidate.row
    if candidate.claim:
        fact = candidate.claim.fact
        horizon = predicate(fact.predicate).persistence
        if fact.day and date.fromisoformat(fact.day) <= row["occurred_at"].date():
            horizon = min(horizon, 0.4) if fact.base == "plan" else horizon
        value = horizon * (0.7 + 0.3 * fact.strength)
        return _dimension(value, {"persistence.horizon": horizon, "persistence.strength": fact.strength})
    impact = (row["decision_impact"] or 0.0) * (1.0 if row["impact_final"] else 0.5)
    followed = consequence(row["feedback"])
    horizon = 0.05 + 0.85 * _unsaid(candidate)
    value = 1 - (1 - horizon) * (1 - 0.6 * followed) * (1 - 0.4 * impact)
    parts = {"persistence.horizon": horizon, "persistence.consequence": followed, "persistence.impact": impact}
    return _dimension(value, parts)


def structure(candidate: Candidate) -> Dimension:
    """How much of it is data: entity–attribute–value > entities > free text.

    Facts: .6 + .35 · strength (+ .05 with an entity). Episodes: the more of .2, .5, .6, .65 for 0, 1, 2, 3 or more
    entities and .2 + .45 · worth for what is told, + .1 each for a known intent, a reason, a consequence."""
    if candidate.claim:
        strength = candidate.claim.fact.strength
        named = 0.05 if candidate.entities else 0.0
        parts = {"structure.triple": 0.6, "structure.strength": 0.35 * strength, "structure.entities": named}
        return _dimension(0.6 + 0.35 * strength + named, parts)
    row = candidate.row
    named_entities = [e for e in row["entities"] or () if e["kind"] != "date"]
    entities = _ENTITIES[min(3, len(named_entities))]
    told = max(0.0, 0.2 + 0.45 * _unsaid(candidate) - entities)
    intent = 0.1 if intent_phrase(row["intent"] or "") else 0.0
    reason = 0.1 if row["reason"] else 0.0
    followed = 0.1 if consequence(row["feedback"]) else 0.0
    parts = {
        "structure.entities": entities,
        "structure.told": told,
        "structure.intent": intent,
        "structure.reason": reason,
        "structure.consequence": followed,
    }
    return _dimension(entities + told + intent + reason + followed, parts)


def personalisation(candidate: Candidate, snapshot: Snapshot) -> Dimension:
    """How much it is this person's own: core attributes, distinctiveness, expected use.

    Facts: .5 · core + .2 · distinctiveness + .3 · use of the predicate (core · .9 for a relative's). Episodes:
    .36 · worth beside the facts + .3 · distinctiveness + .3 · use, where use = .4 + .3 · consequence + .3 ·
    |emotion|."""
    distinct = snapshot.distinctiveness(snapshot_keys(candidate))
    if candidate.claim:
        entry = predicate(candidate.predicate)
        core = entry.core * (0.9 if candidate.predicate.startswith(FAMILY) else 1.0)
        use = entry.use
        value = 0.5 * core + 0.2 * distinct + 0.3 * use
    else:
        row = candidate.row
        core = 0.9 * _unsaid(candidate)
        use = 0.4 + 0.3 * consequence(row["feedback"]) + 0.3 * abs(row["emotion_score"] or 0.0)
        value = 0.4 * core + 0.3 * distinct + 0.3 * use
    parts = {"personalisation.core": core, "personalisation.distinctiveness": distinct, "personalisation.use": use}
    return _dimension(value, parts)
