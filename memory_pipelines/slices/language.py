"""Script, language and normal form of a text, for the labelling steps.

Belongs here: what every step does to a text before it looks at it. Does not belong here: cleaning
of logs (HTML, encodings): that is landing's, and its result is what arrives here.
"""

import re
from collections.abc import Callable
from functools import cache

MAX_CHARS = 20_000
"""Labels read this many characters at most: a longer text is a pasted document, not a message."""

MIXED_SHARE = 0.3
"""A text is mixed when the lesser of zh and en has at least this share of its words."""

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]+")
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2019: 0x27, 0: 0x20}


def detect(text: str) -> str:
    """``zh``, ``en`` or ``mixed``: a Han character counts as one word, a Latin word as one.

    ``en`` stands for any Latin script; a text without letters is ``mixed``."""
    head = text[:MAX_CHARS]
    han = 0 if head.isascii() else len(_HAN.findall(head))
    latin = len(_LATIN_WORD.findall(head))
    if not han + latin:
        return "mixed"
    share = han / (han + latin)
    if share > 1 - MIXED_SHARE:
        return "zh"
    return "en" if share < MIXED_SHARE else "mixed"


def normalise(text: str) -> str:
    """The first ``MAX_CHARS`` characters, full-width forms narrowed, traditional Chinese simplified.

    Case is kept. The length is the text's own, up to the cap, so that offsets carry over."""
    head = text[:MAX_CHARS]
    if head.isascii():
        return head.replace("\0", " ")
    head = head.translate(_FULL_WIDTH)
    try:
        simple = _simplifier()(head)
    except UnicodeEncodeError:  # a lone surrogate, which no stored text holds
        head = head.encode("utf-8", "replace").decode("utf-8")
        simple = _simplifier()(head)
    return simple if len(simple) == len(head) else head


def simplified(text: str) -> str:
    """Traditional Chinese simplified, and nothing else; a text with a lone surrogate stays as it is."""
    if text.isascii():
        return text
    try:
        return _simplifier()(text)
    except UnicodeEncodeError:
        return text


def fold(text: str) -> str:
    """``normalise`` in lower case, of equal length (a letter whose lower case is longer stays)."""
    simple = normalise(text)
    lower = simple.lower()
    if len(lower) == len(simple):
        return lower
    return "".join(c if len(c.lower()) != 1 else c.lower() for c in simple)


@cache
def _simplifier() -> Callable[[str], str]:
    """OpenCC's traditional-to-simplified conversion (about 2 microseconds a message)."""
    import opencc

    convert: Callable[[str], str] = opencc.OpenCC("t2s").convert
    return convert
