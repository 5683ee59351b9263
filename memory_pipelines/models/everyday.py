"""What vectors share that means nothing: each language's mean, and the cosine of texts that have nothing in common.

Belongs here: the sentences (``data/everyday.yaml``) and what is measured with them. Does not belong here: a model.
"""

import importlib.resources
import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import yaml

from memory_pipelines.models.base import Kind, Unrelated, Vectors
from memory_pipelines.models.text import MAX_CHARS

LANGUAGES = ("zh", "en")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]+")

Encode = Callable[[Sequence[str], Kind], Vectors]


@cache
def source() -> bytes:
    """The file of the sentences; what depends on them has its hash in its name."""
    return (importlib.resources.files(__package__) / "data" / "everyday.yaml").read_bytes()


def sentences(language: str) -> list[str]:
    """48 sentences of ``zh`` or ``en``, each language's the translations of the other's."""
    found: list[str] = yaml.safe_load(source())[language]
    return found


def chinese_share(text: str) -> float:
    """Of the words, a Han character being one: 1 for Chinese, 0 for Latin script, .5 for neither."""
    head = text[:MAX_CHARS]
    han, latin = len(_HAN.findall(head)), len(_LATIN_WORD.findall(head))
    return han / (han + latin) if han + latin else 0.5


class Centre:
    """Takes each language's mean out of vectors, in proportion for a text in both.

    A model like e5 has all its cosines between .7 and .95, and two texts of one language closer than a translation.
    After this the cosine of unrelated texts is near 0, in one language or two. (Mu and Viswanath, "All-but-the-Top",
    ICLR 2018, without its principal components: taking those out made it worse.)"""

    def __init__(self, encode: Encode) -> None:
        self._means = np.stack([encode(sentences(language), "passage").mean(axis=0) for language in LANGUAGES])

    def __call__(self, vector: Vectors, text: str) -> Vectors:
        """One unit vector without its language, again of norm 1."""
        share = np.float32(chinese_share(text))
        moved: Vectors = vector - (share * self._means[0] + (1 - share) * self._means[1])
        return moved / np.linalg.norm(moved)


def measured(encode: Encode) -> Unrelated:
    """The cosines of every sentence asked with every other of its language."""
    cosines = []
    for language in LANGUAGES:
        asked, told = (encode(sentences(language), kind) for kind in ("query", "passage"))
        cosines.append((asked @ told.T)[~np.eye(len(told), dtype=np.bool_)])
    every = np.concatenate(cosines)
    return Unrelated(float(every.mean()), float(every.std()))
