"""A TCP proxy that can stop forwarding, so that the server behind it hangs, or break every connection.

Belongs here: the fault. Does not belong here: what anybody makes of it.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Listens on 127.0.0.1. While it ``hangs`` connections are accepted, and not a byte passes; ``down``: refused."""

    target: tuple[str, int]
    port: int = 0
    _passing: threading.Event = field(default_factory=threading.Event)
    _listening: socket.socket | None = None
    _open: list[socket.socket] = field(default_factory=list)

    def start(self) -> None:
        server = socket.create_server(("127.0.0.1", self.port))
        self.port = server.getsockname()[1]
        self._listening = server
        self._passing.set()
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def hang(self) -> None:
        self._passing.clear()

    def go_on(self) -> None:
        self._passing.set()

    def stop(self) -> None:
        """As if the server had ended: connections break, new ones are refused."""
        listening, self._listening = self._listening, None
        if listening is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._passing.set()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
                behind = socket.create_connection(self.target)
            except OSError:
                return
            self._open += [client, behind]
            for source, sink in ((client, behind), (behind, client)):
                threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passing.wait()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    """A proxy before a server, for as long as it is needed."""
    proxy = Proxy((host, port))
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
