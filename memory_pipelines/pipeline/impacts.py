"""Why exchanges have the decision impact that they have, over the stores.

Belongs here: finding an exchange and all that its score was made from. Does not belong here: words (``reward.explain``
for a model, ``slices.impact`` for the rules).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_pipelines.errors import InputError
from memory_pipelines.pipeline.decisions import LEAST_DIGITS
from memory_pipelines.pipeline.derive import SCORED, Portion, read_labelled
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.persons import behaviour_of
from memory_pipelines.pipeline.reward import KIND, labelled_events
from memory_pipelines.reward.explain import explain, in_words
from memory_pipelines.reward.fit import RewardModel
from memory_pipelines.reward.labels import event_features
from memory_pipelines.slices.events import histories
from memory_pipelines.slices.impact import RULES, load_weights, rules_in_words
from memory_pipelines.tables import IMPACTS, SLICES
from memory_pipelines.wiring import Platform

SLICE = "evt_"


@dataclass(frozen=True)
class Explained:
    """``stage``: final or provisional, and who scored; ``lines``: the score, then what made it, strongest first."""

    exchange_id: str
    occurred_at: datetime
    stage: str
    lines: tuple[str, ...]


@uses_lake
def explain_impacts(platform: Platform, start: str) -> list[Explained]:
    """The exchanges whose id begins with ``start``, or of the event slice of that id; by time.

    Raises InputError for too few digits, for what is not there, and for rows of versions that noted no scorer."""
    if start.startswith(SLICE):
        slices = platform.lake.read(SLICES, columns=["exchange_ids"], where=[("slice_id", "=", start)])
        names = [name for row in slices.to_pylist() for name in row["exchange_ids"]]
        where: list[tuple[str, str, object]] = [("exchange_id", "in", names)]
    elif len(start) < LEAST_DIGITS or not set(start) <= set("0123456789abcdef"):
        raise InputError(f"name an exchange by its id, or the first {LEAST_DIGITS} digits of it or more, or a slice")
    else:
        where = [("exchange_id", ">=", start), ("exchange_id", "<", start + "g")]
    rows = platform.lake.read(IMPACTS, where=where).to_pylist()
    if not rows:
        raise InputError("no exchange of this id has an impact")
    found = [_explained(platform, row) for row in rows]
    return sorted(found, key=lambda item: (item.occurred_at, item.exchange_id))


def _explained(platform: Platform, row: dict[str, Any]) -> Explained:
    if row["scored_by"] is None:
        raise InputError("this impact was written by an earlier version, which did not note who scored: derive anew")
    plan = platform.ledger.plan(row["bucket"])
    assert plan is not None, "an impact was written by a derivation"
    portion = Portion(plan, {row["bucket"]: (row["owner"],)})
    lines = _by_rules(platform, portion, row) if row["scored_by"] == RULES else _by_model(platform, portion, row)
    if row["impact_final"]:
        lines.append(f"before its 7 days had closed it was {row['provisional_impact']:.2f}")
    stage = "final" if row["impact_final"] else "provisional: its 7 days have not closed"
    return Explained(row["exchange_id"], row["occurred_at"], f"{stage}; scored by {row['scored_by']}", tuple(lines))


def _by_rules(platform: Platform, portion: Portion, row: dict[str, Any]) -> list[str]:
    behaviour = behaviour_of(platform, portion.owners, portion.where)
    history = histories(behaviour, portion.plan.as_of).get(row["owner"])
    items = read_labelled(platform, portion, SCORED)[row["owner"]]
    item = next(item for item in items if item.exchange_id == row["exchange_id"])
    return rules_in_words(item, history, row)


def _by_model(platform: Platform, portion: Portion, row: dict[str, Any]) -> list[str]:
    models = platform.registry.beginning(KIND, row["scored_by"])
    if not models:
        raise InputError("the model that scored this exchange is not in the registry any more")
    plan = portion.plan
    events = labelled_events(platform, plan.versions, plan.model_set, plan.as_of, portion.where)
    behaviour = behaviour_of(platform, portion.owners, portion.where)
    rows, features = event_features(events, behaviour, plan.as_of)
    place = rows["exchange_id"].to_pylist().index(row["exchange_id"])
    intent = rows["intent"][place].as_py()
    if load_weights().relevance_of(intent) == 0:
        return [f"decision impact {row['decision_impact']:.2f}: {intent} has no relevance for decisions"]
    (found,) = explain(RewardModel(models[0].body), features[[place]], [intent])
    if found.impact != row["decision_impact"]:
        return [
            f"decision impact {row['decision_impact']:.2f}: what counts for it has changed since (late rows, a login);"
            f" the next run of its bucket ({row['bucket']}) scores it again"
        ]
    return in_words(found)
