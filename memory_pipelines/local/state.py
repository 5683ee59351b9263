"""The state file of the embedded servers and the lock around it: ``<home>/servers/state.json``.

Belongs here: what must outlive the starting process (ports, passwords, which process runs), its
atomic writing and the file lock between processes. Does not belong here: starting or stopping.
The file holds generated passwords, so only its owner may read it (mode 0600).
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from memory_pipelines.errors import SettingError

FILE_NAME = "state.json"
LOCK_NAME = ".lock"


@dataclass
class ServerState:
    """One server. ``ports`` by port name; ``pid`` and ``create_time`` (seconds since 1970) are 0 when stopped."""

    ports: dict[str, int] = field(default_factory=dict)
    password: str = ""
    pid: int = 0
    create_time: float = 0.0
    command: list[str] = field(default_factory=list)

    def stopped(self) -> None:
        """Forget the process; ports and password stay."""
        self.pid, self.create_time, self.command = 0, 0.0, []


@dataclass
class State:
    """All servers of one home, by name."""

    file: Path
    servers: dict[str, ServerState] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> "State":
        """Read ``folder/state.json``; a missing file is an empty state. Raises SettingError if it cannot be used."""
        file = folder / FILE_NAME
        try:
            raw = json.loads(file.read_text(encoding="utf-8"))
            known = {f.name for f in fields(ServerState)}
            servers = {
                name: ServerState(**{k: v for k, v in values.items() if k in known})
                for name, values in raw["servers"].items()
            }
        except FileNotFoundError:
            return cls(file)
        except PermissionError:
            raise SettingError(f"{file} belongs to another user; choose another MEMORY_PIPELINES_HOME") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SettingError(
                f"{file} is damaged; it holds the ports and passwords of the embedded servers: "
                f"restore it, or remove {folder} to start with empty servers"
            ) from None
        return cls(file, servers)

    def server(self, name: str) -> ServerState:
        return self.servers.setdefault(name, ServerState())

    def save(self) -> None:
        """Replace the file in one step, so that a reader or a crash never sees half of it."""
        text = json.dumps({"servers": {n: asdict(s) for n, s in self.servers.items()}}, indent=2, ensure_ascii=False)
        draft = self.file.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(self.file)


@contextmanager
def locked(folder: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold the home's lock: one process at a time starts or stops. The kernel frees it when the holder dies."""
    import fcntl

    try:
        handle = open(folder / LOCK_NAME, "a", encoding="utf-8")  # noqa: SIM115 - closed by the with below
    except PermissionError:
        raise SettingError(f"{folder} belongs to another user; choose another MEMORY_PIPELINES_HOME") from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process starts or stops the servers of this home; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
