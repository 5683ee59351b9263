"""Where every row of every public dialogue set is, after landing and step 1.

    python -m benchmarks.public_accounts DATA_FOLDER [--only sgd irc] [--jddc-rows 100000] [--out FILE.json]

Belongs here: the protocol, the mappings, and the table. Does not belong here: how a set that no reader is for
becomes rows (``conversions``), or what is made of the rows later (``public_logs``).

Protocol: each set in a fresh home with embedded servers. Exports are landed from the data folder as they come,
under the mapping below; the others are converted into a temporary folder first, which is not counted. All days
are cut (step 1), accounts are taken; then the same files are landed and cut once more. The run fails where
a row is not accounted for, a file cannot be read, or the second landing adds anything. Of JDDC the first
``--jddc-rows`` messages are read (default 100,000 of 101,501).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import conversions
from benchmarks.machine import describe, line
from benchmarks.workplace import temporary_home

if TYPE_CHECKING:
    from memory_pipelines.wiring import Platform

MEMDAILY = """\
columns: {turn_id: mid, user_id: owner, conversation_id: owner, text: message, occurred_at: time}
constants: {role: user}
timezone: Asia/Shanghai
time_formats:
""" + "".join(f'  - "%Y年%m月%d日 周{day} %H:%M"\n' for day in "一二三四五六日")
JDDC_ROWS = 100_000


@dataclass(frozen=True)
class LogSet:
    """``where``: what is landed of the data folder as it is; without it ``convert`` writes ``file``.
    ``mapping``: YAML."""

    name: str
    where: str = ""
    file: str = ""
    convert: Callable[[Path, Path], None] | None = None
    mapping: str = ""


def log_sets(jddc_rows: int) -> tuple[LogSet, ...]:
    """All sets, in the order of the table."""
    return (
        LogSet("locomo", file="locomo.jsonl", convert=conversions.locomo_all),
        LogSet("memdaily", file="memdaily.jsonl", convert=conversions.memdaily, mapping=MEMDAILY),
        LogSet("memorybank", file="memorybank.jsonl", convert=conversions.memorybank),
        LogSet("crosswoz", file="crosswoz.jsonl", convert=conversions.crosswoz),
        LogSet("sgd", file="sgd.jsonl", convert=conversions.sgd),
        LogSet("uss", file="uss.jsonl", convert=conversions.uss),
        LogSet("tau_bench", file="tau_bench.jsonl", convert=conversions.tau_bench),
        LogSet("abcd", file="abcd.jsonl", convert=conversions.abcd),
        LogSet("jddc", file="jddc.csv", convert=partial(conversions.jddc_csv, limit=jddc_rows)),
        LogSet("whatstk", "whatsapp_whatstk"),
        LogSet("langchain", "langchain_examples"),
        LogSet("chatgpt", "chatgpt_convonaut", mapping="constants: {user_id: owner}\n"),
        LogSet("intercom", "intercom_airbyte"),
        LogSet("irc", "irc_ubuntu"),
    )


def main(argv: Sequence[str] | None = None) -> int:
    names = [log_set.name for log_set in log_sets(JDDC_ROWS)]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public_accounts", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("data", type=Path, help="folder of the public sets, one folder each")
    parser.add_argument("--only", nargs="+", choices=names, help="these sets alone")
    parser.add_argument("--jddc-rows", type=int, default=JDDC_ROWS, help="at most so many messages of JDDC")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args(argv)
    machine = describe()
    print(line(machine))
    figures = []
    for log_set in log_sets(arguments.jddc_rows):
        if not arguments.only or log_set.name in arguments.only:
            figures.append(run(log_set, arguments.data))
            show(figures[-1])
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine, "sets": figures}, indent=1), encoding="utf-8")
    return 0 if all(sound(found) for found in figures) else 1


def run(log_set: LogSet, data: Path) -> dict[str, Any]:
    """Land and cut one set twice; its figures."""
    from memory_pipelines.pipeline import audit
    from memory_pipelines.settings import Settings
    from memory_pipelines.tables import EXCHANGES
    from memory_pipelines.wiring import connect

    with tempfile.TemporaryDirectory(prefix="mp-bench-accounts-") as folder, temporary_home() as home:
        place = data / log_set.where
        if log_set.convert is not None:
            place = Path(folder) / log_set.file
            log_set.convert(data, place)
        mapping = None
        if log_set.mapping:
            mapping = Path(folder) / "mapping.yaml"
            mapping.write_text(log_set.mapping, encoding="utf-8")
        with connect(replace(Settings.load({}), home=str(home))) as platform:
            began = time.perf_counter()
            files = _land_and_cut(platform, place, mapping)
            seconds = time.perf_counter() - began
            accounts = audit.accounts(platform)
            exchanges = platform.lake.read(EXCHANGES, columns=["owner"]).num_rows
            _land_and_cut(platform, place, mapping)
            again = audit.accounts(platform)
            added = again.rows - accounts.rows
            added += abs(platform.lake.read(EXCHANGES, columns=["owner"]).num_rows - exchanges)
    return {
        "name": log_set.name,
        "files": files,
        **accounts.as_dict(),
        "exchanges": exchanges,
        "seconds": round(seconds, 1),
        "added_by_second_landing": added,
        "same_after_second_landing": again == accounts,
    }


def _land_and_cut(platform: "Platform", place: Path, mapping: Path | None) -> dict[str, int]:
    """Land, then cut the days that it touched; how many files have which state."""
    from memory_pipelines.pipeline import daily, files

    states: dict[str, int] = {}
    for landed in files.land(platform, [place], mapping=mapping):
        states[landed.status] = states.get(landed.status, 0) + 1
    if days := list(platform.ledger.touched_days()):
        daily.cut_days(platform, days)
        settings = platform.settings
        versions = {spec.name: platform.lake.version(spec) for spec in daily.BASE_TABLES}
        written = platform.ledger.written_days(days)  # committed without labels, which nothing here reads
        platform.ledger.commit_days(written, versions=versions, model_set=settings.model_set, at=platform.clock.now())
    return states


def sound(figures: dict[str, Any]) -> bool:
    """Whether all rows are accounted for, and the second landing changed nothing."""
    unread = figures["files"].get("unreadable", 0)
    added = figures["added_by_second_landing"] or not figures["same_after_second_landing"]
    return not (figures["balance"] or figures["uncut"] or unread or added)


def show(figures: dict[str, Any]) -> None:
    terms = [f"{figures['in_exchanges']} turns in exchanges", f"{figures['nobody']} of nobody"]
    terms += [f"{number} filtered as {rule}" for rule, number in figures["filtered"].items()]
    terms += [f"{number} quarantined for {reason}" for reason, number in figures["quarantined"].items()]
    terms += [f"{figures['duplicates']} duplicates", f"{figures['behaviour']} behaviour events"]
    files = ", ".join(f"{number} {state}" for state, number in figures["files"].items())
    print(f"\n{figures['name']}: files {files}; {figures['seconds']} s for landing and step 1")
    print(f"    {figures['rows']} rows in = " + " + ".join(terms) + f"; not accounted for: {figures['balance']}")
    print(
        f"    {figures['exchanges']} exchanges; a second landing adds {figures['added_by_second_landing']}", flush=True
    )


if __name__ == "__main__":
    sys.exit(main())
