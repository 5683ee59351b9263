"""Logs taken through the steps up to the gate, as tables.

Belongs here: the pipeline's steps over one log, and what is kept of their results. Does not belong here: any figure.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.conversions import locomo_all, memdaily
from benchmarks.public_accounts import MEMDAILY
from benchmarks.workplace import temporary_home

if TYPE_CHECKING:
    from memory_pipelines.wiring import Platform

DAYS_IN_A_ROW = 30


@dataclass(frozen=True)
class World:
    """Rows of SLICES, MEMORIES and BEHAVIOUR (each event once); ``truth``: records of the simulator's by name."""

    slices: pa.Table
    memories: pa.Table
    behaviour: pa.Table
    truth: dict[str, list[dict[str, object]]]


def simulated(turns: int, seed: int) -> World:
    """A world of the simulator, in the scenario ``customer_service``."""
    from memory_pipelines.sample import Config, write_sample

    with tempfile.TemporaryDirectory(prefix="mp-bench-logs-") as folder:
        written = write_sample(Path(folder), Config.sized(turns, seed=seed))
        truth = {name: _lines(written.truth / f"{name}.jsonl") for name in ("causes", "events")}
        return _through(list(written.logs.values()), "customer_service", truth)


def public(name: str, data: Path) -> World:
    """``locomo`` or ``memdaily`` of the data folder, in the scenario ``assistant``."""
    with tempfile.TemporaryDirectory(prefix="mp-bench-logs-") as folder:
        log = Path(folder) / f"{name}.jsonl"
        if name == "memdaily":
            memdaily(data, log)
            (Path(folder) / "mapping.yaml").write_text(MEMDAILY, encoding="utf-8")
        else:
            locomo_all(data, log)
        return _through([log], "assistant", {})


def _lines(file: Path) -> list[dict[str, object]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _through(logs: Sequence[Path], scenario: str, truth: dict[str, list[dict[str, object]]]) -> World:
    from memory_pipelines.settings import Settings
    from memory_pipelines.slices.events import settled_events
    from memory_pipelines.tables import BEHAVIOUR, MEMORIES, SLICES
    from memory_pipelines.wiring import connect

    with temporary_home() as home:
        settings = replace(Settings.load({}), home=str(home), scenario=scenario)
        with connect(settings) as platform:
            _work(platform, logs)
            slices, memories = platform.lake.read(SLICES), platform.lake.read(MEMORIES)
            return World(slices, memories, settled_events(platform.lake.read(BEHAVIOUR)), truth)


def _work(platform: "Platform", logs: Sequence[Path]) -> None:
    from memory_pipelines.pipeline import derive

    label(platform, logs)
    buckets = list(platform.ledger.touched_buckets())
    derive.score_buckets(platform, buckets)
    derive.merge_buckets(platform, buckets)
    derive.admit_buckets(platform, buckets)


def label(platform: "Platform", logs: Sequence[Path]) -> None:
    """Land the logs, cut and label their days: steps 1 to 4."""
    from memory_pipelines.pipeline import daily, files
    from memory_pipelines.slices.emotion.score import label_emotions
    from memory_pipelines.slices.entities.find import label_entities
    from memory_pipelines.slices.intent.predict import label_intents
    from memory_pipelines.tables import EMOTIONS, ENTITIES, INTENTS

    for landed in files.land(platform, logs):
        assert landed.status == "landed", landed.error
    waiting = list(platform.ledger.touched_days())
    for first in range(0, len(waiting), DAYS_IN_A_ROW):
        days = waiting[first : first + DAYS_IN_A_ROW]
        daily.cut_days(platform, days)
        for spec, step in ((INTENTS, label_intents), (EMOTIONS, label_emotions), (ENTITIES, label_entities)):
            daily.label_days(platform, days, spec, step)
        daily.commit_days(platform, days)
