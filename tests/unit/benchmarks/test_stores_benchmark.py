"""The benchmark of the stores on stores in memory: what it counts is what is there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.stores import measure, people
from benchmarks.stores.__main__ import WRITES, table
from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Tier
from memory_pipelines.stores import database
from memory_pipelines.stores.base import VectorRow
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.stores.publish import STEPS
from memory_pipelines.stores.relational import PostgresAuthority

MEMORIES = 300
DIMENSION = 4


def stores() -> measure.Stores:
    vectors = MemoryVectors()
    vectors.ensure(DIMENSION)
    authority = PostgresAuthority(database.connect("sqlite://"))
    return measure.Stores(authority, vectors, MemoryGraph(), MemoryHot(), MemoryCold(), DIMENSION)


@pytest.fixture(scope="module")
def measured() -> tuple[measure.Stores, dict[str, Any]]:
    held = stores()
    return held, measure.run(held, MEMORIES)


def test_persons_have_the_memories_asked_for_and_a_long_tail() -> None:
    sizes = sorted(subject.memories for subject in people.subjects(20_000, 7))
    assert sum(sizes) == 20_000
    assert sizes[len(sizes) // 2] < 12
    most = sizes[-round(0.07 * len(sizes)) :]
    assert 0.4 < sum(most) / 20_000 < 0.6
    assert people.subjects(500, 7) == people.subjects(500, 7) != people.subjects(500, 8)


def test_a_changed_person_is_the_same_with_a_memory_more() -> None:
    subject = people.Subject(3, 40)
    before, after = people.state(subject, 7), people.state(subject, 7, changed=True)
    assert before == people.state(subject, 7)
    assert len(after.memories) == 41
    pairs = list(zip(before.memories, after.memories, strict=False))
    assert [i for i, (old, new) in enumerate(pairs) if old != new] == [0, 10, 20, 30]
    assert all(old.payload | {"score": 0} == new.payload | {"score": 0} for old, new in pairs)
    assert {node.node_id for node in before.nodes} <= {node.node_id for node in after.nodes}


def test_edges_are_as_many_as_the_docstring_says_and_cold_memories_have_none() -> None:
    states = [people.state(subject, 7) for subject in people.subjects(5_000, 7)]
    assert 3.4 < sum(len(state.edges) for state in states) / 5_000 < 3.8
    cold = {d.payload["memory_id"] for state in states for d in state.memories if d.tier == Tier.COLD}
    assert 0.04 < len(cold) / 5_000 < 0.06
    assert not cold & {node.node_id for state in states for node in state.nodes}


def test_directions_are_of_norm_one() -> None:
    rows = np.array(people.Directions(DIMENSION, 1)(["a"] * 9))
    assert rows.shape == (9, DIMENSION)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)


def test_every_person_comes_once_and_only_in_their_bucket() -> None:
    everybody = people.subjects(5_000, 7)
    portions = list(measure.portions(everybody))
    assert sorted(s.number for _, part in portions for s in part) == [s.number for s in everybody]
    assert all(s.owner.bucket(measure.BUCKETS) == bucket for bucket, part in portions for s in part)


def test_what_is_counted_is_what_the_stores_hold(measured: tuple[measure.Stores, dict[str, Any]]) -> None:
    held, figures = measured
    states = [people.state(subject, measure.SEED) for subject in people.subjects(MEMORIES, measure.SEED)]
    first, changed = figures["first"], figures["changed"]
    cold = sum(draft.tier == Tier.COLD for state in states for draft in state.memories)
    assert (first["memories"], first["texts"], first["vectors"]) == (MEMORIES, cold, MEMORIES - cold)
    assert first["nodes"] == sum(len(state.nodes) for state in states)
    assert first["edges"] == sum(len(state.edges) for state in states)
    assert first["persons"] == len(states)
    assert changed["persons"] == 1
    assert held.authority.counts()["memories"] == MEMORIES + 1
    assert held.vectors.count() == figures["held"]["vectors"]
    assert held.graph.count() == (figures["held"]["nodes"], figures["held"]["edges"])
    assert figures["held"]["nodes"] >= first["nodes"]
    assert first["batch"]["n"] == measure.BUCKETS
    assert changed["batch"]["n"] == 1
    assert held.authority.counts()["batches"] == 0


def test_every_step_of_the_protocol_that_happened_was_timed(measured: tuple[measure.Stores, dict[str, Any]]) -> None:
    _, figures = measured
    timed = set(figures["first"]["calls"]) | set(figures["changed"]["calls"])
    assert {step.call for step in STEPS} - timed <= {"cold.delete"}  # changed persons may have no cold memory
    listed = {call for _, _, calls in WRITES for call in calls}
    assert {step.call for step in STEPS} <= listed


def test_reads_are_those_of_a_recall(measured: tuple[measure.Stores, dict[str, Any]]) -> None:
    _, figures = measured
    reads = figures["reads"]
    for name in ("recall, again", "authority.visible", "vectors.search", "graph.edges", "hot.get"):
        assert reads[name]["n"] == measure.READS
    assert 1 < reads["recall, the person's first"]["n"] <= measure.READS
    assert reads["mean_rows_read"] > 1
    assert reads["mean_edges_read"] > 1
    assert reads["searches_not_answered"] == 0


class Late(MemoryVectors):
    """Does not answer its first write."""

    late = True

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        if self.late:
            self.late = False
            raise StoreUnavailableError("vector", "MEMORY_PIPELINES_MILVUS_URL", "late")
        super().upsert(rows)


def test_a_store_that_does_not_answer_in_time_is_tried_again_and_counted() -> None:
    vectors = Late()
    vectors.ensure(DIMENSION)
    held = replace(stores(), vectors=vectors)
    _, told = measure.publish(held, people.subjects(MEMORIES, 7), people.Directions(DIMENSION, 7), dict)
    assert told["unanswered"] == 1
    assert held.authority.counts()["memories"] == MEMORIES
    assert held.authority.counts()["batches"] == 0


def test_an_hour_that_is_over_begins_no_writing() -> None:
    said: list[str] = []
    done, told = measure.publish(
        stores(), people.subjects(50, 7), people.Directions(DIMENSION, 7), dict, most_seconds=-1, say=said.append
    )
    assert (done, told["memories"], told["batch"]["n"]) == ([], 0, 0)
    assert said == ["stopped after -1 s"]


def test_the_table_tells_every_store(measured: tuple[measure.Stores, dict[str, Any]]) -> None:
    _, figures = measured
    site = {"servers": "embedded", "versions": {"graph": "g 1"}, "disk_mb": {"graph": 2.0}, "load_after": [0.0]}
    lines: Sequence[str] = table(figures | site).splitlines()
    assert sum(line.startswith("relational") for line in lines) == 2
    assert any(f"{MEMORIES} of {MEMORIES} memories" in line for line in lines)
