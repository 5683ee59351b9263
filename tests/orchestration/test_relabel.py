"""A new model set relabels beside the old one, in the same lake; what is derived follows the pinned set."""

from dataclasses import replace
from pathlib import Path

import pytest
from pipeline_world import clean_run, cut, derive_all, state

from memory_pipelines.tables import DECISIONS, EMOTIONS, ENTITIES, IMPACTS, INTENTS, MEMORIES, SLICES
from memory_pipelines.wiring import Platform

BEFORE, AFTER = "base-1", "base-2"
LABELS, DERIVED = (INTENTS, EMOTIONS, ENTITIES), (IMPACTS, SLICES, DECISIONS, MEMORIES)


def sets(platform: Platform, name: str) -> set[str]:
    spec = next(spec for spec in (*LABELS, *DERIVED) if spec.name == name)
    return set(platform.lake.read(spec, columns=["model_set"])["model_set"].to_pylist())


def relabelled(platform: Platform, model_set: str) -> None:
    """What a backfill of all days does under another setting."""
    platform.settings = replace(platform.settings, model_set=model_set)
    cut(platform, list(platform.ledger.day_counts()))
    derive_all(platform)


@pytest.fixture
def platform(weeks: list[Path]) -> Platform:
    return clean_run(weeks, model_set=BEFORE)


def test_both_labels_stay_and_what_is_derived_follows_the_pinned_set(platform: Platform, weeks: list[Path]) -> None:
    old = {spec.name: platform.lake.read(spec) for spec in LABELS}
    assert all(sets(platform, spec.name) == {BEFORE} for spec in (*LABELS, *DERIVED))
    relabelled(platform, AFTER)
    for spec in LABELS:
        assert sets(platform, spec.name) == {BEFORE, AFTER}
        rows = platform.lake.read(spec, where=[("model_set", "=", BEFORE)])
        assert rows.sort_by("exchange_id").equals(old[spec.name].sort_by("exchange_id"))
        assert platform.lake.read(spec, where=[("model_set", "=", AFTER)]).num_rows == rows.num_rows > 0
    assert all(sets(platform, spec.name) == {AFTER} for spec in DERIVED)
    manifest = platform.ledger.manifest()
    assert manifest is not None
    assert manifest.model_set == AFTER
    fresh = state(clean_run(weeks, model_set=AFTER))
    derived = {spec.name for spec in DERIVED}
    assert {k: v for k, v in state(platform).items() if k in derived} == {k: fresh[k] for k in derived}


def test_going_back_derives_everybody_from_the_old_labels_again(platform: Platform, weeks: list[Path]) -> None:
    """No label changes then, so nothing but the change of the set can tell whom it concerns."""
    before = state(platform)
    relabelled(platform, AFTER)
    relabelled(platform, BEFORE)
    derived = {spec.name for spec in DERIVED}
    assert {k: v for k, v in state(platform).items() if k in derived} == {k: before[k] for k in derived}
