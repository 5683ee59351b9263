"""The contract of ``ColdStore``."""

import pytest
from suites import adapters

from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError, TransientError
from memory_pipelines.settings import Settings
from memory_pipelines.stores.base import ColdStore
from memory_pipelines.stores.cold import S3Cold

ODD = ['a"b', "a'b", "a&<b>c", "a b+c%20", "键 😀", "a;b=?#", "*", "a\\b", "~a", "k" * 200]
REFUSED = ["", "..", "a/../b", "/a", "a//b", "./a", "a\nb", "a\x00b", "\x7f", "k" * 1025]


def test_an_object_comes_back_and_the_last_put_wins(cold_store: ColdStore) -> None:
    assert cold_store.get("a/b") is None
    cold_store.put("a/b", b"first")
    cold_store.put("a/b", b"\x00\xff second")
    cold_store.put("a/empty", b"")
    assert (cold_store.get("a/b"), cold_store.get("a/empty")) == (b"\x00\xff second", b"")
    cold_store.ensure()
    assert cold_store.keys() == {"a/b", "a/empty"}


def test_archived_objects_come_back(cold_store: ColdStore) -> None:
    objects = {f"a/{i}.gz": f"{i}".encode() * i for i in range(50)}
    cold_store.archive(objects)
    assert cold_store.keys("a/") == set(objects)
    assert {key: cold_store.get(key) for key in objects} == objects
    cold_store.archive({})
    cold_store.delete(objects)


def test_a_large_object(cold_store: ColdStore) -> None:
    value = bytes(range(256)) * 40_000
    cold_store.put("big", value)
    assert cold_store.get("big") == value


def test_keys_by_prefix(cold_store: ColdStore) -> None:
    for key in ("a/1", "a/2", "ab/1", "b"):
        cold_store.put(key, b"x")
    assert cold_store.keys("a/") == {"a/1", "a/2"}
    assert cold_store.keys("a") == {"a/1", "a/2", "ab/1"}
    assert cold_store.keys("c") == set()
    assert cold_store.keys() == {"a/1", "a/2", "ab/1", "b"}


def test_a_delete_takes_these_keys_only_and_may_be_repeated(cold_store: ColdStore) -> None:
    for key in ("a", "b", "c"):
        cold_store.put(key, b"x")
    for _ in range(2):
        cold_store.delete(iter(["a", "c", "unknown", "a"]))
    cold_store.delete([])
    assert cold_store.keys() == {"b"}


def test_pages_and_batches_beyond_a_thousand(cold_store: ColdStore) -> None:
    keys = {f"page/{i:04}" for i in range(1010)}
    for key in keys:
        cold_store.put(key, b"x")
    cold_store.put("stays", b"x")
    assert cold_store.keys("page/") == keys
    cold_store.delete(keys)
    assert cold_store.keys() == {"stays"}


@pytest.mark.parametrize("odd", ODD)
def test_odd_keys_are_keys_and_nothing_else(cold_store: ColdStore, odd: str) -> None:
    key = f"owner/{odd}"
    cold_store.put("owner/other", b"other")
    cold_store.put(key, b"value")
    assert cold_store.get(key) == b"value"
    assert cold_store.keys("owner/") == {"owner/other", key}
    cold_store.delete([key])
    assert cold_store.keys() == {"owner/other"}


@pytest.mark.parametrize("key", REFUSED)
def test_keys_that_servers_treat_differently_are_refused(cold_store: ColdStore, key: str) -> None:
    cold_store.put("a", b"x")
    for call in (lambda: cold_store.put(key, b"x"), lambda: cold_store.get(key), lambda: cold_store.delete([key])):
        with pytest.raises(PermanentError):
            call()
    assert cold_store.keys() == {"a"}


def test_a_missing_bucket_is_empty_to_readers_and_named_to_writers(served: Settings) -> None:
    store = adapters.cold(served, "never-made")
    assert (store.keys(), store.get("a")) == (set(), None)
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_S3_BUCKET"):
        store.put("a", b"x")
    store.close()


class Forgetful(S3Cold):
    """Its server acknowledges what it loses, now and then."""

    def put(self, key: str, value: bytes) -> None: ...

    def get(self, key: str) -> bytes | None:
        return None if key == "b" else b"x"


def test_an_archived_object_that_does_not_come_back_is_told() -> None:
    store = Forgetful("http://127.0.0.1:1", "bucket", "a", "b")
    store.archive({"a": b"x", "c": b"x"})
    with pytest.raises(TransientError):
        store.archive({"a": b"x", "b": b"x", "c": b"x"})


def test_an_unreachable_server_is_named_with_its_setting() -> None:
    store = S3Cold("http://127.0.0.1:1", "bucket", "a", "b")
    with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_S3_URL") as caught:
        store.get("a")
    assert caught.value.store == "cold"
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_S3_URL"):
        S3Cold("nonsense", "bucket", "a", "b").get("a")
