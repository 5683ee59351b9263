"""What the ledgers of uses and markers promise, on every engine. ``engine`` is a fixture of the inheriting module."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.stores.accesses import AccessLog
from memory_pipelines.stores.authority import AccessKind
from memory_pipelines.stores.statements import ROWS_PER_STATEMENT

AT = datetime(2024, 6, 1, 12, 0, 0, 250, tzinfo=UTC)
LATER = AT + timedelta(days=1)


class AccessSuite:
    @pytest.fixture
    def log(self, engine: sa.Engine) -> AccessLog:
        return AccessLog(engine)

    def test_nothing_yet(self, log: AccessLog) -> None:
        assert log.by_owner([]) == log.by_owner(["nobody"]) == {}
        assert log.markers([]) == log.markers(["nobody"]) == {}
        log.record("a", [], AccessKind.PRESENTED, AT)
        log.mark_deleted("a", [], "episodic:", AT)
        assert log.by_owner(["a"]) == log.markers(["a"]) == {}

    def test_uses_by_owner_and_turn_earliest_first(self, log: AccessLog) -> None:
        log.record("a", ["t2", "t1", "t2"], AccessKind.PRESENTED, LATER)
        log.record("a", ["t1"], AccessKind.ECHO, AT)
        log.record("b", ["t1"], AccessKind.NEGATED, AT)
        log.record("c", ["t1"], AccessKind.ACTIVATED, AT)
        assert log.by_owner(["b", "a", "a"]) == {
            "a": {"t1": [(AT, "echo"), (LATER, "presented")], "t2": [(LATER, "presented")]},
            "b": {"t1": [(AT, "negated")]},
        }

    def test_the_same_use_twice_is_one(self, log: AccessLog) -> None:
        east = AT.astimezone(timezone(timedelta(hours=8)))
        for at in (AT, AT, east):
            log.record("a", ["t1"], AccessKind.PRESENTED, at)
        log.record("a", ["t1"], AccessKind.ACTIVATED, AT)
        assert log.by_owner(["a"]) == {"a": {"t1": [(AT, "activated"), (AT, "presented")]}}

    def test_an_unknown_kind_and_a_time_without_a_zone_are_refused(self, log: AccessLog) -> None:
        with pytest.raises(ValueError, match="read"):
            log.record("a", ["t1"], "read", AT)  # type: ignore[arg-type]
        with pytest.raises(Exception, match="refuses a statement"):
            log.record("a", ["t1"], AccessKind.ECHO, AT.replace(tzinfo=None))
        assert log.by_owner(["a"]) == {}

    def test_markers(self, log: AccessLog) -> None:
        log.mark_deleted("a", ["t1", "t2", "t1"], "episodic:", AT)
        log.mark_deleted("a", ["t1"], "semantic:plan", AT)
        log.mark_deleted("a", ["t1"], "semantic:plan", LATER)
        log.mark_deleted("b", ["t1"], "episodic:", AT)
        assert log.markers(["a"]) == {"a": {("t1", "episodic:"), ("t2", "episodic:"), ("t1", "semantic:plan")}}
        assert list(log.markers(["b", "a"])) == ["a", "b"]

    def test_more_turns_than_one_statement_takes(self, log: AccessLog) -> None:
        turns = [f"轮次 🧾 {i}" for i in range(ROWS_PER_STATEMENT + 1)]
        log.record("a", turns, AccessKind.PRESENTED, AT)
        log.mark_deleted("a", turns, "episodic:", AT)
        assert set(log.by_owner(["a"])["a"]) == set(turns)
        assert len(log.markers(["a"])["a"]) == len(turns)

    def test_a_store_that_is_gone_is_named(self) -> None:
        log = AccessLog(sa.create_engine("postgresql+psycopg://nobody:x@127.0.0.1:1/none"))
        for call in (lambda: log.record("a", ["t"], AccessKind.ECHO, AT), lambda: log.markers(["a"])):
            with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_POSTGRES_URL"):
                call()
