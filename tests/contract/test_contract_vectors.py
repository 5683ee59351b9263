"""The contract of ``VectorStore``."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import grpc
import numpy as np
import pytest
from pymilvus import AnnSearchRequest, DataType, Function, FunctionType, MilvusException, RRFRanker
from suites import adapters

from memory_pipelines.errors import IntegrityError, PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores.base import Vector, VectorRow, VectorStore
from memory_pipelines.stores.fakes import MemoryVectors
from memory_pipelines.stores.vectors import MilvusVectors

AT = datetime(2024, 5, 17, 8, 12, 30, 123456, tzinfo=UTC)
HOSTILE = ['a"b', "a'b", "a\\", '\\"', 'x" or tenant != "', "') or 1 == 1 --", "新租户 😀", "a\nb", "{x}", "%", ""]


def axis(*values: float) -> Vector:
    vector = np.zeros(8, dtype=np.float32)
    vector[: len(values)] = values
    return vector


def row(entry_id: str, owner: Owner, *values: float) -> VectorRow:
    return VectorRow(entry_id, owner, axis(*values), "zh", AT)


def ids(store: VectorStore, owner: Owner, *values: float, limit: int = 10) -> list[str]:
    return [hit.entry_id for hit in store.search(owner, axis(*values), limit)]


@pytest.fixture
def name(tenant: str) -> str:
    """A prefix for entry ids: they are unique over all tenants of a collection."""
    return tenant.replace(" ", "")


def test_hits_are_ordered_by_cosine_whatever_the_length(vector_store: VectorStore, owner: Owner, name: str) -> None:
    vector_store.upsert(
        [row(f"{name}.far", owner, -1), row(f"{name}.near", owner, 5, 5), row(f"{name}.same", owner, 0.1)]
    )
    hits = vector_store.search(owner, axis(3), 10)
    assert [hit.entry_id for hit in hits] == [f"{name}.same", f"{name}.near", f"{name}.far"]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.70711, -1], abs=1e-4)


def test_limit_cuts_the_best(vector_store: VectorStore, owner: Owner, name: str) -> None:
    vector_store.upsert([row(f"{name}.{i}", owner, 1, i / 10) for i in range(5)])
    assert ids(vector_store, owner, 1, limit=2) == [f"{name}.0", f"{name}.1"]
    assert ids(vector_store, owner, 1, limit=0) == []
    assert len(ids(vector_store, owner, 1, limit=100_000)) == 5


def test_stored_vectors_come_back_as_they_were(vector_store: VectorStore, owner: Owner, name: str) -> None:
    vector_store.upsert([row(f"{name}.1", owner, 0.6, 0.8), row(f"{name}.2", owner, 0, 1 / 3)])
    found = vector_store.fetch([f"{name}.1", f"{name}.2", f"{name}.none"])
    assert set(found) == {f"{name}.1", f"{name}.2"}
    assert np.array_equal(found[f"{name}.1"], axis(0.6, 0.8))
    assert found[f"{name}.2"].dtype == np.float32
    assert vector_store.fetch([]) == {}


def test_a_language_is_searched_alone(vector_store: VectorStore, owner: Owner, name: str) -> None:
    english = VectorRow(f"{name}.en", owner, axis(0, 1), "en", AT)
    vector_store.upsert([row(f"{name}.1", owner, 1), row(f"{name}.2", owner, 1, 1), english])
    assert [hit.entry_id for hit in vector_store.search(owner, axis(1), 1, "en")] == [f"{name}.en"]
    assert [hit.entry_id for hit in vector_store.search(owner, axis(0, 1), 9, "zh")] == [f"{name}.2", f"{name}.1"]
    assert vector_store.search(owner, axis(1), 9, "fr") == []


def test_an_upsert_replaces_and_may_be_repeated(vector_store: VectorStore, owner: Owner, name: str) -> None:
    before = vector_store.count()
    for _ in range(2):
        vector_store.upsert([row(f"{name}.1", owner, 1), row(f"{name}.2", owner, 0, 1)])
    vector_store.upsert([row(f"{name}.1", owner, 0, 0, 1)])
    assert vector_store.count() == before + 2
    assert vector_store.search(owner, axis(0, 0, 1), 1)[0].score == pytest.approx(1, abs=1e-5)


def test_of_one_id_twice_in_a_call_the_last_wins(vector_store: VectorStore, owner: Owner, name: str) -> None:
    vector_store.upsert([row(f"{name}.1", owner, 1), row(f"{name}.1", owner, 0, 1)])
    assert vector_store.entry_ids(owner) == {f"{name}.1"}
    assert vector_store.search(owner, axis(0, 1), 1)[0].score == pytest.approx(1, abs=1e-5)


def test_empty_calls_change_nothing(vector_store: VectorStore, owner: Owner) -> None:
    before = vector_store.count()
    vector_store.upsert([])
    vector_store.delete([])
    assert vector_store.count() == before
    assert vector_store.entry_ids(owner) == set()
    assert ids(vector_store, owner, 1) == []


def test_versions_of_a_memory_stand_beside_each_other(vector_store: VectorStore, owner: Owner, name: str) -> None:
    vector_store.upsert([row(f"{name}.v1", owner, 1), row(f"{name}.v2", owner, 0, 1)])
    assert ids(vector_store, owner, 1) == [f"{name}.v1", f"{name}.v2"]
    vector_store.delete([f"{name}.v1"])
    assert ids(vector_store, owner, 1) == [f"{name}.v2"]


def test_a_delete_takes_these_ids_only_and_may_be_repeated(vector_store: VectorStore, owner: Owner, name: str) -> None:
    vector_store.upsert([row(f"{name}.{i}", owner, 1) for i in range(3)])
    for _ in range(2):
        vector_store.delete([f"{name}.0", f"{name}.2", f"{name}.unknown"])
    assert vector_store.entry_ids(owner) == {f"{name}.1"}


def test_owners_and_tenants_never_meet(vector_store: VectorStore, tenant: str, name: str) -> None:
    owners = [Owner(tenant, "u:1"), Owner(tenant, "u:2"), Owner(f"{tenant}b", "u:1"), Owner(tenant, "d:1")]
    vector_store.upsert([row(f"{name}.{i}", owner, 1) for i, owner in enumerate(owners)])
    for i, owner in enumerate(owners):
        assert ids(vector_store, owner, 1) == [f"{name}.{i}"]
        assert vector_store.entry_ids(owner) == {f"{name}.{i}"}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_tenant_or_subject_reaches_nobody_else(
    vector_store: VectorStore, tenant: str, name: str, hostile: str
) -> None:
    victim = Owner(tenant, "u:victim")
    attackers = [Owner(tenant + hostile, "u:a"), Owner(tenant, f"u:{hostile}")]
    vector_store.upsert([row(f"{name}.v", victim, 1)])
    vector_store.upsert([row(f"{name}.{i}", owner, 1) for i, owner in enumerate(attackers)])
    for i, owner in enumerate(attackers):
        assert ids(vector_store, owner, 1) == [f"{name}.{i}"]
    assert vector_store.entry_ids(victim) == {f"{name}.v"}


@pytest.mark.parametrize("hostile", ["x'] or entry_id in ['{}.v", 'x"] or entry_id != "', "", "a b", "记忆", "a" * 97])
def test_a_hostile_entry_id_is_refused(vector_store: VectorStore, owner: Owner, name: str, hostile: str) -> None:
    vector_store.upsert([row(f"{name}.v", owner, 1)])
    bad = hostile.replace("{}", name)
    with pytest.raises(PermanentError):
        vector_store.delete([bad])
    with pytest.raises(PermanentError):
        vector_store.upsert([row(bad, owner, 1)])
    assert vector_store.entry_ids(owner) == {f"{name}.v"}


def test_batches_beyond_a_thousand(vector_store: VectorStore, owner: Owner, name: str) -> None:
    rows = [row(f"{name}.{i}", owner, 1, i / 1000) for i in range(2500)]
    vector_store.upsert(rows)
    assert vector_store.entry_ids(owner) == {r.entry_id for r in rows}
    assert ids(vector_store, owner, 1, limit=3) == [f"{name}.0", f"{name}.1", f"{name}.2"]
    vector_store.delete([r.entry_id for r in rows[:2400]])
    assert vector_store.entry_ids(owner) == {r.entry_id for r in rows[2400:]}


@pytest.mark.parametrize("bad", [np.ones(7, np.float32), np.ones((1, 8), np.float32), np.full(8, np.nan, np.float32)])
def test_a_wrong_vector_is_refused(vector_store: VectorStore, owner: Owner, bad: Vector) -> None:
    with pytest.raises(IntegrityError):
        vector_store.upsert([VectorRow("x.1", owner, bad, "en", AT)])
    with pytest.raises(IntegrityError):
        vector_store.search(owner, bad, 3)
    assert vector_store.entry_ids(owner) == set()


def test_a_zero_vector_scores_zero_or_is_left_out(vector_store: VectorStore, owner: Owner, name: str) -> None:
    """It points nowhere; Milvus itself leaves it out."""
    vector_store.upsert([row(f"{name}.0", owner), row(f"{name}.1", owner, 1)])
    hits = [(h.entry_id, round(h.score, 4)) for h in vector_store.search(owner, axis(1), 2)]
    assert hits[0] == (f"{name}.1", 1.0)
    assert hits[1:] in ([], [(f"{name}.0", 0.0)])
    assert vector_store.entry_ids(owner) == {f"{name}.0", f"{name}.1"}


def test_ensure_again_is_nothing_and_another_dimension_is_refused(vector_store: VectorStore) -> None:
    vector_store.ensure(8)
    with pytest.raises(IntegrityError):
        vector_store.ensure(9)


def test_fake_and_server_rank_random_vectors_alike(vector_store: VectorStore, owner: Owner, name: str) -> None:
    random = np.random.default_rng(7)
    rows = [
        VectorRow(f"{name}.{i}", owner, v, "en", AT)
        for i, v in enumerate(random.normal(size=(60, 8)).astype(np.float32))
    ]
    fake = MemoryVectors()
    fake.ensure(8)
    fake.upsert(rows)
    vector_store.upsert(rows)
    for query in random.normal(size=(5, 8)).astype(np.float32):
        expected, found = fake.search(owner, query, 10), vector_store.search(owner, query, 10)
        assert [h.entry_id for h in found] == [h.entry_id for h in expected]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-5)


def test_hardly_any_of_many_nearest_is_missed(served: Settings, owner: Owner, name: str) -> None:
    """A recall computes with all of the 400 nearest of a language: what an index skips changes its answer."""
    store = MilvusVectors(served.milvus_url, served.milvus_token, f"many_{name}", served.ca_file)
    store.ensure(256)
    draw = np.random.default_rng(7)
    vectors = draw.normal(size=(5_000, 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [VectorRow(f"{name}.{i}", owner, v, ("zh", "en")[i % 2], AT) for i, v in enumerate(vectors)]
    store.upsert(rows)
    missed = 0
    for query in draw.normal(size=(5, 256)).astype(np.float32):
        nearest = np.argsort(-(vectors[1::2] @ query), kind="stable")[:400]
        found = {hit.entry_id for hit in store.search(owner, query, 400, "en")}
        missed += len({f"{name}.{2 * i + 1}" for i in nearest.tolist()} - found)
    assert missed <= 5 * 400 * 0.005
    store.close()


def test_before_ensure_readers_see_nothing_and_writers_are_told(owner: Owner) -> None:
    store = MemoryVectors()
    assert (store.search(owner, axis(1), 3), store.entry_ids(owner), store.count()) == ([], set(), 0)
    with pytest.raises(IntegrityError):
        store.upsert([row("a.1", owner, 1)])


def test_a_missing_collection_is_empty_to_readers(served: Settings, owner: Owner) -> None:
    store = adapters.vectors(served, "never_made")
    assert (store.search(owner, axis(1), 3), store.entry_ids(owner), store.count()) == ([], set(), 0)
    store.delete(["a.1"])
    with pytest.raises(IntegrityError):
        store.upsert([row("a.1", owner, 1)])
    store.close()
    assert store.count() == 0


def test_an_unreachable_server_is_named_with_its_setting(owner: Owner) -> None:
    store = MilvusVectors("http://127.0.0.1:1")
    for call in (lambda: store.search(owner, axis(1), 3), lambda: store.ensure(8), store.count):
        with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_MILVUS_URL") as caught:
            call()
        assert caught.value.store == "vector"


def test_a_wrong_url_or_collection_is_a_setting_error() -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_MILVUS_URL"):
        MilvusVectors("nonsense").count()
    with pytest.raises(SettingError):
        MilvusVectors("http://127.0.0.1:1", collection='a"; drop')


def test_collections_of_former_models_are_found_and_can_be_emptied(served: Settings, owner: Owner, name: str) -> None:
    prefix = f"former_{name}_"
    stores = [adapters.vectors(served, prefix + model) for model in ("a", "b", "c")]
    for store in stores:
        store.ensure(8)
        store.upsert([row(f"{name}.1", owner, 1)])
    current = stores[0]
    former = current.beside(prefix)
    assert len(former) == 2
    for store in former:
        assert store.entry_ids(owner) == {f"{name}.1"}
        store.delete([f"{name}.1"])
        assert store.entry_ids(owner) == set()
    assert current.entry_ids(owner) == {f"{name}.1"}
    for store in (*stores, *former):
        store.close()


def test_a_server_can_what_it_claims_and_nothing_else(served: Settings) -> None:
    store = adapters.vectors(served, "claims")
    store.count()
    client = adapters.milvus_client(served)
    assert ("upsert" in store.capabilities) == _finds_upserted(client)
    assert ("sparse" in store.capabilities) == _searches_words(client, "claims_words")
    assert ("hybrid" in store.capabilities) == _fuses(client, "claims_key")
    for collection in ("claims_key", "claims_words"):
        client.drop_collection(collection)
    client.close()
    store.close()


def _finds_upserted(client: Any) -> bool:
    """Whether a query by the partition key finds rows that were upserted."""
    schema = client.create_schema(auto_id=False)
    schema.add_field("name", DataType.VARCHAR, is_primary=True, max_length=8)
    schema.add_field("owner", DataType.VARCHAR, max_length=8, is_partition_key=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=8)
    index = client.prepare_index_params()
    index.add_index("vector", index_type="HNSW", metric_type="COSINE", params={"M": 16, "efConstruction": 100})
    client.create_collection("claims_key", schema=schema, index_params=index, num_partitions=16)
    client.upsert("claims_key", [{"name": f"n{i}", "owner": f"o{i}", "vector": axis(1, i)} for i in range(8)])
    found = client.query("claims_key", filter='owner == "o3"', output_fields=["name"], consistency_level="Strong")
    return [row["name"] for row in found] == ["n3"]


def _searches_words(client: Any, collection: str) -> bool:
    """Whether a search by words, ranked by BM25, finds a text."""
    schema = client.create_schema(auto_id=False)
    schema.add_field("name", DataType.VARCHAR, is_primary=True, max_length=8)
    schema.add_field("text", DataType.VARCHAR, max_length=64, enable_analyzer=True)
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(Function("bm25", FunctionType.BM25, input_field_names=["text"], output_field_names=["words"]))
    index = client.prepare_index_params()
    index.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    try:
        client.create_collection(collection, schema=schema, index_params=index)
        client.insert(collection, [{"name": "n1", "text": "late parcel"}, {"name": "n2", "text": "red shoes"}])
        found = client.search(collection, ["parcel"], anns_field="words", limit=2, consistency_level="Strong")
    except MilvusException:
        return False
    return [hit.id for hit in found[0]] == ["n1"]


def _fuses(client: Any, collection: str) -> bool:
    """Whether two searches are fused by the server."""
    asked = [AnnSearchRequest([axis(1, i)], "vector", {"metric_type": "COSINE"}, limit=3) for i in range(2)]
    try:
        return len(client.hybrid_search(collection, asked, RRFRanker(), limit=3)[0]) == 3
    except (MilvusException, grpc.RpcError):
        return False


def test_all_entries_are_listed_with_their_owners(vector_store: VectorStore, owner: Owner, name: str) -> None:
    other = Owner(f"{owner.tenant} b", owner.subject)
    rows = [row(f"{name}.{n}", owner, 1, n) for n in range(3)] + [row(f"{name}.9", other, 1)]
    vector_store.upsert(rows)
    found = {entry: key for entry, key in vector_store.entries() if entry.startswith(f"{name}.")}
    assert found == {r.entry_id: r.owner.key for r in rows}
    vector_store.delete([f"{name}.1"])
    assert f"{name}.1" not in dict(vector_store.entries())


def test_a_dropped_collection_is_empty_to_those_who_had_it_open(served: Settings, owner: Owner, name: str) -> None:
    one, two = (adapters.vectors(served, f"dropped_{name}") for _ in range(2))
    assert list(one.entries()) == []
    one.ensure(8)
    one.upsert([row(f"{name}.1", owner, 1)])
    assert two.entry_ids(owner) == {f"{name}.1"}
    one.drop()
    one.drop()
    assert one.count() == 0
    with contextlib.suppress(PermanentError):  # of a collection that there is not: who follows the live one looks again
        assert two.search(owner, axis(1), 5) == []
    two.close()
    assert two.entry_ids(owner) == set()
    one.ensure(8)
    assert one.count() == 0
    one.drop()
    one.close()
