"""Where bytes come from: folders, globs, archives, files that grow or are replaced."""

import gzip
import json
import random
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from memory_pipelines.errors import InputError
from memory_pipelines.landing import sources
from memory_pipelines.landing.land import land_file
from memory_pipelines.landing.sources import NoSourceError, find, local_source, log_files, passed_over
from memory_pipelines.settings import Settings
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.stores import database
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.fakes import MemoryLake
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.notes import ChunkCounts
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS

AT = datetime(2024, 5, 17, 8, tzinfo=UTC)


class Place:
    """A lake and a ledger into which sources are landed."""

    def __init__(self) -> None:
        self.lake = MemoryLake()
        self.ledger = Ledger(database.connect("sqlite://"))

    def land(self, source: Any, chunk_rows: int = 4) -> ChunkCounts | None:
        return land_file(
            source, lake=self.lake, ledger=self.ledger, clean=_clean, default_tenant="acme", buckets=4,
            landed_at=AT + timedelta(days=30), chunk_rows=chunk_rows,
        )  # fmt: skip

    def hashes(self) -> list[str]:
        return [canonical_hash(spec, self.lake.read(spec)) for spec in (TURNS, BEHAVIOUR, QUARANTINE)]

    def rows(self) -> int:
        return sum(self.lake.read(spec).num_rows for spec in (TURNS, BEHAVIOUR, QUARANTINE))


def _clean(turns: Any) -> Any:
    made = clean_turns(turns)
    return made.turns, made.filtered


def line(number: int, **fields: Any) -> bytes:
    row = {"occurred_at": (AT + timedelta(minutes=number)).isoformat(), "role": "user", "text": f"text {number}"}
    return json.dumps(row | {"user_id": "ann"} | fields).encode() + b"\n"


def lines(numbers: Sequence[int]) -> bytes:
    return b"".join(line(number) for number in numbers)


def no_store() -> Any:
    raise AssertionError("no object store is asked for")


# ---- finding


def test_a_folder_gives_its_logs_whatever_their_compression(tmp_path: Path) -> None:
    for name in (
        "b.jsonl",
        "a/x.CSV.GZ",
        "a/y.parquet",
        "a/.hidden.jsonl",
        ".git/z.jsonl",
        "n.md",
        "m.jsonl.bz2",
        "k.zst",
        "mapping.yaml",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    found = find([tmp_path], no_store)
    assert [source.name for source in found] == ["a/x.CSV.GZ", "a/y.parquet", "b.jsonl"]
    assert passed_over([tmp_path, tmp_path / "b.jsonl"]) == ["gone.jsonl", "k.zst", "m.jsonl.bz2", "n.md"]
    assert [source.file_name for source in found] == ["x.CSV", "y.parquet", "b.jsonl"]
    assert [source.seekable for source in found] == [False, True, True]


def test_truth_is_left_out_only_beside_the_logs_that_it_is_the_truth_of(tmp_path: Path) -> None:
    for name in ("sample/logs/a.jsonl", "sample/truth/events.jsonl", "tribunal/truth/b.jsonl", "truth/c.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    names = [path.relative_to(tmp_path).as_posix() for path in log_files(tmp_path)]
    assert names == ["sample/logs/a.jsonl", "tribunal/truth/b.jsonl", "truth/c.jsonl"]
    assert len(log_files(tmp_path / "sample" / "truth")) == 1


def test_globs_and_files_each_once(tmp_path: Path) -> None:
    for name in ("a-1.jsonl", "a-2.jsonl", "b.jsonl", "deep/a-3.jsonl", "[odd].jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    assert [s.name for s in find([tmp_path / "a-*.jsonl"], no_store)] == ["a-1.jsonl", "a-2.jsonl"]
    assert len(find([f"{tmp_path}/**/a-*"], no_store)) == 3
    assert len(find([tmp_path, tmp_path / "b.jsonl", tmp_path / "a*"], no_store)) == 5
    assert [s.name for s in find([tmp_path / "[odd].jsonl"], no_store)] == ["[odd].jsonl"]
    with pytest.raises(InputError, match="matches the pattern"):
        find([tmp_path / "z*"], no_store)
    with pytest.raises(InputError, match=r"cannot read gone\.jsonl"):
        find([tmp_path / "gone.jsonl"], no_store)[0].state()


def test_objects_lie_where_the_settings_say_else_in_aws_itself() -> None:
    def options(**given: str) -> dict[str, Any]:
        store = sources.s3_files(Settings(**given)).__reduce__()[1][0]
        return {name: store[name] for name in ("endpoint_override", "scheme", "access_key", "region")}

    named = {"s3_url": "http://there:9000/", "s3_access_key": "key", "s3_secret_key": "secret", "s3_region": "eu-1"}
    assert options(**named) == {
        "endpoint_override": "there:9000", "scheme": "http", "access_key": "key", "region": "eu-1",
    }  # fmt: skip
    assert options()["endpoint_override"] == ""
    assert not options()["access_key"], "the standard chain of AWS"
    assert options(s3_access_key="key", s3_secret_key="secret")["access_key"] == "key"


def test_a_place_without_logs_is_told_from_one_that_cannot_be_asked(tmp_path: Path) -> None:
    (tmp_path / "bucket" / "in").mkdir(parents=True)
    store = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    with pytest.raises(NoSourceError):
        find(["s3://bucket/in"], lambda: store)
    with pytest.raises(InputError) as caught:
        find(["s3://"], lambda: store)
    assert not isinstance(caught.value, NoSourceError)


def test_the_state_changes_with_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([1]))
    before = local_source(path).state()
    assert local_source(path).state() == before
    path.write_bytes(lines([1, 2]))
    assert local_source(path).state() != before


# ---- archives


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_an_archive_is_the_same_rows(tmp_path: Path, suffix: str) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / f"b.jsonl{suffix}"
    plain.write_bytes(lines(range(30)))
    pack = gzip.compress if suffix == ".gz" else zstandard.compress
    packed.write_bytes(pack(lines(range(10))) + pack(lines(range(10, 30))))  # as rotated logs are appended
    one, two = Place(), Place()
    one.land(plain)
    assert two.land(packed) == ChunkCounts(30, 30)
    assert one.hashes() == two.hashes()
    assert two.land(packed) is None


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_truncated_archive_lands_the_rows_before_and_stays_unfinished(tmp_path: Path, suffix: str) -> None:
    rng = random.Random(5)
    content = b"".join(line(n, text="".join(rng.choices("abcdefghij", k=200))) for n in range(3_000))
    whole = gzip.compress(content) if suffix == ".gz" else zstandard.compress(content)
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(whole[: len(whole) * 2 // 3])
    place = Place()
    with pytest.raises(InputError, match=r"a\.jsonl\.\w+ is cut off"):
        place.land(path, 700)
    landed = place.rows()
    assert 500 < landed < 2_100
    assert [f["complete"] for f in place.ledger.files()] == [False]
    assert place.ledger.landed().rows == landed
    with pytest.raises(InputError):  # again: no row twice, nothing new
        place.land(path, 900)
    assert place.ledger.landed().rows == place.rows() == landed
    path.write_bytes(whole)
    place.land(path, 700)
    clean = Place()
    clean.land(path, 700)
    lake_ids = [p.lake.read(TURNS)["turn_id"].unique().to_pylist() for p in (place, clean)]
    assert len(lake_ids[1]) == 3_000
    # the line on which the archive broke off was read in part, or not at all
    assert set(lake_ids[0]) == set(lake_ids[1])


@pytest.mark.parametrize("content", [b"no archive at all", b""])
def test_what_only_looks_like_an_archive(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(content)
    place = Place()
    if content:
        with pytest.raises(InputError, match=r"a\.jsonl\.gz"):
            place.land(path)
    else:
        assert place.land(path) == ChunkCounts()


# ---- files that grow, are replaced, or lie in two places


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(range(5)))
    place = Place()
    place.land(path)
    monkeypatch.setattr(sources.Source, "digest", no_store)
    assert place.land(path) is None


def test_a_file_that_grew_and_grew_lands_each_row_once(tmp_path: Path) -> None:
    path, place = tmp_path / "a.jsonl", Place()
    content = lines([1, 2, 2, 3]) + b"{broken\n"
    path.write_bytes(content)
    assert place.land(path) == ChunkCounts(5, 4, quarantined={"malformed_json": 1})
    content += lines([2, 4])  # equal to a row before: another turn of this file
    path.write_bytes(content)
    assert place.land(path) == ChunkCounts(2, 2)
    content += lines([5]) * 3
    path.write_bytes(content)
    assert place.land(path, 2) == ChunkCounts(3, 3)
    assert place.land(path) is None
    clean = Place()
    clean.land(path)
    assert place.hashes() == clean.hashes()
    assert place.ledger.landed() == clean.ledger.landed()
    assert {f["complete"] for f in place.ledger.files()} == {True}


def test_positions_of_new_rows_go_on(tmp_path: Path) -> None:
    path, place = tmp_path / "a.jsonl", Place()
    path.write_bytes(lines([1, 2, 3]))
    place.land(path)
    path.write_bytes(lines([1, 2, 3, 4, 5]))
    place.land(path)
    assert sorted(place.lake.read(TURNS)["position"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_file_whose_last_line_was_not_ended_is_read_anew(tmp_path: Path) -> None:
    path, place = tmp_path / "a.jsonl", Place()
    path.write_bytes(lines([1, 2])[:-20])
    place.land(path)
    path.write_bytes(lines([1, 2, 3]))
    assert place.land(path) == ChunkCounts(3, 3)
    assert len(set(place.lake.read(TURNS)["turn_id"].to_pylist())) == 3


def test_a_replaced_file_is_a_new_one(tmp_path: Path) -> None:
    path, place = tmp_path / "a.jsonl", Place()
    path.write_bytes(lines([1, 2]))
    place.land(path)
    path.write_bytes(lines([7, 8, 9]))
    assert place.land(path) == ChunkCounts(3, 3)
    path.write_bytes(lines([1, 2]))
    assert place.land(path) is None


def test_an_archive_that_was_appended_to_is_a_new_file(tmp_path: Path) -> None:
    path, place = tmp_path / "a.jsonl.gz", Place()
    path.write_bytes(gzip.compress(lines([1, 2])))
    place.land(path)
    path.write_bytes(gzip.compress(lines([1, 2])) + gzip.compress(lines([3])))
    assert place.land(path) == ChunkCounts(3, 3)
    assert len(set(place.lake.read(TURNS)["turn_id"].to_pylist())) == 3


def test_a_table_that_continues_its_last_record_is_read_anew(tmp_path: Path) -> None:
    """What ended a line was no end of a row: a quoted field went on."""
    path, place = tmp_path / "a.csv", Place()
    head = b"occurred_at,role,user_id,text\n2024-05-17T08:00:00Z,user,ann,one\n"
    path.write_bytes(head + b'2024-05-17T08:01:00Z,user,ann,"two\n')
    place.land(path)
    path.write_bytes(head + b'2024-05-17T08:01:00Z,user,ann,"two\nlines"\n2024-05-17T08:02:00Z,user,ann,three\n')
    place.land(path)
    clean = Place()
    clean.land(path)
    held = set(place.lake.read(TURNS)["turn_id"].to_pylist())
    assert held >= set(clean.lake.read(TURNS)["turn_id"].to_pylist())
    assert place.ledger.landed().rows == place.rows()


def test_a_file_that_grew_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, place = tmp_path / "a.jsonl", Place()
    path.write_bytes(lines(range(10)))
    note = place.ledger.chunk_landed

    class Killed(BaseException):
        pass

    def dies(chunk: Any, watermark: Any = None) -> None:
        if chunk.chunk == 1:
            raise Killed
        note(chunk, watermark)

    monkeypatch.setattr(place.ledger, "chunk_landed", dies)
    with pytest.raises(Killed):
        place.land(path)
    monkeypatch.undo()
    path.write_bytes(lines(range(13)))
    assert place.land(path) == ChunkCounts(9, 9)
    clean = Place()
    clean.land(path)
    assert place.hashes() == clean.hashes()
    assert place.rows() == clean.rows() == place.ledger.landed().rows
    assert {f["complete"] for f in place.ledger.files()} == {True}


def test_what_is_written_while_a_file_is_read_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, place = tmp_path / "a.jsonl", Place()
    path.write_bytes(lines(range(5)))
    whole = sources.Source.digest

    def digest(self: sources.Source, begin: int = 0) -> sources.Digest:
        found = whole(self, begin)
        with path.open("ab") as out:
            out.write(line(99))
        return found

    monkeypatch.setattr(sources.Source, "digest", digest)
    assert place.land(path) == ChunkCounts(5, 5)
    monkeypatch.undo()
    assert place.land(path) == ChunkCounts(1, 1)


def test_a_document_that_changes_while_it_is_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, place = tmp_path / "a.jsonl.gz", Place()
    path.write_bytes(gzip.compress(lines([1])))
    whole = sources.Source.digest

    def digest(self: sources.Source, begin: int = 0) -> sources.Digest:
        found = whole(self, begin)
        path.write_bytes(gzip.compress(lines([1, 2])))
        return found

    monkeypatch.setattr(sources.Source, "digest", digest)
    with pytest.raises(InputError, match="changed while it was read"):
        place.land(path)
    monkeypatch.undo()
    assert place.land(path) == ChunkCounts(2, 2)


@settings(max_examples=40, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 5), max_size=25),
    cuts=st.lists(st.integers(0, 25), max_size=4),
    chunk_rows=st.integers(1, 7),
)
def test_however_a_file_grows_it_is_the_rows_of_its_end(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], cuts: list[int], chunk_rows: int
) -> None:
    """Equal rows without ids as well: within one file they are as many turns as there are rows."""
    path = tmp_path_factory.mktemp("grown") / "a.jsonl"
    grown, clean = Place(), Place()
    for cut in sorted({*(cut for cut in cuts if cut < len(numbers)), len(numbers)}):
        path.write_bytes(lines(numbers[:cut]))
        grown.land(path, chunk_rows)
    clean.land(path)
    assert grown.hashes() == clean.hashes()
    assert grown.rows() == len(numbers)
    assert grown.ledger.landed() == clean.ledger.landed()
    shutil.rmtree(path.parent)


def test_the_same_turn_in_two_exports_is_one_turn(tmp_path: Path) -> None:
    place = Place()
    for name, numbers in (("a.jsonl", [1, 2, 3]), ("b.jsonl", [2, 3, 4])):
        (tmp_path / name).write_bytes(lines(numbers))
        place.land(tmp_path / name)
    assert place.lake.read(TURNS).num_rows == 6
    assert len(set(place.lake.read(TURNS)["turn_id"].to_pylist())) == 4
