"""Commands over labelled rows: labels import.

Belongs here: their arguments and printing. Does not belong here: anything another program would want to call.
"""

import argparse
from pathlib import Path
from typing import Any


def add_commands(commands: Any) -> None:
    """Add the commands to the sub-parsers of ``memory-pipelines``."""
    command = commands.add_parser("labels", help="bring labelled rows, which the models of steps 2 to 4 learn from")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    action = actions.add_parser(
        "import", help="CSV: text,lang,intent,action[,category] or text,score[,emotion]; JSON lines: text, spans"
    )
    action.add_argument("file", type=Path, help="its rows replace those of an earlier file of the same name")
    action.set_defaults(run=_import)


def _import(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline.trained import import_labels
    from memory_pipelines.wiring import connect

    with connect() as platform:
        found = import_labels(platform, arguments.file)
    for number, fault in found.faults:
        print(f"row {number}: {fault}")
    print(f"{found.rows.num_rows} rows of {found.kind} are in; {len(found.faults)} are faulty and stay in the file")
    print(f"the asset {ASSET[found.kind]} trains on them")
    return 1 if found.faults else 0


ASSET = {"intent": "intent_model", "emotion": "emotion_model", "entities": "entity_model"}
