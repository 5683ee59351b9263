"""The trained part of the accurate emotion scorer: a linear head over a frozen embedding, n-grams and the fast score.

Belongs here: features, inference in integers, the file. Does not belong here: training (``training``), labels
(``score``). All sums are of integers, so a text's score is the same in every batch.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError
from memory_pipelines.models.base import Embedder
from memory_pipelines.models.embeddings import E5, E5_AND_USE, E5_SHARE, USE, SideBySide, local_embedder
from memory_pipelines.slices.emotion.fast import Fast
from memory_pipelines.slices.intent.features import BUCKETS, Features, extract
from memory_pipelines.slices.intent.vectors import Landmarks, Part
from memory_pipelines.slices.language import MAX_CHARS, simplified
from memory_pipelines.slices.resources import data_folder

ONE = 1 << 14
"""Features are whole multiples of 1/ONE, weights too."""
LEXICAL = 2

_CHUNK = 512

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Head:
    """``embedder``: the name it is loaded by, ``model_id``: the model it was trained on. Weights in units of 1/ONE:
    ``vectors`` (dimension, 1 + kinds), ``lexical`` (LEXICAL, 1 + kinds), ``ngrams`` (BUCKETS,), ``bias`` (1 + kinds).

    Column 0 is the score, the others say how much of each of ``kinds`` (emotions) there is. ``prior``: what part of
    the fast score is added to column 0, whatever the rows taught. ``kernel``: of a head of many rows, similarities to
    them in place of ``vectors``, which are then none."""

    embedder: str
    model_id: str
    kinds: tuple[str, ...]
    vectors: Integers
    lexical: Integers
    ngrams: Integers
    bias: Integers
    prior: float
    kernel: Landmarks | None = None

    def apply(self, texts: Sequence[str], fast: Sequence[Fast]) -> tuple[list[float], list[Mapping[str, float]]]:
        """Score in [-1, 1] (4 digits) of each text, and its weight of each emotion (4 digits).

        Raises IntegrityError if the embedder installed is another than the head was trained on."""
        embedder = shared_embedder(self.embedder)
        if embedder.model_id != self.model_id:
            raise IntegrityError(f"the emotion head was trained on {self.model_id}: train it again")
        values: list[float] = []
        kinds: list[Mapping[str, float]] = []
        for first in range(0, len(texts), _CHUNK):
            some = [readable(text) for text in texts[first : first + _CHUNK]]
            meant = embedder.encode(some) if self.kernel is None else self.kernel.scores(some)
            part = self.outputs(meant, lexical(fast[first : first + _CHUNK]), extract(some))
            values += [round(float(x), 4) for x in np.clip(part[:, 0], -1, 1)]
            kinds += [{k: round(float(x), 4) for k, x in zip(self.kinds, row[1:], strict=True)} for row in part]
        return values, kinds

    def outputs(self, meant: NDArray[np.floating], lexical: Floats, features: Features) -> Floats:
        """Raw outputs (texts, 1 + kinds), the prior in column 0. ``meant``: vectors, or scores of the kernel."""
        whole = _integers(lexical) @ self.lexical
        if self.kernel is None:
            whole += _integers(meant) @ self.vectors
        outputs: Floats = whole / (ONE * ONE) + self.bias / ONE
        if self.kernel is not None:
            outputs += meant
        outputs[:, 0] += self.prior * lexical.mean(axis=1)
        filled = np.flatnonzero(features.counts)
        if len(filled):
            starts = np.cumsum(features.counts)[filled] - features.counts[filled]
            sums = np.add.reduceat(self.ngrams[features.buckets], starts)
            outputs[filled, 0] += sums / (ONE * np.sqrt(features.counts[filled].astype(np.float64)))
        return outputs

    def bytes(self) -> bytes:
        """As a compressed ``.npz`` without pickles."""
        file = io.BytesIO()
        kernel: dict[str, NDArray[Any]] = {}
        if self.kernel is not None:
            kernel = {"coefficients": self.kernel.coefficients, "unit": np.array(self.kernel.unit)}
            kernel["embedders"] = np.array([[part.embedder, part.model_id] for part in self.kernel.parts])
            for i, part in enumerate(self.kernel.parts):
                kernel |= {f"mean{i}": part.mean, f"rows{i}": part.rows}
        np.savez_compressed(
            file,
            embedder=np.array([self.embedder, self.model_id]),
            kinds=np.array(self.kinds, dtype=np.str_),
            vectors=self.vectors.astype(np.int32),
            lexical=self.lexical.astype(np.int32),
            ngrams=self.ngrams.astype(np.int32),
            bias=self.bias.astype(np.int32),
            prior=np.array(self.prior),
            **kernel,  # type: ignore[arg-type]
        )
        return file.getvalue()


def _integers(values: NDArray[np.floating]) -> Integers:
    found: Integers = np.rint(values.astype(np.float64) * ONE).astype(np.int64)
    return found


def lexical(fast: Sequence[Fast]) -> Floats:
    """The features (texts, LEXICAL) that the fast scorer gives: the lexicon's value and the blended score."""
    rows = [(round(item.reading.value, 4), item.score) for item in fast]
    return np.array(rows, dtype=np.float64).reshape(-1, LEXICAL)


def shared_embedder(name: str) -> Embedder:
    """The local embedder of that name; ``e5+use`` is made of the two that the process has, with their caches."""
    if name != E5_AND_USE:
        return local_embedder(name)
    return SideBySide(local_embedder(E5), local_embedder(USE), E5_SHARE, local_embedder(E5).unrelated)


def readable(text: str) -> str:
    """The text as the embedding reads it best: simplified Chinese, and not in capitals alone."""
    simple = simplified(text[:MAX_CHARS])
    return simple.lower() if simple.isupper() else simple


def parse_head(content: bytes) -> Head:
    """A head from its file. Raises IntegrityError if it is none."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            embedder, model_id = (str(x) for x in stored["embedder"])
            parts = {n: stored[n].astype(np.int64) for n in ("vectors", "lexical", "ngrams", "bias")}
            kinds, prior = tuple(str(k) for k in stored["kinds"]), float(stored["prior"])
            head = Head(embedder, model_id, kinds, **parts, prior=prior, kernel=_kernel(stored))
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise IntegrityError("not a file of an emotion head") from error
    width = 1 + len(head.kinds)
    shapes = (head.vectors.shape[1:], head.lexical.shape, head.ngrams.shape, head.bias.shape)
    fit = shapes == ((width,), (LEXICAL, width), (BUCKETS,), (width,))
    if head.kernel is not None:
        rows = {(len(part.rows) + 1, width) for part in head.kernel.parts}
        fit = fit and rows == {head.kernel.coefficients.shape}
    if not fit:
        raise IntegrityError("the parts of an emotion head do not fit each other")
    return head


def _kernel(stored: Any) -> Landmarks | None:
    """The kernel of a head's file, if it has one: files of version 1 have none."""
    if "coefficients" not in stored:
        return None
    parts = tuple(
        Part(str(name), str(model_id), stored[f"mean{i}"], stored[f"rows{i}"])
        for i, (name, model_id) in enumerate(stored["embedders"])
    )
    return Landmarks(parts, stored["coefficients"], float(stored["unit"]))


@cache
def read_head(file: str) -> Head:
    """A head of the package data."""
    return parse_head(data_folder().joinpath(file).read_bytes())
