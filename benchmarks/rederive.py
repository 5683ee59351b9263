"""The cost of deriving some of the subjects again: in proportion to them, or to the lake?

    python -m benchmarks.rederive [--turns 1000000] [--shares 0.001 0.01 0.1 1] [--out FILE.json]

Belongs here: the protocol, one table. Does not belong here: the speed of the first run (``throughput``).

Protocol: simulated logs of 100 days (``memory_pipelines.sample``, seed 7), embedded servers, a Delta lake on disk;
days are cut and labelled in ranges of 30, everybody is derived and published once, the lake is compacted as every
night. Then, for each share, so many subjects drawn at random are touched, and steps 5 to 7 are timed over all
buckets. All of it is the share 1 in the same process: every subject derived again, with nothing new to publish.
*History*: the touched subjects' part of all exchanges. Steps are in processor seconds, of this process and of the
servers together, which other work on the machine disturbs least.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import describe, line
from benchmarks.stopwatch import ONE_TO_SIX, PUBLISHING, ServerClock, Spent, Stopwatch
from benchmarks.workplace import temporary_home

if TYPE_CHECKING:
    from memory_pipelines.wiring import Platform

STEPS = ("score_buckets", "merge_buckets", "admit_buckets", "link_buckets", "publish_buckets")
DAYS_IN_A_ROW = 30


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rederive", description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1_000_000, help="size of the logs")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001, 0.01, 0.1, 1.0])
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args(argv)
    machine = describe()
    print(line(machine), flush=True)
    rows = measure(arguments.turns, arguments.shares)
    print_table(rows)
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1), encoding="utf-8")
    return 0


def measure(turns: int, shares: Sequence[float]) -> list[dict[str, Any]]:
    """Per share: subjects touched, their part of all exchanges, processor seconds of each step, seconds in all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from memory_pipelines.pipeline import derive, upkeep
    from memory_pipelines.sample import Config, write_sample
    from memory_pipelines.settings import Settings
    from memory_pipelines.tables import EXCHANGES
    from memory_pipelines.wiring import connect

    with tempfile.TemporaryDirectory(prefix="mp-bench-logs-") as folder, temporary_home() as home:
        write_sample(Path(folder), Config.sized(turns))
        os.environ["MEMORY_PIPELINES_HOME"] = str(home)
        os.environ["MEMORY_PIPELINES_INBOX"] = str(Path(folder) / "logs")
        with connect(Settings.load()) as platform:
            whole = Stopwatch(ServerClock(home))
            with whole.watching():
                first_run(platform)
            one_to_six, publishing = whole.total(*ONE_TO_SIX), whole.total(*PUBLISHING)
            print(f"first run: steps 1-6 {one_to_six}, publishing {publishing}", flush=True)
            upkeep.keep_up(platform)
            exchanges = platform.lake.read(EXCHANGES, columns=["owner"])["owner"]
            rows = []
            for share in shares:
                touched = touch(platform, share)
                stopwatch = Stopwatch(ServerClock(home))
                theirs = pc.sum(pc.is_in(exchanges, value_set=pa.array(touched))).as_py()
                row: dict[str, Any] = {"share": share, "subjects": len(touched), "history": theirs / len(exchanges)}
                buckets = platform.ledger.touched_buckets()
                spent = Spent()
                for step in STEPS:
                    began = stopwatch.now()
                    getattr(derive, step)(platform, buckets)
                    took = stopwatch.now() - began
                    row[step] = round(took.processor, 2)
                    spent += took
                row |= {"processor": round(spent.processor, 2), "wall": round(spent.wall, 2)}
                rows.append(row)
            return rows


def first_run(platform: "Platform") -> None:
    """Everything landed, cut, labelled, derived and published."""
    from memory_pipelines.pipeline import daily, derive, files
    from memory_pipelines.slices.emotion.score import label_emotions
    from memory_pipelines.slices.entities.find import label_entities
    from memory_pipelines.slices.intent.predict import label_intents
    from memory_pipelines.tables import EMOTIONS, ENTITIES, INTENTS

    files.land(platform, [platform.settings.inbox_path])
    waiting = list(platform.ledger.touched_days())
    for first in range(0, len(waiting), DAYS_IN_A_ROW):
        days = waiting[first : first + DAYS_IN_A_ROW]
        daily.cut_days(platform, days)
        for spec, step in ((INTENTS, label_intents), (EMOTIONS, label_emotions), (ENTITIES, label_entities)):
            daily.label_days(platform, days, spec, step)
        daily.commit_days(platform, days)
    derive.derive_buckets(platform, platform.ledger.touched_buckets())


def touch(platform: "Platform", share: float) -> list[str]:
    """Touch a share of all subjects at random, as a late row of each would; returns their keys."""
    import sqlalchemy as sa

    from memory_pipelines.stores import schema

    table = schema.owners
    with platform.engine.begin() as connection:
        owners = sorted(connection.execute(sa.select(table.c.owner)).scalars())
        chosen = random.Random(7).sample(owners, max(1, round(share * len(owners))))
        touch = schema.next_touch(connection)
        for first in range(0, len(chosen), 1000):
            connection.execute(
                table.update().where(table.c.owner.in_(chosen[first : first + 1000])).values(touched=touch)
            )
    return chosen


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    whole = max(rows, key=lambda row: row["share"])["processor"]
    print(
        f"{'share':>8}{'subjects':>10}{'history':>9}"
        + "".join(f"{step:>16}" for step in STEPS)
        + f"{'processor':>11}{'of all':>9}{'wall':>9}"
    )
    for row in rows:
        print(
            f"{row['share']:>8.1%}{row['subjects']:>10}{row['history']:>9.2%}"
            + "".join(f"{row[step]:>16.2f}" for step in STEPS)
            + f"{row['processor']:>11.2f}{row['processor'] / whole:>9.2%}{row['wall']:>9.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
