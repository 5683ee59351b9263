"""All five real servers: fetched at once, started at once, stopped together.

Belongs here: what is done with every server. Does not belong here: one of them. ``python -m servers.together`` fetches
what is not in the cache and says in a line each what cannot be had.
"""

import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from memory_pipelines.settings import Settings
from servers import cache, certificates, milvus, neo4j, postgres, redis, versitygw
from servers.running import Place, Running

EVERY: tuple[ModuleType, ...] = (milvus, neo4j, versitygw, postgres, redis)
"""The slow ones first."""
TRIES = 3
"""With ports drawn anew."""


@dataclass(frozen=True)
class Servers:
    """``settings``: of all of them; ``stranger``: the file of an authority that signed none of their certificates."""

    settings: Settings
    stranger: Path
    running: tuple[Running, ...]


def fetch(say: Callable[[str], None]) -> list[str]:
    """Fetch what is not there; what cannot be had, a line each."""

    def one(server: ModuleType) -> str:
        began = time.monotonic()
        try:
            server.fetch()
        except cache.CannotBeHad as missing:
            return str(missing)
        say(f"{server.NAME}: at hand after {time.monotonic() - began:.1f} s")
        return ""

    with ThreadPoolExecutor() as pool:
        # apt has one lock: its two packages come one after the other
        other = [pool.submit(one, server) for server in (milvus, neo4j, versitygw)]
        missing = [one(server) for server in (postgres, redis)]
        return [line for line in [*missing, *(done.result() for done in other)] if line]


@contextmanager
def running(home: str, say: Callable[[str], None] = lambda text: None) -> Iterator[Servers]:
    """All servers, with data in a temporary folder; stopped at the end, whatever happened. ``home``: of the settings.

    Raises CannotBeHad if one cannot be fetched or does not start; then none is left."""
    if missing := fetch(say):
        raise cache.CannotBeHad("; ".join(missing))
    # not below pytest's own folder: PostgreSQL's user must be able to reach it
    folder = Path(tempfile.mkdtemp(prefix="mp-servers-"))
    folder.chmod(0o711)
    with ExitStack() as stack:
        # a polite end of this process ends the servers, too
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, signal.default_int_handler))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        authority, certificate, key = certificates.write(folder, "authority")
        stranger, _, _ = certificates.write(folder, "stranger")

        def begin(server: ModuleType) -> Running:
            for tries in range(TRIES, 0, -1):
                own = folder / f"{server.NAME}-{tries}"
                own.mkdir()
                place = Place(own, authority, certificate, key, secrets.token_hex(12))
                try:
                    started: Running = server.start(place)
                    break
                except cache.Ended:
                    if tries == 1:
                        raise
            stack.callback(started.stop)
            say(f"{server.NAME} {started.version}: answers after {started.seconds:.1f} s")
            return started

        with ThreadPoolExecutor() as pool:
            begun = [pool.submit(begin, server) for server in EVERY]
        found = [future.result() for future in begun]
        values = {name: value for server in found for name, value in server.settings.items()}
        yield Servers(Settings(home=home, ca_file=str(authority), **values), stranger, tuple(found))


def main() -> int:
    began = time.monotonic()
    missing = fetch(lambda text: print(text, flush=True))
    for line in missing:
        print(f"cannot be had: {line}", file=sys.stderr)
    print(f"servers in {cache.folder()} after {time.monotonic() - began:.1f} s", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
