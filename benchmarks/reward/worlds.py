"""Simulated logs taken through steps 1 to 5, with what each event truly did to later orders.

Belongs here: the way from a configuration to tables, and the join with the truth. Does not belong here: any figure.
"""

import json
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.graph.worlds import label
from benchmarks.workplace import temporary_home

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Labelled exchanges and behaviour as ``reward.labels.reward_events`` wants them.

    ``effects``: (owner, exchange id) → the true share by which an event changed the rate of orders for 7 days, of
    those whose window had closed at the end; ``down``: the same, 0 where it rose; ``rules``: what step 5 gives without
    a model."""

    events: pa.Table
    behaviour: pa.Table
    as_of: datetime
    effects: dict[tuple[str, str], float]
    down: dict[tuple[str, str], float]
    rules: dict[tuple[str, str], float]
    people: int


def simulated(seed: int, turns: int, days: int) -> World:
    """A world of the simulator through the platform's own steps: landing, exchanges, labels, rules."""
    from memory_pipelines.pipeline import derive
    from memory_pipelines.pipeline.reward import labelled_events
    from memory_pipelines.sample import Config, write_sample
    from memory_pipelines.settings import Settings
    from memory_pipelines.slices.events import settled_events
    from memory_pipelines.tables import BEHAVIOUR, EXCHANGES, IMPACTS
    from memory_pipelines.wiring import connect

    config = Config.sized(turns, seed=seed, days=days)
    as_of = datetime.fromtimestamp(config.end, UTC)
    with tempfile.TemporaryDirectory(prefix="mp-bench-logs-") as folder, temporary_home() as home:
        written = write_sample(Path(folder), config)
        with (written.truth / "events.jsonl").open(encoding="utf-8") as lines:
            truth = [json.loads(line) for line in lines]
        settings = replace(Settings.load({}), home=str(home), scenario="customer_service")
        with connect(settings) as platform:
            label(platform, list(written.logs.values()))
            derive.score_buckets(platform, list(platform.ledger.touched_buckets()))
            manifest = platform.ledger.manifest()
            assert manifest is not None
            events = labelled_events(platform, manifest.versions, manifest.model_set, as_of)
            behaviour = settled_events(platform.lake.read(BEHAVIOUR))
            names = ["tenant", "owner", "exchange_id", "own_turn_ids"]
            exchanges = platform.lake.read(EXCHANGES, columns=names).to_pylist()
            impacts = platform.lake.read(IMPACTS, columns=["owner", "exchange_id", "decision_impact"])
    said = {
        (row["tenant"], turn): (row["owner"], row["exchange_id"]) for row in exchanges for turn in row["own_turn_ids"]
    }
    effects: dict[tuple[str, str], float] = {}
    down: dict[tuple[str, str], float] = {}
    for row in truth:
        place = said.get((row["tenant"], row["turn_ids"][0]))
        if place is not None and row["window_closed"]:
            effects[place] = row["effect"]
            down[place] = row["effect"] if row["direction"] == "down" else 0.0
    rules = {(r["owner"], r["exchange_id"]): r["decision_impact"] for r in impacts.to_pylist()}
    return World(events, behaviour, as_of, effects, down, rules, config.subjects)


def of_rows(values: dict[tuple[str, str], float], rows: pa.Table) -> Floats:
    """The value of each row of REWARD_EVENTS; NaN where there is none."""
    keys = zip(rows["owner"].to_pylist(), rows["exchange_id"].to_pylist(), strict=True)
    return np.array([values.get(key, np.nan) for key in keys], dtype=np.float64)
