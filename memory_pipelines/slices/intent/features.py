"""Hashed character and word n-grams of many texts at once, in exact integer arithmetic.

Belongs here: text -> feature buckets of the intent model. Does not belong here: weights, labels.
A feature's bucket depends on its characters alone, so a text has the same features in any batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.slices.language import fold

BUCKET_BITS = 15
BUCKETS = 1 << BUCKET_BITS

_START, _END = "\x02", "\x03"
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse modulo 2^64
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_THIRD = np.uint64(0xD6E8FEB86659FD93)
_KINDS = {name: np.uint64(seed) for name, seed in (("1", 11), ("2", 22), ("3", 33), ("word", 44), ("words", 55))}


@dataclass(frozen=True)
class Features:
    """Feature buckets of ``n`` texts, grouped by text: text ``i`` owns ``counts[i]`` of ``buckets``."""

    buckets: NDArray[np.int64]
    counts: NDArray[np.int64]


def extract(texts: Sequence[str]) -> Features:
    """Features of each text: 1-, 2- and 3-grams of characters, words and pairs of words in Latin script.

    Texts are folded (width, simplified Chinese, case, white space; every digit is 0). Latin letters
    make no 1- and 2-grams of their own: those say nothing. An empty text has no features."""
    framed = [_START + folded + _END if (folded := " ".join(fold(text).split())) else "" for text in texts]
    lengths = np.array([len(text) for text in framed], dtype=np.int64)
    codes = np.frombuffer("".join(framed).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    digit = (codes >= 48) & (codes <= 57)
    codes[digit] = 48
    owner = np.repeat(np.arange(len(framed), dtype=np.int64), lengths)
    latin = digit | ((codes >= 97) & (codes <= 122)) | ((codes >= 0xC0) & (codes <= 0x24F)) | (codes == 39)
    weak = latin | (codes == 32)
    found = [*_character_ngrams(codes, owner, weak), *_words(codes, owner, latin)]
    owners = np.concatenate([o for o, _ in found])
    hashes = np.concatenate([h for _, h in found])
    order = np.argsort(owners, kind="stable")
    buckets = (hashes[order] >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)
    return Features(buckets, np.bincount(owners, minlength=len(framed)))


_Found = tuple[NDArray[np.int64], NDArray[np.uint64]]


def _finish(hashes: NDArray[np.uint64], kind: str) -> NDArray[np.uint64]:
    mixed = (hashes + _KINDS[kind]) * _MIX
    mixed ^= mixed >> np.uint64(31)
    mixed *= _SECOND
    return mixed


def _character_ngrams(codes: NDArray[np.uint64], owner: NDArray[np.int64], weak: NDArray[np.bool_]) -> list[_Found]:
    single = ~weak & (codes > 3)
    found = [(owner[single], _finish(codes[single], "1"))]
    pair = (owner[:-1] == owner[1:]) & ~(weak[:-1] & weak[1:])
    pairs = codes[:-1] * _BASE + codes[1:] * _SECOND
    found.append((owner[:-1][pair], _finish(pairs[pair], "2")))
    triple = owner[:-2] == owner[2:]
    triples = codes[:-2] * _BASE + codes[1:-1] * _SECOND + codes[2:] * _THIRD
    found.append((owner[:-2][triple], _finish(triples[triple], "3")))
    return found


def _words(codes: NDArray[np.uint64], owner: NDArray[np.int64], latin: NDArray[np.bool_]) -> list[_Found]:
    """Words by differences of a prefix polynomial; frames between texts keep words apart."""
    edges = np.flatnonzero(np.diff(latin, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    power = np.cumprod(np.full(len(codes), _BASE))
    prefix = np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes * power)])
    back = np.cumprod(np.full(len(codes), _INVERSE))
    words = (prefix[ends] - prefix[starts]) * back[starts]
    owners = owner[starts]
    follows = owners[:-1] == owners[1:]
    pairs = (words[:-1] * _THIRD + words[1:])[follows]
    return [(owners, _finish(words, "word")), (owners[:-1][follows], _finish(pairs, "words"))]
