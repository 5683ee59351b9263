"""The port of embedding models.

Belongs here: what every embedder promises. Does not belong here: a model, or its loading
(``models.embeddings``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Kind = Literal["passage", "query"]
"""What a text is: something to be found, or a question that finds. Some models read the two differently."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Mean and standard deviation of the cosine of a question and a text that has nothing to do with it.

    Every model has its own: a cosine of .8 is a close match for one and chance for another."""

    mean: float
    deviation: float


class Embedder(Protocol):
    """Texts to unit vectors. A local model's vector depends on text, kind and ``model_id`` alone, bit for bit
    on one kind of processor: never on the other texts of a batch.

    ``model_id`` names model, precision and the start of ``digest``: vectors of different ids are never
    compared, each id has a collection of its own. ``digest``: SHA-256 of the weights, in hex."""

    @property
    def model_id(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def unrelated(self) -> Unrelated: ...
    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        """Rows of Euclidean norm 1, shape ``(len(texts), dimension)``; an empty text has a row too.

        Cosine similarity is the dot product of two rows. Any text is taken: NUL bytes, lone surrogates,
        100 kB (models read its head)."""
        ...
