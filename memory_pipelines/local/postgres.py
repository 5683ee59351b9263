"""What only PostgreSQL needs: an unprivileged OS user, a data folder, its databases.

Belongs here: steps before and after its start. Does not belong here: the start itself.
The wheel's own server object is not used: it stops the server with its last client.
"""

import os
import secrets
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memory_pipelines.errors import SettingError
from memory_pipelines.local import processes

if TYPE_CHECKING:
    import pwd

OS_USER = "embedded_postgres"
ROLE = "memory_pipelines"
DATABASES = ("memory_pipelines", "dagster")
MAKERS_END_SECONDS = 5.0


def os_user(data: Path) -> "pwd.struct_passwd | None":
    """Whom to run the server as: None = whoever runs this; as root (whom it refuses) the data's owner or ``OS_USER``.

    Creates ``OS_USER`` if it is not there. Raises SettingError if it cannot, or if the data are another user's."""
    import pwd

    owner = data.stat().st_uid if data.exists() else None
    if os.geteuid() != 0:
        if owner not in (None, os.geteuid()):
            raise SettingError(f"{data} belongs to another user; choose another MEMORY_PIPELINES_HOME")
        return None
    if owner:
        return pwd.getpwuid(owner)
    for _ in range(20):
        try:
            return pwd.getpwnam(OS_USER)
        except KeyError:
            # It fails while another process changes the list of users, so look again rather than at the result.
            with suppress(OSError):
                subprocess.run(["useradd", "-s", "/bin/false", OS_USER], capture_output=True, check=False)
            time.sleep(0.1)
    raise SettingError(
        f"PostgreSQL refuses to run as root and the OS user {OS_USER} cannot be created; "
        "run as another user, or set MEMORY_PIPELINES_POSTGRES_URL to a real server"
    )


def open_way(path: Path, progress: Callable[[str], None]) -> None:
    """Let other users pass through (not list) the folders above ``path``: the server's user must reach its data."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if mode & stat.S_IXOTH:
            continue
        try:
            folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
        except OSError:
            raise SettingError(
                f"the OS user {OS_USER}, as whom PostgreSQL runs under root, cannot pass through {folder}; "
                "choose another MEMORY_PIPELINES_HOME or allow it (chmod o+x)"
            ) from None
        progress(f"postgres: {folder} may now be passed through by other users (chmod o+x)")


def prepare(bin_folder: Path, data: Path, password: str, progress: Callable[[str], None]) -> None:
    """Make the data folder unless it is there; whole or not at all. Readable by the server's user only."""
    user = os_user(data)
    if user is not None:
        open_way(data, progress)
        open_way(bin_folder, progress)
        if not (bin_folder / "postgres").stat().st_mode & stat.S_IXOTH:  # installed under a strict umask
            package = bin_folder.parent.parent
            libraries = package.with_name(f"{package.name}.libs")
            for file in (libraries, *libraries.rglob("*"), *package.rglob("*")):
                if file.exists():
                    file.chmod(stat.S_IMODE(file.stat().st_mode) | stat.S_IROTH | stat.S_IXOTH)
    if (data / "PG_VERSION").exists():
        drop_foreign_pid_file(data)
        return
    for rest in data.parent.glob("initdb-*"):
        _stop_makers(rest / "data")
        shutil.rmtree(rest, ignore_errors=True)
    work = data.parent / f"initdb-{secrets.token_hex(4)}"
    draft, password_file = work / "data", work / "password"
    work.mkdir(mode=0o700)
    password_file.write_text(password)
    command = [str(bin_folder / "initdb"), "-D", str(draft), "-U", ROLE, f"--pwfile={password_file}"]
    # The builtin locale sorts the same on every machine.
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if user is not None:
        os.chown(work, user.pw_uid, user.pw_gid)
        os.chown(password_file, user.pw_uid, user.pw_gid)
    done = subprocess.run(
        processes.as_user(command, None if user is None else (user.pw_uid, user.pw_gid)),
        capture_output=True,
        text=True,
        errors="replace",
        cwd=data.parent,
    )
    if done.returncode:
        lines = "; ".join(done.stderr.strip().splitlines()[-3:])
        raise SettingError(f"postgres cannot make its data in {data}: {lines}; check MEMORY_PIPELINES_HOME")
    draft.rename(data)
    shutil.rmtree(work)


def _stop_makers(draft: Path) -> None:
    """Stop what still makes a draft whose starter was killed: it would write while the draft is removed.

    ``initdb`` outlives its starter; under root it is Python until it has changed the user (``as_user``)."""
    makers = [
        maker
        for program in ("python", "initdb", "postgres")
        for maker in processes.left_over(program, str(draft), workers_in=draft)
    ]
    processes.stop([(maker, signal.SIGKILL) for maker in makers], MAKERS_END_SECONDS)


def drop_foreign_pid_file(data: Path) -> None:
    """After kill -9 and a reused pid, PostgreSQL takes the stranger for itself and refuses to start."""
    import psutil

    file = data / "postmaster.pid"
    try:
        process = psutil.Process(int(file.read_text().split("\n", 1)[0]))
        ours = process.name().startswith("postgres") and process.cwd() == str(data)
    except (OSError, ValueError, psutil.NoSuchProcess):
        return  # no file, or a dead pid: PostgreSQL clears that itself
    except psutil.AccessDenied:
        ours = False
    if not ours:
        file.unlink()


def ensure_databases(port: int, password: str) -> None:
    """Log in and create what is missing of ``DATABASES``; raises the driver's errors while that fails."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(
        host="127.0.0.1", port=port, user=ROLE, password=password, dbname="postgres", connect_timeout=2, autocommit=True
    ) as connection:
        present = {name for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall()}
        for name in DATABASES:
            if name not in present:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
