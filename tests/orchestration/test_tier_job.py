"""Tiers as Dagster's job: down, up, deleted, and a store that is down."""

import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from quarter_world import (
    SPRING,
    Life,
    clock,
    copied,
    land,
    life_state,
    living,
    state_is_whole,
    told,
)

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.landing.sources import log_files
from memory_pipelines.model import MemoryType, Permanence, Tier
from memory_pipelines.sample import write_sample
from memory_pipelines.stores.authority import AccessKind, StoredMemory
from memory_pipelines.stores.base import cold_key
from memory_pipelines.stores.graph import Neo4jGraph
from memory_pipelines.stores.vectors import MilvusVectors
from memory_pipelines.wiring import Platform


def places(life: Life, memory: StoredMemory) -> tuple[bool, bool, bool]:
    """Whether its vector, its node and its archived text are there."""
    platform, owner = life.platform, memory.owner
    version = platform.authority.graphs().get(owner.key)
    nodes = platform.graph.nodes(owner, version) if version else []
    return (
        memory.entry_id in platform.vectors.entry_ids(owner),
        memory.memory_id in {node.node_id for node in nodes},
        cold_key(owner, memory.entry_id) in {*platform.cold.keys()},
    )


def test_nobody_grows_younger_by_being_derived_anew(life: Life) -> None:
    life.run("tier_job", "2024-07-09", "2024-08-20")
    before = {name: (m.tier, m.version) for name, m in life.memories().items()}
    assert Tier.WARM in {tier for tier, _ in before.values()}
    life.platform.ledger.touch_everybody()
    life.derive()
    assert {name: (m.tier, m.version) for name, m in life.memories().items()} == before


def test_memories_grow_cold_and_come_back(life: Life) -> None:
    platform = life.platform
    start = {
        m.memory_id: m
        for m in life.memories().values()
        if m.tier == Tier.HOT and m.term == "long" and {"vector", "graph"} <= {*m.stores}
    }
    assert start
    assert {places(life, m) for m in start.values()} == {(True, True, False)}
    life.run("tier_job", "2024-07-09", "2024-08-20")
    warm = {name: m for name, m in life.memories().items() if name in start}
    assert {m.tier for m in warm.values()} == {Tier.WARM}
    assert {places(life, m) for m in warm.values()} == {(True, True, False)}
    found = told(life.run("tier_job", "2024-08-21", "2024-10-20"), "memory_tiers")
    assert found["moved"] >= len(start)
    ((source, target, reason),) = {
        (row.data["from"], row.data["to"], row.data["reason"]) for row in found["moves"].records
    }
    assert (source, target, reason) == ("warm", "cold", "age")
    cold = {name: m for name, m in life.memories().items() if name in start}
    assert {m.tier for m in cold.values()} == {Tier.COLD}
    assert {places(life, m) for m in cold.values()} == {(False, False, True)}
    assert {m.text for m in cold.values()} == {""}
    assert [m.summary for m in cold.values()] == [start[name].summary for name in cold]
    assert state_is_whole(life)

    one = next(iter(cold.values()))
    used = datetime(2024, 10, 21, 9, tzinfo=UTC)
    platform.accesses.record(one.owner.key, one.source_turn_ids, AccessKind.PRESENTED, used)
    assert told(life.run("tier_job", "2024-10-20"), "memory_tiers")["moved"] == 0, "not used by then"
    assert told(life.run("tier_job", "2024-10-21"), "memory_tiers")["moved"] >= 1
    back = life.memories()[one.memory_id]
    assert back.tier == Tier.HOT
    assert back.text == start[one.memory_id].text != ""
    assert places(life, back) == (True, True, False)
    assert cold_key(one.owner, one.entry_id) not in {*platform.cold.keys()}
    assert state_is_whole(life)


def test_the_same_nights_twice_change_nothing(life: Life) -> None:
    life.run("reflection_job", "2024-06-24", "2024-07-01")
    life.run("tier_job", "2024-07-08", "2024-09-30")
    found = life_state(life.platform)
    assert told(life.run("tier_job", "2024-09-30"), "memory_tiers") == {"moved": 0, "deleted": 0}
    assert life_state(life.platform) == found
    again = told(life.run("tier_job", "2024-07-08", "2024-09-30"), "memory_tiers")
    assert again["moved"] > 0, "the earlier nights are lived through again"
    assert life_state(life.platform) == found


def test_what_is_over_is_not_shown_after_the_night(life: Life) -> None:
    """Also where no log comes in any more that would have anybody derived."""
    life.run("reflection_job", "2024-07-01")
    night = datetime(2024, 9, 1, tzinfo=UTC)
    over = {name: m for name, m in life.memories().items() if m.expires_at and m.expires_at <= night}
    insights = {name for name, m in life.memories().items() if m.predicate.startswith("insight.")}
    assert over
    assert insights
    life.run("tier_job", "2024-08-31")
    assert not {*over, *insights} & life.memories().keys()
    assert state_is_whole(life)


def test_an_old_log_is_deleted_and_stays_deleted(life: Life, tmp_path: Path) -> None:
    platform, now = life.platform, life.platform.clock.now()
    landed, others = datetime(2020, 8, 1, tzinfo=UTC), {*platform.authority.owners()}
    write_sample(tmp_path, replace(SPRING, start=date(2020, 3, 1), seed=11))
    clock(platform, landed)
    land(platform, *log_files(tmp_path))
    clock(platform, now)

    def of_old() -> dict[str, StoredMemory]:
        return {name: m for name, m in life.memories().items() if m.owner not in others}

    before = of_old()
    assert {m.admitted_at for m in before.values()} == {landed}
    lasting = {name for name, m in before.items() if m.permanence == Permanence.PERMANENT}
    lasting |= {name for name, m in before.items() if m.memory_type == MemoryType.SEMANTIC and m.valid_to is None}
    assert lasting
    assert {m.tier for m in before.values()} == {Tier.WARM, Tier.COLD}, "known for long already when it is derived"
    planned = told(life.run("health_job"), "tier_plan")["would_delete"]
    assert before == of_old(), "a dry run"
    found = told(life.run("tier_job", "2024-07-08"), "memory_tiers")
    left = of_old().keys()
    deleted = {name: m for name, m in before.items() if name not in left}
    assert found["deleted"] == len(deleted) == planned > 0
    assert {m.tier for m in deleted.values()} == {Tier.COLD}
    assert MemoryType.EPISODIC in {m.memory_type for m in deleted.values()}
    assert lasting <= left, "current facts and permanent memories stay"
    for memory in deleted.values():
        markers = platform.accesses.markers([memory.owner.key])[memory.owner.key]
        assert {*memory.source_turn_ids} <= {turn for turn, _ in markers}
        assert places(life, memory) == (False, False, False)
    assert state_is_whole(life)

    platform.ledger.touch_everybody()
    life.derive()
    assert not deleted.keys() & life.memories().keys(), "what age has deleted is not derived again"
    assert told(life.run("tier_job", "2024-07-09"), "memory_tiers")["deleted"] == 0
    assert lasting <= of_old().keys()
    assert not of_old().keys() & deleted.keys(), "a newer population snapshot judges anew, and brings nothing back"


# ---- a store that is down


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def no_vectors() -> MilvusVectors:
    return MilvusVectors(f"http://127.0.0.1:{closed_port()}")


def no_graph() -> Neo4jGraph:
    return Neo4jGraph(f"bolt://127.0.0.1:{closed_port()}", "neo4j", "")


@pytest.mark.parametrize(
    ("part", "down", "setting"),
    [("vectors", no_vectors, "MEMORY_PIPELINES_MILVUS_URL"), ("graph", no_graph, "MEMORY_PIPELINES_NEO4J_URL")],
)
def test_a_store_that_is_down_is_named_and_the_next_run_heals(
    life: Life, part: str, down: Callable[[], Any], setting: str
) -> None:
    platform, night = life.platform, "2024-10-20"
    clean = copied(platform)
    before = shown(platform)
    with living(clean) as other:
        other.run("tier_job", night)
    after = shown(clean)
    assert all(before[bucket] != after[bucket] for bucket in before)
    whole = platform.__dict__[part]
    replace_part(platform, part, down())
    with pytest.raises(StoreUnavailableError) as raised:
        life.run("tier_job", night)
    assert setting in str(raised.value)
    found = shown(platform)
    assert all(found[bucket] in (before[bucket], after[bucket]) for bucket in found), "half a batch is never seen"
    assert platform.authority.open_batches()
    replace_part(platform, part, whole)
    life.run("tier_job", night)
    assert life_state(platform) == life_state(clean)
    assert state_is_whole(life)


def shown(platform: Platform) -> dict[int, set[tuple[str, str, str]]]:
    """Bucket → (memory, version, tier) of all that readers see."""
    result: dict[int, set[tuple[str, str, str]]] = {}
    for memory in platform.authority.everything_visible():
        bucket = memory.owner.bucket(platform.settings.buckets)
        result.setdefault(bucket, set()).add((memory.memory_id, memory.version, memory.tier))
    return result


def replace_part(platform: Platform, part: str, store: Any) -> None:
    platform.__dict__[part] = store
    platform.__dict__.pop("publisher", None)
