"""Debian's Redis.

Belongs here: fetching and starting it. Does not belong here: a key.
"""

import shutil
from pathlib import Path

from memory_pipelines.local import processes
from servers import cache
from servers.running import Place, Running, launch

NAME = "redis"
USER = "memory_pipelines"
RIGHTS = "~mp:* +@read +@write +@connection +@transaction +info"
"""All that the library asks of a hot store: its own keys, no command over others'."""


def fetch() -> Path:
    """Its program."""
    if shutil.which("redis-server") is None:
        cache.apt(NAME, "redis-server")
    found = shutil.which("redis-server")
    if found is None:
        raise cache.CannotBeHad(f"{NAME}: no redis-server on the PATH; install redis-server")
    return Path(found)


def start(place: Place) -> Running:
    """TLS only; one user with a password and rights on its own keys, the default user switched off."""
    port = processes.free_port(())
    lines = {
        "bind": "127.0.0.1",
        "port": 0,
        "tls-port": port,
        "tls-cert-file": place.certificate,
        "tls-key-file": place.key,
        "tls-ca-cert-file": place.authority,
        "tls-auth-clients": "no",
        "dir": place.folder,
        "appendonly": "yes",
        "save": '""',
    }
    users = ["user default off", f"user {USER} on >{place.password} {RIGHTS}"]
    configuration = place.folder / "redis.conf"
    configuration.write_text("".join(f"{name} {value}\n" for name, value in lines.items()) + "\n".join(users) + "\n")
    url = f"rediss://{USER}:{place.password}@127.0.0.1:{port}/0"
    command = [str(fetch()), str(configuration)]
    return launch(NAME, command, place.folder, lambda: _answer(url, place), {"redis_url": url})


def _answer(url: str, place: Place) -> str:
    import redis

    with redis.Redis.from_url(url, ssl_ca_certs=str(place.authority), socket_timeout=2) as client:
        return str(client.info("server")["redis_version"])
