"""An embedder that keeps its vectors in a folder, so that a second run costs no embedding.

Belongs here: the files. Does not belong here: any model.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memory_pipelines.models.base import Embedder, Kind, Unrelated, Vectors

PORTION = 500


class Kept:
    """The vectors of ``embedder``, from ``folder`` where they are there already; one file per model."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._file = folder / f"{embedder.model_id.replace('/', '_')}.npz"
        self._held: dict[str, Vectors] = {}
        if self._file.exists():
            with np.load(self._file) as kept:
                self._held = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def digest(self) -> str:
        return self._embedder.digest

    @property
    def unrelated(self) -> Unrelated:
        return self._embedder.unrelated

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        keys = [hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._held}
        wanted = list(new)
        for start in range(0, len(wanted), PORTION):
            part = wanted[start : start + PORTION]
            self._held.update(zip(part, self._embedder.encode([new[key] for key in part], kind), strict=True))
        if len(wanted) > 1:  # a lone query is not worth a file
            names = sorted(self._held)
            np.savez(self._file, keys=np.array(names), vectors=np.stack([self._held[name] for name in names]))
        return np.stack([self._held[key] for key in keys]) if keys else np.zeros((0, self.dimension), np.float32)
