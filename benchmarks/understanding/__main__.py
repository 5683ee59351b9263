"""All parts over one data folder: ``python -m benchmarks.understanding DATA_FOLDER [--parts embeddings intents …]``.

Belongs here: which parts there are. Does not belong here: a protocol. Each part is a command of its own, with options
of its own, and names the sets that are not in the folder.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

PARTS = ("labelling", "embeddings", "intents", "emotion", "entities")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args(arguments)
    if not chosen.data.is_dir():
        sys.exit(f"{chosen.data} is no folder")
    for name in chosen.parts:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.understanding.{name}").main([str(chosen.data)])


if __name__ == "__main__":
    main()
