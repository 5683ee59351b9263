"""Questions to invented persons, with vectors that cost nothing.

Belongs here: the words of a query, its vector, the instant. Does not belong here: persons (``people``), a clock.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import numpy as np

from benchmarks.stores.people import SENTENCES, THINGS, Directions
from memory_pipelines.models.base import Kind, Unrelated, Vectors

AS_OF = datetime(5000, 1, 1, tzinfo=UTC)
"""After the last memory of 100,000 a week apart: a recall uses all of them, where one of today would hide most."""


class Given:
    """An embedder whose vectors cost nothing: a direction for each text."""

    def __init__(self, dimension: int, seed: int, model_id: str = "given", digest: str = "") -> None:
        self.model_id, self.dimension, self.digest = model_id, dimension, digest
        self.unrelated = Unrelated(0.0, dimension**-0.5)
        self._known: dict[str, Any] = {}
        self._draw = Directions(dimension, seed)

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        for text in texts:
            if text not in self._known:
                self._known[text] = self._draw([text])[0]
        return np.stack([self._known[text] for text in texts])


def asked(count: int, seed: int) -> list[str]:
    """Queries of the memories' own words, Chinese or English."""
    draw = Random(seed)
    found = []
    for _ in range(count):
        language = draw.choice(("zh", "en"))
        said = draw.choice(SENTENCES[language]).format(
            thing=draw.choice(THINGS[language]), number=draw.randint(2, 9999)
        )
        found.append(said[: draw.randint(8, 60)])
    return found
