"""Landing over all stores: tables, quarantine and its way out, events told twice; killed anywhere, run again."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from pipeline_world import NOW, House, Killed, cut, derive_all, dying_at, in_memory, state
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from assets.landing import quarantine_share
from memory_pipelines.clock import FixedClock
from memory_pipelines.errors import InputError
from memory_pipelines.landing import sources
from memory_pipelines.landing.sql import SqlTable
from memory_pipelines.pipeline import audit, files, quarantine
from memory_pipelines.settings import Settings
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS
from memory_pipelines.wiring import Platform

AT = datetime(2024, 5, 17, 8, tzinfo=UTC)
TABLE = SqlTable("CHAT_URL", "messages", "id")
MAPPING = "columns: {text: said, occurred_at: at, user_id: who}\nconstants: {role: user, origin: shop}\n"


def write(path: Path, *rows: dict[str, Any] | str) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def turn(number: int, **fields: Any) -> dict[str, Any]:
    at = AT + timedelta(hours=number)
    row = {"turn_id": f"t{number}", "user_id": f"u{number % 3}", "role": "user", "text": f"where is parcel {number}?"}
    return {"occurred_at": at.isoformat()} | row | fields


def event(number: int, **fields: Any) -> dict[str, Any]:
    at = AT + timedelta(hours=number)
    row = {"event_id": f"e{number}", "user_id": f"u{number % 3}", "kind": "order", "value": number}
    return {"occurred_at": at.isoformat()} | row | fields


def raw(number: int) -> dict[str, Any]:
    """A row of a shop's own table."""
    return {
        "id": number,
        "at": (AT + timedelta(hours=number)).isoformat(),
        "who": f"u{number % 3}",
        "said": f"no {number}",
    }


def finish(platform: Platform) -> dict[str, Any]:
    if days := list(platform.ledger.touched_days()):
        cut(platform, days)
    derive_all(platform)
    return state(platform)


def landed(platform: Platform) -> dict[str, Any]:
    return {spec.name: canonical_hash(spec, platform.lake.read(spec)) for spec in (TURNS, BEHAVIOUR, QUARANTINE)}


def balanced(platform: Platform) -> None:
    """Every row is accounted for, and what lies in the lake is what the ledger says."""
    assert audit.accounts(platform).balance == 0
    counts = platform.ledger.landed()
    own = [row for row in platform.lake.read(QUARANTINE).to_pylist() if row["reason"] not in quarantine.CONFLICTS]
    held = (platform.lake.read(TURNS).num_rows, platform.lake.read(BEHAVIOUR).num_rows, len(own))
    assert held == (counts.turns, counts.behaviour, sum(counts.quarantined.values()))


def all_points(run: Callable[[Platform], Any], make: Callable[[], Platform]) -> Iterator[Platform]:
    """Platforms in which ``run`` was killed, before each of its changes."""
    platform = make()
    with dying_at(platform, 0) as calls:
        run(platform)
    assert calls
    for number in range(1, len(calls) + 1):
        platform = make()
        with pytest.raises(Killed), dying_at(platform, number):
            run(platform)
        yield platform


# ---- events told more than once


def test_an_event_counts_once_and_its_other_versions_are_quarantined(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.jsonl", turn(0), turn(1), turn(2), event(3), event(4), event(3, value=99))
    again = write(tmp_path / "b.jsonl", event(4), event(3, value=7), event(5), event(3, value=99))
    orders = ([whole, again], [again, whole])
    states = []
    for paths in orders:
        platform = in_memory()
        files.land(platform, paths)
        balanced(platform)
        states.append(finish(platform))
        balanced(platform)
    assert states[0] == states[1]
    accounts = states[0]["accounts"]
    assert (accounts["rows"], accounts["behaviour"]) == (10, 3)
    assert accounts["duplicates"] == 2
    assert accounts["quarantined"] == {"conflicting_event": 2}
    lost = [json.loads(row["raw"]) for row in platform.lake.read(QUARANTINE).to_pylist()]
    assert [(row["event_id"], row["user_id"]) for row in lost] == [("e3", "u0")] * 2
    held = quarantine.held(platform)
    assert [(entry.reason, entry.rows) for entry in held] == [("conflicting_event", 2)]
    shown = quarantine.rows(platform, 5, reason="conflicting_event")
    assert len(shown) == 2


def test_one_event_id_of_two_people_is_two_events(tmp_path: Path) -> None:
    platform = in_memory()
    files.land(
        platform, [write(tmp_path / "a.jsonl", turn(0), turn(1), event(0, event_id="1"), event(1, event_id="1"))]
    )
    accounts = finish(platform)["accounts"]
    assert (accounts["behaviour"], accounts["quarantined"]) == (2, {})


def test_versions_that_come_later_change_which_one_counts_by_content_only(tmp_path: Path) -> None:
    names = [write(tmp_path / f"{n}.jsonl", turn(0), event(3, value=n)) for n in range(4)]
    step, once = in_memory(), in_memory()
    for path in names:
        files.land(step, [path])
        last = finish(step)
    files.land(once, names)
    assert last == finish(once)
    assert last["accounts"]["quarantined"] == {"conflicting_event": 3}


# ---- quarantine, and out of it


def broken_world(folder: Path) -> Platform:
    """Three rows of a shop without its mapping, one with a role that nobody knows, one of tomorrow."""
    platform = in_memory()
    tomorrow = (NOW + timedelta(hours=20)).isoformat()
    rows = [raw(0), turn(1), raw(2), turn(3, role="alien"), raw(4), event(5), turn(6, occurred_at=tomorrow), "{cut"]
    files.land(platform, [write(folder / "a.jsonl", *rows)])
    return platform


def mapping(folder: Path) -> Path:
    path = folder / "shop.yaml"
    path.write_text(MAPPING, encoding="utf-8")
    return path


def test_quarantine_is_listed_by_file_and_reason(tmp_path: Path) -> None:
    platform = broken_world(tmp_path)
    held = {(entry.name, entry.reason): entry.rows for entry in quarantine.held(platform)}
    assert held == {
        ("a.jsonl", "no_time"): 3,
        ("a.jsonl", "unknown_role"): 1,
        ("a.jsonl", "future_time"): 1,
        ("a.jsonl", "malformed_json"): 1,
    }
    (file,) = platform.ledger.files()
    assert [e.rows for e in quarantine.held(platform, reason="no_time", file=file["file_id"])] == [3]
    assert [r["position"] for r in quarantine.rows(platform, 2, reason="no_time", file="a.jsonl")] == [0, 2]
    with pytest.raises(InputError, match="no file"):
        quarantine.held(platform, file="b.jsonl")


def test_rows_that_are_good_now_are_landed_and_the_others_stay(tmp_path: Path) -> None:
    platform = broken_world(tmp_path)
    finish(platform)
    assert platform.ledger.touched_days() == {}
    (result,) = quarantine.readmit(platform, mapping=mapping(tmp_path), reason="no_time")
    assert (result.counts.turns, result.counts.quarantined) == (3, {"no_time": 3})
    balanced(platform)
    assert "2024-05-17" in platform.ledger.touched_days()
    (result,) = quarantine.readmit(platform)
    assert result.counts.turns == 0
    platform.clock = FixedClock(NOW + timedelta(days=1))
    (result,) = quarantine.readmit(platform)
    assert result.counts.quarantined == {"future_time": 1}
    balanced(platform)
    finish(platform)
    balanced(platform)
    assert platform.ledger.landed().quarantined == {"unknown_role": 1, "malformed_json": 1}
    turns = {row["turn_id"]: row for row in platform.lake.read(TURNS).to_pylist()}
    assert {row["position"] for row in turns.values()} == {0, 1, 2, 4, 6}


def test_the_mapping_that_was_used_is_read_again(tmp_path: Path) -> None:
    platform = in_memory()
    folder = tmp_path / "in"
    write(folder / "a.jsonl", raw(0), raw(1))
    (folder / "mapping.yaml").write_text(MAPPING.replace("said", "says"), encoding="utf-8")
    files.land(platform, [folder])
    assert platform.ledger.landed().quarantined == {"no_text": 2}
    (folder / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    quarantine.readmit(platform)
    assert platform.ledger.landed().turns == 2
    write(folder / "b.jsonl", raw(2) | {"said": None})
    files.land(platform, [folder])
    (folder / "mapping.yaml").unlink()
    results = quarantine.readmit(platform)
    assert [(result.name, "mapping" in result.error) for result in results] == [("b.jsonl", True)]
    balanced(platform)


def test_a_readmitted_world_is_the_one_that_was_right_from_the_start(tmp_path: Path) -> None:
    platform, clean = in_memory(), in_memory()
    rows = [raw(n) for n in range(6)]
    path = write(tmp_path / "a.jsonl", *rows)
    files.land(platform, [path])
    finish(platform)
    quarantine.readmit(platform, mapping=mapping(tmp_path))
    files.land(clean, [path], mapping=mapping(tmp_path))
    assert finish(platform) == finish(clean)


def test_a_readmission_killed_before_any_change(tmp_path: Path) -> None:
    path = mapping(tmp_path)

    def run(platform: Platform) -> None:
        quarantine.readmit(platform, mapping=path)

    clean = broken_world(tmp_path)
    run(clean)
    expected = landed(clean)
    for platform in all_points(run, lambda: broken_world(tmp_path)):
        assert audit.accounts(platform).balance == 0
        run(platform)
        balanced(platform)
        assert landed(platform) == expected
        run(platform)
        assert landed(platform) == expected
    assert finish(platform)["balance"] == 0


def test_a_killed_readmission_goes_on_with_another_mapping(tmp_path: Path) -> None:
    """What the killed attempt had landed and not noted is replaced, also by nothing."""
    for platform in all_points(
        lambda p: quarantine.readmit(p, mapping=mapping(tmp_path)), lambda: broken_world(tmp_path)
    ):  # fmt: skip
        quarantine.readmit(platform)
        balanced(platform)


# ---- a SQL table


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sa.Engine:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    monkeypatch.setenv("CHAT_URL", url)
    engine = sa.create_engine(url)
    insert(engine, range(9))
    return engine


def insert(engine: sa.Engine, numbers: range) -> None:
    with engine.begin() as connection:
        connection.execute(
            sa.text("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, at TEXT, who TEXT, said TEXT)")
        )
        rows = [raw(number) for number in numbers]
        connection.execute(sa.text("INSERT INTO messages VALUES (:id, :at, :who, :said)"), rows)


def test_a_table_is_read_on(database: sa.Engine, tmp_path: Path) -> None:
    platform = in_memory()
    assert files.land_table(platform, TABLE, mapping(tmp_path)).turns == 9
    days = platform.ledger.touched_days()
    assert files.land_table(platform, TABLE, mapping(tmp_path)).rows == 0
    assert platform.ledger.touched_days() == days, "nothing new touches no day"
    insert(database, range(9, 12))
    assert files.land_table(platform, TABLE, mapping(tmp_path)).rows == 3
    balanced(platform)
    (file,) = platform.ledger.files()
    assert (file["name"], file["rows"], file["complete"]) == ("sql:CHAT_URL/messages", 12, True)
    export = write(tmp_path / "export.jsonl", *(raw(n) for n in range(12)))
    clean = in_memory()
    files.land(clean, [export], mapping=mapping(tmp_path))
    assert canonical_hash(TURNS, platform.lake.read(TURNS)) == canonical_hash(TURNS, clean.lake.read(TURNS))


def test_rows_of_a_table_come_out_of_quarantine(database: sa.Engine, tmp_path: Path) -> None:
    platform, clean = in_memory(), in_memory()
    assert files.land_table(platform, TABLE).quarantined == {"no_time": 9}
    quarantine.readmit(platform, mapping=mapping(tmp_path))
    files.land_table(clean, TABLE, mapping(tmp_path))
    assert landed(platform) == landed(clean)
    balanced(platform)


def test_a_pull_killed_before_any_change(database: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK_ROWS", 2)
    path = mapping(tmp_path)

    def run(platform: Platform) -> None:
        files.land_table(platform, TABLE, path)

    clean = in_memory()
    run(clean)
    for platform in all_points(run, in_memory):
        assert audit.accounts(platform).balance == 0
        run(platform)
        balanced(platform)
        assert landed(platform) == landed(clean)


# ---- a look before


def test_a_dry_run_counts_what_landing_would_do_and_writes_nothing(tmp_path: Path) -> None:
    platform = in_memory()
    path = write(tmp_path / "in" / "a.jsonl", turn(0), turn(1, text="[heartbeat]"), event(50), raw(3), "{")
    settings = platform.settings

    def look(**named: Any) -> Any:
        (found,) = files.look(settings, [tmp_path / "in"], NOW, **named)
        return found

    found = look()
    assert (found.name, found.format, found.known) == ("a.jsonl", "jsonl", "")
    assert (found.rows, found.turns, found.behaviour) == (5, 1, 1)
    assert (dict(found.filtered), dict(found.quarantined)) == ({"heartbeat": 1}, {"no_time": 1, "malformed_json": 1})
    assert (found.first, found.last) == ("2024-05-17", "2024-05-19")
    assert look(engine=platform.engine).known == "new"
    assert look(mapping=mapping(tmp_path)).turns == 1, "the mapping takes the text from another column"
    counts = files.land(platform, [tmp_path / "in"])[0].counts
    assert (counts.rows, counts.turns, counts.filtered, counts.quarantined) == (
        found.rows, found.turns, dict(found.filtered), dict(found.quarantined),
    )  # fmt: skip
    before = state(platform)
    assert look(engine=platform.engine).known == "known"
    path.rename(path.with_name("b.jsonl"))
    assert look(engine=platform.engine).known == "known"
    path.with_name("b.jsonl").rename(path)
    with path.open("a") as out:
        out.write(json.dumps(turn(9)) + "\n")
    assert look(engine=platform.engine).known == "grown"
    assert state(platform) == before
    (tmp_path / "in" / "c.parquet").write_bytes(b"no table")
    faults = [found.fault for found in files.look(settings, [tmp_path / "in"], NOW)]
    assert [bool(fault) for fault in faults] == [False, True]


def test_unlanded_tells_what_may_have_something_new(tmp_path: Path) -> None:
    platform = in_memory()
    good = write(tmp_path / "a.jsonl", turn(0))
    bad = tmp_path / "b.parquet"
    bad.write_bytes(b"no table")
    assert len(files.unlanded(platform, [tmp_path])) == 2
    assert [r.status for r in files.land(platform, [tmp_path])] == ["landed", "unreadable"]
    assert files.unlanded(platform, [tmp_path]) == [], "what cannot be read is not tried again until it changes"
    bad.write_bytes(b"still none")
    write(good, turn(0), turn(1))
    assert [source.name for source in files.unlanded(platform, [tmp_path])] == ["a.jsonl", "b.parquet"]


def test_a_broken_mapping_is_noted_and_a_corrected_one_is_tried(tmp_path: Path) -> None:
    platform, folder = in_memory(), tmp_path / "in"
    write(folder / "a.jsonl", raw(0))
    other = write(folder / "b.jsonl", turn(1))
    here = folder / "mapping.yaml"
    here.write_text("columns: [", encoding="utf-8")
    assert [r.status for r in files.land(platform, [folder])] == ["unreadable"] * 2
    assert files.unlanded(platform, [folder]) == [], "nothing changed: no run every half minute"
    assert [(f.name, "mapping.yaml is no YAML" in f.fault) for f in platform.ledger.faults()] == [
        ("a.jsonl", True),
        ("b.jsonl", True),
    ]
    here.write_text("columns: {", encoding="utf-8")
    assert len(files.unlanded(platform, [folder])) == 2, "broken otherwise"
    files.land(platform, [folder])
    assert files.unlanded(platform, [folder]) == []
    here.write_text(MAPPING + "files: [a.*]\n", encoding="utf-8")
    assert len(files.unlanded(platform, [folder])) == 2
    found = files.look(platform.settings, [folder], NOW, platform.engine)
    assert [preview.known for preview in found] == ["new"] * 2, "what was never read did not grow"
    assert [(r.status, r.counts.turns) for r in files.land(platform, [folder])] == [("landed", 1), ("landed", 1)]
    assert (files.unlanded(platform, [folder]), platform.ledger.faults()) == ([], [])
    here.write_text(MAPPING, encoding="utf-8")
    assert files.unlanded(platform, [folder]) == [], "what was landed whole is not read again for a mapping"
    write(other, turn(1), turn(2))
    here.unlink()
    assert [source.name for source in files.unlanded(platform, [folder])] == ["b.jsonl"]
    balanced(platform)


def test_a_mapping_that_names_another_format_is_tried_on_what_could_not_be_read(tmp_path: Path) -> None:
    platform = in_memory()
    write(tmp_path / "a.jsonl", turn(0))
    here = tmp_path / "mapping.yaml"
    here.write_text("format: parquet", encoding="utf-8")
    assert [r.status for r in files.land(platform, [tmp_path])] == ["unreadable"]
    assert files.unlanded(platform, [tmp_path]) == []
    here.write_text("format: jsonl", encoding="utf-8")
    assert len(files.unlanded(platform, [tmp_path])) == 1
    assert [r.status for r in files.land(platform, [tmp_path])] == ["landed"]


def test_what_was_read_once_and_cannot_be_any_more_is_not_known(tmp_path: Path) -> None:
    platform = in_memory()
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(turn(0)).encode()))
    files.land(platform, [path])
    path.write_bytes(b"no archive")
    for _ in range(2):
        assert [r.status for r in files.land(platform, [path])] == ["unreadable"]
    (fault,) = platform.ledger.faults()
    assert fault.file_id == platform.ledger.files()[0]["file_id"]


def test_what_is_no_log_is_no_fault(tmp_path: Path) -> None:
    platform = in_memory()
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n", encoding="utf-8")
    assert [r.status for r in files.land(platform, [tmp_path])] == ["no log"]
    assert (files.unlanded(platform, [tmp_path]), platform.ledger.faults()) == ([], [])
    assert [r.status for r in files.land(platform, [path])] == ["unreadable"], "it was named itself"
    assert [fault.name for fault in platform.ledger.faults()] == ["notes.txt"]


def test_the_check_counts_what_in_the_inbox_cannot_be_read(tmp_path: Path) -> None:
    platform = in_memory(inbox=str(tmp_path / "inbox"))
    write(tmp_path / "inbox" / "a.jsonl", turn(0))
    bad = tmp_path / "inbox" / "of somebody.parquet"
    bad.write_bytes(b"")
    files.land(platform, files.inbox(platform))
    assert [file["name"] for file in platform.ledger.files()] == ["a.jsonl"], "the other was not even begun"
    keys = [fault.source for fault in platform.ledger.faults()]
    checked = checked_share(platform)
    assert (checked.passed, checked.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert checked.metadata["faulty_sources"].value == len(keys) == 1
    assert checked.metadata["faulty_source_keys"].value == keys
    assert "somebody" not in repr(checked)
    bad.unlink()
    assert checked_share(platform).passed, "what is gone from the inbox is no matter any more"


def checked_share(platform: Platform) -> dg.AssetCheckResult:
    result = quarantine_share(memory=SimpleNamespace(platform=platform))
    assert isinstance(result, dg.AssetCheckResult)
    return result


def test_an_inbox_that_refuses_to_tell_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bucket" / "in").mkdir(parents=True)
    store = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    asked: list[Settings] = []

    def s3_files(given: Settings) -> SubTreeFileSystem:
        asked.append(given)
        return store

    monkeypatch.setattr(sources, "s3_files", s3_files)
    platform = in_memory(inbox="s3://bucket/in", s3_url="http://embedded")
    platform.unfilled = replace(platform.settings, s3_url="")
    assert files.inbox(platform) == []
    assert asked == [platform.unfilled], "what serves the cold store is no place of sources"
    write(tmp_path / "bucket" / "in" / "a.jsonl", turn(0))
    assert [source.name for source in files.inbox(platform)] == ["a.jsonl"]
    platform.settings = replace(platform.settings, inbox="s3:///in")
    with pytest.raises(InputError, match="address"):
        files.inbox(platform)


# ---- for real: a process that is killed

_PROCESS = """
import sys
from pathlib import Path
from pipeline_world import House
from memory_pipelines.landing.sql import SqlTable
from memory_pipelines.pipeline import files, quarantine
house, path = House(Path(sys.argv[1])), Path(sys.argv[3])
files.CHUNK_ROWS = 40
with house.platform() as platform:
    platform.ledger.files()
    print("begins", flush=True)
    if sys.argv[2] == "pull":
        files.land_table(platform, SqlTable("CHAT_URL", "messages", "id"))
    else:
        quarantine.readmit(platform, mapping=path)
print("done", flush=True)
"""


@pytest.mark.embedded
@pytest.mark.parametrize("moment", range(3))
def test_a_pull_and_a_readmission_killed_by_the_kernel(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    house.reset()
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    monkeypatch.setenv("CHAT_URL", url)
    insert(sa.create_engine(url), range(400))
    shop = mapping(tmp_path)
    clean = in_memory()
    files.land_table(clean, TABLE, shop)
    with house.platform() as platform:
        kill(house, "pull", shop, lambda: platform.lake.version(QUARANTINE) >= moment)
        assert audit.accounts(platform).balance == 0
        files.land_table(platform, TABLE)
        assert platform.ledger.landed().quarantined == {"no_time": 400}
        held = platform.lake.version(QUARANTINE)
        kill(
            house,
            "readmit",
            shop,
            lambda: platform.lake.version(TURNS) >= moment or platform.lake.version(QUARANTINE) > held,
        )
        assert audit.accounts(platform).balance == 0
        quarantine.readmit(platform, mapping=shop)
        balanced(platform)
        assert landed(platform) == landed(clean)


def kill(house: House, what: str, path: Path, in_the_middle: Callable[[], bool]) -> None:
    here = Path(__file__).resolve().parent
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS, str(house.home), what, str(path)],
        env=os.environ | house.environment | {"PYTHONPATH": os.pathsep.join([str(here.parents[1]), str(here)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        while process.stdout.readline() != "begins\n":
            assert process.poll() is None
        while not in_the_middle():
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.001)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
