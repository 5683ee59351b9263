"""Commands over labelled rows: labels import, labels export.

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
        "import",
        help="CSV: text,lang,intent,action[,category] or text,score[,emotion]; JSON lines: text, spans; or a filled-in "
        "file of labels export",
    )
    action.add_argument("file", type=Path, help="its rows replace those of an earlier file of the same name")
    action.set_defaults(run=_import)
    action = actions.add_parser(
        "export", help="the events whose decision impact is most uncertain, for a human to judge"
    )
    action.add_argument("file", type=Path, help="a new CSV; it holds what people said: delete it once it is imported")
    action.add_argument("--rows", type=int, default=50)
    action.set_defaults(run=_export)


def _import(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline.trained import import_labels
    from memory_pipelines.reward.annotate import is_annotations
    from memory_pipelines.wiring import connect

    if is_annotations(arguments.file):
        return _import_impacts(arguments.file)
    with connect() as platform:
        found = import_labels(platform, arguments.file)
    for number, fault in found.faults:
        print(f"row {number}: {fault}")
    print(f"{found.rows.num_rows} rows of {found.kind} are in; {len(found.faults)} are faulty and stay in the file")
    print(f"the asset {ASSET[found.kind]} trains on them")
    return 1 if found.faults else 0


def _import_impacts(file: Path) -> int:
    from memory_pipelines.pipeline.annotations import import_annotations
    from memory_pipelines.wiring import connect

    with connect() as platform:
        found = import_annotations(platform, file)
    for number, fault in found.faults:
        print(f"row {number}: {fault}")
    print(f"{found.rows} decision impacts are in; {len(found.faults)} rows are faulty")
    print("the next reward_job learns from them")
    return 1 if found.faults else 0


def _export(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline.annotations import export_uncertain
    from memory_pipelines.wiring import connect

    with connect() as platform:
        written = export_uncertain(platform, arguments.file, arguments.rows)
    print(
        f"{written} events: fill in the column impact (low, medium, high, or a number from 0 to 1), then labels import"
    )
    return 0


ASSET = {"intent": "intent_model", "emotion": "emotion_model", "entities": "entity_model"}
