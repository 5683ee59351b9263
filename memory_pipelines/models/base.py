"""The port of embedding models.

Belongs here: what every embedder promises. Does not belong here: a model, or its loading
(``models.embeddings``).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Texts to unit vectors. A text's vector depends on the text and ``model_id`` alone, bit for bit.

    ``model_id`` names model and version: vectors of different ids are never compared.
    """

    @property
    def model_id(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Rows of Euclidean norm 1, shape ``(len(texts), dimension)``; an empty text has a row too.

        Cosine similarity is the dot product of two rows."""
        ...
