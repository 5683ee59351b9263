"""The reward model: ``python -m benchmarks.reward [DATA_FOLDER] [--parts simulator retail speed]``.

Belongs here: which parts there are. Does not belong here: a protocol. ``simulator``: decision impact against true
effects; ``retail``: orders and cancellations of a real shop, if a folder of the public sets is given; ``speed``: rows,
training and scoring.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine

PARTS = ("simulator", "retail", "speed")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reward", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="?", help="folder of the public sets, one folder each")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--turns", type=int, default=100_000, help="size of each simulated world")
    parser.add_argument("--days", type=int, default=250, help="length of each simulated world")
    parser.add_argument("--train-seed", type=int, default=7)
    parser.add_argument("--seeds", type=int, nargs="+", default=[501, 502], help="worlds that judge")
    parser.add_argument("--events", type=int, default=1_000_000, help="of the speed")
    chosen = parser.parse_args(arguments)
    if chosen.data is not None and not chosen.data.is_dir():
        sys.exit(f"{chosen.data} is no folder")
    print(machine.line(machine.describe()), flush=True)
    if "simulator" in chosen.parts:
        from benchmarks.reward import simulator

        simulator.print_tables(simulator.run(chosen.train_seed, chosen.seeds, chosen.turns, chosen.days))
    if "retail" in chosen.parts and chosen.data is not None:
        from benchmarks.reward import retail

        behaviour = retail.read(chosen.data)
        retail.print_figures(retail.order_within_a_week(behaviour), retail.cancellations(behaviour))
    if "speed" in chosen.parts:
        from benchmarks.reward import speed

        for title, people in (("20 events a person", max(1, chosen.events // 20)), ("one person", 1)):
            speed.print_steps(f"{chosen.events:,} events, {title}", speed.run(chosen.events, people))


if __name__ == "__main__":
    main()
