"""Scripts of a text. Belongs here: telling Chinese, and simplifying it for reading. Does not belong here: what a
text says. Patterns and word lists are written in simplified characters; offsets carry over."""

import re
from collections.abc import Callable
from functools import cache

_HAN = re.compile("[\u3400-\u9fff]")


def is_chinese(text: str) -> bool:
    """Whether a text has a Chinese character: it is read by Chinese grammar."""
    return _HAN.search(text) is not None


def simplified(text: str) -> str:
    """Traditional characters simplified, of equal length; the text itself if that cannot be."""
    if text.isascii():
        return text
    try:
        simple = _simplifier()(text)
    except UnicodeEncodeError:  # a lone surrogate
        return text
    return simple if len(simple) == len(text) else text


@cache
def _simplifier() -> Callable[[str], str]:
    import opencc

    convert: Callable[[str], str] = opencc.OpenCC("t2s").convert
    return convert
