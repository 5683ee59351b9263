"""Locks between processes: everybody who uses the lake and the one who purges it, and those who land.

Belongs here: PostgreSQL's advisory locks, shared or alone. Does not belong here: what is done while it
is held. A process that dies lets go at once, since the lock goes with its session.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from memory_pipelines.errors import IntegrityError, TransientError
from memory_pipelines.stores.statements import translated

_LOCK_SPACE = 7273
PATIENCE_SECONDS = 600
LOCK_NOT_AVAILABLE = "55P03"
BUSY = "other jobs use the lake; run again when they have ended"
LANDING = "something else is being landed; run again when it has ended"


class Exclusion:
    """Jobs that read or write the lake hold it ``shared``, a purge holds it ``alone``.

    Who waits to be alone lets nobody new in, so it waits for running steps only. A thread that holds the lock
    shared may ask for it shared again. On the in-memory database of tests there is one process: no lock.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._mine = threading.local()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock beside others of this kind; waits for a purge to end."""
        depth = getattr(self._mine, "depth", 0)
        self._mine.depth = depth + 1
        try:
            if depth:
                yield
            else:
                with self._held("SELECT pg_advisory_lock_shared(:space, 0)", 0, BUSY):
                    yield
        finally:
            self._mine.depth = depth

    @contextmanager
    def alone(self, patience_seconds: int = PATIENCE_SECONDS) -> Iterator[None]:
        """Hold the lock alone. Raises TransientError if others do not let go in time."""
        if getattr(self._mine, "depth", 0):
            raise IntegrityError("a thread that uses the lake cannot wait until nobody does")
        with self._held("SELECT pg_advisory_lock(:space, 0)", patience_seconds, BUSY):
            yield

    @contextmanager
    def landing(self, patience_seconds: int = PATIENCE_SECONDS) -> Iterator[None]:
        """Be the only one who lands: two who number the chunks of one source would replace each other's rows.

        Raises TransientError if another does not let go in time."""
        with self._held("SELECT pg_advisory_lock(:space, 1)", patience_seconds, LANDING):
            yield

    @contextmanager
    def _held(self, statement: str, patience_seconds: int, busy: str) -> Iterator[None]:
        if self._engine.dialect.name != "postgresql":
            yield
            return
        with translated():
            connection = self._engine.connect()
        try:
            with translated():
                connection.detach()  # closed, not pooled, at the end: the lock goes with its session
                connection.execute(
                    sa.text("SELECT set_config('lock_timeout', :t, false)"), {"t": f"{patience_seconds}s"}
                )
                try:
                    connection.execute(sa.text(statement), {"space": _LOCK_SPACE})
                except sa.exc.OperationalError as error:
                    if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                        raise
                    raise TransientError(busy) from None
                connection.commit()  # a session lock outlives the transaction, and an idle one would block vacuum
            yield
        finally:
            connection.close()
