"""Names, folders and sizes that nobody meant well: each is read, or is one error that says why."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_pipelines.errors import InputError
from memory_pipelines.landing import land
from memory_pipelines.landing.land import NoReaderError, land_file, source_format, take
from memory_pipelines.landing.mapping import find_mapping, parse_mapping
from memory_pipelines.landing.readers import RawRow
from memory_pipelines.landing.readers.rows import beginning
from memory_pipelines.landing.sources import Source, find, local_source
from memory_pipelines.stores import database
from memory_pipelines.stores.fakes import MemoryLake
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.notes import ChunkCounts
from memory_pipelines.tables import TURNS

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def row(number: int, text: str = "hello") -> str:
    said = {"user_id": "ann", "role": "user", "occurred_at": f"2024-05-17T08:00:{number:02d}Z", "text": text}
    return json.dumps(said) + "\n"


def land_into(lake: MemoryLake, ledger: Ledger, source: Source | Path) -> ChunkCounts | None:
    return land_file(
        source, lake=lake, ledger=ledger, clean=lambda turns: (turns, {}), default_tenant="t", buckets=2, landed_at=NOW
    )


def place() -> tuple[MemoryLake, Ledger]:
    return MemoryLake(), Ledger(database.connect("sqlite://"))


def named(*places: str | Path) -> list[Source]:
    return find(places, lambda: None)


@contextmanager
def not_root() -> Iterator[None]:
    """Whom permissions hold for."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


# ---- names


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"new\nline.jsonl", "new\\nline.jsonl"),
        (b"\x1b[31mred.jsonl", "\\x1b[31mred.jsonl"),
        (b"bad\xff.jsonl", "bad\\udcff.jsonl"),
        ("聊天 😀\u3000.jsonl".encode(), "聊天 😀\u3000.jsonl"),
        (b"a..jsonl", "a..jsonl"),
    ],
)
def test_a_file_of_any_name_is_read_and_its_name_is_one_line(tmp_path: Path, name: bytes, shown: str) -> None:
    with open(os.path.join(os.fsencode(tmp_path), name), "w") as file:
        file.write(row(1))
    (source,) = named(tmp_path)
    assert source.name == shown
    lake, ledger = place()
    landed = land_into(lake, ledger, source)
    assert landed is not None
    assert landed.turns == 1
    assert land_into(lake, ledger, named(tmp_path)[0]) is None
    assert find_mapping(Path(source.path), tmp_path) is None


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(InputError, match="empty path"):
        named("")


def test_the_home_of_nobody(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        named("~no-such-user-here/x.jsonl")[0].state()


# ---- what is no file


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("b.jsonl")
    (tmp_path / "b.jsonl").symlink_to("a.jsonl")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to("..")
    (tmp_path / "c.jsonl").write_text(row(1))
    assert [source.name for source in named(tmp_path)] == ["c.jsonl"]
    assert find_mapping(tmp_path / "a.jsonl", tmp_path) is None
    with pytest.raises(InputError, match=r"cannot read a\.jsonl"):
        named(tmp_path / "a.jsonl")[0].state()


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert named(tmp_path) == []
    with pytest.raises(InputError, match=r"cannot read pipe\.jsonl"):
        named(tmp_path / "pipe.jsonl")[0].state()


def test_a_folder_that_cannot_be_listed_is_an_error_and_the_others_are_read(tmp_path: Path) -> None:
    for folder in ("open", "closed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.jsonl").write_text(row(1))
    for above in (tmp_path, *tmp_path.parents):  # pytest keeps its folders to their owner
        if not above.stat().st_mode & 0o001:
            above.chmod(0o755)
    (tmp_path / "closed").chmod(0)
    try:
        with not_root():
            found = {source.name: source for source in named(tmp_path)}
            assert set(found) == {"open/a.jsonl", "closed"}
            with pytest.raises(InputError, match="cannot read closed: Permission denied") as error:
                source_format(found["closed"], None)
            inside = named(tmp_path / "closed" / "a.jsonl")
            assert find_mapping(Path(inside[0].path), tmp_path) is None
            with pytest.raises(InputError, match=r"cannot read a\.jsonl: Permission denied"):
                inside[0].state()
            assert [source.name for source in named(tmp_path / "closed")] == ["closed"]
        assert not isinstance(error.value, NoReaderError), "else it were passed over as no log"
    finally:
        (tmp_path / "closed").chmod(0o755)


# ---- nothing in it


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.txt", "a.log", "a.jsonl.gz"])
def test_an_empty_file_has_no_rows(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert land_into(*place(), tmp_path / name) == ChunkCounts()


@pytest.mark.parametrize("name", ["a.parquet", "a.zip"])
def test_an_empty_archive_is_an_error_whatever_else_is_empty(tmp_path: Path, name: str) -> None:
    lake, ledger = place()
    for empty in ("first.jsonl", name):
        (tmp_path / empty).write_bytes(b"")
    land_into(lake, ledger, tmp_path / "first.jsonl")
    with pytest.raises(InputError, match="is empty"):
        land_into(lake, ledger, tmp_path / name)


def test_a_chat_that_begins_after_it_was_first_seen(tmp_path: Path) -> None:
    lake, ledger = place()
    path = tmp_path / "chat.txt"
    path.write_bytes(b"")
    land_into(lake, ledger, path)
    path.write_text("2024-05-17, 10:16 - Ann: hi\n")
    landed = land_into(lake, ledger, path)
    assert landed is not None
    assert landed.turns == 1


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_suffix_that_lies(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_text(row(1))
    with pytest.raises(InputError, match=r"it is damaged, or no (gzip|zstd) archive"):
        land_into(*place(), path)


# ---- too much in it


def test_long_messages_do_not_make_a_large_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(land, "CHUNK_CHARACTERS", 1000)
    path = tmp_path / "long.jsonl"
    path.write_text("".join(row(number, "x" * 600) for number in range(9)))
    lake, ledger = place()
    landed = land_into(lake, ledger, path)
    assert landed is not None
    assert landed.turns == lake.read(TURNS).num_rows == 9
    assert len(set(lake.read(TURNS)["file_id"].to_pylist())) == 5, "two rows to a chunk"


def test_rows_are_taken_up_to_a_number_or_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(land, "CHUNK_CHARACTERS", 10)
    rows = iter([RawRow(number, {}, "x" * size) for number, size in enumerate([4, 4, 4, 1, 1, 1, 99, 1])])
    taken = []
    while part := take(rows, 3):
        taken.append([one.position for one in part])
    assert taken == [[0, 1, 2], [3, 4, 5], [6], [7]]


def test_what_is_held_to_learn_how_a_file_is_written_is_bounded() -> None:
    items = iter(["x" * (5 << 20)] * 9)
    assert len(beginning(items, 1000, len)) == 4
    assert len(list(items)) == 5


BOMB = "roles:\n  a: &a {x: user}\n" + "".join(
    f"  {name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [(BOMB, "aliases"), ("columns: &c\n  text: *c\n", "aliases"), ("[" * 100_000, "nested too deep")],
)
def test_a_mapping_of_few_lines_stays_small(text: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        parse_mapping(text)


def test_the_address_of_a_name_that_is_no_text(tmp_path: Path) -> None:
    source = local_source(tmp_path / os.fsdecode(b"\xff.jsonl"))
    assert source.address.endswith("/%FF.jsonl")
