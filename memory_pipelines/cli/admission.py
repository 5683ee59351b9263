"""Commands over the gate's decisions and what went before them: decisions, explain.

Belongs here: their arguments and printing. Does not belong here: anything another program would want to call.
"""

import argparse
from typing import Any

from memory_pipelines.errors import InputError
from memory_pipelines.shown import shown

WIDEST = 60
"""Characters to which the columns of a table are aligned; a longer cell moves its own row alone."""


def add_commands(commands: Any) -> None:
    """Add the commands to the sub-parsers of ``memory-pipelines``."""
    command = commands.add_parser("decisions", help="ask the gate's decisions by SQL: the table is called decisions")
    command.add_argument("query", help="such as: SELECT outcome, count(*) FROM decisions GROUP BY outcome")
    command.set_defaults(run=_decisions)
    command = commands.add_parser("explain", help="why something is remembered, or is not: every part of the decision")
    command.add_argument("--memory", help="a memory id, or how it begins")
    command.add_argument("--sample", type=int, metavar="N", help="instead: N kept memories, drawn at random")
    command.add_argument(
        "--impact", metavar="ID", help="instead: why an exchange or an event slice has its decision impact"
    )
    command.add_argument("--seed", default="", help="with --sample: another draw")
    command.set_defaults(run=_explain)


def _decisions(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline.decisions import query_decisions
    from memory_pipelines.wiring import connect

    with connect() as platform:
        found = query_decisions(platform, arguments.query)
    rows = [found.column_names, *([_cell(v) for v in row.values()] for row in found.to_pylist())]
    widths = [min(WIDEST, max(len(row[i]) for row in rows)) for i in range(len(found.column_names))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else shown(str(value))


def _explain(arguments: argparse.Namespace) -> int:
    from memory_pipelines.admission.explain import explain
    from memory_pipelines.pipeline.decisions import find_decisions, sample_decisions
    from memory_pipelines.wiring import connect

    if sum(given is not None for given in (arguments.memory, arguments.sample, arguments.impact)) != 1:
        raise InputError("name one of --memory, --sample and --impact")
    if arguments.impact is not None:
        return _explain_impact(arguments.impact)
    with connect() as platform:
        if arguments.memory is not None:
            found = find_decisions(platform, arguments.memory)
        else:
            found = sample_decisions(platform, arguments.sample, arguments.seed)
    if not found:
        raise InputError("no decision was made on such a memory")
    for number, item in enumerate(found):
        lines = explain(item.decision, item.memory, item.places)
        print(("\n" if number else "") + "\n".join(shown(line) for line in lines))
    return 0


def _explain_impact(start: str) -> int:
    from memory_pipelines.pipeline.impacts import explain_impacts
    from memory_pipelines.wiring import connect

    with connect() as platform:
        found = explain_impacts(platform, start)
    for number, item in enumerate(found):
        print(("\n" if number else "") + f"{item.exchange_id}  {item.occurred_at:%Y-%m-%d}  {item.stage}")
        print("\n".join(f"  {shown(line)}" for line in item.lines))
    return 0
