"""The command that writes simulated logs.

Belongs here: its arguments and printing. Does not belong here: anything another program would want to call.
"""

import argparse
from pathlib import Path
from typing import Any

from memory_pipelines.errors import InputError


def add_commands(commands: Any) -> None:
    """Add the command to the sub-parsers of ``memory-pipelines``."""
    command = commands.add_parser("sample", help="write simulated logs with known causes, and the truth beside them")
    command.add_argument("folder", type=Path)
    command.add_argument("--turns", type=_positive, help="about this many turns; default: the small sample")
    command.add_argument("--days", type=_positive, help="with --turns: over so many days; default: 100")
    command.add_argument("--tenants", type=_positive, help="with --turns: so many tenants; default: 2")
    command.add_argument("--seed", type=int, help="with --turns: another world; default: 7")
    command.add_argument("--format", choices=("jsonl", "jsonl.gz", "jsonl.zst", "parquet"), default="jsonl")
    command.add_argument("--split", type=_split, default="month", help="a file a month, a day, or this many rows")
    command.set_defaults(run=_sample)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give a number above 0")
    return number


def _split(text: str) -> str | int:
    if text in ("month", "day"):
        return text
    try:
        return _positive(text)
    except ValueError:
        raise argparse.ArgumentTypeError("give month, day, or the most rows of a file") from None


def _sample(arguments: argparse.Namespace) -> int:
    from memory_pipelines.sample import Config, write_sample

    given = {name: getattr(arguments, name) for name in ("seed", "days", "tenants")}
    chosen = {name: value for name, value in given.items() if value is not None}
    if chosen and arguments.turns is None:
        raise InputError(f"--{next(iter(chosen))} goes with --turns")
    config = Config.sample() if arguments.turns is None else Config.sized(arguments.turns, **chosen)
    summary = write_sample(arguments.folder, config, arguments.format, arguments.split)
    shown = [str(folder) for folder in summary.logs.values()][:3]
    more = f" and {len(summary.logs) - 3} more" if len(summary.logs) > 3 else ""
    print(f"{summary.turns} turns in {', '.join(shown)}{more}; the truth in {summary.truth}")
    return 0
