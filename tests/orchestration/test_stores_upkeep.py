"""Recovery, comparison and rebuild of the stores, and another embedding model, over a derived spring in memory."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa
from pipeline_world import NOW, Killed, in_memory
from quarter_world import Life, checks, clock, copied, dying, life_state, living, told

from memory_pipelines.errors import InputError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.pipeline import agreement, rebuild, recovery, reembed
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import Graph, GraphEdge, GraphNode, VectorRow, cold_key
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryVectors
from memory_pipelines.stores.live import LiveVectors
from memory_pipelines.stores.vault import Secret
from memory_pipelines.wiring import Platform

AUTUMN = ("2024-07-08", "2024-09-10")
"""Nights after which some memories are cold."""


@pytest.fixture
def whole(life: Life) -> Life:
    """With memories in every store: also in the cold one."""
    life.run("tier_job", *AUTUMN)
    assert life.platform.cold.keys()
    return life


def emptied(platform: Platform, store: str) -> None:
    """The store loses everything."""
    if store == "vector":
        fresh = MemoryVectors()
        fresh.ensure(platform.embedder.dimension)
        platform.__dict__["vectors"] = fresh
    elif store == "graph":
        platform.__dict__["graph"] = MemoryGraph()
    elif store == "cold":
        platform.__dict__["cold"] = MemoryCold()
    elif store == "relational":
        with platform.engine.begin() as connection:
            connection.execute(schema.memory_versions.delete())
    for part in ("publisher", "recall", "erasure_stores", "all_vectors"):
        platform.__dict__.pop(part, None)


# ---- rebuild


@pytest.mark.parametrize("store", ["vector", "graph", "cold", "relational"])
def test_an_emptied_store_is_made_again_with_the_same_content(whole: Life, store: str) -> None:
    platform = whole.platform
    before, all_of_it = rebuild.content(platform, store), life_state(platform)
    emptied(platform, store)
    assert rebuild.content(platform, store) != before
    done = told(whole.run("rebuild_job", config={"store": store}), "rebuilt_store")
    assert done["written"] > 0
    assert done["lost"] == 0
    assert rebuild.content(platform, store) == before
    assert life_state(platform) == all_of_it
    assert agreement.check(platform).whole


@pytest.mark.parametrize("store", rebuild.STORES)
def test_a_rebuild_of_a_whole_store_changes_nothing(whole: Life, store: str) -> None:
    platform = whole.platform
    before = life_state(platform), rebuild.content(platform, store)
    assert rebuild.rebuild(platform, store).removed == (len(platform.authority.owners()) if store == "hot" else 0)
    assert (life_state(platform), rebuild.content(platform, store)) == before


def test_a_graph_that_lost_some_of_its_edges_is_written_anew(whole: Life) -> None:
    platform, graph = whole.platform, whole.platform.graph
    before = rebuild.content(platform, "graph")
    key, version = max(graph.all_versions(), key=lambda item: len(graph._edges[item]))
    graph._edges[key, version].popitem()
    assert rebuild.rebuild(platform, "graph").written == 1
    assert rebuild.content(platform, "graph") == before


def test_an_unknown_store_is_refused(life: Life) -> None:
    with pytest.raises(InputError, match="choose among"):
        rebuild.rebuild(life.platform, "everything")


# ---- comparison


def a_memory(platform: Platform) -> tuple[Owner, str]:
    """An owner, and an entry of theirs in the vector store."""
    entry, key = next(iter(sorted(platform.vectors.entries())))
    return platform.authority.people([key])[key], entry


STRANGER = Owner("default", "u:nobody knows")
ORPHAN = f"{'a' * 32}.{'b' * 32}"


def _extra_vector(platform: Platform) -> None:
    _, entry = a_memory(platform)
    vector = platform.vectors.fetch([entry])[entry]
    platform.vectors.upsert([VectorRow(ORPHAN, STRANGER, vector, "en", NOW)])


def _extra_graph(platform: Platform) -> None:
    nodes = [GraphNode("m", "fact", "x", 0.5, NOW), GraphNode("entity:y", "entity", "y", 0.0, None)]
    platform.graph.write([Graph(STRANGER, "1", nodes, [GraphEdge("m", "entity:y", "mentions", 0.5)])])


def _extra_cold(platform: Platform) -> None:
    platform.cold.put(cold_key(STRANGER, ORPHAN), b"x")


def _extra_version(platform: Platform) -> None:
    with platform.engine.begin() as connection:
        row = dict(connection.execute(sa.select(schema.memory_versions).limit(1)).mappings().one())
        connection.execute(schema.memory_versions.insert().values(**row | {"version": "c" * 32}))


def _extra_key(platform: Platform) -> None:
    platform.keyring.keep([Secret(STRANGER, "phone", "13800138000")])
    with platform.engine.begin() as connection:
        connection.execute(schema.sensitive_values.delete().where(schema.sensitive_values.c.owner == STRANGER.key))


def _lost_vector(platform: Platform) -> None:
    platform.vectors.delete([a_memory(platform)[1]])


def _lost_graph(platform: Platform) -> None:
    owner, version = min(platform.authority.graphs().items())
    platform.graph.drop(platform.authority.people([owner])[owner], version)


def _lost_object(platform: Platform) -> None:
    platform.cold.delete([min(platform.cold.keys())])


@pytest.mark.parametrize(
    ("spoil", "store", "kind"),
    [
        (_extra_vector, "vector", "extra"),
        (_extra_graph, "graph", "extra"),
        (_extra_cold, "cold", "extra"),
        (_extra_version, "relational", "extra"),
        (_extra_key, "keys", "extra"),
        (_lost_vector, "vector", "missing"),
        (_lost_graph, "graph", "missing"),
        (_lost_object, "cold", "missing"),
    ],
)
def test_what_one_store_has_too_much_or_too_little_is_found_and_put_right(
    whole: Life, tmp_path: object, spoil: Callable[[Platform], None], store: str, kind: str
) -> None:
    platform = whole.platform
    object.__setattr__(platform.settings, "home", str(tmp_path))  # where a master key is made
    before = [rebuild.content(platform, name) for name in rebuild.STORES]
    spoil(platform)
    found = agreement.check(platform)
    assert not found.whole
    assert getattr(found, kind)[store] == 1
    assert sum(found.missing.values()) + sum(found.extra.values()) == 1
    assert agreement.check(platform) == found, "a check changes nothing"
    ran = whole.run("store_check_job")
    assert not checks(ran)["stores_hold_what_is_visible"].passed
    done = agreement.repair(platform)
    assert done.right[store] == 1
    assert not done.lost.total()
    assert agreement.check(platform).whole
    assert [rebuild.content(platform, name) for name in rebuild.STORES] == before


def test_a_key_that_is_lost_is_told_and_cannot_be_made_again(whole: Life, tmp_path: object) -> None:
    platform = whole.platform
    object.__setattr__(platform.settings, "home", str(tmp_path))
    owner = platform.authority.owners()[0]
    platform.keyring.keep([Secret(owner, "phone", "13800138000")])
    with platform.engine.begin() as connection:
        connection.execute(schema.subject_keys.delete().where(schema.subject_keys.c.owner == owner.key))
    assert agreement.check(platform).missing == {"keys": 1}
    assert agreement.repair(platform).lost["keys"] == 1


# ---- recovery


def test_what_a_killed_publish_left_is_ended_by_the_job(life: Life) -> None:
    platform = life.platform
    before = life_state(platform)
    assert life.tick("batches_left_open") == []
    states = {False: 0, True: 0}
    for call in range(1, 200):
        again = copied(platform)
        with living(again) as other:
            clock(again, NOW)
            try:
                with dying(again, call):
                    other.platform.ledger  # noqa: B018
                    recovery_of_a_change(again)
            except Killed:
                left = again.authority.open_batches()
                if not left:
                    continue
                states[left[0].state == recovery.COMMITTED] += 1
                assert other.tick("batches_left_open") == [], "somebody may still be at work"
                clock(again, NOW + recovery.LEFT_AFTER)
                assert other.tick("batches_left_open") == [{}]
                done = told(other.run("recovery_job"), "recovered_batches")
                assert done["forward"] + done["back"] == 1
                assert again.authority.open_batches() == []
                assert agreement.check(again).whole
                continue
            break
    assert min(states.values()) > 0, "killed before and after the commit"
    assert life_state(platform) == before


def recovery_of_a_change(platform: Platform) -> None:
    """Somebody's memories go, all at once: a batch with something to do in every store but the cold one."""
    from memory_pipelines.stores.publish import OwnerState

    owner = platform.authority.owners()[0]
    platform.publisher.publish(owner.bucket(platform.settings.buckets), [OwnerState(owner)], platform.clock.now())


# ---- another embedding model


class Collections:
    """A vector server in memory: collections by name."""

    def __init__(self) -> None:
        self.made: dict[str, MemoryVectors] = {}

    def open(self, name: str) -> MemoryVectors:
        return self.made.setdefault(name, MemoryVectors())


def with_collections(platform: Platform, server: Collections) -> Platform:
    """A process of its own over the same stores."""
    for part in ("vectors", "live_vectors", "collections", "publisher", "recall", "embedder", "all_vectors"):
        platform.__dict__.pop(part, None)
    live = LiveVectors(platform.collections, server.open, platform.load_embedder, platform.wanted, platform.clock.now)
    platform.__dict__["live_vectors"] = live
    return platform


def of_model(platform: Platform, embedder: str, server: Collections) -> Platform:
    fresh = in_memory(embedder=embedder)
    fresh.__dict__.update({name: getattr(platform, name) for name in ("lake", "engine", "graph", "hot", "cold")})
    return with_collections(fresh, server)


@pytest.fixture
def served(whole: Life) -> tuple[Platform, Collections]:
    """The spring in a server's collection of the model ``hash``."""
    server = Collections()
    platform = with_collections(whole.platform, server)
    rebuild.rebuild(platform, "vector")
    assert set(server.made) == {platform.wanted().collection}
    return platform, server


def test_a_new_model_takes_the_place_of_the_old_at_once(served: tuple[Platform, Collections]) -> None:
    old, server = served
    before = old.vectors.count()
    new = of_model(old, "use", server)
    assert new.vectors.count() == before, "until it is built, the old collection is read"
    assert new.searched()[0].model_id == old.embedder.model_id
    done = reembed.reembed(new, timedelta(hours=1))
    assert (done.embedded, done.dropped) == (before, 0)
    for platform in (old, new):
        embedder, collection = platform.searched()
        assert embedder.model_id == new.embedder.model_id
        assert collection.count() == before
    assert agreement.check(new).whole
    again = reembed.reembed(new, timedelta(0))
    assert (again.embedded, again.dropped) == (0, 1)
    assert server.open(old.wanted().collection).count() == 0
    assert reembed.reembed(new, timedelta(0)).dropped == 0


def test_recall_goes_on_while_a_model_is_changed(served: tuple[Platform, Collections]) -> None:
    """Every answer has hits of the dense leg, and those of one model alone."""
    old, server = served
    owner = max(old.authority.owners(), key=lambda o: (len(old.vectors.entry_ids(o)), o.key))
    new = of_model(old, "use", server)
    stop, errors, answers = threading.Event(), [], 0

    def known(platform: Platform) -> list[float]:
        found = platform.recall.recall(question, tenant=owner.tenant, subject=owner.subject, explain=True)
        assert found.missing == ()
        assert found.explanation is not None
        return [score.score for _, score in found.explanation.legs["dense"]]

    question = max(memory.text for memory in old.authority.visible(owner))  # any model finds what says the same
    one = known(old)

    def ask() -> None:
        nonlocal answers
        try:
            while not stop.is_set():
                seen.append(known(old))
                answers += 1
        except BaseException as error:
            errors.append(error)

    seen: list[list[float]] = []
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    while answers < 2 and not errors:
        stop.wait(0.01)
    reembed.reembed(new, timedelta(0))  # also dropped at once
    here = answers
    while answers < here + 4 and not errors:
        stop.wait(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    other = known(old)
    assert other != one
    assert all(found in (one, other) for found in seen)
    assert one in seen


def test_a_change_of_model_that_is_killed_goes_on_where_it_was(served: tuple[Platform, Collections]) -> None:
    old, server = served
    new = of_model(old, "use", server)
    total, asked = old.vectors.count(), []
    encode = new.embedder.encode

    def dies(texts: list[str], kind: str = "passage") -> object:
        if sum(asked) > total // 2:
            raise Killed
        asked.append(len(texts))
        return encode(texts, kind)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuild, "AT_ONCE", 10)
        patch.setattr(type(new.embedder), "encode", lambda _, texts, kind="passage": dies(list(texts), kind))
        with pytest.raises(Killed):
            reembed.reembed(new)
    assert old.searched()[0].model_id == old.embedder.model_id
    assert agreement.check(old).whole
    assert reembed.reembed(new, timedelta(0)).embedded == total - sum(asked)
    assert agreement.check(new).whole


def test_a_live_model_that_is_not_there_is_told(served: tuple[Platform, Collections]) -> None:
    old, _ = served
    with old.engine.begin() as connection:
        connection.execute(schema.collections.update().values(model_id="gone"))
    old.live_vectors._models.clear()
    owner = max(old.authority.owners(), key=lambda o: len(old.vectors.entry_ids(o)))
    answer = old.recall.recall("where is my order?", tenant=owner.tenant, subject=owner.subject)
    assert "vector" in answer.missing
    with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_EMBEDDER"):
        old.searched()
