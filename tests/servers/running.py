"""One running server: its process, how it is waited for, how it ends.

Belongs here: what all servers share. Does not belong here: a command line. Processes get a group of their own, so
that nothing they start is left when they are stopped.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory_pipelines.local import processes
from servers.cache import CannotBeHad, Ended

READY_SECONDS = 180.0
"""A Java server on a busy machine takes its time."""
STOP_SECONDS = 5.0
"""Their data are thrown away: it need not be a clean end."""


@dataclass(frozen=True)
class Place:
    """Where one server lives: an empty folder of its own, the names of its certificate's files, its password."""

    folder: Path
    authority: Path
    certificate: Path
    key: Path
    password: str


@dataclass(frozen=True)
class Running:
    """``settings``: what a client must know, by names of ``Settings``; ``seconds`` from start to first answer."""

    name: str
    version: str
    settings: Mapping[str, str]
    process: "subprocess.Popen[bytes]"
    seconds: float

    def stop(self) -> None:
        """End the process and all that it started: asked first, then killed."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)


def launch(
    name: str,
    command: Sequence[str],
    folder: Path,
    answer: Callable[[], str],
    settings: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
) -> Running:
    """Start a server and wait until ``answer`` (which raises anything before) tells its version.

    Raises Ended if it ends, CannotBeHad if it does not answer in time; then nothing of it is left."""
    began = time.monotonic()
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(command), cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    error: Exception = TimeoutError()
    while time.monotonic() - began < READY_SECONDS and process.poll() is None:
        try:
            version = answer()
        except Exception as refused:
            error = refused
            time.sleep(0.1)
        else:
            return Running(name, version, settings, process, time.monotonic() - began)
    ended = process.poll()
    Running(name, "", settings, process, 0).stop()
    said = " | ".join(processes.last_lines(log, 3))
    state = f"no answer in {READY_SECONDS:.0f} s, {type(error).__name__}" if ended is None else f"ended with {ended}"
    raise (CannotBeHad if ended is None else Ended)(f"{name}: does not start ({state}): {said or 'it said nothing'}")
