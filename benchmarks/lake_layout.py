"""How the exchanges of a lake are best cut into files: what each layout costs whom.

    python -m benchmarks.lake_layout [--turns 1000000] [--out FILE.json]

Belongs here: the layouts that were compared and what is done with each. Does not belong here: the one that was
chosen (``tables``) and why (docs/adr/0004).

Protocol: simulated logs of 100 days (seed 7) are landed and cut; their exchanges are then written day by day, one
commit a day as the daily job does, into a Delta table partitioned by bucket, or by bucket and month, and compacted in
the order of owner keys. Each reading is a fresh one; the file system's cache is warm. One run each, seconds.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.machine import describe, line
from benchmarks.workplace import temporary_home

LAYOUTS = {"bucket": ["bucket"], "bucket and month": ["bucket", "month"]}
BUCKET = pc.field("bucket") == 3


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lake_layout", description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1_000_000, help="size of the logs")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args(argv)
    machine = describe()
    print(line(machine), flush=True)
    exchanges = cut(arguments.turns)
    print(f"{exchanges.num_rows} exchanges, {round(exchanges.nbytes / 1e6)} MB in memory", flush=True)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mp-bench-layout-") as folder:
        for name, partitions in LAYOUTS.items():
            rows += measure(f"{folder}/{len(rows)}", name, partitions, exchanges)
    names = list(rows[0])
    for name in names:
        print(f"{name:<34}" + "".join(f"{row[name]:>28}" for row in rows))
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1), encoding="utf-8")
    return 0


def cut(turns: int) -> pa.Table:
    """The exchanges of simulated logs of that size."""
    from memory_pipelines.pipeline import daily, files
    from memory_pipelines.sample import Config, write_sample
    from memory_pipelines.settings import Settings
    from memory_pipelines.tables import EXCHANGES
    from memory_pipelines.wiring import connect

    with tempfile.TemporaryDirectory(prefix="mp-bench-logs-") as folder, temporary_home() as home:
        write_sample(Path(folder), Config.sized(turns))
        os.environ["MEMORY_PIPELINES_HOME"] = str(home)
        os.environ["MEMORY_PIPELINES_INBOX"] = str(Path(folder) / "logs")
        with connect(Settings.load()) as platform:
            files.land(platform, [platform.settings.inbox_path])
            daily.cut_days(platform, platform.ledger.touched_days())
            return platform.lake.read(EXCHANGES)


def measure(path: str, name: str, partitions: list[str], exchanges: pa.Table) -> list[dict[str, Any]]:
    """Two rows of figures: the table as its days were written, and compacted."""
    from deltalake import DeltaTable, WriterProperties, write_deltalake

    from memory_pipelines.stores.lake import ROW_GROUP

    def write(day: str, **how: Any) -> None:
        rows = exchanges.filter(pc.equal(exchanges["day"], day)).sort_by("owner")
        write_deltalake(path, rows, partition_by=partitions, configuration=STATISTICS, **how)

    days = sorted(exchanges["day"].unique().to_pylist())
    for day in days:
        write(day, mode="append")
    result = [{"layout": name, "state": "as written"} | _figures(path, exchanges, days, write)]
    properties = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP)
    spent = _seconds(lambda: DeltaTable(path).optimize.z_order(["owner"], writer_properties=properties))
    result[0]["compaction"] = "-"
    result.append({"layout": name, "state": "compacted"} | _figures(path, exchanges, days, write))
    result[1]["compaction"] = spent
    return result


STATISTICS = {"delta.dataSkippingStatsColumns": "owner,day,started_at"}


def _figures(path: str, exchanges: pa.Table, days: list[str], write: Callable[..., None]) -> dict[str, Any]:
    from deltalake import DeltaTable

    owners = sorted(exchanges["owner"].unique().to_pylist())
    few = pa.array(sorted(random.Random(1).sample(owners, max(1, len(owners) // 100))))
    low, high = owners[len(owners) // 2], owners[len(owners) // 2 + len(owners) // 20]
    owner, day = pc.field("owner"), days[len(days) // 2]

    def read(expression: pc.Expression) -> Callable[[], object]:
        return lambda: DeltaTable(path).to_pyarrow_dataset().to_table(filter=expression)

    files = set(DeltaTable(path).file_uris())
    figures = {
        "files": len(files),
        "read a bucket": _seconds(read(BUCKET)),
        "read 1 % of a bucket's owners": _seconds(read(BUCKET & owner.isin(few))),
        "read a range of 5 % of the owners": _seconds(read(BUCKET & (owner >= low) & (owner <= high))),
        "read a day": _seconds(read(pc.field("day") == day)),
        "rewrite a day": _seconds(lambda: write(day, mode="overwrite", predicate=f"day IN ('{day}')")),
    }
    return figures | {"files that this rewrites": len(files - set(DeltaTable(path).file_uris()))}


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return round(time.perf_counter() - began, 3)


if __name__ == "__main__":
    sys.exit(main())
