"""Longest match of many words in one pass over a text.

Belongs here: the matcher that emotion and entities share. Does not belong here: any word.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Gazetteer(Generic[T]):
    """Words and what they stand for. At each place the longest word wins; matches do not overlap.

    A word that begins or ends with a Latin letter or digit matches only at such a word's border.
    Texts and words must be folded alike. Time is linear in the text's length."""

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._entries = dict(entries)
        lengths: dict[str, set[int]] = defaultdict(set)
        for word in self._entries:
            lengths[word[:2]].add(len(word))
        self._lengths = {prefix: tuple(sorted(sizes, reverse=True)) for prefix, sizes in lengths.items()}

    def find(self, text: str) -> list[tuple[int, int, T]]:
        """``(start, end, value)`` of each match, from left to right."""
        found = []
        entries, lengths = self._entries, self._lengths
        i, size = 0, len(text)
        while i < size:
            step = 1
            for length in (*lengths.get(text[i : i + 2], ()), 1):
                word = text[i : i + length]
                if len(word) == length and word in entries and whole(text, i, i + length):
                    found.append((i, i + length, entries[word]))
                    step = length
                    break
            i += step
        return found


def is_latin(char: str) -> bool:
    """A Latin letter or an ASCII digit: what words of Latin script are made of."""
    return char.isalnum() and char < "\u0250"


def whole(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` does not cut a Latin word in two."""
    if start and is_latin(text[start]) and is_latin(text[start - 1]):
        return False
    return not (end < len(text) and is_latin(text[end - 1]) and is_latin(text[end]))
