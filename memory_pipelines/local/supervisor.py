"""Starting, watching and stopping the embedded servers of one home.

Belongs here: ``up``, ``status``, ``down`` and what they share. Does not belong here: what a single
server needs (``servers``). Servers are detached: they outlive the process that started them, and
the next ``up`` finds them through the state file, or clears what a kill left behind.
"""

import secrets
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from memory_pipelines.errors import SettingError, StoreUnavailableError
from memory_pipelines.local import processes
from memory_pipelines.local.servers import SERVERS, Place, Server, base_environment, package_folder
from memory_pipelines.local.state import FILE_NAME, ServerState, State, locked

if TYPE_CHECKING:
    import psutil

START_SECONDS = 60.0
PORT_SECONDS = 5.0
"""How long a server waits for the port that it had."""
STOP_SECONDS = 20.0
LOG_LIMIT_BYTES = 4_000_000
LOG_KEEP_BYTES = 1_000_000


@dataclass(frozen=True)
class Endpoints:
    """Where the started servers answer; empty for one that was not asked for. Field names are those of Settings."""

    postgres_url: str = field(default="", repr=False)
    dagster_url: str = field(default="", repr=False)
    neo4j_url: str = ""
    neo4j_user: str = ""
    neo4j_password: str = field(default="", repr=False)
    neo4j_database: str = ""
    milvus_url: str = ""
    redis_url: str = field(default="", repr=False)
    s3_url: str = ""
    s3_access_key: str = ""
    s3_secret_key: str = field(default="", repr=False)

    def settings(self) -> dict[str, str]:
        """Overrides for ``Settings.load``; ``dagster_url`` is no setting of the library and stays out."""
        return {name: value for name, value in asdict(self).items() if value and name != "dagster_url"}


@dataclass(frozen=True)
class ServerStatus:
    """``port`` is None before the first start, ``pid`` while stopped; ``memory`` in bytes, with children."""

    name: str
    running: bool
    port: int | None
    pid: int | None
    memory: int
    folder: Path


def up(
    home: Path,
    *,
    ports: Mapping[str, int] | None = None,
    only: Collection[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Endpoints:
    """Start what does not run yet, wait until each answers its protocol, and say where.

    ``ports`` asks for ports by port name (``postgres``, ``arcadedb``, ``arcadedb-http``, ``milvus``, ``valkey``,
    ``ministack``); otherwise the recorded one is used, or a free one chosen and recorded. ``only`` limits the servers.
    Safe to repeat and to call from several processes at once. Raises SettingError (missing package, busy port asked
    for, unusable folder) and StoreUnavailableError (a server ended or did not answer within a minute).
    """
    say = progress or (lambda message: None)
    wanted = _wanted(only)
    asked = _asked(ports or {})
    for server in wanted:
        _require(server)
    folder = _servers_folder(home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for server in wanted:
            (folder / server.name).mkdir(exist_ok=True)
    except OSError as error:
        raise SettingError(f"{folder} cannot be used ({error.strerror}); check MEMORY_PIPELINES_HOME") from None
    with locked(folder, say):
        state = State.load(folder)
        running = {server.name: _recorded(server, folder, state) for server in wanted}
        for server in wanted:
            _refuse_move(server, state, asked, running[server.name] is not None)
        idle = [server for server in wanted if running[server.name] is None]
        _reap(idle, folder, say)
        for server in idle:
            _choose_ports(server, folder, state, asked, say)
        waiting: dict[str, subprocess.Popen[bytes] | psutil.Process] = {n: p for n, p in running.items() if p}
        try:
            for server in idle:
                waiting[server.name] = _start(server, folder, state, say)
            _wait(wanted, folder, state, waiting, say)
        finally:
            for process in waiting.values():
                if isinstance(process, subprocess.Popen) and process.returncode is None:
                    process.returncode = 0  # it outlives us on purpose: no warning about a child left running
    values: dict[str, str] = {}
    for server in wanted:
        values |= server.settings(_place(server, folder, state))
    return Endpoints(**values)


def status(home: Path) -> list[ServerStatus]:
    """Every server of the home, started or not, in the order of their start."""
    folder = _servers_folder(home)
    state = State.load(folder)
    found = []
    for server in SERVERS:
        own = state.servers.get(server.name, ServerState())
        process = _recorded(server, folder, state) if own.pid else None
        found.append(
            ServerStatus(
                name=server.name,
                running=process is not None,
                port=own.ports.get(server.ports[0]),
                pid=process.pid if process else None,
                memory=processes.memory(process) if process else 0,
                folder=folder / server.name,
            )
        )
    return found


def down(home: Path) -> list[str]:
    """Stop the home's servers, last started first, and say which ones; data, ports and passwords stay.

    Each may end cleanly for a while and is killed then. Also stops servers that the state file does not know."""
    folder = _servers_folder(home)
    if not folder.exists():
        return []
    with locked(folder, lambda message: None):
        state = State.load(folder)
        stopped = _reap(list(reversed(SERVERS)), folder, lambda message: None)
        for own in state.servers.values():
            own.stopped()
        if state.servers:
            state.save()
    return stopped


def _servers_folder(home: Path) -> Path:
    # One spelling: the folder in a command line is how a process is recognised.
    return home.expanduser().resolve() / "servers"


def _wanted(only: Collection[str] | None) -> list[Server]:
    if unknown := set(only or ()) - {server.name for server in SERVERS}:
        raise SettingError(f"no embedded server {', '.join(sorted(unknown))}: {', '.join(s.name for s in SERVERS)}")
    return [server for server in SERVERS if only is None or server.name in only]


def _asked(ports: Mapping[str, int]) -> Mapping[str, int]:
    if unknown := set(ports) - {name for server in SERVERS for name in server.ports}:
        raise SettingError(f"no port name {', '.join(sorted(unknown))} among the embedded servers")
    for name, port in ports.items():
        if not 1 <= port <= 65535:
            raise SettingError(f"port {port} asked for {name} is not between 1 and 65535")
    if len(set(ports.values())) < len(ports):
        raise SettingError("the same port was asked for twice among the embedded servers")
    return ports


def _require(server: Server) -> None:
    try:
        package_folder(server.package)
        package_folder("psutil")
    except SettingError as error:
        raise SettingError(f"{error}, or set {server.url_variable} to a real server") from None


def _place(server: Server, folder: Path, state: State) -> Place:
    own = state.server(server.name)
    return Place(folder / server.name, own.ports, own.password)


def _recorded(server: Server, folder: Path, state: State) -> "psutil.Process | None":
    own = state.server(server.name)
    return processes.recorded(own.pid, own.create_time, server.program, server.mark(_place(server, folder, state)))


def _reap(servers: list[Server], folder: Path, say: Callable[[str], None]) -> list[str]:
    """Stop every process of these servers in this home, recorded or orphaned; says whose there were."""
    found = []
    names = []
    for server in servers:
        place = Place(folder / server.name, {}, "")
        ours = processes.left_over(server.program, server.mark(place), place.data if server.workers else None)
        if ours:
            say(f"{server.name}: stopping {len(ours)} process(es) of this home")
            names.append(server.name)
            found += [(process, server.stop_signal) for process in ours]
    if found:
        processes.stop(found, STOP_SECONDS)
    return names


def _refuse_move(server: Server, state: State, asked: Mapping[str, int], is_running: bool) -> None:
    for name in server.ports:
        current = state.server(server.name).ports.get(name)
        if is_running and name in asked and asked[name] != current:
            raise SettingError(
                f"{server.name} already runs with port {current} for {name}; stop the servers of this home first, "
                f"or ask for {current} instead of {asked[name]}"
            )


def _choose_ports(
    server: Server, folder: Path, state: State, asked: Mapping[str, int], say: Callable[[str], None]
) -> None:
    own = state.server(server.name)
    if not own.password:
        if server.password_in_data and (folder / server.name / "data").exists():
            raise SettingError(
                f"{folder / FILE_NAME} no longer holds the password of {server.name}, which has data: "
                f"restore that file, or remove {folder / server.name} to start empty"
            )
        own.password = secrets.token_hex(16)
    for name in server.ports:
        taken = {port for other in state.servers.values() for port in other.ports.values()} | set(asked.values())
        if name in asked:
            if not processes.is_free(asked[name]):
                raise SettingError(
                    f"port {asked[name]} asked for {server.name} ({name}) is taken by another process: free it, "
                    f"ask for another port, or set {server.url_variable} to a real server"
                )
            own.ports[name] = asked[name]
        elif name not in own.ports:
            own.ports[name] = processes.free_port(taken)
        elif not processes.becomes_free(own.ports[name], PORT_SECONDS):
            before, own.ports[name] = own.ports[name], processes.free_port(taken)
            say(f"{server.name}: port {before} is taken by another process, now {own.ports[name]}")
    own.stopped()
    state.save()


def _start(server: Server, folder: Path, state: State, say: Callable[[str], None]) -> subprocess.Popen[bytes]:
    import psutil

    place = _place(server, folder, state)
    say(f"{server.name}: starting on 127.0.0.1:{server.port(place)}")
    server.prepare(place, say)
    processes.trim(place.log, LOG_LIMIT_BYTES, LOG_KEEP_BYTES)
    command = server.command(place)
    run_as = server.run_as(place)
    with place.log.open("ab") as log:
        place.log.chmod(0o600)
        process = subprocess.Popen(
            processes.as_user(command, run_as),
            cwd=place.folder,
            env=base_environment(place.folder) | server.environment(place),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077,
        )
    own = state.server(server.name)
    own.pid, own.command = process.pid, command
    try:
        own.create_time = psutil.Process(process.pid).create_time()
    except psutil.NoSuchProcess:  # ended at once: the wait tells why
        own.create_time = 0.0
    state.save()
    return process


def _wait(
    servers: list[Server],
    folder: Path,
    state: State,
    waiting: "dict[str, subprocess.Popen[bytes] | psutil.Process]",
    say: Callable[[str], None],
) -> None:
    """Poll all until each has answered. Raises StoreUnavailableError for the first that ended or ran out of time.

    One that ended is started once more: what a killed one left may have gone by then. One that does not answer in
    time is stopped, so that the next start does not take it for a good one."""
    import psutil

    began = time.monotonic()
    again: set[str] = set()
    pending = list(servers)
    while pending:
        for server in list(pending):
            place = _place(server, folder, state)
            try:
                server.ready(place)
            except Exception as error:  # drivers raise what they like while a server starts
                process = waiting[server.name]
                if process.poll() is not None if isinstance(process, subprocess.Popen) else processes.is_gone(process):
                    if server.name in again:
                        raise _failure(server, place, "it ended") from None
                    again.add(server.name)
                    _reap([server], folder, say)
                    waiting[server.name] = _start(server, folder, state, say)
                    continue
                if time.monotonic() - began > START_SECONDS:
                    processes.stop([(psutil.Process(process.pid), server.stop_signal)], STOP_SECONDS)
                    raise _failure(server, place, f"no answer in {START_SECONDS:g} s, last: {error}") from None
            else:
                pending.remove(server)
                if isinstance(waiting[server.name], subprocess.Popen):
                    say(f"{server.name}: up after {time.monotonic() - began:.1f} s")
        if pending:
            time.sleep(0.05)


def _failure(server: Server, place: Place, reason: str) -> StoreUnavailableError:
    lines = " | ".join(processes.last_lines(place.log))
    return StoreUnavailableError(
        f"embedded {server.name} on 127.0.0.1:{server.port(place)}",
        f"its log {place.log}, or set {server.url_variable} to a real server",
        f"{reason}; last lines: {lines}",
    )
