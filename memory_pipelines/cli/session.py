"""Commands of what agents tell: note, feedback, identify.

Belongs here: their arguments and printing. Does not belong here: anything another program would want to call.
"""

import argparse
import json
import sys
from typing import Any

from memory_pipelines.errors import InputError


def add_commands(commands: Any) -> None:
    """Add the commands to the sub-parsers of ``memory-pipelines``."""
    command = commands.add_parser("note", help="keep what was just said: recall knows it at once, the jobs land it")
    command.add_argument("text", nargs="?", help="one turn; without it rows of a dialogue log (JSON lines) are read")
    command.add_argument("--subject", required=True, help="u:<user id> or d:<device fingerprint>: who is talked to")
    command.add_argument("--tenant", help="default: the tenant of the settings")
    command.add_argument("--role", choices=("user", "agent"), default="user", help="who said it")
    command.add_argument("--session", help="id of the session")
    command.add_argument("--origin", help="where it was said, such as web_app")
    command.set_defaults(run=_note)

    command = commands.add_parser("feedback", help="what became of recalled memories: brought up, denied or corrected")
    command.add_argument("memory", nargs="+", help="ids, as recall --format json shows them")
    command.add_argument("--subject", required=True, help="u:<user id> or d:<device fingerprint>")
    command.add_argument("--tenant", help="default: the tenant of the settings")
    command.add_argument("--kind", choices=("echo", "negated", "corrected"), required=True)
    command.set_defaults(run=_feedback)

    command = commands.add_parser("identify", help="a user has logged in on a device: join its memories")
    command.add_argument("--device", required=True, help="d:<device fingerprint>")
    command.add_argument("--user", required=True, help="u:<user id>")
    command.add_argument("--tenant", help="default: the tenant of the settings")
    command.add_argument("--undo", action="store_true", help="it was somebody else: part them again")
    command.set_defaults(run=_identify)


def _note(arguments: argparse.Namespace) -> int:
    from memory_pipelines.model import iso, known_subject
    from memory_pipelines.wiring import connect

    subject = known_subject(arguments.subject)
    with connect() as platform:
        said = {
            "role": arguments.role,
            "text": arguments.text,
            "session_id": arguments.session,
            "origin": arguments.origin,
            "occurred_at": iso(platform.clock.now()),
        }
        turns = _rows() if arguments.text is None else [said]
        if not any(str(turn.get("text") or "").strip() for turn in turns):
            raise InputError("there is nothing to note: no turn has a text")
        noted = platform.session.note(turns, tenant=arguments.tenant or platform.settings.tenant, subject=subject)
    print(f"{len(noted.turn_ids)} turns noted, {noted.new} of them new")
    for rule, number in sorted(noted.filtered.items()):
        print(f"    {number} left out: {rule}")
    for what, ids in (("denied, hidden for 30 days", noted.denied), ("brought up", noted.echoed)):
        if ids:
            print(f"    {what}: {', '.join(ids)}")
    if noted.missing:
        print(f"(no answer from: {', '.join(noted.missing)})")
    return 0


def _feedback(arguments: argparse.Namespace) -> int:
    from memory_pipelines.stores.authority import AccessKind
    from memory_pipelines.wiring import connect

    with connect() as platform:
        tenant = arguments.tenant or platform.settings.tenant
        kind = AccessKind(arguments.kind)
        platform.feedback.tell(kind, arguments.memory, tenant=tenant, subject=arguments.subject)
    return 0


def _rows() -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                raise InputError(f"line {number} is no JSON") from None
            if not isinstance(row, dict):
                raise InputError(f"line {number} is no object")
            rows.append(row)
    return rows


def _identify(arguments: argparse.Namespace) -> int:
    from memory_pipelines.wiring import connect

    with connect() as platform:
        change = platform.session.part if arguments.undo else platform.session.identify
        change(arguments.device, arguments.user, tenant=arguments.tenant or platform.settings.tenant)
    return 0
