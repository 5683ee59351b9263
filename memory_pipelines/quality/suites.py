"""Suites of expectations over data frames, run by Great Expectations.

Belongs here: the runner. Does not belong here: the suites themselves (``data/*.yaml``), or what a failure leads to.
A result names expectations and counts rows; it never quotes a value.
"""

import importlib.resources
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from memory_pipelines.errors import InputError, IntegrityError
from memory_pipelines.quality.docs import render

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SUITES = ("behaviour", "reward_features", "impact")


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that did not hold: in ``unexpected`` rows, or (None) as a whole."""

    name: str
    unexpected: int | None
    text: str


@dataclass(frozen=True)
class SuiteResult:
    """What a suite found in ``n`` rows. ``skipped``: expectations over distributions, of too few rows; ``held``: those
    that held; ``page``: the data docs of this run, HTML without any value of a row (empty if a column is missing)."""

    suite: str
    passed: bool
    failures: tuple[Failure, ...]
    n: int
    skipped: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    page: str = field(default="", repr=False, compare=False)


def run_suite(name: str, frame: "pd.DataFrame") -> SuiteResult:
    """Check ``frame`` against a suite of ``SUITES``; failures in the order of the suite.

    A column that the suite needs and the frame lacks is the one failure then. The first call of a process imports
    Great Expectations (some seconds). Raises InputError for a suite that does not exist.
    """
    suite = _suite(name)
    missing = [column for column in suite["columns"] if column not in frame.columns]
    if missing:
        failure = Failure("columns", None, f"columns are missing: {', '.join(missing)}")
        return SuiteResult(name, False, (failure,), len(frame))
    enough = len(frame) >= suite["enough_rows"]
    wanted = [e["name"] for e in suite["expectations"] if enough or not e.get("distribution")]
    skipped = tuple(e["name"] for e in suite["expectations"] if e["name"] not in wanted)
    found = _definition(name, enough).run(
        batch_parameters={"dataframe": frame},
        result_format={"result_format": "BASIC", "partial_unexpected_count": 0},
    )
    failed = [_failure(result) for result in found.results if not result.success]
    failures = tuple(sorted(failed, key=lambda failure: wanted.index(failure.name)))
    held = tuple(name for name in wanted if name not in {failure.name for failure in failures})
    return SuiteResult(name, not failures, failures, len(frame), skipped, held, render(found))


def feature_frame(rows: "pa.Table", names: Sequence[str]) -> "pd.DataFrame":
    """REWARD_EVENTS rows as the suite ``reward_features`` wants them: each feature of ``names`` is a column.

    Raises IntegrityError where a row has another number of features.
    """
    import numpy as np

    features = rows["features"].to_pylist()
    if any(row is None or len(row) != len(names) for row in features):
        raise IntegrityError(f"reward events do not have {len(names)} features each")
    matrix = np.array(features, dtype=float).reshape(len(features), len(names))
    frame = rows.drop_columns(["features"]).to_pandas()
    return frame.drop(columns=[n for n in names if n in frame]).assign(**dict(zip(names, matrix.T, strict=True)))


@cache
def _suite(name: str) -> dict[str, Any]:
    if name not in SUITES:
        raise InputError(f"no such suite; known are {', '.join(SUITES)}")
    data = importlib.resources.files("memory_pipelines.quality") / "data" / f"{name}.yaml"
    parsed: dict[str, Any] = yaml.safe_load(data.read_text(encoding="utf-8"))
    return parsed


@cache
def _definition(name: str, enough: bool) -> Any:
    """The validation definition of a suite in a context of its own; without distributions unless ``enough``."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # it is read when a context is made
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    expectations = [
        {"type": e["type"], "kwargs": e["kwargs"], "meta": {"name": e["name"]}}
        for e in _suite(name)["expectations"]
        if enough or not e.get("distribution")
    ]
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset(name)
    batch = asset.add_batch_definition_whole_dataframe("whole")
    suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
    return context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))


def _failure(result: Any) -> Failure:
    name, found = result.expectation_config.meta["name"], result.result
    if "unexpected_count" in found:
        count, of = int(found["unexpected_count"]), int(found["element_count"])
        return Failure(name, count, f"{name}: not so in {count} of {of} rows")
    observed = found.get("observed_value")
    seen = "cannot be evaluated on this column" if observed is None else f"not so, it is {float(observed):.4f}"
    return Failure(name, None, f"{name}: {seen}")
