"""Processes, ports and log files: recognising what is ours and stopping it, and nothing else.

Belongs here: questions to the operating system. Does not belong here: what a server is.
A process is ours only if its program *and* an argument that names this home's folder fit: a pid
alone proves nothing (pids are reused), nor does a folder in an editor's command line.
"""

import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

# Below the ranges from which systems draw the ports of outgoing connections: a stopped server's port stays free.
PORTS = range(20000, 32768)
CLOCK_SLACK_SECONDS = 2.0


def is_free(port: int) -> bool:
    """Whether nobody listens on the port of 127.0.0.1 (a listener on all interfaces counts)."""
    with socket.socket() as probe:
        # As servers do: connections of a server just stopped, in TIME_WAIT, must not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def becomes_free(port: int, seconds: float) -> bool:
    """``is_free``, waiting for it: the sockets of a killed process may outlive it for a moment on a busy machine."""
    deadline = time.monotonic() + seconds
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def free_port(taken: Collection[int]) -> int:
    """A free port outside ``taken``. Drawn at random: two homes that start at once hardly ever draw the same."""
    source = random.SystemRandom()
    while True:
        port = source.choice(PORTS)
        if port not in taken and is_free(port):
            return port


def is_ours(process: "psutil.Process", program: str, mark: str) -> bool:
    """Whether a live process runs ``program`` (start of the file name, any case) with the exact argument ``mark``."""
    import psutil

    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return Path(process.exe()).name.lower().startswith(program) and mark in process.cmdline()[1:]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def recorded(pid: int, create_time: float, program: str, mark: str) -> "psutil.Process | None":
    """The process that a state file names, if it is still that one and ours."""
    if pid <= 0:
        return None
    import psutil

    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - create_time) < CLOCK_SLACK_SECONDS
    except psutil.NoSuchProcess:
        return None
    return process if same and is_ours(process, program, mark) else None


def left_over(program: str, mark: str, workers_in: Path | None = None) -> "list[psutil.Process]":
    """Every process of ours, recorded or not; with ``workers_in``, also those of the program that work in that folder.

    The latter finds workers whose parent was killed: they carry no argument, but their working directory is the data.
    """
    import psutil

    def works_there(process: psutil.Process) -> bool:
        try:
            return (
                process.status() != psutil.STATUS_ZOMBIE
                and Path(process.exe()).name == program
                and process.cwd() == str(workers_in)
            )
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    return [
        process
        for process in psutil.process_iter()
        if is_ours(process, program, mark) or (workers_in is not None and works_there(process))
    ]


def is_gone(process: "psutil.Process") -> bool:
    """Whether a process has ended; collects it if it was our child."""
    import psutil

    try:
        process.wait(0)
    except psutil.TimeoutExpired:
        pass
    except psutil.NoSuchProcess:
        return True
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def stop(processes: Sequence[tuple["psutil.Process", signal.Signals]], grace_seconds: float) -> None:
    """Signal each process in the given order, wait together, then kill what is left, with its children."""
    import psutil

    family: list[psutil.Process] = []
    for process, sign in processes:
        try:
            family += [process, *process.children(recursive=True)]
            process.send_signal(sign)
        except psutil.NoSuchProcess:
            continue
    if not _wait(lambda: all(is_gone(p) for p in family), grace_seconds):
        for process in family:
            if not is_gone(process):
                process.kill()
        _wait(lambda: all(is_gone(p) for p in family), 10.0)


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def memory(process: "psutil.Process") -> int:
    """Bytes of a process and its children; memory that they share counts once where the system can tell."""
    import psutil

    total = 0
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for member in family:
        try:
            full = member.memory_full_info()
            total += getattr(full, "pss", full.rss)
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            total += member.memory_info().rss
    return total


def trim(log: Path, limit: int, keep: int) -> None:
    """Cut a log file of more than ``limit`` bytes to its last ``keep`` bytes, from a line start on."""
    if not log.exists() or log.stat().st_size <= limit:
        return
    with log.open("r+b") as handle:
        handle.seek(-keep, 2)
        tail = handle.read()
        handle.seek(0)
        handle.truncate()
        handle.write(tail[tail.find(b"\n") + 1 :])


def last_lines(log: Path, count: int = 5) -> list[str]:
    """The last non-empty lines of a log file; none if there is no file."""
    if not log.exists():
        return []
    lines = log.read_bytes()[-8192:].decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()][-count:]


# A fork of a process with gRPC's threads in it can kill the child before it becomes the program, and Popen forks to
# change the user. So a small program, which Popen starts without a fork, changes it and then becomes the other one.
_AS_USER = (
    "import os, sys; user, group, *command = sys.argv[1:]; os.setgroups([]); os.setgid(int(group)); "
    "os.setuid(int(user)); os.execv(command[0], command)"
)


def as_user(command: Sequence[str], user: tuple[int, int] | None) -> list[str]:
    """The command as another (user id, group id); None: as the caller. Its first word is a whole path."""
    if user is None:
        return list(command)
    return [sys.executable, "-I", "-c", _AS_USER, str(user[0]), str(user[1]), *command]
