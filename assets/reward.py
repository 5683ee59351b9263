"""The reward model, by quarter: what it learns from, the challenger, and who is champion after it."""

from dataclasses import asdict
from datetime import datetime

import dagster as dg

from assets.base import day_manifest
from assets.derived import decision_impact
from assets.partitions import OWNERS, QUARTERS
from assets.previews import picture
from memory_pipelines.pipeline import reward
from memory_pipelines.quality.distribution import summarise
from memory_pipelines.quality.suites import SuiteResult
from memory_pipelines.wiring import Platform
from resources.platform import PlatformResource

ONE_BY_ONE = dg.BackfillPolicy.multi_run(1)
SHOWN_PROMOTIONS = 10
IMPACT_CHECKS = (
    dg.AssetCheckKey(decision_impact.key, "impact_distribution"),
    dg.AssetCheckKey(dg.AssetKey("memory_health"), "impact_skew"),
)
"""Checks of the impacts in use: one that fails asks for a retraining."""


def end_of(context: dg.AssetExecutionContext, platform: Platform) -> datetime:
    """The quarter's end, or how far logs have landed: after their end it would read as if nobody bought."""
    end: datetime = context.partition_time_window.end
    manifest = platform.ledger.manifest()
    return end if manifest is None else min(end, manifest.landed_through)


@dg.asset(
    deps=[dg.AssetDep(day_manifest, partition_mapping=dg.AllPartitionMapping())],
    partitions_def=QUARTERS,
    backfill_policy=ONE_BY_ONE,
    group_name="reward",
    owners=OWNERS,
    kinds={"python", "deltalake"},
)
def reward_training_rows(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Every event with what its person did around it, and how far that fell from what matched controls did."""
    rows = reward.collect_reward_events(memory.platform, end_of(context, memory.platform))
    return dg.MaterializeResult(
        metadata={"dagster/row_count": rows.num_rows, "closed_windows": rows["window_closed"].to_pylist().count(True)}
    )


@dg.asset_check(asset=reward_training_rows, blocking=True)
def behaviour_is_sound(memory: PlatformResource) -> dg.AssetCheckResult:
    """Great Expectations on the behaviour of the last 90 days: keys, times, amounts, known kinds."""
    return suite_check(reward.check_behaviour(memory.platform), memory.platform)


@dg.asset_check(asset=reward_training_rows, blocking=True)
def features_are_sound(memory: PlatformResource) -> dg.AssetCheckResult:
    """Great Expectations on the features: ranges, nothing from the future, no column that vanished."""
    return suite_check(reward.check_training_rows(memory.platform), memory.platform)


@dg.asset(
    deps=[reward_training_rows],
    partitions_def=QUARTERS,
    backfill_policy=ONE_BY_ONE,
    group_name="reward",
    owners=OWNERS,
    kinds={"lightgbm"},
)
def reward_model(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """The challenger: fitted on the earlier three quarters of the rows, judged on the later one, kept in the
    registry with data range, hash and metrics."""
    from memory_pipelines.reward import plots

    trained = reward.train_reward(memory.platform, end_of(context, memory.platform))
    if trained.row is None or trained.metrics is None:
        return dg.MaterializeResult(metadata={"dagster/row_count": 0, "nothing_to_do": trained.nothing_to_do})
    metrics = trained.metrics
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": trained.row.rows,
            "model": trained.row.model_id,
            "data_from": trained.row.data_from.isoformat(),
            "data_to": trained.row.data_to.isoformat(),
            "auc": metrics.auc,
            "brier": metrics.brier,
            "calibration_error": metrics.calibration_error,
            "calibration": picture("Calibration", plots.calibration_curve(metrics.calibration)),
            "impact_histogram": picture("Impact", plots.impact_histogram(trained.scores)),
            "feature_gain": picture("Gain", plots.feature_gain(metrics.gain)),
            "by_intent": dg.MetadataValue.table(
                [dg.TableRecord({"intent": name, **asdict(found)}) for name, found in metrics.intents.items()],
                _BY_INTENT,
            ),
            "examples": dg.MetadataValue.md("\n\n".join("```\n" + "\n".join(e) + "\n```" for e in trained.examples)),
        }
    )


@dg.asset_check(asset=reward_model, blocking=True)
def scores_well_distributed(memory: PlatformResource) -> dg.AssetCheckResult:
    """The challenger's scores: deviation, label shares, two humps, collapse. A fault blocks the promotion."""
    problems = reward.challenger_problems(memory.platform)
    return dg.AssetCheckResult(passed=not problems, metadata={p.name: p.text for p in problems})


@dg.asset(
    deps=[reward_model],
    partitions_def=QUARTERS,
    backfill_policy=ONE_BY_ONE,
    group_name="reward",
    owners=OWNERS,
    kinds={"postgresql"},
)
def reward_champion(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Champion against challenger on the same held-out events. A promotion has every subject derived anew."""
    verdict = reward.decide_reward(memory.platform, end_of(context, memory.platform))
    registry = memory.platform.registry
    champion = registry.champion(reward.KIND)
    history = [
        dg.TableRecord({"at": found.at.isoformat(), "model": found.model_id, "reason": found.reason})
        for found in registry.promotions(reward.KIND, SHOWN_PROMOTIONS)
    ]
    return dg.MaterializeResult(
        metadata={
            "promoted": verdict.promote,
            "reason": verdict.reason,
            "champion": "rules" if champion is None else champion.model_id,
            **({"promotions": dg.MetadataValue.table(history)} if history else {}),
        }
    )


@dg.asset_check(asset=decision_impact)
def impact_distribution(memory: PlatformResource) -> dg.AssetCheckResult:
    """Final impacts of 90 days are sound: in range, not almost binary, not collapsed, of no two humps, and spread as
    over the training range. If not, the sensor ``skewed_impacts`` asks for a retraining."""
    live = reward.check_live_impacts(memory.platform)
    found = suite_check(live.suite, memory.platform)
    summary = summarise(live.impacts)
    shares = {f"share_{label}": share for label, share in summary.shares.items()}
    return dg.AssetCheckResult(
        passed=found.passed and not live.problems,
        severity=found.severity,
        metadata={
            **found.metadata,
            **{problem.name: problem.text for problem in live.problems},
            **({"deviation": summary.deviation, "mean": summary.mean, **shares} if summary.n else {}),
        },
    )


def suite_check(result: SuiteResult, platform: Platform) -> dg.AssetCheckResult:
    """A suite's result as a check, with a link to its data docs; failures carry counts, never values."""
    rows = [{"expectation": name, "found": "holds"} for name in result.held]
    rows += [{"expectation": failure.name, "found": failure.text} for failure in result.failures]
    rows += [{"expectation": name, "found": "skipped: too few rows"} for name in result.skipped]
    docs = reward.write_docs(platform, result)
    return dg.AssetCheckResult(
        passed=result.passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={
            "rows": result.n,
            **{failure.name: failure.text for failure in result.failures},
            **({"expectations": dg.MetadataValue.table([dg.TableRecord(row) for row in rows])} if rows else {}),
            **({"data_docs": dg.MetadataValue.url(docs)} if docs else {}),
        },
    )


_BY_INTENT = dg.TableSchema(
    columns=[
        dg.TableColumn("intent", "string"),
        dg.TableColumn("rows", "int"),
        dg.TableColumn("auc", "float", description="none where all labels are of one class"),
        dg.TableColumn("brier", "float"),
        dg.TableColumn("score", "float", description="mean score, by expected orders"),
        dg.TableColumn("seen", "float", description="1 − observed / expected orders"),
    ]
)

ASSETS = [reward_training_rows, reward_model, reward_champion]
CHECKS = [behaviour_is_sound, features_are_sound, scores_well_distributed, impact_distribution]
