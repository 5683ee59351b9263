"""Vectors of recent queries: people ask the same thing again, and a model costs more than all the rest of a recall.

Belongs here: the bounded cache. Does not belong here: any model.
"""

import hashlib
import threading
from collections import OrderedDict

from memory_pipelines.models.base import Embedder
from memory_pipelines.stores.base import Vector

MAX_QUERIES = 1024


class QueryVectors:
    """Least recently used vectors by model and hash of the query: what somebody asked is not kept."""

    def __init__(self, size: int = MAX_QUERIES) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, bytes], Vector] = OrderedDict()

    def of(self, embedder: Embedder, query: str) -> Vector:
        """The query's vector by the model, of shape (dimension,)."""
        key = embedder.model_id, hashlib.blake2b(query.encode("utf-8"), digest_size=16).digest()
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                return held
        vector: Vector = embedder.encode([query], "query")[0]
        with self._lock:
            self._held[key] = vector
            while len(self._held) > self._size:
                self._held.popitem(last=False)
        return vector

    def __len__(self) -> int:
        return len(self._held)
