"""What the sequence tagger sees of a text: features of each unit and its neighbours.

Belongs here: cutting a text into units, and their features. Does not belong here: a model (``tagger``) or its
training (``tagger_training``). A trained model and this module belong together: whoever changes a feature raises
``tagger.FORMAT``.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from memory_pipelines.slices.entities.lexical import words
from memory_pipelines.slices.matching import whole

Unit = tuple[int, int]

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_TOKEN = re.compile(r"(?:[A-Za-z]\.){2,}|\w+(?:[-'’.&/]\w+)*|[^\w\s]")
_OWN = re.compile(r"[A-Za-z0-9]+(?:[-._/+ ]?[A-Za-z0-9]+)*")


def has_han(text: str) -> bool:
    return _HAN.search(text) is not None


def units(text: str) -> list[Unit]:
    """Characters of a text with Chinese ones, white space left out; words and signs of any other text."""
    if has_han(text):
        return [(i, i + 1) for i, char in enumerate(text) if not char.isspace()]
    return [match.span() for match in _TOKEN.finditer(text)]


class Names:
    """Names of training rows by kind; where one stands in a text is a feature.

    ``counts``, while training: how many rows name it so. What only the row itself tells is kept from it, or the
    model would learn that every name is known."""

    def __init__(self, kinds: Mapping[str, Sequence[str]], counts: Mapping[tuple[str, str], int] | None = None) -> None:
        self._kinds: dict[str, list[str]] = defaultdict(list)
        for kind in sorted(kinds):
            for name in kinds[kind]:
                self._kinds[name].append(kind)
        lengths: dict[str, set[int]] = defaultdict(set)
        for name in self._kinds:
            lengths[name[:2]].add(len(name))
        self._lengths = {head: sorted(sizes, reverse=True) for head, sizes in lengths.items()}
        self._counts = counts

    def marks(self, folded: str, own: Collection[tuple[str, str]] = ()) -> dict[int, list[str]]:
        """Features by character: at each place the longest known name. ``own``: names of the row while training."""
        marks: dict[int, list[str]] = defaultdict(list)
        i = 0
        while i < len(folded):
            step = 1
            for length in self._lengths.get(folded[i : i + 2], ()):
                name = folded[i : i + length]
                kinds = [kind for kind in self._kinds.get(name, ()) if self._known(name, kind, own)]
                if kinds and whole(folded, i, i + length):
                    for at in range(i, i + length):
                        place = "B" if at == i else "E" if at == i + length - 1 else "M"
                        marks[at] += [f"N{place}{kind}" for kind in kinds]
                    step = length
                    break
            i += step
        return marks

    def _known(self, name: str, kind: str, own: Collection[tuple[str, str]]) -> bool:
        return self._counts is None or self._counts[name, kind] > ((name, kind) in own)


def features(text: str, found: Sequence[Unit], names: Names, own: Collection[tuple[str, str]] = ()) -> list[list[str]]:
    """Features of each unit. ``own``: see ``Names.marks``."""
    folded = text.lower()
    if len(folded) != len(text):
        folded = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    marks = names.marks(folded, own)
    rows = _han(text, folded, found) if has_han(text) else _other(text, folded, found)
    for row, (start, _) in zip(rows, found, strict=True):
        row += marks.get(start, ())
    for i in range(len(found)):
        if i:
            rows[i] += [f"-{mark}" for mark in marks.get(found[i - 1][0], ())]
        if i + 1 < len(found):
            rows[i] += [f"+{mark}" for mark in marks.get(found[i + 1][0], ())]
    return rows


@cache
def _class(char: str) -> str:
    if "\u4e00" <= char <= "\u9fff":
        return "h"
    if char.isdecimal():
        return "d"
    if char.isascii() and char.isalpha():
        return "a"
    return char


def _han(text: str, folded: str, found: Sequence[Unit]) -> list[list[str]]:
    size = len(found)
    pad = "\x02\x02\x02"
    chars = pad + "".join(folded[start] for start, _ in found) + pad
    classes = ["^"] * 3 + [_class(folded[start]) for start, _ in found] + ["$"] * 3
    of_word, place_in = [0] * len(text), ["-"] * len(text)
    cut = [("^", "^"), ("^", "^")]
    for start, end, tag in words(text):
        for i in range(start, end):
            of_word[i] = len(cut)
            place_in[i] = "S" if end - start == 1 else "B" if i == start else "E" if i == end - 1 else "M"
        cut.append((folded[start:end], tag))
    cut += [("$", "$"), ("$", "$")]
    latin = [""] * len(text)
    for match in _OWN.finditer(folded):
        for i in range(*match.span()):
            latin[i] = match[0]
    depth = _titles(text)
    rows = []
    for k, (at, _) in enumerate(found):
        i = k + 3
        c = chars
        w = of_word[at]
        place = place_in[at]
        row = [
            "b", f"0{c[i]}", f"1{c[i - 1]}", f"2{c[i + 1]}", f"3{c[i - 2]}", f"4{c[i + 2]}",
            f"5{c[i - 1 : i + 1]}", f"6{c[i : i + 2]}", f"7{c[i - 2 : i]}", f"8{c[i + 1 : i + 3]}",
            f"9{c[i - 1]}{c[i + 1]}", f"a{c[i - 2 : i + 1]}", f"c{c[i : i + 3]}", f"d{c[i - 1 : i + 2]}",
            f"e{c[i - 3 : i + 1]}", f"f{c[i : i + 4]}",
            "g" + "".join(classes[i - 1 : i + 2]), "h" + "".join(classes[i - 2 : i + 3]),
        ]  # fmt: skip
        if k == 0:
            row.append("first")
        if k == size - 1:
            row.append("last")
        if depth[at]:
            row.append(f"q{depth[at]}")
        if latin[at]:
            row += (f"l{latin[at]}", f"m{len(latin[at])}", f"n{_shape(latin[at])}")
        if w:
            (word, tag), (last, last_tag), (following, next_tag) = cut[w], cut[w - 1], cut[w + 1]
            row += (
                f"t{place}{tag}", f"w{place}{word}", f"x{last}|{place}", f"y{following}|{place}",
                f"u{last_tag}|{place}{tag}", f"v{place}{tag}|{next_tag}", f"z{last_tag}|{place}{tag}|{next_tag}",
                f"A{place}{word[-1:]}", f"B{place}{word[:1]}", f"C{place}{word[-2:]}",
                f"D{place}{following[-1:]}", f"E{place}{last[-1:]}", f"F{cut[w - 2][0]}|{last}", f"G{len(word)}{place}",
                f"H{last}|{word}", f"I{word}|{following}",f"J{cut[w - 2][1]}|{last_tag}|{tag}",
            )  # fmt: skip
        rows.append(row)
    return rows


def _titles(text: str) -> list[str]:
    """For each character, which pair of marks it stands between."""
    result = [""] * len(text)
    for opening, closing in ("《》", "“”", "「」", "【】", "()", "（）"):
        start = -1
        for i, char in enumerate(text):
            if char == opening:
                start = i
            elif char == closing and start >= 0:
                for j in range(start + 1, i):
                    result[j] = opening
                start = -1
    return result


@cache
def _shape(word: str) -> str:
    shape = "".join("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdecimal() else c for c in word[:40])
    return re.sub(r"(.)\1+", r"\1", shape)


def _other(text: str, folded: str, found: Sequence[Unit]) -> list[list[str]]:
    tokens = ["^", "^", *(text[start:end] for start, end in found), "$", "$"]
    lowers = ["^", "^", *(folded[start:end] for start, end in found), "$", "$"]
    shapes = ["^", "^", *(_shape(text[start:end]) for start, end in found), "$", "$"]
    shouted = text.isupper()
    rows = []
    for i in range(2, len(tokens) - 2):
        word, low, shape = tokens[i], lowers[i], shapes[i]
        row = [
            "b", f"0{low}", f"w{word}", f"1{lowers[i - 1]}", f"2{lowers[i + 1]}", f"3{lowers[i - 2]}",
            f"4{lowers[i + 2]}",
            f"5{lowers[i - 1]}|{low}", f"6{low}|{lowers[i + 1]}", f"7{lowers[i - 1]}|{lowers[i + 1]}",
            f"s{shape}", f"r{shapes[i - 1]}|{shape}", f"t{shape}|{shapes[i + 1]}",
            f"u{shapes[i - 1]}|{shape}|{shapes[i + 1]}", f"v{lowers[i - 1]}|{shape}", f"x{shape}|{lowers[i + 1]}",
            f"L{min(len(word), 12)}",
        ]  # fmt: skip
        row += [f"p{n}{low[:n]}" for n in (1, 2, 3, 4, 5) if len(low) > n]
        row += [f"e{n}{low[-n:]}" for n in (1, 2, 3, 4, 5) if len(low) > n]
        row += [f"P{lowers[i - 1][-3:]}", f"Q{lowers[i + 1][-3:]}"]
        if shouted:
            row.append("shouted")
        if i == 2:
            row += ("first", f"first{shape}")
        if i == len(tokens) - 3:
            row.append("last")
        rows.append(row)
    return rows
