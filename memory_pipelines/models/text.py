"""What every embedder does to a text first.

Belongs here: cutting and mending. Does not belong here: anything that depends on a model.
"""

MAX_CHARS = 4_000
"""Embeddings read this many characters: a mean over more says nothing about any of them."""


def encodable(text: str) -> str:
    """The head of the text, without what has no UTF-8 form (a lone surrogate, which no store holds) or ends a
    string in C (NUL)."""
    return text[:MAX_CHARS].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
