"""Texts of others where people read them: names of files, words of logs.

Belongs here: what keeps them on one line, and from steering a terminal. Does not belong here: which texts are shown.
"""

import unicodedata

_ESCAPED = {"Cc", "Cs", "Zl", "Zp"}
_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def shown(text: str) -> str:
    """The text in one line, that every terminal and store takes: control characters, lone surrogates and changes of
    direction escaped, as in ``\\x1b``."""
    return "".join(char.encode("unicode_escape").decode() if _steers(char) else char for char in text)


def _steers(char: str) -> bool:
    return unicodedata.category(char) in _ESCAPED or unicodedata.bidirectional(char) in _DIRECTIONS
