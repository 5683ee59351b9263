"""Decision impact against the true effects of simulated people whom the model has never seen.

Belongs here: baselines, the oracle, what is compared. Does not belong here: how a world is made (``worlds``).

Protocol. One world trains, worlds of other seeds judge; nothing was tuned on the latter. Scores are those of final
exchanges that the truth names (complaints, refund requests, praise, changes of address), compared with the true share
by which each changed its person's rate of orders for 7 days. The world confounds (who orders more complains more), has
weekdays and a yearly season, and complaints follow a busy week (regression to the mean).

The *oracle* is taught the true effects of the training world, and sees what the model sees: the same features of the
same noisy behaviour, by LightGBM's regression. It is what could be reached if effects could be observed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.reward.worlds import Floats, of_rows, simulated

ORACLE = {"objective": "regression", "num_leaves": 15, "min_data_in_leaf": 40, "learning_rate": 0.05}
ORACLE_ROUNDS = 200
BINS = 10


@dataclass(frozen=True)
class Judged:
    """A method on one world. ``error``: mean distance of the mean score and the mean true effect over bins of the
    score, by events; ``above``: mean score minus mean effect."""

    pearson: float
    spearman: float
    error: float
    above: float


@dataclass(frozen=True)
class Table:
    """``curve``: (mean score, mean true effect, events) of each bin of the final scores."""

    seed: int
    people: int
    events: int
    methods: dict[str, Judged]
    curve: list[tuple[float, float, int]]

    def share(self, method: str, oracle: str) -> float:
        """Pearson correlation of a method, of the oracle's."""
        return self.methods[method].pearson / self.methods[oracle].pearson


def run(train_seed: int, seeds: Sequence[int], turns: int, days: int) -> list[Table]:
    """Train on one world, judge on the others."""
    from memory_pipelines.reward.fit import feature_rows, fit, provisional
    from memory_pipelines.reward.labels import reward_events

    world = simulated(train_seed, turns, days)
    rows = reward_events(world.events, world.behaviour, world.as_of)
    model = fit(rows)
    effects, features = of_rows(world.effects, rows), feature_rows(rows)
    known = ~np.isnan(effects)
    final_oracle = _oracle(features[known], effects[known])
    early_oracle = _oracle(provisional(features)[known], effects[known])
    tables = []
    for seed in seeds:
        world = simulated(seed, turns, days)
        rows = reward_events(world.events, world.behaviour, world.as_of)
        features, effects = feature_rows(rows), of_rows(world.effects, rows)
        known = ~np.isnan(effects)
        features, effects = features[known], effects[known]
        scores = {
            "oracle, final": np.asarray(final_oracle.predict(features)),
            "model, final": model.predict(features),
            "oracle, provisional": np.asarray(early_oracle.predict(provisional(features))),
            "model, provisional": model.predict(provisional(features)),
            "rules of step 5": of_rows(world.rules, rows)[known],
            **baselines(features),
        }
        methods = {name: judge(found, effects) for name, found in scores.items()}
        tables.append(Table(seed, world.people, len(effects), methods, curve(scores["model, final"], effects)))
    return tables


def baselines(features: Floats) -> Mapping[str, Floats]:
    """The articles' rule, and the naive fall of orders from the week before to the week after."""
    from memory_pipelines.reward.features import NAMES

    before, after, rule = (features[:, NAMES.index(name)] for name in ("before_orders", "after_orders", "rule_40"))
    return {"40 % rule": rule, "before minus after": np.clip((before - after) / np.maximum(before, 1), 0, 1)}


def judge(scores: Floats, effects: Floats) -> Judged:
    """Correlations with the true effects, and calibration against them."""
    if scores.std() == 0:
        raise ValueError("constant scores have no correlation")
    weighed = [(abs(score - effect), number) for score, effect, number in curve(scores, effects)]
    return Judged(
        round(float(np.corrcoef(scores, effects)[0, 1]), 4),
        round(float(np.corrcoef(_ranks(scores), _ranks(effects))[0, 1]), 4),
        round(float(np.average([d for d, _ in weighed], weights=[n for _, n in weighed])), 4),
        round(float(scores.mean() - effects.mean()), 4),
    )


def curve(scores: Floats, effects: Floats) -> list[tuple[float, float, int]]:
    """Mean score, mean effect and events of each tenth of [0, 1] that holds scores."""
    place = np.clip((scores * BINS).astype(int), 0, BINS - 1)
    found = []
    for number in sorted(set(place.tolist())):
        own = place == number
        found.append((round(float(scores[own].mean()), 3), round(float(effects[own].mean()), 3), int(own.sum())))
    return found


def _ranks(values: Floats) -> Floats:
    """Mean ranks: ties share theirs."""
    _, place, number = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(number)
    ranks: Floats = (last - (number - 1) / 2)[place]
    return ranks


def _oracle(features: Floats, effects: Floats) -> "_Oracle":
    import lightgbm

    settings = {**ORACLE, "deterministic": True, "num_threads": 1, "seed": 7, "verbose": -1}
    return _Oracle(lightgbm.train(settings, lightgbm.Dataset(features, effects), ORACLE_ROUNDS))


class _Oracle:
    """What has been taught the truth."""

    def __init__(self, booster: object) -> None:
        self._booster = booster

    def predict(self, features: Floats) -> Floats:
        return np.asarray(self._booster.predict(features), dtype=np.float64)  # type: ignore[attr-defined]


def print_tables(tables: Sequence[Table]) -> None:
    for table in tables:
        print(f"\n== simulator, seed {table.seed}: {table.people} people, {table.events} events with a known effect")
        for name, found in table.methods.items():
            print(
                f"{name:22} Pearson {found.pearson:6.3f}  Spearman {found.spearman:6.3f}"
                f"  calibration error {found.error:.3f}  above {found.above:+.3f}"
            )
        for stage in ("final", "provisional"):
            print(f"{stage}: {table.share(f'model, {stage}', f'oracle, {stage}'):.1%} of the oracle's correlation")
        print("score → effect (events):", ", ".join(f"{s:.2f} → {e:.2f} ({n})" for s, e, n in table.curve))
