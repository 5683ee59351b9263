"""The one folder that fetched servers are kept in, and how something comes into it.

Belongs here: fetching whole or not at all, and saying in one line what cannot be had. Does not belong here: what
a server needs. The folder is ``.servers``, or what ``MEMORY_PIPELINES_SERVERS`` names; it may be removed at any time.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

VARIABLE = "MEMORY_PIPELINES_SERVERS"


class CannotBeHad(Exception):
    """A server that this machine cannot get or start; one line that says which, why and what to do."""


class Ended(CannotBeHad):
    """A server that ended while it started: another program may have taken a port that was free when it was drawn."""


def folder() -> Path:
    """Where fetched servers are kept; made if it is not there."""
    chosen = Path(os.environ.get(VARIABLE) or Path(__file__).parents[2] / ".servers").absolute()
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen


def kept(name: str, fill: Callable[[Path], None]) -> Path:
    """The cache's folder ``name``; if it is not there, a new one that ``fill`` has filled, or none if that fails."""
    target = folder() / name
    if target.exists():
        return target
    draft = Path(tempfile.mkdtemp(prefix=f"{name}.part-", dir=folder()))
    try:
        fill(draft)
        draft.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:  # somebody else was quicker
            if not target.exists():
                raise
    finally:
        _remove(draft)
    return target


def _remove(tree: Path) -> None:
    if tree.exists():
        # Go keeps its modules read-only
        for path in (tree, *(p for p in tree.rglob("*") if p.is_dir() and not p.is_symlink())):
            path.chmod(0o755)
        shutil.rmtree(tree)


def run(server: str, command: Sequence[str], advice: str, **options: object) -> str:
    """A command's output. Raises CannotBeHad with the last line that it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)  # type: ignore[call-overload]
    except FileNotFoundError:
        raise CannotBeHad(f"{server}: {command[0]} is not installed; {advice}") from None
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise CannotBeHad(f"{server}: {command[0]} failed ({said[-1] if said else done.returncode}); {advice}")
    return str(done.stdout)


def apt(server: str, *packages: str) -> None:
    """Debian packages, as root or by sudo; their own services are not started."""
    advice = f"install {' '.join(packages)}"
    become = [] if os.geteuid() == 0 else ["sudo", "-n"]
    # Debian's scripts start no service in run level 1
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    as_root = [*become, "env", *(f"{name}={value}" for name, value in quiet.items()), "apt-get", "-qq"]
    wait = ["-o", "DPkg::Lock::Timeout=300"]
    install = [*as_root, *wait, "install", "-y", "--no-install-recommends", *packages]
    try:
        run(server, install, advice)
    except CannotBeHad:  # old lists name versions that are gone
        run(server, [*as_root, *wait, "update"], advice)
        run(server, install, advice)


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over the names and contents of files, in the order of their names."""
    whole = hashlib.sha256()
    for file in sorted(files, key=lambda path: path.name):
        whole.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def check(server: str, found: str, pinned: str) -> None:
    """Raises CannotBeHad if what was fetched is not what is pinned."""
    if found != pinned:
        raise CannotBeHad(f"{server}: what was fetched has SHA-256 {found}, not the pinned {pinned}")


def environment(**own: str) -> Mapping[str, str]:
    """This process's environment with some variables set anew."""
    return {**os.environ, **own}
