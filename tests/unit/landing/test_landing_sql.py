"""A SQL table, read on from where it was: no row lost, none twice."""

import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import InputError
from memory_pipelines.landing import sql
from memory_pipelines.landing.mapping import Mapping
from memory_pipelines.landing.sql import MOST_EDGE, SqlTable
from memory_pipelines.stores.notes import Watermark

AT = datetime(2024, 5, 17, 8)  # noqa: DTZ001 - as a table without zones has it
TABLE = SqlTable("CHAT_URL", "messages", "changed_at")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sa.Engine]:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    monkeypatch.setenv("CHAT_URL", url)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "CREATE TABLE messages (id INTEGER PRIMARY KEY, changed_at DATETIME, said TEXT, price NUMERIC(9,2))"
            )
        )
    yield engine
    engine.dispose()


def add(engine: sa.Engine, *rows: tuple[int, int | None]) -> None:
    """Rows of (id, minute of the last change)."""
    with engine.begin() as connection:
        for number, minute in rows:
            at = None if minute is None else AT + timedelta(minutes=minute)
            connection.execute(
                sa.text("INSERT OR REPLACE INTO messages VALUES (:n, :at, :said, 1.5)").bindparams(
                    sa.bindparam("at", type_=sa.DateTime)
                ),
                {"n": number, "at": at, "said": f"said {number}"},
            )


def pull(after: Watermark | None = None, size: int = 2, table: SqlTable = TABLE) -> tuple[list[int], Watermark | None]:
    ids: list[int] = []
    mark = after
    for rows, reached in table.pages(after, 0, size, None):
        assert 0 < len(rows) <= size
        ids += [row.row["id"] for row in rows if row.row]
        mark = reached
    return ids, mark


def test_long_rows_make_short_runs(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "CHUNK_CHARACTERS", 120)  # a row has about 80
    add(engine, *((number, number) for number in range(5)))
    assert [len(rows) for rows, _ in TABLE.pages(None, 0, 100, None)] == [2, 2, 1]


def test_a_column_of_nulls_is_never_read(engine: sa.Engine) -> None:
    add(engine, (1, None), (2, None))
    assert pull() == ([], None)
    assert TABLE.without() == 2


def test_rows_come_in_the_columns_order_and_once(engine: sa.Engine) -> None:
    add(engine, (1, 5), (2, 1), (3, 1), (4, 3))
    ids, mark = pull()
    assert ids == [2, 3, 4, 1]
    assert pull(mark) == ([], mark)
    add(engine, (5, 5), (6, 9))
    ids, mark = pull(mark)
    assert ids == [5, 6], "a row with just the last value that came later is read, those before are not"
    add(engine, (2, 10))
    assert pull(mark)[0] == [2], "a changed row is read again"


def test_a_pull_that_was_stopped_goes_on(engine: sa.Engine) -> None:
    add(engine, *((n, n // 3) for n in range(20)))
    for stop in range(1, 7):
        pages = list(itertools.islice(TABLE.pages(None, 0, 3, None), stop))
        before = [row.row["id"] for rows, _ in pages for row in rows if row.row]
        after, _ = pull(pages[-1][1], 3)
        assert before + after == list(range(20))


def test_rows_without_a_value_are_told(engine: sa.Engine) -> None:
    add(engine, (1, None), (2, 1), (3, None))
    assert pull()[0] == [2]
    assert TABLE.without() == 2


def test_values_become_what_json_knows(engine: sa.Engine) -> None:
    add(engine, (1, 1))
    ((rows, mark),) = TABLE.pages(None, 7, 10, Mapping(columns={"text": "said"}))
    (row,) = rows
    assert row.row == {"changed_at": "2024-05-17T08:01:00", "id": 1, "price": 1.5, "said": "said 1", "text": "said 1"}
    assert row.position == 7
    assert '"text"' not in row.raw, "as it was read, before the mapping"
    assert mark.value == {"type": "datetime", "value": "2024-05-17T08:01:00"}


@pytest.mark.parametrize("kind", ["INTEGER", "REAL", "TEXT", "DATE", "NUMERIC(9,2)"])
def test_columns_that_can_grow(engine: sa.Engine, kind: str) -> None:
    values: dict[str, list[Any]] = {
        "INTEGER": [1, 2, 3],
        "REAL": [0.1, 0.30000000000000004, 2.5],
        "TEXT": ["a", "b", "乙"],
        "DATE": ["2024-05-01", "2024-05-02", "2024-06-01"],
        "NUMERIC(9,2)": [1, 2.25, 3.5],
    }
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE grown (id INTEGER, mark {kind})"))
        for number, value in enumerate(values[kind][:2]):
            connection.execute(sa.text("INSERT INTO grown VALUES (:n, :v)"), {"n": number, "v": value})
    table = SqlTable("CHAT_URL", "grown", "mark")
    ids, mark = pull(table=table)
    assert ids == [0, 1]
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO grown VALUES (2, :v)"), {"v": values[kind][2]})
    assert pull(mark, table=table)[0] == [2]


def test_more_rows_with_one_value_than_are_remembered_are_read_again(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_EDGE >= 1_000
    monkeypatch.setattr("memory_pipelines.landing.sql.MOST_EDGE", 3)
    add(engine, *((n, 1) for n in range(5)))
    ids, mark = pull()
    assert ids == [0, 1, 2, 3, 4]
    assert set(pull(mark)[0]) < {0, 1, 2, 3, 4}, "none is lost; those read again are duplicates"


@settings(max_examples=30, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=4),
    size=st.integers(1, 5),
    stop=st.integers(0, 3),
)
def test_no_row_is_lost_or_twice_while_the_column_grows(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], size: int, stop: int
) -> None:
    folder = tmp_path_factory.mktemp("sql")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHAT_URL", f"sqlite:///{folder / 'chat.db'}")
        engine = sa.create_engine(f"sqlite:///{folder / 'chat.db'}")
        with engine.begin() as connection:
            connection.execute(
                sa.text("CREATE TABLE messages (id INTEGER, changed_at DATETIME, said TEXT, price REAL)")
            )
        seen: list[int] = []
        mark: Watermark | None = None
        number = minute = 0
        for batch in batches:
            rows = []
            for step in batch:
                minute += step
                rows.append((number, minute))
                number += 1
            add(engine, *rows)
            for page, reached in list(itertools.islice(TABLE.pages(mark, 0, size, None), stop)):
                seen += [row.row["id"] for row in page if row.row]
                mark = reached
        rest, _ = pull(mark, size)
        engine.dispose()
    assert sorted(seen + rest) == list(range(number))


# ---- what cannot be read


def test_faults_are_named_without_the_url(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no column nothing"):
        pull(table=SqlTable("CHAT_URL", "messages", "nothing"))
    with pytest.raises(InputError, match="no such table"):
        pull(table=SqlTable("CHAT_URL", "nothing", "id"))
    with pytest.raises(InputError, match="NOT_SET holds no SQLAlchemy URL"):
        pull(table=SqlTable("NOT_SET", "messages", "id"))
    for url in ("secret-word", "nothing://user:secret-word@host/db"):
        monkeypatch.setenv("CHAT_URL", url)
        with pytest.raises(InputError, match="CHAT_URL must be") as raised:
            pull()
        assert "secret" not in str(raised.value)
    add(engine, (1, 1))
    monkeypatch.setenv("CHAT_URL", str(engine.url))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE blobs (id BLOB)"))
        connection.execute(sa.text("INSERT INTO blobs VALUES (x'00')"))
    with pytest.raises(InputError, match="tells no order"):
        pull(table=SqlTable("CHAT_URL", "blobs", "id"))


def test_the_name_and_the_identity_hold_no_secret() -> None:
    assert TABLE.name == "sql:CHAT_URL/messages"
    assert TABLE.file_id == SqlTable("CHAT_URL", "messages", "changed_at").file_id
    assert len({TABLE.file_id, SqlTable("CHAT_URL", "messages", "id").file_id}) == 2


def test_plain_values() -> None:
    from memory_pipelines.landing.sql import _plain

    assert [_plain(v) for v in (Decimal("3"), Decimal("3.5"), date(2024, 5, 1), b"\xff\xe4\xbd\xa0", float("nan"))] == [
        3, 3.5, "2024-05-01", "\\xff你", "nan",
    ]  # fmt: skip
    assert _plain(datetime(2024, 5, 1, tzinfo=UTC)) == "2024-05-01T00:00:00+00:00"
    assert _plain([{"a": 1}]) == [{"a": 1}]
