"""The commands over the stores as such: comparing, repairing, making one again, ripple, backup, restore, the schema.

Belongs here: their arguments and printing. Does not belong here: anything another program would want to call.
"""

import argparse
from typing import Any

from memory_pipelines.shown import shown


def add_commands(commands: Any) -> None:
    """Add the commands to the sub-parsers of ``memory-pipelines``."""
    command = commands.add_parser("stores", help="compare the stores, repair them, make one again")
    command.add_argument(
        "action",
        choices=("check", "repair", "recover", "rebuild", "reembed"),
        help="check: what differs from what is visible; repair: put it right; recover: end publishing batches "
        "left open; rebuild: make one store again; reembed: make the settings' embedding model the live one",
    )
    command.add_argument("store", nargs="?", help="of rebuild: relational, vector, graph, hot, cold or packs")
    command.set_defaults(run=_stores)

    command = commands.add_parser("ripple", help="what the graph store's own ripple reaches from memories of a person")
    command.add_argument("memory", nargs="+", help="ids, as recall --format json shows them: the anchors, five at most")
    command.add_argument("--subject", required=True, help="u:<user id> or d:<device fingerprint>")
    command.add_argument("--tenant", help="default: the tenant of the settings")
    command.set_defaults(run=_ripple)

    command = commands.add_parser("backup", help="copy everything into one folder or s3://bucket/prefix")
    command.add_argument("path", help="an empty folder, or s3://bucket/prefix on the cold store's server")
    command.set_defaults(run=_backup)

    command = commands.add_parser("restore", help="put a backup back; who was erased since stays erased")
    command.add_argument("path", help="the backup's folder, or s3://bucket/prefix")
    command.add_argument("--replace", action="store_true", help="lose what this platform holds for the backup's")
    command.add_argument("--without-key", action="store_true", help="though the master key is lost: values stay tokens")
    command.set_defaults(run=_restore)

    command = commands.add_parser("migrate", help="bring the relational schema to this version's")
    command.set_defaults(run=_migrate)


def _stores(arguments: argparse.Namespace) -> int:
    from memory_pipelines.errors import InputError
    from memory_pipelines.pipeline import agreement, rebuild, recovery, reembed
    from memory_pipelines.wiring import connect

    if (arguments.action == "rebuild") != (arguments.store is not None):
        raise InputError("name one store with rebuild, and only with it")
    with connect() as platform:
        if arguments.action in ("check", "repair"):
            found = (agreement.check if arguments.action == "check" else agreement.repair)(platform)
            for row in ("store", "missing", "extra", "put right", "lost"), *(row.values() for row in found.rows()):
                print("  ".join(f"{value:>10}" if i else f"{value:<12}" for i, value in enumerate(row)))
            return 0 if found.whole or (arguments.action == "repair" and not found.lost.total()) else 1
        if arguments.action == "recover":
            ended = recovery.recover(platform)
            print(f"{ended.forward} batches rolled forward, {ended.back} back; {ended.busy} are being published")
        elif arguments.action == "rebuild":
            done = rebuild.rebuild(platform, arguments.store)
            print(f"{done.written} written, {done.removed} removed, {done.lost} cannot be made again")
            print(f"content {rebuild.content(platform, arguments.store)}")
            return 1 if done.lost else 0
        else:
            made = reembed.reembed(platform)
            print(f"live: {made.collection}; {made.embedded} embedded, {made.dropped} former collections dropped")
    return 0


def _ripple(arguments: argparse.Namespace) -> int:
    from memory_pipelines.model import Owner, known_subject
    from memory_pipelines.pipeline import ripples
    from memory_pipelines.wiring import connect

    with connect() as platform:
        owner = Owner(arguments.tenant or platform.settings.tenant, known_subject(arguments.subject))
        found = ripples.both(platform, owner, dict.fromkeys(arguments.memory, 1.0), platform.clock.now())
    for one in found:
        print(f"{one.in_store:.4f}  {one.memory_id}  {shown(one.summary)}")
    furthest = max((one.apart for one in found), default=0.0)
    print(f"{len(found)} memories; at most {furthest:.1e} from what recall computes")
    return 0 if furthest <= ripples.EQUAL else 1


def _backup(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline import backups
    from memory_pipelines.wiring import connect

    with connect() as platform:
        made = backups.backup(platform, arguments.path)
    print(f"{len(made.files)} files, written, read back and compared")
    if made.master_key:
        print("the master key is not among them: keep a copy of it in another place, or kept values are lost")
    return 0


def _restore(arguments: argparse.Namespace) -> int:
    from memory_pipelines.pipeline import backups
    from memory_pipelines.wiring import connect

    with connect() as platform:
        done = backups.restore(
            platform, arguments.path, replace_all=arguments.replace, without_key=arguments.without_key
        )
    print(f"{done.persons} persons are visible; {done.erased} erasures since the backup were carried out again")
    print(f"{done.vectors} vectors and {done.graphs} graphs were made anew, {done.archived} archived texts put back")
    return 0


def _migrate(arguments: argparse.Namespace) -> int:
    from memory_pipelines.stores import migrations
    from memory_pipelines.wiring import connect

    with connect() as platform, platform.engine.begin() as connection:
        print(f"the relational schema is at {migrations.current(connection)}")
    return 0
