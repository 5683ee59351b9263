"""The contract of ``Lake``; a text that must not leak is looked for in Delta's log byte by byte."""

import dataclasses
import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from memory_pipelines import tables
from memory_pipelines.errors import IntegrityError, PermanentError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.stores.base import Lake, Replace, ReplaceRange
from memory_pipelines.stores.canonical import canonical_hash
from memory_pipelines.stores.lake import DeltaLake
from memory_pipelines.tables import BEHAVIOUR, ENTITIES, QUARANTINE, SLICES, TURNS, TableSpec

AT = datetime(2024, 5, 17, 8, 12, 30, 123456, tzinfo=UTC)
HOSTILE = ["it's", "''", "'; DROP TABLE turns; --", "\\'", "\\", '"', "') OR (1=1", "日 😀", "a\nb", "%", ""]


def table(spec: TableSpec, *rows: dict[str, Any]) -> pa.Table:
    full = [dict.fromkeys(spec.schema.names) | row for row in rows]
    return pa.Table.from_pylist(full, schema=spec.schema)


def turn(turn_id: str, file_id: str, day: str = "2024-05-17", **more: Any) -> dict[str, Any]:
    row = {"tenant": "t", "turn_id": turn_id, "file_id": file_id, "day": day, "occurred_at": AT, "position": 1}
    return row | {"content_hash": "h", "text": f"text of {turn_id}"} | more


def slice_(slice_id: str, subject: str, bucket: int = 3, **more: Any) -> dict[str, Any]:
    row = {"tenant": "t", "slice_id": slice_id, "subject": subject, "occurred_at": AT, "bucket": bucket}
    return row | {"owner": Owner("t", subject).key} | more


def event(event_id: str, bucket: int, **more: Any) -> dict[str, Any]:
    return {"tenant": "t", "event_id": event_id, "file_id": "f", "bucket": bucket, "occurred_at": AT} | more


def with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def column(lake: Lake, spec: TableSpec, name: str, **asked: Any) -> list[Any]:
    return sorted(lake.read(spec, **asked)[name].to_pylist())


def test_a_table_that_was_never_written_is_empty_with_its_schema(lake: Lake) -> None:
    assert lake.read(SLICES).schema == SLICES.schema
    assert lake.read(SLICES).num_rows == 0
    assert lake.read(SLICES, columns=["bucket", "text"]).schema.names == ["bucket", "text"]
    assert lake.version(SLICES) == -1
    assert lake.read(SLICES, version=-1).num_rows == 0


@pytest.mark.parametrize("spec", tables.ALL, ids=lambda spec: spec.name)
def test_rows_of_every_table_come_back_with_exact_types(spec: TableSpec, tmp_path: Path) -> None:
    values: dict[pa.DataType, Any] = {
        pa.string(): "顺丰 \U0001f600 'x'",
        pa.int64(): 2**40,
        pa.int32(): 7,
        pa.float64(): 0.1234,
        pa.bool_(): True,
        tables.TIME: AT,
        tables.STRINGS: ["a", "乙"],
        pa.list_(pa.float64()): [1.5, 0.0],
        pa.list_(tables.SPAN): [{"start": 1, "end": 3, "kind": "carrier"}],
        pa.map_(pa.string(), pa.float64()): [("core", 0.5), ("use", 0.25)],
        pa.list_(tables.ENTITY): [{"surface": "顺丰", "canonical": "carrier/sf_express", "kind": None}],
    }
    full = {field.name: values[field.type] for field in spec.schema}
    sparse = {name: full[name] for name in {*spec.key, *spec.partition_by}} | {spec.key[-1]: "other"}
    empty_lists = full | {f.name: [] for f in spec.schema if pa.types.is_list(f.type)} | {spec.key[-1]: "lists"}
    rows = table(spec, full, sparse, empty_lists)
    lake = DeltaLake(str(tmp_path))
    lake.write(spec, rows, [])
    found = lake.read(spec)
    assert found.schema == spec.schema
    assert canonical_hash(spec, found) == canonical_hash(spec, rows)
    key = spec.key[-1]
    assert {row[key]: row for row in found.to_pylist()} == {row[key]: row for row in rows.to_pylist()}


def test_a_write_replaces_what_it_names_and_nothing_else(lake: Lake) -> None:
    lake.write(TURNS, table(TURNS, turn("1", "a"), turn("2", "a", "2024-05-18")), [Replace("file_id", ("a",))])
    lake.write(TURNS, table(TURNS, turn("3", "b")), [Replace("file_id", ("b",))])
    assert column(lake, TURNS, "turn_id") == ["1", "2", "3"]
    lake.write(TURNS, table(TURNS, turn("4", "a")), [Replace("file_id", ("a",))])
    assert column(lake, TURNS, "turn_id") == ["3", "4"]


def test_repeating_a_write_leaves_the_same_rows(lake: Lake) -> None:
    rows = table(TURNS, turn("1", "a"), turn("2", "a", "2024-05-18"))
    hashes = set()
    for _ in range(3):
        lake.write(TURNS, rows, [Replace("file_id", ("a",))])
        hashes.add(canonical_hash(TURNS, lake.read(TURNS)))
    assert hashes == {canonical_hash(TURNS, rows)}


def test_no_rows_still_delete_the_replaced_ones(lake: Lake) -> None:
    lake.write(TURNS, table(TURNS), [Replace("file_id", ("a",))])
    assert (lake.read(TURNS).num_rows, lake.version(TURNS) >= 0) == (0, True)
    lake.write(TURNS, table(TURNS, turn("1", "a")), [Replace("file_id", ("a",))])
    lake.write(TURNS, table(TURNS, turn("2", "b")), [Replace("file_id", ("b",))])
    lake.write(TURNS, table(TURNS), [Replace("file_id", ("a",))])
    assert column(lake, TURNS, "turn_id") == ["2"]
    lake.write(TURNS, table(TURNS), [])
    assert lake.read(TURNS).num_rows == 0


def test_replacing_no_values_changes_nothing(lake: Lake) -> None:
    lake.write(TURNS, table(TURNS, turn("1", "a")), [Replace("file_id", ("a",))])
    lake.write(TURNS, table(TURNS), [Replace("file_id", ())])
    assert column(lake, TURNS, "turn_id") == ["1"]
    with pytest.raises(IntegrityError):
        lake.write(TURNS, table(TURNS, turn("2", "a")), [Replace("file_id", ())])


@pytest.mark.parametrize(
    ("low", "high", "left"),
    [(None, None, "x"), ("b", None, "ax"), (None, "c", "cdx"), ("b", "d", "adx"), ("e", "f", "abcdx")],
)
def test_a_range_replaces_from_its_low_end_to_below_its_high_end(
    lake: Lake, low: str | None, high: str | None, left: str
) -> None:
    rows = [slice_(name, "u:1", owner=name) for name in "abcd"]
    lake.write(SLICES, table(SLICES, *rows, slice_("x", "u:1", bucket=4, owner="b")), [])
    lake.write(SLICES, table(SLICES), [ReplaceRange("owner", low, high)], {"bucket": 3})
    assert "".join(column(lake, SLICES, "slice_id")) == left


def test_a_row_outside_of_the_range_that_a_write_replaces_is_refused(lake: Lake) -> None:
    rows = table(SLICES, slice_("1", "u:1", owner="c"))
    for low, high in (("d", None), (None, "c")):
        with pytest.raises(IntegrityError):
            lake.write(SLICES, rows, [ReplaceRange("owner", low, high)], {"bucket": 3})
    assert lake.read(SLICES).num_rows == 0


@pytest.mark.parametrize("spec", [TURNS, SLICES, QUARANTINE], ids=lambda spec: spec.name)
def test_a_compacted_table_has_the_same_rows_in_fewer_files(spec: TableSpec, tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    for i in range(12):
        row, key = {
            "turns": (turn(f"{i:02}", f"f{i}", f"2024-05-{17 + i % 2}", conversation_id=f"c{-i}"), "file_id"),
            "slices": (slice_(f"{i:02}", f"u:{i}", i % 2), "owner"),
            "quarantine": ({"tenant": "t", "file_id": f"f{i}", "reason": "bad"}, "file_id"),
        }[spec.name]
        row |= {"raw" if spec is QUARANTINE else "text": f"SECRET {i}"}
        lake.write(spec, table(spec, row), [Replace(key, (row[key],))])
    before, version = canonical_hash(spec, lake.read(spec)), lake.version(spec)
    assert lake.compact(spec, 12) is None
    done = lake.compact(spec, 5)
    assert done is not None
    assert (done.before, done.after, done.files_before) == (version, version + 1, 12)
    assert done.files_after == (1 if spec is QUARANTINE else 2)
    assert lake.compact(spec, 5) is None
    assert canonical_hash(spec, lake.read(spec)) == before
    assert canonical_hash(spec, lake.read(spec, version=version)) == before
    assert lake.vacuum(spec, timedelta(days=7)) == 0
    assert lake.vacuum(spec, timedelta(0)) == 12
    assert canonical_hash(spec, lake.read(spec)) == before
    log = b"".join(content for path, content in lake.stored(spec) if path.startswith("_delta_log"))
    assert b"SECRET" not in log


def test_a_compacted_table_is_written_like_any_other(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    for i in range(4):
        lake.write(TURNS, table(TURNS, turn(str(i), f"f{i}")), [Replace("file_id", (f"f{i}",))])
    lake.compact(TURNS, 1)
    lake.write(TURNS, table(TURNS, turn("new", "f2")), [Replace("file_id", ("f2",))])
    assert column(lake, TURNS, "turn_id") == ["0", "1", "3", "new"]


def test_nothing_to_compact(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    assert lake.compact(TURNS, 1) is None
    assert lake.vacuum(TURNS, timedelta(0)) == 0


def test_a_partition_narrows_a_write(lake: Lake) -> None:
    for bucket in (1, 2):
        lake.write(BEHAVIOUR, table(BEHAVIOUR, event(f"e{bucket}", bucket)), [], {"bucket": bucket})
    lake.write(BEHAVIOUR, table(BEHAVIOUR, event("new", 2)), [Replace("file_id", ("f",))], {"bucket": 2})
    assert column(lake, BEHAVIOUR, "event_id") == ["e1", "new"]
    lake.write(BEHAVIOUR, table(BEHAVIOUR), [Replace("file_id", ("f", "g"))], {"bucket": 1})
    assert column(lake, BEHAVIOUR, "event_id") == ["new"]


def test_several_columns_must_all_match(lake: Lake) -> None:
    days = ("2024-05-17", "2024-05-18")
    lake.write(TURNS, table(TURNS, *(turn(f"{f}{d[-1]}", f, d) for f in "ab" for d in days)), [])
    lake.write(TURNS, table(TURNS), [Replace("file_id", ("a",)), Replace("day", ("2024-05-18", "2024-05-19"))])
    assert column(lake, TURNS, "turn_id") == ["a7", "b7", "b8"]


@pytest.mark.parametrize("by", ["owner", "subject"])
def test_persons_are_replaced_within_their_bucket(lake: Lake, by: str) -> None:
    """By the opaque key, which Delta's log may show, and by the name, which it may not."""
    rows = [slice_(f"{s}{b}", f"u:{s}", b) for s in ("alice", "bob") for b in (3, 4)]
    key = {row["subject"]: row[by] for row in rows}
    for bucket in (3, 4):
        part = table(SLICES, *(row for row in rows if row["bucket"] == bucket))
        lake.write(SLICES, part, [Replace(by, tuple(key.values()))], {"bucket": bucket})
    alice, bob = Replace(by, (key["u:alice"],)), Replace(by, (key["u:bob"],))
    for _ in range(2):
        lake.write(SLICES, table(SLICES, slice_("new", "u:alice", 3)), [alice], {"bucket": 3})
    assert column(lake, SLICES, "slice_id") == ["alice4", "bob3", "bob4", "new"]
    lake.write(SLICES, table(SLICES), [bob, Replace("tenant", ("t",))])
    assert column(lake, SLICES, "slice_id") == ["alice4", "new"]
    lake.write(SLICES, table(SLICES), [alice, Replace("tenant", ("other",))])
    assert column(lake, SLICES, "slice_id") == ["alice4", "new"]


def test_a_null_is_replaced_by_no_value(lake: Lake) -> None:
    def raw(text: str, day: str | None) -> dict[str, Any]:
        return {"tenant": "t", "file_id": "f", "position": 1, "reason": "no time", "raw": text, "day": day}

    lake.write(QUARANTINE, table(QUARANTINE, raw("a", None), raw("b", "2024-05-17")), [Replace("file_id", ("f",))])
    lake.write(QUARANTINE, table(QUARANTINE), [Replace("day", ("2024-05-17", "None", ""))])
    assert column(lake, QUARANTINE, "raw") == ["a"]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", ["file_id", "subject"])
def test_hostile_values_are_values_and_nothing_else(lake: Lake, name: str, hostile: str) -> None:
    odd = turn("odd", "f") | {"subject": "u:1", name: hostile}
    plain = turn("plain", "g") | {"subject": "u:2"}
    lake.write(TURNS, table(TURNS, odd, plain), [])
    assert column(lake, TURNS, "turn_id", where=[(name, "=", hostile)]) == ["odd"]
    assert column(lake, TURNS, "turn_id", where=[(name, "in", [hostile])]) == ["odd"]
    lake.write(TURNS, table(TURNS, odd | {"turn_id": "new"}), [Replace(name, (hostile,))])
    assert column(lake, TURNS, "turn_id") == ["new", "plain"]
    lake.write(TURNS, table(TURNS), [Replace(name, (hostile,))])
    assert column(lake, TURNS, "turn_id") == ["plain"]


def test_hostile_partition_values(lake: Lake) -> None:
    for i, day in enumerate(HOSTILE[:-1]):
        lake.write(TURNS, table(TURNS, turn(str(i), "f", day)), [Replace("day", (day,))])
    assert column(lake, TURNS, "day") == sorted(HOSTILE[:-1])
    lake.write(TURNS, table(TURNS), [Replace("day", (HOSTILE[0],))])
    assert column(lake, TURNS, "day") == sorted(HOSTILE[1:-1])


def test_filters_and_columns(lake: Lake) -> None:
    times = [AT.replace(day=day) for day in (15, 16, 17)]
    rows = [event(f"e{i}", i, occurred_at=at, value=float(i), kind="order") for i, at in enumerate(times)]
    lake.write(BEHAVIOUR, table(BEHAVIOUR, *rows, event("null", 9, occurred_at=None)), [])

    def found(*where: tuple[str, str, object]) -> list[str]:
        return column(lake, BEHAVIOUR, "event_id", where=where)

    assert found(("bucket", "=", 1)) == ["e1"]
    assert found(("bucket", "in", (0, 2))) == ["e0", "e2"]
    assert found(("event_id", "in", [])) == []
    assert found(("event_id", "by", ("bucket", {0: ["e0", "e1"], 1: ["e2"], 2: ["e2"]}))) == ["e0", "e2"]
    assert found(("event_id", "by", ("bucket", {}))) == []
    with pytest.raises(PermanentError):
        found(("event_id", "by", ("nothing", {0: ["e0"]})))
    assert found(("occurred_at", ">=", times[1])) == ["e1", "e2"]
    assert found(("occurred_at", ">=", times[0]), ("occurred_at", "<", times[1])) == ["e0"]
    assert found(("value", "<=", 1.0), ("kind", "=", "order")) == ["e0", "e1"]
    narrow = lake.read(BEHAVIOUR, columns=["value"], where=[("bucket", "=", 2)])
    assert narrow.to_pylist() == [{"value": 2.0}]
    for wrong in (("nothing", "=", 1), ("bucket", "~", 1)):
        with pytest.raises(PermanentError):
            found(wrong)
    with pytest.raises(PermanentError):
        lake.read(BEHAVIOUR, columns=["nothing"])


def test_old_versions_stay_readable(lake: Lake) -> None:
    first = lake.write(TURNS, table(TURNS, turn("1", "a")), [Replace("file_id", ("a",))])
    second = lake.write(TURNS, table(TURNS, turn("2", "a")), [Replace("file_id", ("a",))])
    assert second > first
    assert lake.version(TURNS) == second
    assert column(lake, TURNS, "turn_id", version=first) == ["1"]
    assert column(lake, TURNS, "turn_id", version=second) == ["2"]
    with pytest.raises(IntegrityError):
        lake.read(TURNS, version=second + 1)


def test_rows_outside_of_what_a_write_replaces_are_refused(lake: Lake) -> None:
    for replace, partition in (
        ([Replace("file_id", ("b",))], None),
        ([Replace("subject", ("u:2",))], None),
        ([], {"position": 2}),
    ):
        with pytest.raises(IntegrityError):
            lake.write(TURNS, table(TURNS, turn("1", "a")), replace, partition)
    assert lake.read(TURNS).num_rows == 0


def test_rows_that_do_not_fit_are_refused_and_dictionaries_are_taken(lake: Lake) -> None:
    rows = table(ENTITIES, {"tenant": "t", "exchange_id": "e", "model_set": "m", "bucket": 1, "day": "2024-05-17"})
    with pytest.raises(IntegrityError):
        lake.write(ENTITIES, rows.drop_columns(["day"]), [])
    with pytest.raises(IntegrityError):
        lake.write(ENTITIES, rows.append_column("extra", pa.array([1])), [])
    with pytest.raises(IntegrityError):
        lake.write(ENTITIES, with_column(rows, "bucket", pa.array(["no number"])), [])
    coded = with_column(rows, "tenant", rows["tenant"].dictionary_encode())
    lake.write(ENTITIES, with_column(coded, "bucket", pa.array([1], pa.int64())), [])
    assert lake.read(ENTITIES).to_pylist() == rows.to_pylist()


def test_nothing_private_is_in_the_log(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path / "lake"))
    secret = "SECRET-SUBJECT-77"
    rows = table(SLICES, slice_("s1", secret, text="SECRET-TEXT-77", entities=[{"surface": "SECRET-NAME-77"}]))
    for _ in range(2):
        lake.write(SLICES, rows, [Replace("subject", (secret,))], {"bucket": 3})
    lake.write(SLICES, table(SLICES), [Replace("subject", (secret,)), Replace("tenant", ("t",))], {"bucket": 3})
    lake.write(TURNS, table(TURNS, turn("1", "f", text="SECRET-TEXT-77", subject=secret)), [Replace("file_id", ("f",))])
    logs = [path for path in (tmp_path / "lake").rglob("_delta_log/*") if path.is_file()]
    assert len(logs) == 6
    assert not [path.name for path in logs if b"SECRET" in path.read_bytes()]
    assert not [path for path in (tmp_path / "lake").rglob("*") if "SECRET" in str(path)]


def test_files_are_sorted_and_compressed_by_zstd(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    lake = DeltaLake(str(tmp_path))
    lake.write(TURNS, table(TURNS, *(turn(str(i % 10), "f", position=i) for i in (17, 3, 9, 5, 13))), [])
    [file] = (tmp_path / "turns").rglob("*.parquet")
    stored = pq.ParquetFile(file)
    assert stored.read(["position"])["position"].to_pylist() == [3, 13, 5, 17, 9]
    assert stored.metadata.row_group(0).column(0).compression == "ZSTD"


def _write_some(location: str, first: int) -> None:
    lake = DeltaLake(location)
    for i in range(first, first + 3):
        row = slice_(f"s{i}", f"u:{i}", bucket=1)
        lake.write(SLICES, table(SLICES, row), [Replace("subject", (f"u:{i}",))], {"bucket": 1})


def test_concurrent_writers_of_one_partition_lose_nothing(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.starmap(_write_some, [(str(tmp_path / "lake"), first) for first in (0, 10, 20)])
    written = [f"s{i}" for first in (0, 10, 20) for i in range(first, first + 3)]
    assert column(DeltaLake(str(tmp_path / "lake")), SLICES, "slice_id") == sorted(written)


def test_an_unusable_folder_is_named_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    lake = DeltaLake(str(tmp_path / "file"))
    with pytest.raises(PermanentError, match="MEMORY_PIPELINES_LAKE_URL"):
        lake.write(TURNS, table(TURNS), [])


def test_an_unreachable_server_is_named_with_its_setting() -> None:
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_LAKE_URL") as caught:
        DeltaLake("s3://bucket/lake", options).version(TURNS)
    assert caught.value.store == "lake"


def test_a_table_that_an_earlier_version_made_gains_its_new_columns(tmp_path: Path) -> None:
    """Old rows have nothing there, new ones keep what they have; also where the old table is read only."""
    fields = [field for field in SLICES.schema if field.name not in ("reply_text", "impact_label")]
    before = dataclasses.replace(SLICES, schema=pa.schema(fields))
    old_rows = table(SLICES, slice_("a", "ann")).select(before.schema.names)
    DeltaLake(str(tmp_path)).write(before, old_rows, [Replace("bucket", ("3",))])
    lake = DeltaLake(str(tmp_path))
    (row,) = lake.read(SLICES).to_pylist()
    assert (row["slice_id"], row["reply_text"]) == ("a", None)
    assert lake.read(SLICES, columns=["reply_text"]).schema.names == ["reply_text"]
    lake.write(SLICES, table(SLICES, slice_("b", "bob", 4, reply_text="new")), [Replace("bucket", ("4",))])
    found = {r["slice_id"]: r["reply_text"] for r in DeltaLake(str(tmp_path)).read(SLICES).to_pylist()}
    assert found == {"a": None, "b": "new"}
    assert column(lake, SLICES, "slice_id", version=1) == ["a"], "the old version as well"
