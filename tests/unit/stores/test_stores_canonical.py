"""The canonical form of rows: order, repeats, chunks and encodings do not count; values do."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines import tables
from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import canonical_json
from memory_pipelines.stores.canonical import canonical_hash, canonical_rows, conform, ordered
from memory_pipelines.tables import TableSpec

SPEC = TableSpec(
    "things",
    pa.schema(
        [
            ("id", pa.string()),
            ("text", pa.string()),
            ("score", pa.float64()),
            ("flag", pa.bool_()),
            ("count", pa.int32()),
            ("at", tables.TIME),
            ("tags", tables.STRINGS),
            ("entities", pa.list_(tables.ENTITY)),
            ("file_id", pa.string()),
        ]
    ),
    partition_by=(),
    statistics=(),
    key=("id",),
    bookkeeping=("file_id",),
)
TEXTS = st.none() | st.text(st.characters(codec="utf-8"), max_size=4)
ENTITY = st.fixed_dictionaries({"surface": TEXTS, "canonical": TEXTS, "kind": TEXTS})
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": TEXTS,
            "text": TEXTS,
            "score": st.none() | st.sampled_from([0.0, -0.0, 0.5, -1.0]),
            "flag": st.none() | st.booleans(),
            "count": st.none() | st.integers(-3, 3),
            "at": st.none() | st.integers(-(10**15), 10**15),
            "tags": st.none() | st.lists(TEXTS, max_size=2),
            "entities": st.none() | st.lists(ENTITY, max_size=2),
            "file_id": TEXTS,
        }
    ),
    max_size=6,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SPEC.schema)


def one(**values: Any) -> pa.Table:
    return table([{"id": "1"} | values])


@given(ROWS, st.randoms(use_true_random=False))
def test_order_repeats_chunks_and_encodings_do_not_count(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = [*rows, *rows[:2]]
    random.shuffle(shuffled)
    moved = [row | {"file_id": "elsewhere"} for row in shuffled]
    chunks = pa.concat_tables([table(moved[:1]), table([]), table(moved[1:])])
    coded = chunks.set_column(1, "text", chunks["text"].dictionary_encode())
    expected = canonical_hash(SPEC, table(rows))
    assert canonical_hash(SPEC, table(shuffled)) == expected
    assert canonical_hash(SPEC, coded) == expected
    assert canonical_hash(SPEC, coded.drop_columns(["file_id"])) == expected
    assert canonical_hash(SPEC, canonical_rows(SPEC, chunks)) == expected


@given(ROWS, ROWS)
def test_the_hash_is_equal_only_for_equal_sets_of_rows(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> None:
    def content(rows: list[dict[str, Any]]) -> set[str]:
        kept = [
            row | {"file_id": None, "score": row["score"] or (None if row["score"] is None else 0.0)} for row in rows
        ]
        return set(map(canonical_json, kept))

    same = content(one) == content(two)
    assert (canonical_hash(SPEC, table(one)) == canonical_hash(SPEC, table(two))) == same


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"text": None}, {"text": ""}),
        ({"score": None}, {"score": 0.0}),
        ({"flag": None}, {"flag": False}),
        ({"count": None}, {"count": 0}),
        ({"at": None}, {"at": 0}),
        ({"tags": None}, {"tags": []}),
        ({"tags": []}, {"tags": [None]}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}),
        ({"tags": ["ab", "c"]}, {"tags": ["a", "bc"]}),
        ({"entities": [{"surface": "a"}]}, {"entities": [{"kind": "a"}]}),
        ({"text": "a", "id": "b"}, {"text": "b", "id": "a"}),
        ({"text": "e\u0301"}, {"text": "\u00e9"}),
    ],
)
def test_different_values_differ(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert canonical_hash(SPEC, one(**left)) != canonical_hash(SPEC, one(**right))


def test_where_a_value_ends_counts() -> None:
    left = table([{"id": "1", "text": "ab"}, {"id": "2", "text": "c"}])
    right = table([{"id": "1", "text": "a"}, {"id": "2", "text": "bc"}])
    assert canonical_hash(SPEC, left) != canonical_hash(SPEC, right)


def test_canonical_rows_are_distinct_sorted_and_without_bookkeeping() -> None:
    rows = table(
        [
            {"id": "b", "text": "2", "file_id": "f"},
            {"id": "a", "tags": ["y"]},
            {"id": "b", "text": "2", "file_id": "g"},
            {"id": "b", "text": "1"},
            {"id": "a", "tags": ["x"]},
            {"id": None},
        ]
    )
    found = canonical_rows(SPEC, rows)
    assert found.column_names == [n for n in SPEC.schema.names if n != "file_id"]
    assert [(r["id"], r["text"], r["tags"]) for r in found.to_pylist()] == [
        ("a", None, ["x"]),
        ("a", None, ["y"]),
        ("b", "1", None),
        ("b", "2", None),
        (None, None, None),
    ]


def test_an_empty_table_has_the_same_hash_everywhere() -> None:
    assert canonical_rows(SPEC, table([])).num_rows == 0
    assert canonical_hash(SPEC, table([])) == canonical_hash(SPEC, SPEC.schema.empty_table())
    assert len(canonical_hash(SPEC, table([]))) == 32


def test_the_hash_is_pinned() -> None:
    """A rebuild of another release compares with hashes of this one."""
    rows = one(text="顺丰 \U0001f600", score=0.5, flag=True, count=3, at=1715933550123456, tags=["a"])
    assert canonical_hash(SPEC, rows) == "56dce2bb926fe71cce1bc88c743eaab5"


def test_ordered_sorts_by_key_then_by_the_other_flat_columns() -> None:
    rows = table([{"id": "b", "count": 2}, {"id": None}, {"id": "b", "count": 1}, {"id": "a", "count": 9}])
    assert [(r["id"], r["count"]) for r in ordered(SPEC, rows).to_pylist()] == [
        ("a", 9),
        ("b", 1),
        ("b", 2),
        (None, None),
    ]


def test_conform_orders_casts_and_refuses() -> None:
    rows = one(count=5, tags=["x"])
    wide = rows.set_column(4, "count", pa.array([5], pa.int64())).select(SPEC.schema.names[::-1])
    assert conform(SPEC, wide).equals(rows)
    with pytest.raises(IntegrityError, match="count"):
        conform(SPEC, rows.set_column(4, "count", pa.array([2**40])))
    with pytest.raises(IntegrityError, match="count"):
        conform(SPEC, rows.drop_columns(["count"]))
    with pytest.raises(IntegrityError, match="twice"):
        conform(SPEC, rows.append_column("twice", pa.array([1])))
