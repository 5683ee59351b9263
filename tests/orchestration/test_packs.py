"""Packs over a derived spring in memory: made by the jobs, read instead of the stores, gone with the person."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pipeline_world import Killed
from quarter_world import Life, dying, told

from memory_pipelines.erasure.registry import PLACES
from memory_pipelines.model import Owner
from memory_pipelines.pipeline import forget, packs, rebuild
from memory_pipelines.pipeline.life import publish_owners
from memory_pipelines.pipeline.packs import pack_owners
from memory_pipelines.recall import Recall
from memory_pipelines.recall import pack as packed
from memory_pipelines.recall.source import hot_name
from memory_pipelines.stores.fakes import MemoryHot
from memory_pipelines.wiring import Platform

QUESTIONS = ("where is my order?", "我的快递到哪了", "what do I like", "last month", "")
NIGHT = "2024-09-10"
"""After which some memories are cold."""


def persons(platform: Platform) -> list[Owner]:
    """Those of whom something is visible, who has most of all first."""
    sizes = {owner: len(platform.authority.visible(owner)) for owner in platform.authority.owners()}
    return sorted((owner for owner in sizes if sizes[owner]), key=lambda owner: (-sizes[owner], owner.key))


def reader(platform: Platform, *, packs: bool, unread: Callable[[str], Any] | None = None) -> Recall:
    """A new reader; ``unread``: what stands in the place of stores that it must not read."""
    vectors, graph = (getattr(platform, name) if unread is None else unread(name) for name in ("vectors", "graph"))
    shelf = platform.packs if packs else None
    stores = (platform.authority, vectors, graph, platform.hot, platform.cold, platform.embedder, platform.clock, 1500)
    return Recall(*stores, links=platform.links, packs=shelf)


class Untouched:
    """A store that a recall from packs has no reason to read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{self._name}.{name} was read")


def answers(recall: Recall, owner: Owner) -> tuple[list[tuple[str, str]], list[float]]:
    """Entries and reasons of all items, and their scores."""
    told, scores = [], []
    for question in QUESTIONS:
        answer = recall.recall(question, tenant=owner.tenant, subject=owner.subject)
        assert answer.missing == ()
        told += [(item.memory.entry_id, item.why) for item in answer.items]
        scores += [item.score for item in answer.items]
    return told, scores


def assert_alike(packs: Recall, stores: Recall, owner: Owner) -> int:
    """The same items for the same reasons; scores but for the last bits of cosines. Returns how many."""
    (told, scores), (expected, of_stores) = answers(packs, owner), answers(stores, owner)
    assert told == expected
    assert scores == pytest.approx(of_stores, rel=1e-4)
    return len(told)


def current(platform: Platform) -> set[Owner]:
    return {owner for owner in platform.authority.owners() if platform.authority.person(owner).packed}


def test_every_person_has_a_pack_that_answers_as_the_stores_do(life: Life) -> None:
    platform = life.platform
    assert current(platform) == set(persons(platform))
    platform.__dict__["hot"] = MemoryHot(platform.clock)
    packs, stores = reader(platform, packs=True, unread=Untouched), reader(platform, packs=False)
    assert sum(assert_alike(packs, stores, owner) for owner in persons(platform)) > 50


def test_a_night_makes_packs_of_those_whom_it_moved_and_takes_vectors_over(life: Life) -> None:
    platform = life.platform
    fetched: list[str] = []
    fetch = platform.vectors.fetch
    platform.vectors.fetch = lambda entries: fetched.extend(entries) or fetch(entries)  # type: ignore[method-assign, func-returns-value]
    before = {owner: platform.authority.person(owner).epoch for owner in persons(platform)}
    life.run("tier_job", NIGHT)
    moved = [owner for owner in persons(platform) if platform.authority.person(owner).epoch != before[owner]]
    assert moved
    assert current(platform) == set(persons(platform))
    assert not set(fetched) & {row.entry_id for owner in moved for row in platform.authority.visible(owner)}
    assert assert_alike(reader(platform, packs=True), reader(platform, packs=False), moved[0]) > 0


def test_a_job_that_died_while_it_packed_is_made_good_by_the_night(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = life.platform
    platform.packs.clear()
    monkeypatch.setattr(packs, "OWNERS_AT_ONCE", 2)
    with dying(platform, 3) as calls, pytest.raises(Killed):
        pack_owners(platform)
    assert any("packs" in call for call in calls)
    assert 0 < len(current(platform)) < len(persons(platform))
    life.run("tier_job", NIGHT)
    assert current(platform) == set(persons(platform))
    assert platform.packs.stale(packed.form(platform.embedder.model_id)) == []
    assert pack_owners(platform).packs == 0


def test_packs_are_rebuilt_to_the_same_bytes(life: Life) -> None:
    platform = life.platform
    before = rebuild.content(platform, "packs")
    platform.packs.clear()
    assert rebuild.content(platform, "packs") != before
    done = told(life.run("rebuild_job", config={"store": "packs"}), "rebuilt_store")
    assert (done["written"], done["content"]) == (len(persons(platform)), before)


def resized(platform: Platform, pack_bytes: int) -> None:
    platform.settings = replace(platform.settings, pack_bytes=pack_bytes)
    platform.packs.clear()


def test_what_does_not_fit_is_left_to_the_stores_oldest_first(life: Life) -> None:
    platform = life.platform
    life.run("tier_job", NIGHT)
    owner = persons(platform)[0]
    raw = platform.packs.newest([owner.key]).get(owner.key)
    assert raw is not None
    whole = packed.load(owner, raw).vectors
    assert whole is not None
    resized(platform, len(raw) - 4 * platform.embedder.dimension)
    done = pack_owners(platform, [owner.key])
    assert (done.packs, platform.packs.totals()["left_out"]) == (1, done.left_out)
    assert done.left_out > 0
    fitting = packed.load(owner, platform.packs.newest([owner.key])[owner.key])
    assert fitting.size <= platform.settings.pack_bytes
    assert fitting.vectors is not None
    assert fitting.vectors.left_out == done.left_out == len(whole.rows) - len(fitting.vectors.rows)
    tiers = {fitting.rows[row].tier for row in fitting.vectors.rows.tolist()}
    gone = [row for row in whole.rows.tolist() if row not in fitting.vectors.rows]
    assert all(row > max(fitting.vectors.rows) for row in gone) or tiers < {"hot", "warm"}
    assert assert_alike(reader(platform, packs=True), reader(platform, packs=False), owner) > 0


def test_a_person_who_is_too_large_has_none_and_none_are_made_without_room(life: Life) -> None:
    platform = life.platform
    owner = persons(platform)[0]
    resized(platform, 100)
    done = pack_owners(platform)
    assert (done.packs, done.left_out) == (0, sum(len(platform.authority.visible(o)) for o in persons(platform)))
    assert current(platform) == set()
    assert pack_owners(platform).left_out == 0, "they are not tried again every night"
    assert assert_alike(reader(platform, packs=True), reader(platform, packs=False), owner) > 0
    resized(platform, 0)
    assert pack_owners(platform).packs == 0
    assert platform.packs.totals()["packs"] == 0


def test_an_erased_person_has_no_pack_anywhere(life: Life) -> None:
    platform = life.platform
    owner, other = persons(platform)[:2]
    epoch = platform.authority.person(owner).epoch
    assert "postgres.packs" in {place.name for place in PLACES}
    assert platform.packs.newest([owner.key])
    request = forget.request_erasure(platform, owner, "desk")
    forget.approve_erasure(platform, request, "officer")
    life.run("erasure_job")
    assert not platform.packs.newest([owner.key])
    assert platform.hot.get(owner, hot_name(epoch)) is None
    assert platform.hot.held(owner) == 0
    assert pack_owners(platform, [owner.key]).packs == 0
    assert answers(reader(platform, packs=True), owner) == ([], [])
    assert platform.packs.newest([other.key])


def test_a_publish_says_what_it_packed(life: Life) -> None:
    platform = life.platform
    key = persons(platform)[0].key
    raw = platform.packs.newest([key])[key]
    platform.packs.clear()
    done = publish_owners(platform, [persons(platform)[0].key], platform.clock.now())
    assert (done.packs, done.pack_bytes > len(raw) // 2, done.left_out) == (1, True, 0)
