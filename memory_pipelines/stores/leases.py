"""Which connection of the relational store each thread waits on, so that one that never answers can be cut off.

Belongs here: cutting a connection from another thread. Does not belong here: when one is overdue (``recall.guard``). A
server that is frozen, or a path to it that swallows packets, leaves the driver waiting without end: it has no
timeout for reading.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa

ALIVE_SECONDS = 0.1
"""A connection that was given back so lately is not asked whether it lives: it would be a round trip more."""


def watch(engine: sa.Engine) -> None:
    """Note from now on which thread waits on which connection."""
    _WATCHED[engine] = _Leases(engine)


def cut(engine: sa.Engine, thread: int) -> int:
    """Shut down the sockets that a thread waits on; its calls fail then. Returns how many."""
    return _WATCHED[engine].cut(thread) if engine in _WATCHED else 0


class _Leases:
    """The connections of an engine; one without sockets has none to cut."""

    def __init__(self, engine: sa.Engine) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, tuple[int, Any]] = {}
        self._answered: dict[int, float] = {}
        self._of_driver = engine.dialect.loaded_dbapi.Error
        sa.event.listen(engine, "checkout", self._taken)
        sa.event.listen(engine, "checkin", self._given_back)
        sa.event.listen(engine, "close", self._closed)
        ping = engine.dialect.do_ping

        def watched(connection: Any) -> bool:
            if time.monotonic() - self._answered.get(id(connection), -ALIVE_SECONDS) < ALIVE_SECONDS:
                return True
            with self._waiting(connection):  # before a connection is handed out it is asked whether it lives
                return ping(connection)

        engine.dialect.do_ping = watched  # type: ignore[method-assign,assignment]

    def cut(self, thread: int) -> int:
        with self._lock:
            waited = [connection for holder, connection in self._held.values() if holder == thread]
            return sum(self._shut(connection) for connection in waited)

    def _shut(self, connection: Any) -> bool:
        with suppress(AttributeError, OSError, self._of_driver):  # no socket, or none any more: it was lost just now
            with socket.socket(fileno=os.dup(connection.fileno())) as shared:
                shared.shutdown(socket.SHUT_RDWR)
            return True
        return False

    def _taken(self, connection: Any, record: Any, proxy: Any) -> None:
        with self._lock:
            self._held[id(connection)] = (threading.get_ident(), connection)

    def _given_back(self, connection: Any, record: Any) -> None:
        with self._lock:
            self._held.pop(id(connection), None)
            self._answered[id(connection)] = time.monotonic()

    def _closed(self, connection: Any, record: Any) -> None:
        with self._lock:
            self._answered.pop(id(connection), None)

    @contextmanager
    def _waiting(self, connection: Any) -> Iterator[None]:
        self._taken(connection, None, None)
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(id(connection), None)


_WATCHED: WeakKeyDictionary[sa.Engine, _Leases] = WeakKeyDictionary()
