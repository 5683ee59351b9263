"""The verdict on a challenger.

Belongs here: the rule of promotion. Does not belong here: metrics (``evaluate``), checks of the distribution of
scores, the registry that remembers who is champion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipelines.reward.evaluate import Metrics

CALIBRATION_SLACK = 0.01
"""By so much a challenger's calibration error may exceed the champion's: less is noise of the hold-out."""
SLICE_SLACK = 0.02
"""The same for the Brier score of one intent."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the challenger comes into use, and why or why not; the reason names metrics and intents only."""

    promote: bool
    reason: str


def decide(champion: Metrics | None, challenger: Metrics, distribution_problems: Sequence[str]) -> Verdict:
    """Promote only what is better by AUC, not worse by calibration or in any intent, and well distributed.

    Both are judged on the same held-out events, so the champion's metrics are made anew, not read from its row. Any
    problem blocks. Without a champion the challenger has to beat the best constant score.
    """
    against = list(distribution_problems)
    if champion is None:
        if challenger.auc <= 0.5:
            against.append(f"AUC {challenger.auc} is no better than chance")
        if challenger.brier >= challenger.brier_base:
            against.append(f"Brier score {challenger.brier} does not beat the base rate's {challenger.brier_base}")
        won = f"first champion: AUC {challenger.auc}, Brier score {challenger.brier} < {challenger.brier_base}"
    else:
        against += _worse(champion, challenger)
        won = f"AUC {challenger.auc} > {champion.auc}, calibration error {challenger.calibration_error}"
    return Verdict(not against, "; ".join(against) or won)


def _worse(champion: Metrics, challenger: Metrics) -> list[str]:
    problems = []
    if challenger.auc <= champion.auc:
        problems.append(f"AUC {challenger.auc} is not above the champion's {champion.auc}")
    if challenger.calibration_error > champion.calibration_error + CALIBRATION_SLACK:
        problems.append(
            f"calibration error {challenger.calibration_error} is above the champion's {champion.calibration_error}"
        )
    for intent in sorted(champion.intents.keys() & challenger.intents.keys()):
        old, new = champion.intents[intent].brier, challenger.intents[intent].brier
        if new > old + SLICE_SLACK:
            problems.append(f"{intent}: Brier score {new} is above the champion's {old}")
    return problems
