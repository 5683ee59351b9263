"""The contract of ``HotStore``."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.crc import key_slot
from suites import adapters

from memory_pipelines.clock import FixedClock
from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores.base import HotStore
from memory_pipelines.stores.fakes import MemoryHot
from memory_pipelines.stores.hot import RedisHot

HOSTILE = ["", "a b", "*", "{x}", "names", "v:pack", "a\r\nFLUSHALL\r\n", "包 😀", "a" * 5000]


def test_a_value_comes_back_and_the_last_put_wins(hot_store: HotStore, owner: Owner) -> None:
    assert hot_store.get(owner, "pack") is None
    hot_store.put(owner, "pack", b"\x00\xff\n" * 10, 60)
    hot_store.put(owner, "pack", b"second", 60)
    assert hot_store.get(owner, "pack") == b"second"
    hot_store.put(owner, "empty", b"", 60)
    assert hot_store.get(owner, "empty") == b""


def test_a_large_value(hot_store: HotStore, owner: Owner) -> None:
    value = bytes(range(256)) * 20_000
    hot_store.put(owner, "pack", value, 60)
    assert hot_store.get(owner, "pack") == value


def test_delete_forgets_all_names_of_this_owner_only(hot_store: HotStore, tenant: str) -> None:
    owners = [Owner(tenant, "u:1"), Owner(tenant, "u:2"), Owner(f"{tenant}b", "u:1")]
    before = hot_store.count()
    for i, owner in enumerate(owners):
        hot_store.put(owner, "pack", str(i).encode(), 60)
        hot_store.put(owner, "session", str(i).encode(), 60)
    assert hot_store.count() == before + 6
    for _ in range(2):
        hot_store.delete(owners[0])
    assert [hot_store.get(o, n) for o in owners for n in ("pack", "session")] == [None, None, b"1", b"1", b"2", b"2"]
    assert hot_store.count() == before + 4


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_names_and_nothing_else(hot_store: HotStore, owner: Owner, name: str) -> None:
    hot_store.put(owner, "other", b"other", 60)
    hot_store.put(owner, name, b"value", 60)
    assert hot_store.get(owner, name) == b"value"
    assert hot_store.get(owner, "other") == b"other"
    hot_store.delete(owner)
    assert (hot_store.get(owner, name), hot_store.get(owner, "other")) == (None, None)


@pytest.mark.parametrize("hostile", ['a"b', "{x}", "}", "*", "新 😀", "a\nb", ""])
def test_hostile_owners_reach_nobody_else(hot_store: HotStore, tenant: str, hostile: str) -> None:
    victim, attackers = Owner(tenant, "u:1"), [Owner(tenant + "/" + hostile, "u:1"), Owner(tenant, f"d:{hostile}")]
    hot_store.put(victim, "pack", b"victim", 60)
    for attacker in attackers:
        assert hot_store.get(attacker, "pack") is None
        hot_store.put(attacker, "pack", b"attacker", 60)
        hot_store.delete(attacker)
    assert hot_store.get(victim, "pack") == b"victim"


@pytest.mark.parametrize("ttl", [0, -1])
def test_a_time_to_live_must_be_positive(hot_store: HotStore, owner: Owner, ttl: int) -> None:
    with pytest.raises(PermanentError):
        hot_store.put(owner, "pack", b"x", ttl)


def test_the_fake_expires_by_its_clock(owner: Owner) -> None:
    at = datetime(2024, 5, 17, tzinfo=UTC)
    store = MemoryHot(FixedClock(at))
    store.put(owner, "pack", b"x", 60)
    assert (store.get(owner, "pack"), store.count()) == (b"x", 1)
    store._clock = FixedClock(at + timedelta(seconds=60))
    assert (store.get(owner, "pack"), store.count()) == (None, 0)


def test_keys_expire_share_a_slot_and_hold_no_name(served: Settings, tenant: str) -> None:
    owner = Owner(tenant, "u:alice")
    store = adapters.hot(served)
    store.put(owner, "long", b"x", 3000)
    store.put(owner, "short", b"x", 30)
    client = adapters.redis_client(served)
    keys = sorted(client.scan_iter(match=f"mp:{{{owner.key}}}:*"))
    assert len(keys) == 3
    assert len({key_slot(key) for key in keys}) == 1
    assert not any(b"alice" in key or tenant.encode() in key for key in keys)
    left = {key.rsplit(b":", 1)[-1]: client.ttl(key) for key in keys}
    assert 2900 < left[b"names"] <= 3000
    assert 2900 < left[b"long"] <= 3000
    assert 0 < left[b"short"] <= 30
    # an evicted set of names must not leave values that no delete would find
    client.delete(next(key for key in keys if key.endswith(b":names")))
    assert store.get(owner, "long") is None
    client.close()
    store.close()


def test_an_unreachable_server_is_named_with_its_setting(owner: Owner) -> None:
    store = RedisHot("redis://127.0.0.1:1/0")
    for call in (lambda: store.get(owner, "pack"), lambda: store.put(owner, "pack", b"x", 60), store.count):
        with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_REDIS_URL") as caught:
            call()
        assert caught.value.store == "hot"
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_REDIS_URL"):
        RedisHot("nonsense").get(owner, "pack")
