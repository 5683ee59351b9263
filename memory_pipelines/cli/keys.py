"""The commands over the key ring of sensitive fields.

Belongs here: their arguments and printing. Does not belong here: anything another program would want to call.
"""

import argparse
from typing import Any


def add_commands(commands: Any) -> None:
    """Add the command to the sub-parsers of ``memory-pipelines``."""
    command = commands.add_parser("keys", help="the key ring of sensitive fields")
    command.add_argument(
        "action",
        choices=("check", "rotate"),
        help="check: open every key and value; rotate: wrap all keys anew, a new master key replaces the key file",
    )
    command.set_defaults(run=_keys)


def _keys(arguments: argparse.Namespace) -> int:
    from memory_pipelines.wiring import connect

    with connect() as platform:
        if arguments.action == "rotate":
            count = platform.keyring.rotate()
            print(f"{count} keys are wrapped anew; keep a copy of the new master key: the old one opens nothing")
            return 0
        found = platform.keyring.check()
    print(f"{found.keys} keys, {found.values} values, {found.broken} of them cannot be opened")
    return 1 if found.broken else 0
