"""Snapshots: order, masks, byte form, cache."""

from dataclasses import replace
from datetime import timedelta

import pytest
from recall_world import ALICE, NOW, make_memory

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner
from memory_pipelines.recall import snapshot as module
from memory_pipelines.recall.snapshot import Held, Snapshot, SnapshotCache
from memory_pipelines.stores.authority import Person

DAY = timedelta(days=1)


def test_newest_first_then_by_id_whatever_the_order() -> None:
    rows = [make_memory("b", "x"), make_memory("a", "x"), make_memory("c", "x", occurred_at=NOW)]
    for given in (rows, rows[::-1]):
        assert [m.memory_id for m in Snapshot(ALICE, given).rows] == ["c", "a", "b"]


def test_rows_of_others_are_dropped() -> None:
    rows = [make_memory("a", "x"), make_memory("b", "x", owner=Owner("acme", "u:bob"))]
    assert [m.memory_id for m in Snapshot(ALICE, rows).rows] == ["a"]


def test_usable_rows() -> None:
    rows = [
        make_memory("a", "x", occurred_at=NOW),
        make_memory("b", "x", occurred_at=NOW + timedelta(microseconds=1)),
        make_memory("c", "x", expires_at=NOW),
        make_memory("d", "x", expires_at=NOW + timedelta(microseconds=1)),
        make_memory("e", "x"),
    ]
    snapshot = Snapshot(ALICE, rows)
    mask = snapshot.usable(NOW, frozenset({"e", "unknown"}))
    assert {m.memory_id for m, good in zip(snapshot.rows, mask, strict=True) if good} == {"a", "d"}


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b"\xff", b'{"epoch": 1}'])
def test_bytes_that_are_no_person_are_refused(raw: bytes) -> None:
    with pytest.raises(IntegrityError):
        module.load_person(ALICE, raw)


def test_a_person_survives_its_byte_form() -> None:
    person = Person(ALICE, 7, None, frozenset({"b", "a"}))
    assert module.load_person(ALICE, module.dump_person(person)) == person


def test_the_cache_holds_one_epoch_per_owner_and_forgets_the_least_used() -> None:
    cache = SnapshotCache(size=2)
    owners = [replace(ALICE, subject=f"u:{i}") for i in range(3)]
    snapshots = [Snapshot(o, [make_memory("m", "x", owner=o)]) for o in owners]
    for owner, snapshot in zip(owners[:2], snapshots[:2], strict=True):
        cache.put(owner, Held(1, snapshot))
    assert cache.get(owners[0], 2) is None
    held = cache.get(owners[0], 1)
    assert held is not None
    assert held.snapshot is snapshots[0]
    cache.put(owners[2], Held(1, snapshots[2]))
    assert cache.get(owners[1], 1) is None
    assert len(cache) == 2
    cache.put(owners[0], Held(2, snapshots[0]))
    assert cache.get(owners[0], 1) is None
    cache.put(owners[0], Held(3, Snapshot(owners[0], [])))
    assert len(cache) == 1


def test_the_cache_is_bounded_in_bytes_but_for_one_snapshot() -> None:
    cache = SnapshotCache(most_bytes=100)
    owners = [replace(ALICE, subject=f"u:{i}") for i in range(3)]
    for owner, size in zip(owners, (60, 40, 50), strict=True):
        cache.put(owner, Held(1, Snapshot(owner, [make_memory("m", "x", owner=owner)]), size))
    assert [cache.get(owner, 1) is None for owner in owners] == [True, False, False]
    cache.put(owners[0], Held(1, Snapshot(owners[0], [make_memory("m", "x", owner=owners[0])]), 400))
    assert len(cache) == 1
    cache.put(owners[0], Held(2, Snapshot(owners[0], []), 400))
    assert len(cache) == 0
    cache.put(owners[1], Held(1, Snapshot(owners[1], [make_memory("m", "x", owner=owners[1])]), 60))
    cache.put(owners[2], Held(1, Snapshot(owners[2], [make_memory("m", "x", owner=owners[2])]), 40))
    assert len(cache) == 2


@pytest.mark.parametrize(("languages", "expected"), [("zh zh en", "zh"), ("en zh", "en"), ("", "en"), ("mixed", "en")])
def test_main_language(languages: str, expected: str) -> None:
    rows = [make_memory(f"m{i}", "x", language=language) for i, language in enumerate(languages.split())]
    assert Snapshot(ALICE, rows).language == expected
