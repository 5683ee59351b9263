"""What the gate keeps, measured on labelled turns, simulated facts and public dialogues.

    python -m benchmarks.admission [DATA_FOLDER] [--split dev|test|fresh|paraphrases] [--parts gold simulator public]

Belongs here: which parts there are. Does not belong here: a protocol. ``gold``: the labelled turns; ``simulator``:
current values of changed facts and duplicates; ``public``: volume and evidence kept of public dialogues, if a folder
is given.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.admission import gold, report

PARTS = ("gold", "simulator", "public")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.admission", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("data", type=Path, nargs="?", help="folder of the public sets, one folder each")
    parser.add_argument("--split", choices=gold.SPLITS, default="dev", help="part of the gold set")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args(arguments)
    if chosen.data is not None and not chosen.data.is_dir():
        sys.exit(f"{chosen.data} is no folder")
    print(machine.line(machine.describe()))
    if "gold" in chosen.parts:
        rows = gold.load(chosen.split)
        report.print_gold(chosen.split, list(zip(rows, gold.run(rows), strict=True)), gold.LANGUAGES)
    if "simulator" in chosen.parts:
        from benchmarks.admission import simulator

        simulator.main()
    if "public" in chosen.parts and chosen.data is not None:
        from benchmarks.admission import public

        public.main(chosen.data)


if __name__ == "__main__":
    main()
