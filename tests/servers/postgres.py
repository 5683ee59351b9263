"""Debian's PostgreSQL 15; another PostgreSQL of the machine where there is no Debian package.

Belongs here: fetching and starting it. Does not belong here: a table.
"""

import os
import shutil
from pathlib import Path

from memory_pipelines.local import processes
from servers import cache
from servers.running import Place, Running, launch

NAME = "postgresql"
MAJOR = 15
PROGRAMS = Path(f"/usr/lib/postgresql/{MAJOR}/bin")
ROLE = DATABASE = "memory_pipelines"


def fetch() -> Path:
    """The folder of its programs."""
    if not (PROGRAMS / "postgres").exists():
        cache.apt(NAME, f"postgresql-{MAJOR}")
    return PROGRAMS


def start(place: Place) -> Running:
    """TLS and passwords (SCRAM) only; under root as Debian's user ``postgres``."""
    programs, port, data = fetch(), processes.free_port(()), place.folder / "data"
    user = _user()
    password, key = place.folder / "password", place.folder / "server.key"
    password.write_text(place.password)
    shutil.copy(place.key, key)
    key.chmod(0o600)
    if user is not None:
        for path in (place.folder, password, key):
            os.chown(path, *user)
    make = [str(programs / "initdb"), "-D", str(data), "-U", ROLE, f"--pwfile={password}"]
    make += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
    cache.run(NAME, processes.as_user(make, user), "see its message", cwd=place.folder)
    (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    options = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "password_encryption": "scram-sha-256",
        "ssl": "on",
        "ssl_cert_file": place.certificate,
        "ssl_key_file": key,
    }
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    command = processes.as_user([str(programs / "postgres"), "-D", str(data), *flags], user)
    url = f"postgresql+psycopg://{ROLE}:{place.password}@127.0.0.1:{port}/{DATABASE}?sslmode=verify-full"
    return launch(NAME, command, place.folder, lambda: _answer(port, place), {"postgres_url": url})


def _user() -> tuple[int, int] | None:
    """Whom it runs as: under root another user, whom it refuses otherwise."""
    import pwd

    if os.geteuid() != 0:
        return None
    try:
        found = pwd.getpwnam("postgres")
    except KeyError:
        raise cache.CannotBeHad(f"{NAME}: it refuses to run as root, and there is no user postgres") from None
    return found.pw_uid, found.pw_gid


def _answer(port: int, place: Place) -> str:
    import psycopg

    with psycopg.connect(
        host="127.0.0.1",
        port=port,
        user=ROLE,
        password=place.password,
        dbname="postgres",
        sslmode="verify-full",
        sslrootcert=str(place.authority),
        connect_timeout=2,
        autocommit=True,
    ) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
            connection.execute(f"CREATE DATABASE {DATABASE}")
        row = connection.execute("SELECT current_setting('server_version')").fetchone()
    assert row is not None
    return str(row[0])
