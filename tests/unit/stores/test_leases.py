"""Connections that were just given back are not asked whether they live; others are."""

import threading

import psycopg
import pytest
import sqlalchemy as sa

from memory_pipelines.stores import leases


@pytest.mark.parametrize(("seconds", "asked"), [(3600.0, 0), (0.0, 2)])
def test_a_connection_that_was_just_given_back_is_not_asked(
    seconds: float, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "ALIVE_SECONDS", seconds)
    engine = sa.create_engine("sqlite://", poolclass=sa.QueuePool, pool_size=1, max_overflow=0, pool_pre_ping=True)
    pings: list[object] = []
    ping = engine.dialect.do_ping
    engine.dialect.do_ping = lambda connection: bool(pings.append(connection)) or ping(connection)  # type: ignore[method-assign]
    leases.watch(engine)
    for _ in range(3):
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1
    assert len(pings) == asked


def test_a_closed_connection_is_forgotten() -> None:
    engine = sa.create_engine("sqlite://", poolclass=sa.QueuePool, pool_size=1, max_overflow=0, pool_pre_ping=True)
    watched = leases._Leases(engine)
    with engine.connect():
        assert not watched._answered
    assert len(watched._answered) == 1
    engine.dispose()
    assert not watched._answered


def test_a_connection_that_is_lost_already_needs_no_cutting() -> None:
    engine = sa.create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    watched = leases._Leases(engine)

    class Lost:
        def fileno(self) -> int:
            raise psycopg.OperationalError("the connection is lost")

    watched._taken(Lost(), None, None)
    assert watched.cut(threading.get_ident()) == 0
