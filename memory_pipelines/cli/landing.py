"""Commands over what comes in: import, files, quarantine, readmit, accounts.

Belongs here: their arguments and printing. Does not belong here: anything another program would want to call.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_pipelines.errors import InputError
from memory_pipelines.settings import Settings

if TYPE_CHECKING:
    from memory_pipelines.landing.preview import Preview

MOST_NAMED = 10
"""Files that are named of those that no reader is for."""


def add_commands(commands: Any) -> None:
    """Add the commands to the sub-parsers of ``memory-pipelines``."""
    command = commands.add_parser("import", help="land log files or a SQL table; the jobs then work on them")
    command.add_argument("paths", nargs="*", help="files, folders, globs or s3://bucket/prefix; plain, .gz or .zst")
    command.add_argument("--mapping", type=Path, help="YAML of columns; default: mapping.yaml beside or above a file")
    command.add_argument("--dry-run", action="store_true", help="only show what would be read; write nothing anywhere")
    command.add_argument("--sql", metavar="VARIABLE", help="environment variable that holds a SQLAlchemy URL")
    command.add_argument("--table", help="the table to read, or schema.table")
    command.add_argument("--by", metavar="COLUMN", help="column that grows; rows from its last value on are read")
    command.set_defaults(run=_import)

    command = commands.add_parser(
        "files", help="the files that were read: rows, whether to the end; which cannot be read, and why"
    )
    command.set_defaults(run=_files)

    command = commands.add_parser("quarantine", help="broken rows: how many, of which file, for which reason")
    command.add_argument("--reason")
    command.add_argument("--file", help="a file's name or id")
    command.add_argument(
        "--show", type=_count, metavar="N", default=0, help="also show N of the rows, as they were read"
    )
    command.set_defaults(run=_quarantine)

    command = commands.add_parser(
        "readmit", help="read quarantined rows again, after a fix or when their time has come"
    )
    command.add_argument("--reason", help="only rows with this reason")
    command.add_argument("--file", help="only rows of this file, by name or id")
    command.add_argument("--mapping", type=Path, help="YAML of columns; default: the one that was used, as it is now")
    command.set_defaults(run=_readmit)

    command = commands.add_parser("accounts", help="where every row that was ever read is now")
    command.set_defaults(run=_accounts)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("give a number, 0 or more")
    return number


def _import(arguments: argparse.Namespace) -> int:
    if arguments.sql is None:
        if arguments.table or arguments.by:
            raise InputError("--table and --by go with --sql")
        if not arguments.paths:
            raise InputError("name files, folders or s3:// addresses, or a table with --sql")
        return _look(arguments) if arguments.dry_run else _import_files(arguments)
    if arguments.paths or arguments.dry_run:
        raise InputError("--sql goes with --table, --by and --mapping only")
    if not (arguments.table and arguments.by):
        raise InputError("say which --table, and --by which column it grows")
    return _import_table(arguments)


def _import_files(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline import files
    from memory_pipelines.wiring import connect

    with connect() as platform:
        results = files.land(platform, arguments.paths, print, arguments.mapping)
        _print_passed_over(arguments.paths)
        print(f"{len(platform.ledger.touched_days())} days wait for the day job")
    return _report([result.error for result in results])


def _import_table(arguments: argparse.Namespace) -> int:
    from memory_pipelines.landing.sql import SqlTable
    from memory_pipelines.pipeline import files
    from memory_pipelines.wiring import connect

    table = SqlTable(arguments.sql, arguments.table, arguments.by)
    with connect() as platform:
        counts = files.land_table(platform, table, arguments.mapping)
        print(f"{table.name}: {counts.rows} rows")
        if unread := table.without():
            print(f"{unread} rows have no {table.by} and are never read")
        print(f"{len(platform.ledger.touched_days())} days wait for the day job")
    return 0


def _look(arguments: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from memory_pipelines.endpoints import with_running
    from memory_pipelines.pipeline import files
    from memory_pipelines.stores.database import reader_if_there

    settings = Settings.load()
    running = with_running(settings)
    engine = reader_if_there(running.postgres_url, running.ca_file)
    faults = 0
    for found in files.look(settings, arguments.paths, datetime.now(UTC), engine, arguments.mapping):
        print_preview(found)
        faults += bool(found.fault)
    _print_passed_over(arguments.paths)
    if engine is None:
        print("(no ledger answers: what is known, new or grown cannot be told)")
    return 1 if faults else 0


def _print_passed_over(places: Sequence[str]) -> None:
    from memory_pipelines.landing.sources import passed_over

    if names := passed_over(places):
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        print(f"no log files, left alone: {', '.join(names[:MOST_NAMED])}{more}")


def print_preview(found: "Preview") -> None:
    """What landing one source would do, in a few lines."""
    about = ", ".join(x for x in (found.format, found.known, f"mapping {found.mapping}" if found.mapping else "") if x)
    print(f"{found.name}: {about}" if about else found.name)
    if found.rows:
        days = f", days {found.first} to {found.last}" if found.first else ""
        print(f"    {found.rows} rows: {found.turns} turns, {found.behaviour} behaviour events{days}")
    for what, counts in (("filtered", found.filtered), ("quarantined", found.quarantined)):
        if counts:
            print(f"    {what}: {_listed(counts)}")
    if found.fault:
        print(f"    cannot be read: {found.fault}")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items(), key=lambda x: (-x[1], x[0])))


def _files(arguments: argparse.Namespace) -> int:
    from memory_pipelines.wiring import connect

    with connect() as platform:
        files, faults = platform.ledger.files(), platform.ledger.faults()
    for file in files:
        state = "whole" if file["complete"] else "broken off"
        counts = f"{file['rows']:>10} rows {sum(file['quarantined'].values()):>8} quarantined"
        print(f"{counts}  {state:<10}  {file['file_id']}  {file['name']}")
    if faults:
        print("cannot be read to the end, as of the last look:")
    for fault in faults:
        print(f"    {fault.source}  {fault.name}: {fault.fault}")
    return 0


def _quarantine(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline import quarantine
    from memory_pipelines.wiring import connect

    with connect() as platform:
        held = quarantine.held(platform, reason=arguments.reason, file=arguments.file)
        rows = quarantine.rows(platform, arguments.show, reason=arguments.reason, file=arguments.file)
    total: Counter[str] = Counter()
    for entry in held:
        print(f"{entry.rows:>10}  {entry.reason:<26}  {entry.name}")
        total[entry.reason] += entry.rows
    print(f"{total.total():>10}  in all")
    for row in rows:
        print(f"\n{row['reason']}  {row['file_id']} row {row['position']}\n{row['raw']}")
    return 0


def _readmit(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline import quarantine
    from memory_pipelines.wiring import connect

    with connect() as platform:
        results = quarantine.readmit(
            platform, reason=arguments.reason, file=arguments.file, mapping=arguments.mapping
        )  # fmt: skip
        left = platform.ledger.landed().quarantined
        waiting = len(platform.ledger.touched_days())
    for result in results:
        counts = result.counts
        print(
            f"{result.name}: {sum(counts.quarantined.values())} rows left quarantine: {counts.turns} turns, "
            f"{counts.behaviour} behaviour events, {sum(counts.filtered.values())} filtered"
        )
    print(f"{sum(left.values())} rows stay; {waiting} days wait for the day job")
    return _report([result.error for result in results])


def _report(errors: Sequence[str]) -> int:
    for error in errors:
        if error:
            print(f"memory-pipelines: {error}", file=sys.stderr)
    return 1 if any(errors) else 0


def _accounts(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline import audit
    from memory_pipelines.wiring import connect

    with connect() as platform:
        accounts = audit.accounts(platform)
    print(json.dumps(accounts.as_dict(), ensure_ascii=False, indent=2))
    return 0 if accounts.balance == 0 else 1
