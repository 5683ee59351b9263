"""The lake on disk after an erasure, byte by byte, and what the scan would have found."""

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from suites.erasure_world import ANN, BOB, COMMON, ERASED_AT, SECRET, TWIN, World, ids_of, is_anns, quoting, said, write

from memory_pipelines import erasure
from memory_pipelines.erasure.landed import trace
from memory_pipelines.erasure.places import Target
from memory_pipelines.erasure.scan import Evidence, gather, residues
from memory_pipelines.erasure.tombstones import KEPT
from memory_pipelines.errors import TransientError
from memory_pipelines.stores import schema
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.lake import DeltaLake
from memory_pipelines.tables import ALL, EXCHANGES, LABELLED, QUARANTINE, TURNS

MARKS = ("SECRET", "绝密", "u:ann-7f3", ANN.key)


def files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    return ((path, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file())


def decoded(content: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(io.BytesIO(content)).read().to_pylist()
    return rows


def marked(folder: Path) -> list[str]:
    """Files that hold a mark of Ann, raw or decoded; the other tenant's rows of the same name are not hers."""
    found = []
    for path, content in files(folder):
        rows = decoded(content) if path.suffix == ".parquet" else []
        if "_delta_log" in path.parts:
            hit = any(mark.encode() in content or mark in repr(rows) for mark in MARKS)
        else:
            hit = any(mark.encode() in content for mark in MARKS[:2]) or any(is_anns(row) for row in rows)
        if hit:
            found.append(path.name)
    return found


def evidence(world: World) -> Evidence:
    target = Target(ANN, trace(world.lake, ANN))
    return gather(world.lake, target)


def test_no_byte_of_the_lake_is_the_persons(on_disk: World, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    before = {spec.name: [r for r in on_disk.rows(spec) if not is_anns(r)] for spec in ALL}
    assert len(marked(folder)) > 14
    certificate = on_disk.erase(ANN)
    assert (certificate.survivors, certificate.body["residues"]) == (0, 0)
    assert marked(folder) == []
    after = {spec.name: on_disk.rows(spec) for spec in ALL}
    for spec in ALL:
        assert [row for row in after[spec.name] if row in before[spec.name]] == before[spec.name]
    assert len(after["exchanges"]) == len(before["exchanges"]) + 2  # Bob's side of the dialogue, redacted
    for key in on_disk.cold.keys(""):
        if key.startswith(KEPT):  # a key and an instant, read in test_erasure_tombstones
            continue
        assert b"SECRET" not in gzip.decompress(on_disk.cold.get(key) or b"")


def test_others_rows_hash_as_before(on_disk: World) -> None:
    def hashes() -> dict[str, str]:
        """Rows of Bob's that quote nobody, and all of the other tenant's."""
        result = {}
        for spec in ALL:
            rows = [row for row in on_disk.rows(spec) if not is_anns(row) and not ids_of(row) & quoted]
            result[spec.name] = canonical_hash(spec, pa.Table.from_pylist(rows, schema=spec.schema))
        return result

    quoted = quoting(on_disk)
    before = hashes()
    on_disk.erase(ANN)
    assert hashes() == before


def test_orphans_of_killed_writers_go_as_well(on_disk: World, tmp_path: Path) -> None:
    orphan = tmp_path / "lake" / "turns" / "day=2024-05-17" / "part-orphan.parquet"
    rows = [row for row in on_disk.rows(TURNS) if is_anns(row)]
    pq.write_table(pa.Table.from_pylist(rows, schema=TURNS.schema).drop_columns(["day"]), orphan)
    on_disk.erase(ANN)
    assert not orphan.exists()


def test_the_scan_finds_rows_files_and_logs(on_disk: World, tmp_path: Path) -> None:
    looked_for = evidence(on_disk)
    found = residues(on_disk.stores, looked_for)
    owned = {f"lake.{spec.name}" for spec in ALL if "subject" in spec.schema.names}
    assert {place for place in found if place.startswith("lake.")} >= owned
    assert {"postgres.memory_versions", "postgres.slice_turns", "postgres.turn_days", "postgres.people"} <= set(found)
    assert "postgres.models" not in found
    on_disk.erase(ANN)
    assert residues(on_disk.stores, looked_for) == {}
    # one line of hers in a log, and one row in a file that no version knows
    log = tmp_path / "lake" / "slices" / "_delta_log" / "left.json.tmp"
    log.write_text('{"stats":"{\\"minValues\\":{\\"text\\":\\"第二行 SECRETTWO 😀\\"}}"}', encoding="utf-8")
    row = dict.fromkeys(EXCHANGES.schema.names) | {"tenant": BOB.tenant, "owner": BOB.key, "subject": BOB.subject}
    quoted = row | {"other_text": "yes\nDear SECRETREPLY, noted: no nuts", "turn_ids": ["b-1"]}
    orphan = pa.Table.from_pylist([quoted], schema=EXCHANGES.schema)
    pq.write_table(orphan, tmp_path / "lake" / "exchanges" / "orphan.parquet")
    # and a labelled row that somebody brings in again
    labelled = dict.fromkeys(LABELLED.schema.names) | {"text": "a version SECRETOLD that was edited", "source": "x.csv"}
    on_disk.lake.write(LABELLED, pa.Table.from_pylist([labelled], schema=LABELLED.schema), [])
    left = {"lake.slices log": 1, "lake.exchanges": 1, "lake.labelled": 1}
    assert residues(on_disk.stores, looked_for) == left


def test_a_line_that_others_say_as_well_is_no_evidence(world: World) -> None:
    looked_for = evidence(world)
    assert COMMON in looked_for.lines
    world.erase(ANN)
    assert residues(world.stores, looked_for) == {}


def test_the_other_tenant_is_not_taken_for_the_person(world: World) -> None:
    looked_for = evidence(world)
    world.erase(ANN)
    assert any(row["subject"] == TWIN.subject for row in world.rows(TURNS))
    assert residues(world.stores, looked_for) == {}


def test_a_residue_in_postgres_is_found(world: World) -> None:
    looked_for = evidence(world)
    world.erase(ANN)
    table = schema.memory_versions
    with world.engine.begin() as connection:
        connection.execute(
            table.update().where(table.c.owner == BOB.key).values(text="SECRETDUO yes, at the usual place")
        )
        connection.execute(sa.update(schema.files).values(name="about-ann-7f3.csv"))
    assert residues(world.stores, looked_for) == {"postgres.memory_versions": 1, "postgres.files": 2}


def test_without_the_turns_ids_and_hashes_are_evidence_enough(on_disk: World) -> None:
    known = evidence(on_disk).target
    version = on_disk.lake.version(TURNS)
    on_disk.erase(ANN)
    late = gather(on_disk.lake, known, version)
    assert late.lines == frozenset()
    assert residues(on_disk.stores, late) == {}


def test_quarantine_is_searched_by_what_its_rows_say(world: World) -> None:
    before = len(world.rows(QUARANTINE))
    world.erase(ANN)
    raws = [row["raw"] for row in world.rows(QUARANTINE)]
    assert len(raws) == before - 6
    assert any("a broken row of Bob" in raw for raw in raws)
    assert any("other company" in raw for raw in raws)
    assert any("of anybody" in raw for raw in raws)


def test_a_hostile_text_cannot_hinder_the_erasure(world: World, tmp_path: Path) -> None:
    hostile = ["transient_reasoning", "customer_service", "memory_pipelines", "'; DROP TABLE turns; --", ".*" * 20]
    rows = [said(f"a-{i}", ANN, text, 30 + i, session_id="s9") for i, text in enumerate(hostile, 12)]
    world.land(write(tmp_path / "hostile.jsonl", rows))
    assert world.erase(ANN).survivors == 0


def test_a_busy_lake_leaves_the_person_unreachable(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    request = erasure.request(world.engine, ANN, "desk", ERASED_AT)
    erasure.approve(world.engine, request, "officer", ERASED_AT)

    def busy(*_: object) -> Any:
        raise TransientError("other jobs use the lake")

    monkeypatch.setattr(type(world.exclusion), "alone", busy)
    with pytest.raises(TransientError):
        erasure.execute(world.stores, request, ERASED_AT, SECRET)
    assert world.published.authority.visible(ANN) == []
    assert erasure.load(world.engine, request).state == "unreachable"


def test_purging_keeps_rows_and_begins_the_log_anew(tmp_path: Path, on_disk: World) -> None:
    lake = on_disk.lake
    assert isinstance(lake, DeltaLake)
    before, version = on_disk.rows(TURNS), lake.version(TURNS)
    lake.purge(TURNS)
    assert on_disk.rows(TURNS) == before
    assert lake.version(TURNS) > version
    log = sorted(p.name for p in (tmp_path / "lake" / "turns" / "_delta_log").iterdir())
    assert len([name for name in log if name.endswith(".json")]) == 2
    lake.purge(TURNS)
    assert on_disk.rows(TURNS) == before
    lake.write(TURNS, lake.read(TURNS), [])
    assert on_disk.rows(TURNS) == before
