"""Files into the lake: nothing lost, nothing twice, wherever a run was killed."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import InputError
from memory_pipelines.landing.land import land_file
from memory_pipelines.landing.sources import local_source
from memory_pipelines.model import FIRST_DAY, TOUCHED_DAYS, Owner, shift_day
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.stores import database
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.fakes import MemoryLake
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.notes import ChunkCounts, LandedChunk, Watermark
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS, TableSpec

LANDED_AT = datetime(2024, 6, 1, tzinfo=UTC)
AT = datetime(2024, 5, 17, 8, tzinfo=UTC)
TABLES = (TURNS, BEHAVIOUR, QUARANTINE)


class Killed(BaseException):
    """What kill -9 looks like from inside."""


class FragileLedger(Ledger):
    """Dies instead of noting the chunks in ``dies``."""

    dies: frozenset[int] = frozenset()

    def chunk_landed(self, chunk: LandedChunk, watermark: Watermark | None = None) -> None:
        if chunk.chunk in self.dies:
            raise Killed
        super().chunk_landed(chunk, watermark)


class FragileLake(MemoryLake):
    """Dies before the write number ``dies``."""

    dies: int | None = None
    writes = 0

    def write(
        self, table: TableSpec, rows: pa.Table, replace: Sequence[Replace], partition: dict[str, int] | None = None
    ) -> int:
        self.writes += 1
        if self.writes == self.dies:
            raise Killed
        return super().write(table, rows, replace, partition)


class World:
    """An empty lake and ledger."""

    def __init__(self) -> None:
        self.lake = FragileLake()
        self.ledger = FragileLedger(database.connect("sqlite://"))

    def land(self, path: Path, chunk_rows: int = 3, landed_at: datetime = LANDED_AT) -> ChunkCounts | None:
        return land_file(
            path, lake=self.lake, ledger=self.ledger, clean=_clean, default_tenant="acme", buckets=8,
            landed_at=landed_at, chunk_rows=chunk_rows,
        )  # fmt: skip

    def hashes(self) -> list[str]:
        return [canonical_hash(spec, self.lake.read(spec)) for spec in TABLES]

    def rows(self) -> list[int]:
        return [self.lake.read(spec).num_rows for spec in TABLES]


def _clean(turns: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    made = clean_turns(turns)
    return made.turns, made.filtered


def talk(number: int, **fields: Any) -> dict[str, Any]:
    at = AT + timedelta(minutes=number)
    return {"occurred_at": at.isoformat(), "role": "user", "text": f"text {number}", "user_id": "ann"} | fields


def mixed(count: int) -> list[dict[str, Any] | str]:
    """Turns, behaviour, noise and broken rows."""
    rows: list[dict[str, Any] | str] = []
    for i in range(count):
        order = {"occurred_at": "2024-05-18T08:00:00Z", "kind": "order", "user_id": f"u{i}", "value": i}
        rows += [(talk(i), order, talk(i, text="[heartbeat]"), "{broken", talk(i, role="robot"))[i % 5]]
    return rows


def write(path: Path, rows: Sequence[dict[str, Any] | str]) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def world() -> World:
    return World()


def test_counts_rows_and_what_is_touched(tmp_path: Path, world: World) -> None:
    counts = world.land(write(tmp_path / "a.jsonl", mixed(10)))
    assert counts == ChunkCounts(10, 2, 2, {"heartbeat": 2}, {"malformed_json": 2, "unknown_role": 2})
    assert world.ledger.landed() == counts
    assert world.rows() == [2, 2, 4]
    assert set(world.ledger.touched_days()) == {shift_day("2024-05-17", shift) for shift in TOUCHED_DAYS}
    (file,) = world.ledger.files()
    assert (file["name"], file["complete"], file["rows"]) == ("a.jsonl", True, 10)
    assert file["quarantined"] == counts.quarantined
    broken = world.lake.read(QUARANTINE).to_pylist()
    assert sorted((r["reason"], r["position"], r["day"]) for r in broken) == [
        ("malformed_json", 3, None), ("malformed_json", 8, None),
        ("unknown_role", 4, "2024-05-17"), ("unknown_role", 9, "2024-05-17"),
    ]  # fmt: skip


def test_no_day_before_the_first_partition_is_touched(tmp_path: Path, world: World) -> None:
    world.land(write(tmp_path / "a.jsonl", [talk(0, occurred_at=FIRST_DAY + "T08:00:00Z")]))
    assert list(world.ledger.touched_days()) == [shift_day(FIRST_DAY, shift) for shift in range(max(TOUCHED_DAYS) + 1)]


def test_behaviour_touches_its_owner(tmp_path: Path, world: World) -> None:
    seen: list[LandedChunk] = []
    world.ledger.chunk_landed = lambda chunk, watermark=None: seen.append(chunk)  # type: ignore[method-assign]
    world.land(write(tmp_path / "a.jsonl", mixed(2)))
    owner = Owner("acme", "u:u1")
    assert [chunk.owners for chunk in seen] == [{("acme", owner.key, owner.bucket(8))}]
    assert [len(chunk.turn_days) for chunk in seen] == [1]


def test_the_same_file_again_is_known(tmp_path: Path, world: World) -> None:
    path = write(tmp_path / "a.jsonl", mixed(7))
    world.land(path)
    before = world.hashes(), world.lake.writes, world.ledger.touched_days()
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    assert world.land(path) is None
    assert world.land(copy) is None
    assert (world.hashes(), world.lake.writes, world.ledger.touched_days()) == before
    assert world.ledger.landed().rows == 7


def test_a_file_that_grew_adds_its_new_turns_only(tmp_path: Path, world: World) -> None:
    world.land(write(tmp_path / "a.jsonl", mixed(10)))
    world.land(write(tmp_path / "a.jsonl", mixed(15)))
    once = World()
    once.land(write(tmp_path / "b.jsonl", mixed(15)))
    assert world.hashes() == once.hashes()
    assert world.ledger.landed() == once.ledger.landed()
    assert [(f["complete"], f["rows"]) for f in world.ledger.files()] == [(True, 10), (True, 5)]


def test_the_same_name_with_other_content_is_another_file(tmp_path: Path, world: World) -> None:
    world.land(write(tmp_path / "a.jsonl", [talk(1)]))
    world.land(write(tmp_path / "a.jsonl", [talk(2)]))
    assert world.lake.read(TURNS).num_rows == 2


def test_equal_rows_without_ids_are_told_apart_and_found_again(tmp_path: Path, world: World) -> None:
    rows = [talk(0), talk(1), talk(1), talk(1), talk(2)]
    world.land(write(tmp_path / "a.jsonl", rows), chunk_rows=2)
    ids = set(world.lake.read(TURNS)["turn_id"].to_pylist())
    assert len(ids) == 5
    world.land(write(tmp_path / "b.jsonl", [*rows[1:], talk(3)]), chunk_rows=3)
    assert len(set(world.lake.read(TURNS)["turn_id"].to_pylist())) == 6
    assert ids < set(world.lake.read(TURNS)["turn_id"].to_pylist())


@pytest.mark.parametrize("chunk", range(4))
def test_killed_between_lake_and_ledger(tmp_path: Path, world: World, chunk: int) -> None:
    path = write(tmp_path / "a.jsonl", [*mixed(5), *mixed(5)])
    world.ledger.dies = frozenset({chunk})
    with pytest.raises(Killed):
        world.land(path)
    assert [f["complete"] for f in world.ledger.files()] == [False]
    world.ledger.dies = frozenset()
    world.land(path)
    clean = World()
    clean.land(path)
    assert world.hashes() == clean.hashes()
    assert world.rows() == clean.rows()
    assert world.ledger.landed() == clean.ledger.landed()


@pytest.mark.parametrize("number", range(1, 9))
def test_killed_between_the_tables_of_a_chunk(tmp_path: Path, world: World, number: int) -> None:
    path = write(tmp_path / "a.jsonl", mixed(15))
    world.lake.dies = number
    with pytest.raises(Killed):
        world.land(path, chunk_rows=5)
    world.lake.dies = None
    world.land(path, chunk_rows=5)
    clean = World()
    clean.land(path, chunk_rows=5)
    assert (world.hashes(), world.rows()) == (clean.hashes(), clean.rows())
    assert world.ledger.landed() == clean.ledger.landed()


def test_what_a_killed_attempt_quarantined_too_early_does_not_stay(tmp_path: Path, world: World) -> None:
    path = write(tmp_path / "a.jsonl", [talk(0), talk(60)])
    world.ledger.dies = frozenset({0})
    with pytest.raises(Killed):
        world.land(path, landed_at=AT + timedelta(minutes=30))
    assert world.rows() == [1, 0, 1]
    world.ledger.dies = frozenset()
    assert world.land(path) == ChunkCounts(2, 2)
    assert world.rows() == [2, 0, 0]


def test_a_resumed_file_returns_what_it_landed_now(tmp_path: Path, world: World) -> None:
    path = write(tmp_path / "a.jsonl", [talk(i // 3) for i in range(10)])
    world.ledger.dies = frozenset({2})
    with pytest.raises(Killed):
        world.land(path)
    world.ledger.dies = frozenset()
    writes = world.lake.writes
    assert world.land(path) == ChunkCounts(4, 4)
    assert world.lake.writes == writes + 2
    assert world.ledger.landed() == ChunkCounts(10, 10)
    assert len(set(world.lake.read(TURNS)["turn_id"].to_pylist())) == 10


def test_files_in_any_order_and_split_otherwise_are_the_same_rows(tmp_path: Path) -> None:
    rows = mixed(20)
    whole, split = World(), World()
    whole.land(write(tmp_path / "a.jsonl", rows))
    split.land(write(tmp_path / "c.jsonl", rows[13:]), chunk_rows=2)
    split.land(write(tmp_path / "b.jsonl", rows[:13]), chunk_rows=50)
    assert whole.hashes() == split.hashes()
    assert whole.ledger.landed() == split.ledger.landed()
    assert set(whole.ledger.touched_days()) == set(split.ledger.touched_days())


def test_an_empty_file_lands_nothing(tmp_path: Path, world: World) -> None:
    assert world.land(write(tmp_path / "a.jsonl", [])) == ChunkCounts()
    assert world.lake.writes == 0
    assert world.land(tmp_path / "a.jsonl") is None


@pytest.mark.parametrize("name", ["a.bin", "a.parquet", "gone.jsonl"])
def test_a_file_that_cannot_be_read(tmp_path: Path, world: World, name: str) -> None:
    (tmp_path / "a.bin").write_text("x")
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(InputError, match=name):
        world.land(tmp_path / name)
    assert world.rows() == [0, 0, 0]
    assert world.ledger.landed() == ChunkCounts()


def test_a_file_damaged_in_its_middle_keeps_what_was_read(tmp_path: Path, world: World) -> None:
    good = tmp_path / "b.parquet"
    rows = pa.Table.from_pylist([talk(i) for i in range(2_000)])
    pq.write_table(rows, good, row_group_size=1_000, compression="none", use_dictionary=False)
    data = bytearray(good.read_bytes())
    second = pq.ParquetFile(good).metadata.row_group(1)
    start, length = second.column(0).data_page_offset, second.column(0).total_compressed_size
    data[start : start + length] = b"\xff" * length
    path = tmp_path / "a.parquet"
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"a\.parquet"):
        world.land(path, chunk_rows=100)
    assert [f["complete"] for f in world.ledger.files()] == [False]
    assert world.ledger.landed().rows == world.rows()[0]


def test_the_id_of_a_file_is_its_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "b").write_bytes(b"x" * 3_000_000)
    (tmp_path / "c").write_bytes(b"")
    ids = [local_source(tmp_path / name).digest().file_id for name in "abc"]
    assert ids[0] == ids[1] != ids[2] == "cae66941d9efbd404e4d88758ea67670"
    with pytest.raises(InputError, match="cannot read gone"):
        local_source(tmp_path / "gone").digest()


# ---- garbage


_LINE = json.dumps(talk(0, text="包裹还没到 <b>&amp;</b> Ã¤Â½Â "), ensure_ascii=False)
_PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"\n",
            b"\r\n",
            b"\r",
            b'"',
            b",",
            b"\x00",
            b"\xef\xbb\xbf",
            b"\xff\xfe",
            b"{",
            b"}",
            b"[" * 50,
            b"\x80",
            _LINE.encode(),
            _LINE.encode("gb18030"),
            _LINE.encode("utf-16"),
            _LINE[:40].encode(),
            b"\xed\xa0\x80",
            json.dumps(talk(1, text="\ud800 a\x00")).encode(),
            json.dumps({"messages": [talk(2), 7]}).encode(),
            b'{"messages":[{"role":"user","content":[{"type":"text"}],"created_at":1715933550}]}',
            b"occurred_at,role,text,user_id,kind,value",
            b"2024-05-17T08:00:00Z,user,\xc4\xe3\xba\xc3,ann,,",
            "2024-05-17T08:00:00Z,user,你好,ann,,".encode(),
            b"2024-05-17T08:00:00Z,,,ann,order,-3",
            b"[heartbeat]",
        ]
    ),
)
_GARBAGE = st.lists(_PIECES, max_size=20).map(b"\n".join) | st.lists(_PIECES, max_size=20).map(b"".join)


def _balanced(world: World, path: Path) -> ChunkCounts | None:
    """Lands a file; every row of it must be somewhere, in the counts and in the lake."""
    try:
        counts = world.land(path)
    except InputError:
        return None
    assert counts is not None
    assert counts == world.ledger.landed()
    assert counts.rows == counts.turns + counts.behaviour + sum(counts.filtered.values()) + sum(
        counts.quarantined.values()
    )
    assert world.rows() == [counts.turns, counts.behaviour, sum(counts.quarantined.values())]
    return counts


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["a.jsonl", "a.csv"]), content=_GARBAGE)
@example(name="a.csv", content=b"occurred_at,role,text,user_id,kind,value\n2024-05-17T08:00:00Z,user,\xff,ann,,\n")
@example(name="a.jsonl", content=b'{"kind":"order","user_id":1,"occurred_at":1715933550,"value":1' + b"0" * 400 + b"}")
@example(name="a.jsonl", content=b'{"role":"user","text":"","occurred_at":1715933550,"vector_clock":{"\\ud800":1}}')
def test_no_bytes_are_lost_or_stop_the_run(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    _balanced(World(), path)


_CELLS: dict[str, st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]] = {
    "text": st.sampled_from(
        [
            (pa.string(), st.none() | st.text(max_size=9)),
            (pa.binary(), st.binary(max_size=9)),
            (pa.list_(pa.int8()), st.lists(st.integers(-128, 127), max_size=2)),
        ]
    ),
    "occurred_at": st.sampled_from(
        [
            (pa.timestamp(unit, zone), st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2 * 10**18))
            for unit in ("s", "ms", "us", "ns")
            for zone in (None, "UTC", "Asia/Shanghai")
        ]
        + [
            (pa.int64(), st.integers(1715933550, 1715933650)),
            (pa.string(), st.just(AT.isoformat())),
            (pa.date32(), st.integers(-(2**31), 2**31 - 1)),
            (pa.float64(), st.floats()),
        ]
    ),
    "role": st.sampled_from([(pa.string(), st.sampled_from(["user", "agent", "system", "?", None]))]),
    "kind": st.sampled_from([(pa.string(), st.sampled_from([None, "order"]))]),
    "user_id": st.sampled_from([(pa.int64(), st.none() | st.integers(0, 3)), (pa.float64(), st.floats())]),
    "value": st.sampled_from(
        [
            (pa.float64(), st.floats()),
            (pa.decimal128(10, 2), st.none() | st.decimals(-9, 9, places=2)),
            (pa.duration("s"), st.integers(-(2**63), 2**63 - 1)),
        ]
    ),
}


@st.composite
def _tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 6))
    columns: dict[str, pa.Array] = {}
    for name, kinds in _CELLS.items():
        kind, values = draw(kinds)
        drawn = draw(st.lists(values, min_size=count, max_size=count))
        if pa.types.is_temporal(kind):
            stored = pa.int32() if kind == pa.date32() else pa.int64()
            columns[name] = pa.array(drawn, stored).view(kind)
        else:
            columns[name] = pa.array(drawn, kind)
    return pa.table(columns)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=_tables())
def test_no_parquet_row_is_lost_or_stops_the_run(tmp_path: Path, table: pa.Table) -> None:
    path = tmp_path / "a.parquet"
    try:
        pq.write_table(table, path)
    except pa.ArrowInvalid:  # Parquet knows no seconds: a time may not fit its milliseconds
        return
    counts = _balanced(World(), path)
    assert counts is not None
    assert counts.rows == table.num_rows
