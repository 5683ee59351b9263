"""Ids are the same for ever: golden values, worked out once; nobody changes them by accident."""

import hashlib
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.model import (
    FIRST_DAY,
    INSTANT,
    WINDOW,
    ImpactLabel,
    MemoryType,
    Owner,
    canonical_json,
    day_of,
    day_start,
    days_between,
    device_subject,
    exchange_id,
    impact_label,
    iso,
    memory_id,
    shift_day,
    slice_id,
    stable_hash,
    turn_id,
    unique,
    user_subject,
    utc,
)

OWNER = Owner("acme", "u:ann")
AT = datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)


def blake(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


# ---- hash


@pytest.mark.parametrize(
    ("parts", "encoded", "golden"),
    [
        ((), b"", "cae66941d9efbd404e4d88758ea67670"),
        ((None,), b"-;", "6c4b9b07eff772c412d269b5615bfc3a"),
        (("",), b"0:", "fcdf3ecfe876539956eb77f17f503ac1"),
        (("ab", "c"), b"2:ab1:c", "709cf327ef95531b685902e50b513a88"),
    ],
)
def test_hashes_are_golden(parts: tuple[str | None, ...], encoded: bytes, golden: str) -> None:
    assert stable_hash(*parts) == blake(encoded) == golden


def test_lengths_are_bytes_and_numbers_are_text() -> None:
    assert stable_hash("你好") == blake(b"6:" + "你好".encode())
    assert stable_hash(42) == stable_hash("42") == blake(b"2:42")
    assert stable_hash("\ud800") == blake(b"3:\xed\xa0\x80")


_PARTS = st.lists(st.none() | st.text("a1:;-0", max_size=4), max_size=4)


@given(_PARTS, _PARTS)
def test_no_two_lists_of_parts_run_together(one: list[str | None], other: list[str | None]) -> None:
    assert (stable_hash(*one) == stable_hash(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("ab",), ("a", "b")),
        ((None,), ("",)),
        ((None,), ("-;",)),
        ((), ("",)),
        (("1:a",), ("", "a")),
        (("a", None), (None, "a")),
    ],
)
def test_parts_that_look_alike(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    assert stable_hash(*one) != stable_hash(*other)


# ---- ids


def test_ids_are_golden() -> None:
    assert OWNER.key == "5f081d07cc9d153ccbc521fb7cecd19e" == blake(b"4:acme5:u:ann")
    assert Owner("默认", "u:小明").key == "2772865387842e9077059cd8ef8d22f1"
    assert [OWNER.bucket(n) for n in (1, 8, 64, 4096)] == [0, 7, 7, 0x5F081D07 % 4096]
    assert turn_id("c1", AT, "user", "你好", 0) == "a98c5796bc0a4983bd76674f2f2459a4"
    assert turn_id("c1", AT, "user", "你好", 1) == "9bfc19f2e4c6a4a86777a1cc9ea75066"
    assert exchange_id(OWNER, "t1") == "f976d444c5374595fbad82e4d609111e"
    assert slice_id(AT.date(), "x1") == "evt_20240517_f889dea7e9d30ef228777e5dcdd070f1"
    assert memory_id(OWNER, MemoryType.EPISODIC, "t1") == "307b50be64eed5e41c2d49f7a0d710a1"
    assert memory_id(OWNER, MemoryType.SEMANTIC, "t1", "city", "上海") == "2f4e9e51b04c85bfa693debac25a6e97"


def test_ids_depend_on_the_instant_not_on_its_zone() -> None:
    shanghai = AT.astimezone(timezone(timedelta(hours=8)))
    assert turn_id("c1", shanghai, "user", "x", 0) == turn_id("c1", AT, "user", "x", 0)


def test_ids_of_different_things_differ() -> None:
    other = Owner("acme2", "u:ann")
    assert exchange_id(OWNER, "t1") != exchange_id(other, "t1")
    kinds = {memory_id(OWNER, kind, "t1") for kind in MemoryType}
    assert len(kinds | {exchange_id(OWNER, "t1"), stable_hash("slice", "t1")}) == 5
    assert memory_id(OWNER, MemoryType.SEMANTIC, "t", "ab", "c") != memory_id(
        OWNER, MemoryType.SEMANTIC, "t", "a", "bc"
    )


def test_subjects() -> None:
    assert (user_subject("7"), device_subject("7")) == ("u:7", "d:7")


@given(st.text(max_size=9), st.text(max_size=9), st.integers(1, 4096))
def test_a_bucket_is_one_of_the_buckets(tenant: str, subject: str, buckets: int) -> None:
    assert 0 <= Owner(tenant, subject).bucket(buckets) < buckets


def test_buckets_are_even() -> None:
    counts = [0] * 8
    for i in range(8_000):
        counts[Owner("acme", f"u:{i}").bucket(8)] += 1
    assert all(850 < count < 1150 for count in counts)


# ---- values


@pytest.mark.parametrize(
    ("impact", "label"),
    [(0.0, "low"), (0.2999, "low"), (0.3, "medium"), (0.5, "medium"), (0.7, "medium"), (0.7001, "high"), (1.0, "high")],
)
def test_impact_labels(impact: float, label: str) -> None:
    assert impact_label(impact) is ImpactLabel(label)


def test_canonical_json() -> None:
    assert canonical_json({"b": [1, None], "a": "你"}) == '{"a":"你","b":[1,null]}'


def test_unique_keeps_the_first() -> None:
    assert unique(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]


# ---- time


def test_a_time_without_a_zone_is_refused() -> None:
    naive = AT.replace(tzinfo=None)
    for call in (utc, iso, day_of):
        with pytest.raises(ValueError, match="without a zone"):
            call(naive)


def test_iso() -> None:
    assert iso(AT) == "2024-05-17T08:12:30Z"
    assert iso(AT.replace(microsecond=5)) == "2024-05-17T08:12:30.000005Z"
    assert iso(datetime(2024, 5, 17, 16, 12, 30, tzinfo=timezone(timedelta(hours=8)))) == iso(AT)


def test_days() -> None:
    assert day_of(datetime(2024, 5, 18, 7, 59, tzinfo=timezone(timedelta(hours=8)))) == "2024-05-17"
    assert day_start("2024-05-17") == datetime(2024, 5, 17, tzinfo=UTC)
    assert [shift_day("2024-02-28", n) for n in (-59, 0, 1, 2)] == [
        "2023-12-31", "2024-02-28", "2024-02-29", "2024-03-01",
    ]  # fmt: skip
    assert days_between("2023-12-31", "2024-01-02") == ["2023-12-31", "2024-01-01", "2024-01-02"]
    assert days_between("2024-01-01", "2024-01-01") == ["2024-01-01"]
    assert days_between("2024-01-02", "2024-01-01") == []


def test_borders_of_time() -> None:
    assert days_between(FIRST_DAY, FIRST_DAY) == [FIRST_DAY]
    assert WINDOW / timedelta(days=7) == 1
    assert INSTANT / timedelta(microseconds=1) == 1


@given(st.dates(date(1995, 1, 1), date(2100, 1, 1)), st.integers(-3000, 3000))
def test_shifting_back_is_shifting_forth(day: date, days: int) -> None:
    text = day.isoformat()
    assert shift_day(shift_day(text, days), -days) == text
    assert len(days_between(min(text, shift_day(text, days)), max(text, shift_day(text, days)))) == abs(days) + 1
    assert day_of(day_start(text)) == day_of(day_start(text) + timedelta(days=1) - INSTANT) == text
