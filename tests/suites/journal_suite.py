"""What the journal promises, on every engine. ``engine`` is a fixture of the inheriting module."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.journal import PAGE, TurnJournal
from memory_pipelines.stores.session import NotedTurn
from memory_pipelines.stores.statements import upsert

AT = datetime(2024, 6, 1, 12, 0, 0, 250, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
ANN, BOB, TWIN = Owner("acme", "u:ann"), Owner("acme", "u:李雷"), Owner("rival", "u:ann")


def said(turn: str, minute: int = 0, owner: Owner = ANN, text: str = "hello", role: str = "user") -> NotedTurn:
    subject = owner.subject if role == "user" else None
    return NotedTurn(
        owner, turn, "c", "s", subject, role, AT + minute * MINUTE, text, "web_app", None, None, f"hash of {text}"
    )  # fmt: skip


def ids(turns: list[NotedTurn]) -> list[str]:
    return [turn.turn_id for turn in turns]


class JournalSuite:
    @pytest.fixture
    def journal(self, engine: sa.Engine) -> TurnJournal:
        return TurnJournal(engine)

    def test_nothing_yet(self, journal: TurnJournal) -> None:
        assert journal.append([], AT) == journal.end() == journal.trim(9, AT) == 0
        assert journal.marks([ANN], AT) == {}
        assert (journal.latest(ANN, 9, AT).mark, journal.latest(ANN, 9, AT).turns) == ("", [])
        assert list(journal.rows(0, 99)) == []

    def test_what_is_written_is_read_as_it_was(self, journal: TurnJournal) -> None:
        odd = NotedTurn(
            BOB, "t", "谈话", None, BOB.subject, "user", AT, "你好 😀", None, AT + MINUTE, '{"a":1}', "h"
        )  # fmt: skip
        assert journal.append([odd, said("t2", 1, role="agent", owner=BOB)], AT) == 2
        first, second = journal.latest(BOB, 9, AT).turns
        assert first == NotedTurn(**{**_values(odd), "position": first.position})
        assert (second.subject, second.role, second.session_id) == (None, "agent", "s")
        assert list(journal.rows(0, journal.end())) == [first, second]

    def test_a_turn_is_written_once_and_another_version_of_it_beside(self, journal: TurnJournal) -> None:
        assert journal.append([said("t1"), said("t2", 1)], AT) == 2
        assert journal.append([said("t1"), said("t3", 2)], AT + DAY) == 1
        assert journal.append([said("t1", text="hullo")], AT) == 1
        assert journal.append([said("t1", owner=TWIN)], AT) == 1
        assert ids(journal.latest(ANN, 9, AT).turns) == ["t1", "t1", "t2", "t3"]
        assert ids(journal.latest(ANN, 2, AT).turns) == ["t2", "t3"]

    def test_owners_and_tenants_are_apart(self, journal: TurnJournal) -> None:
        journal.append([said("a"), said("b", owner=BOB), said("c", owner=TWIN)], AT)
        assert [ids(journal.latest(owner, 9, AT).turns) for owner in (ANN, BOB, TWIN)] == [["a"], ["b"], ["c"]]
        assert journal.marks([ANN, TWIN], AT).keys() == {ANN, TWIN}

    def test_a_mark_changes_with_what_is_answered(self, journal: TurnJournal, engine: sa.Engine) -> None:
        def mark(at: datetime = AT) -> str | None:
            found = journal.marks([ANN], at).get(ANN)
            for most in (1, 9):
                assert journal.latest(ANN, most, at).mark == (found or ""), "of all turns, not of those that are read"
            return found

        marks = [mark()]
        journal.append([said("t1"), said("t2", 1)], AT)
        marks.append(mark())
        journal.append([said("t1")], AT)
        journal.append([said("x", owner=BOB)], AT)
        assert mark() == marks[-1], "the same again, and what concerns others, change nothing"
        with engine.begin() as connection:
            known = {"owner": ANN.key, "slice_id": "evt", "turn_id": "t1", "current": True}
            upsert(connection, schema.slice_turns, [known])
        marks.append(mark())
        assert [turn.known for turn in journal.latest(ANN, 9, AT).turns] == [True, False]
        with engine.begin() as connection:
            until = {"owner": ANN.key, "turn_id": "t2", "until": AT + 30 * DAY}
            upsert(connection, schema.suppressions, [until])
        marks.append(mark())
        assert ids(journal.latest(ANN, 9, AT).turns) == ["t1"]
        assert ids(journal.latest(ANN, 9, AT + 30 * DAY).turns) == ["t1", "t2"]
        assert mark(AT + 30 * DAY) == marks[2]
        assert len(set(marks)) == len(marks)

    def test_nothing_of_an_erased_person_from_before_is_written(self, journal: TurnJournal, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            upsert(connection, schema.tombstones, [{"owner": ANN.key, "before": AT + MINUTE, "epoch": 3}])
        assert journal.append([said("old"), said("new", 1), said("bob", owner=BOB)], AT + DAY) == 2
        assert ids(journal.latest(ANN, 9, AT).turns) == ["new"]

    def test_rows_are_read_in_the_order_of_writing_page_by_page(self, journal: TurnJournal) -> None:
        many = [said(f"t{n}", -n) for n in range(PAGE + 5)]
        for start in range(0, len(many), 500):
            assert journal.append(many[start : start + 500], AT) == len(many[start : start + 500])
        rows = list(journal.rows(0, journal.end()))
        assert ids(rows) == ids(many)
        assert ids(list(journal.rows(rows[2].position, rows[4].position))) == ["t3", "t4"]

    def test_old_rows_that_are_landed_go(self, journal: TurnJournal) -> None:
        journal.append([said("old"), said("new", 2)], AT)
        landed = journal.end()
        journal.append([said("late")], AT)
        assert journal.trim(landed, AT + MINUTE) == 1
        assert ids(journal.latest(ANN, 9, AT).turns) == ["late", "new"]

    def test_no_row_appears_below_the_end(self, journal: TurnJournal, engine: sa.Engine) -> None:
        """A writer that got its position first and commits last is waited for."""
        if engine.dialect.name == "sqlite":
            pytest.skip("one connection: writers take turns")
        began, may_commit = threading.Event(), threading.Event()

        def write_slowly() -> None:
            with engine.begin() as connection:
                row = _row(said("slow"))
                connection.execute(schema.journal.insert().values(**row))
                began.set()
                may_commit.wait(20)

        slow = threading.Thread(target=write_slowly)
        slow.start()
        assert began.wait(20)
        journal.append([said("fast")], AT)
        ends: list[int] = []
        reader = threading.Thread(target=lambda: ends.append(journal.end()))
        reader.start()
        reader.join(0.3)
        assert ends == [], "the end waits for the open writer"
        may_commit.set()
        for thread in (slow, reader):
            thread.join(20)
        assert ids(list(journal.rows(0, ends[0]))) == ["slow", "fast"]

    def test_names_are_only_data(self, journal: TurnJournal) -> None:
        odd = Owner("acme", "u:'; DROP TABLE journal; --")
        journal.append([said("t'; --", owner=odd, text="%s{}")], AT)
        assert ids(journal.latest(odd, 9, AT).turns) == ["t'; --"]

    def test_a_store_that_is_gone_is_named_and_nobody_else(self) -> None:
        journal = TurnJournal(sa.create_engine("postgresql+psycopg://nobody:x@127.0.0.1:1/none"))
        for call in (lambda: journal.append([said("t")], AT), lambda: journal.marks([ANN], AT), journal.end):
            with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_POSTGRES_URL") as error:
                call()
            assert "ann" not in str(error.value)


def _values(turn: NotedTurn) -> dict[str, object]:
    return {name: getattr(turn, name) for name in NotedTurn.__dataclass_fields__}


def _row(turn: NotedTurn) -> dict[str, object]:
    left_out = {"owner", "position", "known"}
    named = {"owner": turn.owner.key, "tenant": turn.owner.tenant, "of_subject": turn.owner.subject, "noted_at": AT}
    return named | {name: value for name, value in _values(turn).items() if name not in left_out}
