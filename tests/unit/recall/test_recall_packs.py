"""Packs: their byte form, and the same answers from them as through the stores."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_world import ALICE, NOW, ConceptEmbedder, Down, Joined, World, make_fact, make_memory

from memory_pipelines.clock import FixedClock
from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner
from memory_pipelines.models.base import Kind, Unrelated
from memory_pipelines.recall import Recall
from memory_pipelines.recall import pack as packed
from memory_pipelines.recall.adjacency import Adjacency
from memory_pipelines.recall.columns import Columns
from memory_pipelines.recall.pack import Embedded, Pack
from memory_pipelines.recall.queries import QueryVectors
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.recall.source import hot_name
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.base import GraphEdge
from memory_pipelines.stores.quantise import Quantised, rounded

DAY = timedelta(days=1)
PHONE = Owner("acme", "d:phone")
SF = "carrier/sf_express"


@dataclass
class Shelf:
    """Where the jobs keep packs."""

    bodies: dict[Owner, tuple[int, bytes]] = field(default_factory=dict)

    def get(self, owner: Owner, epoch: int) -> bytes | None:
        known, body = self.bodies.get(owner, (0, None))
        return body if known == epoch else None


def pack_of(world: World, owner: Owner, edges: Sequence[GraphEdge], embedder: Any, **others: Any) -> Pack:
    """What a job makes of what is visible."""
    person, rows = world.authority.person(owner), packed.in_order(owner, world.authority.visible(owner))
    found = world.vectors.fetch([row.entry_id for row in rows])
    at = np.array([i for i, row in enumerate(rows) if row.entry_id in found], dtype=np.int64)
    numbers = [found[rows[i].entry_id] for i in at] or [np.zeros(embedder.dimension, np.float32)] * 0
    matrix = np.stack(numbers) if numbers else np.zeros((0, embedder.dimension), np.float32)
    vectors = Embedded(embedder.model_id, embedder.digest, at, Quantised.of(matrix))
    graph = Adjacency.of(edges, {row.memory_id: i for i, row in enumerate(rows)})
    return replace(Pack(owner, person.epoch, rows, Columns.of(rows), vectors, graph, made=True), **others)


def keep(world: World, shelf: Shelf, edges: Sequence[GraphEdge], owner: Owner = ALICE, **others: Any) -> None:
    pack = pack_of(world, owner, edges, ConceptEmbedder(), **others)
    shelf.bodies[owner] = pack.epoch, packed.dump(pack)
    world.authority.people[owner] = replace(world.authority.people[owner], packed=True)


class Both:
    """Links that always hold."""

    def linked(self, owner: Owner) -> tuple[Owner, ...]:
        return (owner, PHONE) if owner == ALICE else (owner,)

    def seen(self, device: Owner, user: Owner, at: Any) -> None:
        """Nothing to keep."""


def reader(world: World, packs: Any = None, links: Any = None, embedder: Any = None) -> Recall:
    stores = (Joined(world.authority, links), world.vectors, world.graph, world.hot, world.cold)
    model = embedder or ConceptEmbedder()
    return Recall(*stores, model, FixedClock(NOW), world.budget, links=links, packs=packs)


def ask(recall: Recall, query: str, **options: Any) -> Any:
    return recall.recall(query, tenant=ALICE.tenant, subject=ALICE.subject, explain=True, **options)


def ids(answer: Any) -> list[str]:
    return [item.memory.memory_id for item in answer.items]


def alike(one: Any, other: Any) -> None:
    """Equal but for the last bits of cosines."""
    assert [item.memory for item in one.items] == [item.memory for item in other.items]
    assert [item.score for item in one.items] == pytest.approx([item.score for item in other.items], rel=1e-4)
    assert [item.why for item in one.items] == [item.why for item in other.items]
    assert [i.reasons.paths for i in one.items] == [
        tuple(
            replace(
                path,
                match=pytest.approx(path.match),
                activation=pytest.approx(path.activation),
                hops=tuple(replace(hop, carried=pytest.approx(hop.carried)) for hop in path.hops),
            )
            for path in i.reasons.paths
        )
        for i in other.items
    ]
    assert set(one.explanation.legs) == set(other.explanation.legs)
    for name, found in one.explanation.legs.items():
        assert [memory for memory, _ in found] == [memory for memory, _ in other.explanation.legs[name]], name
    for name in ("suppressed", "expired", "later", "passed_over", "owners"):
        assert getattr(one.explanation, name) == getattr(other.explanation, name)
    assert one.missing == other.missing


# ---- the byte form


EDGES = [
    GraphEdge("late", "nuts", "causes", 0.5),
    GraphEdge("nuts", "late", "same_topic", 0.75),
    GraphEdge("late", f"entity:{SF}", "mentions", 1.0),
    GraphEdge("f", f"entity:{SF}", "mentions", 0.25),
    GraphEdge("gone", "late", "next", 1.0),
]
ROWS = [
    make_memory(
        "late", "Ann: 快递“晚”了\n\ud800😀", text="Ann: 我的快递\ud800", decision_impact=0.9, entities=(SF, "x")
    ),
    make_memory("nuts", "", expires_at=NOW + timedelta(microseconds=7), occurred_at=NOW - DAY, trust=0.25),
    make_fact("f", "住在北京", "home_city", "北京", valid_from=NOW, valid_to=NOW + DAY, structured='{"a": "é"}'),
    make_memory("Ann", "ann: hello there, hello", occurred_at=NOW - 3 * DAY, tier="cold", stores=("relational",)),
]


def told(world: World, rows: Sequence[StoredMemory] = ROWS) -> Pack:
    world.publish(rows, EDGES[:4])
    return pack_of(world, ALICE, EDGES, ConceptEmbedder())


def test_a_pack_survives_its_byte_form(world: World) -> None:
    pack = told(world)
    raw = packed.dump(pack)
    back = packed.load(ALICE, raw)
    assert list(back.rows) == back.rows[:] == pack.rows
    assert back.rows[-1] == pack.rows[-1]
    assert (back.epoch, back.made, back.size) == (1, True, len(raw))
    assert back.vectors is not None
    assert pack.vectors is not None
    assert (back.vectors.model_id, back.vectors.digest) == ("concepts", "0" * 64)
    assert back.vectors.rows.tolist() == pack.vectors.rows.tolist()
    assert (back.vectors.vectors.numbers == pack.vectors.vectors.numbers).all()
    assert packed.dump(replace(back, size=0)) == raw
    assert packed.dump(told(World(), ROWS[::-1])) == raw


def test_columns_of_a_pack_are_those_of_its_rows(world: World) -> None:
    pack = told(world)
    back, fresh = Snapshot.of(packed.load(ALICE, packed.dump(pack))), Snapshot(ALICE, ROWS)
    assert (back.language, back.by_memory, back.by_entry) == (fresh.language, fresh.by_memory, fresh.by_entry)
    for name in ("occurred", "expires", "valid_from", "valid_to", "impact", "trust", "episodic", "fact", "predicate"):
        assert getattr(back, name).tolist() == getattr(fresh, name).tolist(), name
    everything = np.ones(len(back), dtype=np.bool_)
    for words in (["hello", "快"], ["晚"], ["nobody"]):
        assert back.words.score(words, everything)[0].tolist() == fresh.words.score(words, everything)[0].tolist()
    assert {name: rows.tolist() for name, rows in back.context.speakers.items()} == {"ann": [1, 3]}


def test_an_empty_pack_and_one_without_vectors_and_graph() -> None:
    for rows in ([], [make_memory("m", "x")]):
        pack = Pack(ALICE, 3, rows, Columns.of(rows), None, None)
        back = packed.load(ALICE, packed.dump(pack))
        assert (list(back.rows), back.vectors, back.graph, back.made) == (rows, None, None, False)


def test_the_bytes_name_no_owner_and_are_read_for_theirs_only(world: World) -> None:
    raw = packed.dump(told(world))
    assert b"alice" not in raw
    assert b"acme" not in raw
    with pytest.raises(IntegrityError):
        packed.load(Owner("acme", "u:bob"), raw)


def test_damaged_bytes_are_refused(world: World) -> None:
    raw = packed.dump(told(world))
    for at in range(0, len(raw), max(1, len(raw) // 40)):
        with pytest.raises(IntegrityError):
            packed.load(ALICE, raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
    for broken in (b"", raw[:7], raw[:40], raw[:-1], raw + b"x"):
        with pytest.raises(IntegrityError):
            packed.load(ALICE, broken)


# ---- rounded vectors


def test_rounding_twice_is_rounding_once() -> None:
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((50, 33), dtype=np.float32)
    vectors[7] = 0
    once = rounded(vectors)
    assert all((a == b).all() for a, b in zip(rounded(once), once, strict=True))
    held = Quantised.of(vectors)
    assert (Quantised.of(np.stack(once)).numbers == held.numbers).all()
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    assert np.abs(held.cosines(unit[3]) - unit @ unit[3]).max() < 0.01
    assert np.abs(held.cosines(unit[3]) - np.stack(once) @ unit[3]).max() < 1e-6
    assert rounded([]) == []


def test_equal_vectors_have_equal_cosines_wherever_they_stand() -> None:
    draw = np.random.default_rng(2)
    one, query = (draw.standard_normal(257, dtype=np.float32) for _ in range(2))
    among = draw.standard_normal((1500, 257), dtype=np.float32)
    among[[0, 3, 511, 512, 1001, 1499]] = one
    cosines = Quantised.of(among).cosines(query / np.linalg.norm(query))
    assert len({*cosines[[0, 3, 511, 512, 1001, 1499]].tolist()}) == 1


# ---- the same answer


WORDS = ("快递", "晚了", "过敏", "退款", "上海", "cat", "coupon", "refund", "delivery", "Ann: hello", "三月", "订单 88")
QUERIES = ("快递 退款", "where is my delivery, Ann?", "住在上海吗", "cat coupon", "last week", "哪些退款", "")


def memory(number: int, draw: Any) -> StoredMemory:
    """A memory, a fact or a cold one, of any time."""
    said = " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 3)))
    name, at = f"m{number:02}", NOW - timedelta(minutes=draw.choice((10, 25, 2000, 9000, 60000)) * draw.randint(0, 9))
    given = {"occurred_at": at, "decision_impact": draw.choice((0.2, 0.5, 0.9)), "trust": draw.choice((0.5, 1.0))}
    if draw.random() < 0.25:
        ended = draw.choice((None, at + DAY, NOW - DAY))
        window = {"valid_from": min(at, ended or at), "valid_to": ended}
        return make_fact(name, said, draw.choice(("home_city", "likes")), said, **given, **window)
    if draw.random() < 0.1:
        given |= {"tier": "cold", "stores": ("relational",)}
    if draw.random() < 0.2:
        given |= {"expires_at": NOW + draw.choice((-1, 1)) * DAY}
    return make_memory(name, said, **given, entities=(SF,) if draw.random() < 0.5 else ())


def links_among(rows: Sequence[StoredMemory], draw: Any) -> list[GraphEdge]:
    names = [row.memory_id for row in rows if row.tier != "cold"]
    edges = {("mentions", name, f"entity:{SF}"): 1.0 for name in names if draw.random() < 0.4}
    edges |= {("mentions", name, f"entity:e{draw.randint(0, 3)}"): 0.5 for name in names}
    for _ in range(len(names)):
        one, other = draw.choice(names), draw.choice(names)
        edges[draw.choice(("next", "causes", "similar")), one, other] = draw.choice((0.25, 0.5, 0.75))
    return [GraphEdge(one, other, kind, weight) for (kind, one, other), weight in edges.items() if one != other]


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 25), st.integers(0, 8))
def test_packs_and_stores_agree(draw: Any, own: int, others: int) -> None:
    world, shelf = World(), Shelf()
    rows = [memory(i, draw) for i in range(own)]
    edges = links_among(rows, draw)
    hidden = {row.memory_id for row in rows if draw.random() < 0.1}
    world.publish(rows, edges, hidden)
    keep(world, shelf, edges)
    if others:
        on_phone = [replace(memory(50 + i, draw), owner=PHONE) for i in range(others)]
        more = links_among(on_phone, draw)
        world.publish(on_phone, more, owner=PHONE)
        keep(world, shelf, more, PHONE)
    links = Both() if others else None
    through, from_packs = reader(world, None, links), reader(world, shelf, links)
    for query in QUERIES:
        alike(ask(through, query), ask(from_packs, query))
    limited = ask(from_packs, QUERIES[0], limit=3, as_of=NOW - 2 * DAY)
    alike(ask(through, QUERIES[0], limit=3, as_of=NOW - 2 * DAY), limited)


class Directions:
    """A direction for every text, the same each time."""

    model_id, dimension, digest, unrelated = "directions", 24, "1" * 64, Unrelated(0.0, 0.2)

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Any:
        rows = [np.random.default_rng(abs(hash(text)) % 2**32).standard_normal(24) for text in texts]
        return (np.stack(rows) / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_agreement_where_a_store_does_not_tell_of_everything() -> None:
    world, shelf, model = World(), Shelf(), Directions()
    rows = [
        make_memory(f"m{i:04}", f"订单 {i % 97}" if i % 3 else f"order {i % 89}", occurred_at=NOW - i * DAY / 20)
        for i in range(1500)
    ]
    world.publish(rows, embedder=model)
    pack = pack_of(world, ALICE, [], model)
    shelf.bodies[ALICE] = 1, packed.dump(pack)
    world.authority.people[ALICE] = replace(world.authority.people[ALICE], packed=True)
    through, from_packs = reader(world, None, embedder=model), reader(world, shelf, embedder=model)
    for query in ("订单 13", "order 7", "什么", "which orders did I ask about"):
        alike(ask(through, query), ask(from_packs, query))


def test_nothing_but_the_persons_row_is_read(world: World) -> None:
    shelf = Shelf()
    world.publish(ROWS[:3], EDGES[:4])
    keep(world, shelf, EDGES[:4])
    expected = ask(reader(world), "快递")
    world.vectors, world.graph, world.cold = (Down(name) for name in ("vector", "graph", "cold"))
    world.authority.visible_reads = 0
    alike(ask(reader(world, shelf), "快递"), expected)
    assert world.authority.visible_reads == 0
    world.hot = Down("hot")
    answer = ask(reader(world, shelf), "快递")
    assert (ids(answer), answer.missing) == (ids(expected), ("hot",))


def test_a_pack_of_another_epoch_is_never_read(world: World) -> None:
    shelf = Shelf()
    world.publish(ROWS[:1])
    keep(world, shelf, [])
    old = shelf.bodies[ALICE][1]
    recall = reader(world, shelf)
    assert ids(ask(recall, "快递")) == ["late"]
    world.publish([make_memory("new", "快递到了")])
    for name in (hot_name(1), hot_name(2)):
        world.hot.put(ALICE, name, old, 60)
    assert ids(ask(recall, "快递")) == ids(ask(reader(world, shelf), "快递")) == ["new"]
    shelf.bodies[ALICE] = 2, old
    world.authority.people[ALICE] = replace(world.authority.people[ALICE], packed=True)
    assert ids(ask(reader(world, shelf), "快递")) == ["new"]


def test_a_pack_that_comes_later_takes_the_place_of_rows_that_were_read(world: World) -> None:
    shelf = Shelf()
    world.publish(ROWS[:3], EDGES[:4])
    recall = reader(world, shelf)
    expected = ask(recall, "快递")
    keep(world, shelf, EDGES[:4])
    world.vectors, world.graph = Down("vector"), Down("graph")
    alike(ask(recall, "快递"), expected)
    shelf.bodies.clear()
    alike(ask(reader(world, shelf), "快递"), expected)  # it lies in the hot store by now


def test_a_damaged_pack_is_none(world: World) -> None:
    shelf = Shelf()
    world.publish(ROWS[:1])
    keep(world, shelf, [])
    shelf.bodies[ALICE] = 1, b"damaged"
    world.hot.put(ALICE, hot_name(1), b"damaged", 60)
    assert ids(ask(reader(world, shelf), "快递")) == ["late"]


def test_suppression_acts_at_once(world: World) -> None:
    shelf = Shelf()
    world.publish(ROWS[:3], EDGES[:4])
    keep(world, shelf, EDGES[:4])
    recall = reader(world, shelf)
    assert "late" in ids(ask(recall, "快递"))
    world.suppress("late")
    assert "late" not in ids(ask(recall, "快递"))
    assert "late" not in ids(ask(recall, ""))


def test_vectors_of_another_model_are_not_compared(world: World) -> None:
    shelf = Shelf()
    world.publish(ROWS[:1])
    keep(world, shelf, [])
    pack = packed.load(ALICE, shelf.bodies[ALICE][1])
    assert pack.vectors is not None
    for other in ({"model_id": "former"}, {"digest": "f" * 64}):
        shelf.bodies[ALICE] = 1, packed.dump(replace(pack, vectors=replace(pack.vectors, **other)))
        searched, world.vectors = world.vectors, Down("vector")
        assert ask(reader(world, shelf), "快递").missing == ("vector",)
        world.vectors = searched
        world.hot.delete(ALICE)


def test_what_did_not_fit_is_asked_of_the_store(world: World) -> None:
    shelf = Shelf()
    world.publish(ROWS[:3], EDGES[:4])
    keep(world, shelf, EDGES[:4])
    expected = ask(reader(world), "快递")
    pack = packed.load(ALICE, shelf.bodies[ALICE][1])
    assert pack.vectors is not None
    late = pack.columns.memory_ids.index("late")
    one = Quantised.held(pack.vectors.vectors.numbers[[late]])
    shelf.bodies[ALICE] = (
        1,
        packed.dump(replace(pack, vectors=replace(pack.vectors, rows=np.array([late]), vectors=one, left_out=2))),
    )
    world.hot.delete(ALICE)
    alike(ask(reader(world, shelf), "快递"), expected)
    world.vectors = Down("vector")
    answer = ask(reader(world, shelf), "快递")
    assert answer.missing == ("vector",)
    assert [memory_id for memory_id, _ in answer.explanation.legs["dense"]] == ["late"]


# ---- vectors of queries


def test_a_query_is_embedded_once_and_its_words_are_not_kept() -> None:
    class Counting(ConceptEmbedder):
        asked = 0

        def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Any:
            self.asked += 1
            return super().encode(texts, kind)

    held, model = QueryVectors(size=2), Counting()
    for query in ("cat", "cat", "dog", "cat", "快递", "cat", "dog"):
        assert (held.of(model, query) == ConceptEmbedder().encode([query], "query")[0]).all()
    assert (model.asked, len(held)) == (4, 2)
    assert "dog" not in repr(vars(held))
    other = Counting()
    other.model_id = "another"
    held.of(other, "dog")
    assert other.asked == 1
