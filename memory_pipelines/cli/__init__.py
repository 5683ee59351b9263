"""The command line: ``memory-pipelines``. It launches no jobs: ``dg launch`` and the UI do.

Belongs here: arguments and printing; those of commands over what comes in are in ``landing``. Does not belong here:
anything another program would want to call.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory_pipelines.cli import admission, keys, labels, landing, sample, session, stores
from memory_pipelines.errors import InputError, MemoryPipelinesError
from memory_pipelines.model import iso, utc
from memory_pipelines.settings import Settings, documented
from memory_pipelines.shown import shown

if TYPE_CHECKING:
    from memory_pipelines.wiring import Platform


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, or 1 with one line on standard error."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except MemoryPipelinesError as error:
        print(f"memory-pipelines: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memory-pipelines", description="Long-term memory from dialogue logs.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    landing.add_commands(commands)
    labels.add_commands(commands)
    admission.add_commands(commands)

    command = commands.add_parser("recall", help="what is remembered of a person")
    command.add_argument(
        "query",
        help="the question; empty: what to know at the start of a session, the three latest events of high impact",
    )
    command.add_argument("--subject", required=True, help="u:<user id> or d:<device fingerprint>")
    command.add_argument("--tenant", help="default: the tenant of the settings")
    command.add_argument("--as-of", type=_instant, help="RFC 3339 instant; default: now")
    command.add_argument("--limit", type=int, default=15, help="memories at most, 1 to 15")
    command.add_argument("--format", choices=("text", "json", "prompt"), default="text")
    command.set_defaults(run=_recall)

    command = commands.add_parser("erase", help="file, approve or preview a request to forget somebody")
    command.add_argument("--subject", help="u:<user id> or d:<device fingerprint>: file a request")
    command.add_argument("--tenant", help="default: the tenant of the settings")
    command.add_argument("--dry-run", action="store_true", help="only count what every place holds of the subject")
    command.add_argument("--approve", metavar="REQUEST", help="approve a filed request; the erasure job carries it out")
    command.add_argument("--by", help="who asks or approves; the two must differ")
    command.set_defaults(run=_erase)

    session.add_commands(commands)

    command = commands.add_parser("roll-back", help="bring the reward model before the current one into use")
    command.set_defaults(run=_roll_back)

    keys.add_commands(commands)
    stores.add_commands(commands)

    command = commands.add_parser("doctor", help="check settings, stores and ledger")
    command.set_defaults(run=_doctor)

    sample.add_commands(commands)

    command = commands.add_parser("local", help="the embedded servers of this home")
    command.add_argument("action", choices=("up", "status", "down"))
    command.set_defaults(run=_local)
    return parser


def _instant(text: str) -> datetime:
    try:
        return utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("give an instant with its zone, such as 2024-05-01T00:00:00Z") from None


def _recall(arguments: argparse.Namespace) -> int:
    from memory_pipelines.model import known_subject
    from memory_pipelines.wiring import connect

    with connect() as platform:
        answer = platform.recall.recall(
            arguments.query,
            tenant=arguments.tenant or platform.settings.tenant,
            subject=known_subject(arguments.subject),
            as_of=arguments.as_of,
            limit=arguments.limit,
        )
        if arguments.as_of is None:  # a look into the past is no use
            platform.feedback.used(answer)
    if arguments.format == "prompt":
        print(answer.prompt())
    elif arguments.format == "json":
        print(json.dumps(asdict(answer), ensure_ascii=False, default=_plain, indent=2))
    else:
        print_answer(answer)
    return 0


def _plain(value: object) -> str:
    return iso(value) if isinstance(value, datetime) else str(value)


def print_answer(answer: Any) -> None:
    """One line per memory, and why it is there below it."""
    for item in answer.items:
        print(f"- {item.memory.occurred_at:%Y-%m-%d}  {shown(item.memory.summary)}")
        print(f"    {shown(item.why)}")
    if not answer.items:
        print("nothing is remembered of it" if answer.query.strip() else "no event of high impact to begin with")
    if answer.missing:
        print(f"(no answer from: {', '.join(answer.missing)})")


def _erase(arguments: argparse.Namespace) -> int:
    from memory_pipelines.model import Owner, known_subject
    from memory_pipelines.pipeline import forget
    from memory_pipelines.wiring import connect

    if (arguments.subject is None) == (arguments.approve is None):
        raise InputError("name either --subject or --approve")
    if arguments.dry_run and arguments.approve is not None:
        raise InputError("--dry-run goes with --subject")
    if not arguments.by and not arguments.dry_run:
        raise InputError("say --by whom")
    with connect() as platform:
        if arguments.approve is not None:
            forget.approve_erasure(platform, arguments.approve, arguments.by)
            print("approved; the erasure job carries it out")
            return 0
        owner = Owner(arguments.tenant or platform.settings.tenant, known_subject(arguments.subject))
        if arguments.dry_run:
            plan = forget.plan_erasure(platform, owner)
            for place, count in plan.counts.items():
                print(f"{count:>8}  {place}")
            print(f"{plan.total:>8}  in all; {len(plan.touched_days)} days to cut anew")
            print(f"{len(plan.models):>8}  models learnt from it")
        else:
            print(f"request {forget.request_erasure(platform, owner, arguments.by)} waits for its approval")
    return 0


def _roll_back(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline.reward import roll_back_reward
    from memory_pipelines.wiring import connect

    with connect() as platform:
        print(f"in use: {roll_back_reward(platform)}; everybody waits to be derived anew")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from memory_pipelines.admission.ontology import profile as scenario_profile
    from memory_pipelines.lifecycle.tiers import profile as life_profile
    from memory_pipelines.models.sets import load_model_set
    from memory_pipelines.wiring import connect

    settings = Settings.load()
    for name, default, meaning in documented():
        value = getattr(settings, name.removeprefix("MEMORY_PIPELINES_").lower())
        shown = "(set)" if value and _secret(name) else str(value)
        print(f"{name:<40} {shown:<32} {meaning}" + ("" if str(value) != default else " [default]"))
    failures = 0
    with connect(progress=print) as platform:
        checks: dict[str, Callable[[], str]] = {
            "model set": lambda: load_model_set(settings.model_set, settings.home_path).name,
            "scenario": lambda: scenario_profile(settings.scenario).name,
            "profile": lambda: f"cold after {life_profile(settings.profile).warm_to_cold.days} days",
            "keys": lambda: f"{platform.keyring.check().keys} keys",
            "lake": lambda: _landed_through(platform),
            "relational": lambda: f"{platform.authority.counts()}",
            "vector": lambda: f"{platform.vectors.count()} entries",
            "graph": lambda: " nodes, ".join(str(n) for n in platform.graph.count()) + " edges",
            "hot": lambda: f"{platform.hot.count()} keys",
            "cold": lambda: f"{len(platform.cold.keys())} objects",
        }
        for store, check in checks.items():
            try:
                print(f"{store:<12} ok    {check()}")
            except MemoryPipelinesError as error:
                failures += 1
                print(f"{store:<12} FAULT {error}")
    return 1 if failures else 0


def _landed_through(platform: "Platform") -> str:
    manifest = platform.ledger.manifest()
    return "nothing committed yet" if manifest is None else f"landed through {manifest.landed_through:%Y-%m-%d %H:%M}Z"


def _secret(name: str) -> bool:
    return name.endswith(("PASSWORD", "TOKEN", "KEY", "SECRET", "_URL"))


def _local(arguments: argparse.Namespace) -> int:
    from memory_pipelines import local

    home = Settings.load().home_path
    if arguments.action == "up":
        local.up(home, progress=print)
    elif arguments.action == "down":
        stopped = local.down(home)
        print(f"stopped: {', '.join(stopped) or 'nothing was running'}")
    if arguments.action != "down":
        for server in local.status(home):
            state = f"up on 127.0.0.1:{server.port}, pid {server.pid}" if server.running else "down"
            print(f"{server.name:<12} {state}")
    return 0
