"""Texts of logs on a terminal.

Belongs here: what keeps them from steering it. Does not belong here: which texts are shown.
"""

WIDEST = 60
"""Characters to which the columns of a table are aligned; a longer cell moves its own row alone."""


def printable(text: str) -> str:
    """The text with its control characters written out, as in ``\\x1b``: none moves a cursor or begins a line."""
    return "".join(c if c.isprintable() or c == "\u200d" else c.encode("unicode_escape").decode() for c in text)
