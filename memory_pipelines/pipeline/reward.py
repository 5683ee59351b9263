"""The reward model over the stores: its rows, its training, its promotion.

Belongs here: reading, one call into ``reward``, writing. Does not belong here: features, metrics, verdicts.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.model import ImpactLabel, impact_label
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.persons import everybodys_behaviour
from memory_pipelines.quality.distribution import WINDOW, Histogram, Problem, check_impacts, final_impacts, histogram
from memory_pipelines.quality.docs import write_page
from memory_pipelines.quality.suites import SuiteResult, feature_frame, run_suite
from memory_pipelines.reward.evaluate import Metrics, default_cut, evaluate, evaluate_scores, time_split
from memory_pipelines.reward.explain import explain, in_words
from memory_pipelines.reward.features import NAMES
from memory_pipelines.reward.fit import InsufficientDataError, RewardModel, feature_rows, fit
from memory_pipelines.reward.labels import reward_events
from memory_pipelines.reward.promote import Verdict, decide
from memory_pipelines.slices.impact import load_weights
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.registry import ModelRow
from memory_pipelines.tables import (
    ANNOTATIONS,
    BEHAVIOUR,
    EMOTIONS,
    EXCHANGES,
    IMPACTS,
    INTENTS,
    REWARD_EVENTS,
    TIME,
)
from memory_pipelines.wiring import Platform

KIND = "reward"
CHALLENGER = "challenger"
DOCS = "data_docs"
"""Folder of the home."""
TRAINING_SCORES = "training_scores"
"""In a model's metrics: the histogram of its scores over the training range."""
Scores = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True)
class Trained:
    """A challenger, or why there is none. ``scores`` are its final ones of the 90 days before ``as_of``; ``examples``:
    one of each label explained in words, as lines that name nobody."""

    row: ModelRow | None
    metrics: Metrics | None
    scores: Scores
    examples: tuple[tuple[str, ...], ...] = ()
    nothing_to_do: str = ""


@uses_lake
def collect_reward_events(platform: Platform, as_of: datetime) -> pa.Table:
    """REWARD_EVENTS of everything known at ``as_of``, in place of what was collected before."""
    manifest = platform.ledger.manifest()
    if manifest is None:
        return REWARD_EVENTS.schema.empty_table()
    events = labelled_events(platform, manifest.versions, manifest.model_set, as_of)
    behaviour, others = everybodys_behaviour(platform)
    rows = reward_events(events, behaviour, as_of, annotated_impacts(platform), others)
    platform.lake.write(REWARD_EVENTS, rows, [])
    return rows


def annotated_impacts(platform: Platform) -> dict[tuple[str, str], float]:
    """(Owner, exchange id) → impact by humans; of several files their mean."""
    rows = platform.lake.read(ANNOTATIONS, columns=["owner", "exchange_id", "impact"])
    means = rows.group_by(["owner", "exchange_id"]).aggregate([("impact", "mean")])
    return {(row["owner"], row["exchange_id"]): row["impact_mean"] for row in means.to_pylist()}


def labelled_events(
    platform: Platform,
    versions: Mapping[str, int],
    model_set: str,
    as_of: datetime,
    where: Sequence[tuple[str, str, object]] = (),
) -> pa.Table:
    """One row per labelled exchange of the committed days before ``as_of``, as ``reward_events`` wants them."""
    committed = pa.array(list(platform.ledger.day_counts()), pa.string())
    exchanges = platform.lake.read(
        EXCHANGES,
        columns=["tenant", "subject", "exchange_id", "started_at", "day", "owner", "bucket"],
        where=[*where, ("started_at", "<", as_of)],
        version=versions[EXCHANGES.name],
    )
    exchanges = exchanges.filter(pc.is_in(exchanges["day"], value_set=committed)).drop_columns(["day"])
    for spec, columns in ((INTENTS, ["intent", "category"]), (EMOTIONS, ["emotion_score"])):
        labels = platform.lake.read(
            spec,
            columns=["exchange_id", *columns],
            where=[*where, ("model_set", "=", model_set)],
            version=versions[spec.name],
        )
        exchanges = exchanges.join(labels, keys="exchange_id", join_type="inner")
    return exchanges.rename_columns(["occurred_at" if n == "started_at" else n for n in exchanges.column_names])


@uses_lake
def train_reward(platform: Platform, as_of: datetime) -> Trained:
    """Fit a challenger on the collected rows and note it in the registry; too little data is no failure."""
    rows = platform.lake.read(REWARD_EVENTS, where=[("occurred_at", "<", as_of)])
    try:
        train, holdout = time_split(rows, default_cut(rows))
        model = fit(train)
        metrics = evaluate(model, holdout)
    except InsufficientDataError as error:
        return Trained(None, None, np.zeros(0), nothing_to_do=str(error))
    times = pc.min_max(train["occurred_at"]).as_py()
    row = ModelRow(
        model_id=model.model_id,
        kind=KIND,
        created_at=platform.clock.now(),
        data_from=times["min"],
        data_to=as_of,
        data_hash=canonical_hash(REWARD_EVENTS, train),
        rows=train.num_rows,
        metrics=metrics.as_json() | {TRAINING_SCORES: list(histogram(scores_in_use(model, train)))},
        verdict=CHALLENGER,
        body=model.body,
    )
    platform.registry.add(row)
    return Trained(row, metrics, recent_scores(model, rows, as_of), _examples(model, holdout))


def _examples(model: RewardModel, rows: pa.Table) -> tuple[tuple[str, ...], ...]:
    """Of each label the event whose score is in the middle of the label's."""
    scores = model.predict(feature_rows(rows))
    labels = np.array([impact_label(score) for score in scores.tolist()])
    chosen = []
    for label in ImpactLabel:
        places = np.flatnonzero(labels == label)
        if len(places):
            chosen.append(int(places[np.argsort(scores[places], kind="stable")[len(places) // 2]]))
    picked = rows.take(pa.array(chosen, pa.int64()))
    return tuple(tuple(in_words(e)) for e in explain(model, feature_rows(picked), picked["intent"].to_pylist()))


def recent_scores(model: RewardModel, rows: pa.Table, as_of: datetime) -> Scores:
    """Final scores of the events of the 90 days before ``as_of`` whose window has closed."""
    recent = pc.field("window_closed") & (pc.field("occurred_at") >= pa.scalar(as_of - WINDOW, TIME))
    return scores_in_use(model, rows.filter(recent))


def scores_in_use(model: RewardModel, rows: pa.Table) -> Scores:
    """What step 5 makes of a model's scores: talk whose intent has no relevance for decisions keeps the impact 0."""
    weights = load_weights()
    intents = rows["intent"].to_pylist()
    relevant = np.array([weights.relevance.get(intent, weights.otherwise) > 0 for intent in intents], dtype=bool)
    scores: Scores = np.where(relevant, model.predict(feature_rows(rows)), 0.0)
    return scores


def training_scores(row: ModelRow | None) -> Histogram | None:
    """The histogram of a model's scores over its training range."""
    counts = None if row is None else row.metrics.get(TRAINING_SCORES)
    return None if counts is None else tuple(counts)


def challenger(platform: Platform, as_of: datetime | None = None) -> ModelRow | None:
    """The newest model, by the end of its data (``as_of``: exactly the one trained for that instant)."""
    rows = [r for r in platform.registry.rows(KIND) if as_of is None or r.data_to == as_of]
    return max(rows, key=lambda r: (r.data_to, r.created_at, r.model_id), default=None)


@uses_lake
def challenger_problems(platform: Platform, as_of: datetime | None = None) -> list[Problem]:
    """Faults of the distribution of the newest challenger's scores; none without a challenger."""
    row = challenger(platform, as_of)
    if row is None:
        return []
    rows = platform.lake.read(REWARD_EVENTS, where=[("occurred_at", "<", row.data_to)])
    return check_impacts(recent_scores(RewardModel(row.body), rows, row.data_to), training_scores(row))


@uses_lake
def decide_reward(platform: Platform, as_of: datetime) -> Verdict:
    """Champion against challenger on the same held-out events; a promotion has everybody derived anew.

    Before the first promotion the rules are the champion, by the impacts that they gave."""
    row = challenger(platform, as_of)
    if row is None:
        return Verdict(False, "there is no challenger")
    champion = platform.registry.champion(KIND)
    if champion is not None and champion.model_id == row.model_id:
        return Verdict(True, "the challenger is the champion already")
    rows = platform.lake.read(REWARD_EVENTS, where=[("occurred_at", "<", as_of)])
    _, holdout = time_split(rows, default_cut(rows))
    against = _by_rules(platform, holdout) if champion is None else evaluate(RewardModel(champion.body), holdout)
    problems = [problem.text for problem in challenger_problems(platform, as_of)]
    verdict = decide(against, evaluate(RewardModel(row.body), holdout), problems)
    platform.registry.judge(row.model_id, verdict.reason)
    if verdict.promote:
        with _everybody_anew(platform):
            platform.registry.promote(KIND, row.model_id, platform.clock.now(), verdict.reason)
    return verdict


def _by_rules(platform: Platform, holdout: pa.Table) -> Metrics | None:
    """The rules' metrics; None where they have scored too little to be judged."""
    rows = platform.lake.read(IMPACTS, columns=["exchange_id", "decision_impact"])
    try:
        return evaluate_scores(dict(zip(*(c.to_pylist() for c in rows.columns), strict=True)), holdout)
    except InsufficientDataError:
        return None


def roll_back_reward(platform: Platform) -> str:
    """Bring the champion before the current one into use again; returns its id."""
    with _everybody_anew(platform):
        return platform.registry.roll_back(KIND, platform.clock.now())


@contextmanager
def _everybody_anew(platform: Platform) -> Iterator[None]:
    """Everybody is touched before another champion comes into use, so that a kill in between loses no touch, and
    after it, for those who were derived in between."""
    platform.ledger.touch_everybody()
    yield
    platform.ledger.touch_everybody()


@uses_lake
def check_training_rows(platform: Platform) -> SuiteResult:
    """Great Expectations on the collected rows."""
    return run_suite("reward_features", feature_frame(platform.lake.read(REWARD_EVENTS), NAMES))


@uses_lake
def check_behaviour(platform: Platform) -> SuiteResult:
    """Great Expectations on the behaviour of the 90 days before logs have landed to."""
    manifest = platform.ledger.manifest()
    until = platform.clock.now() if manifest is None else manifest.landed_through
    rows = platform.lake.read(BEHAVIOUR, where=[("occurred_at", ">=", until - WINDOW), ("occurred_at", "<", until)])
    return run_suite("behaviour", rows.to_pandas())


@dataclass(frozen=True)
class LiveImpacts:
    """The impacts in use: their suite, their values, and the faults of their distribution."""

    suite: SuiteResult
    impacts: Scores
    problems: list[Problem]


@uses_lake
def check_live_impacts(platform: Platform) -> LiveImpacts:
    """Great Expectations and the distribution, over the final impacts of the last 90 days that are in use."""
    now = platform.clock.now()
    rows = platform.lake.read(IMPACTS, where=[("occurred_at", ">=", now - WINDOW)])
    suite = run_suite("impact", rows.filter(rows["impact_final"]).to_pandas())
    rows, reference = _of_champion(platform, rows)
    impacts = final_impacts(rows, now)
    return LiveImpacts(suite, impacts, check_impacts(impacts, reference))


def impacts_in_use(platform: Platform) -> tuple[pa.Table, Histogram | None]:
    """IMPACTS rows by the champion, and the histogram of its training range; of the rules where there is none.

    Others are about to be derived anew: they would be taken for a drift."""
    names = ["occurred_at", "impact_final", "decision_impact", "scored_by"]
    return _of_champion(platform, platform.lake.read(IMPACTS, columns=names))


def _of_champion(platform: Platform, rows: pa.Table) -> tuple[pa.Table, Histogram | None]:
    champion = platform.registry.champion(KIND)
    if champion is None:
        return rows, None
    return rows.filter(pc.equal(rows["scored_by"], champion.model_id)), training_scores(champion)


def write_docs(platform: Platform, result: SuiteResult) -> str:
    """Keep the data docs of a suite under the home; returns their address. Empty where there are none, or no home."""
    home = Path(platform.settings.home)
    if not result.page or not home.is_dir():
        return ""
    return write_page((home / DOCS).resolve(), result.suite, result.page).as_uri()
