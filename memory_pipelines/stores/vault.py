"""The port of the key ring, and the tokens that stand in texts for sensitive values.

Belongs here: the form of a token, and what may be asked of whoever keeps the values. Does not belong here:
finding values in a text (``slices.sensitive``), keys and ciphers (``keyring``).

A token is ``[phone:7f3k9a2c4d5e]``: a kind and 60 bits that nothing can be read from. A value that nobody can be
asked about is not kept; ``[phone]`` stands for it.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from memory_pipelines.model import Owner

KINDS = ("phone", "id_card", "bank_card", "email", "password", "code")
TAG_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
"""32 signs of a tag: without ``l``, ``o``, ``0`` and ``1``, so that no rule can read a number out of one."""
TAG_LENGTH = 12
TOKEN = re.compile(rf"\[({'|'.join(KINDS)}):([{TAG_LETTERS}]{{{TAG_LENGTH}}})\]")


_BEGINNING = re.compile(rf"\[(?:{'|'.join(KINDS)}):")
_CUT = re.compile(rf"\[(?:[a-z_]{{0,9}}|(?:{'|'.join(KINDS)}):[{TAG_LETTERS}]{{0,{TAG_LENGTH}}})$")


class Secret(NamedTuple):
    """A sensitive value of somebody, in its normal form."""

    owner: Owner
    kind: str
    value: str


class Vault(Protocol):
    """Keeps sensitive values by owner; no token tells anything without it."""

    def keep(self, secrets: Collection[Secret]) -> dict[Secret, str]:
        """The token of each value, which is kept. Safe to repeat: as long as the owner is not erased, the same
        value gets the same token; no two owners' values share one."""
        ...

    def reveal(self, wanted: Mapping[Owner, Collection[str]]) -> dict[Owner, dict[str, str]]:
        """The values of the owners' own tokens; a token that is not the owner's is left out."""
        ...


def token(kind: str, bits: bytes) -> str:
    """The token of a kind and at least 8 pseudo-random bytes."""
    number = int.from_bytes(bits[:8])
    tag = "".join(TAG_LETTERS[number >> 5 * i & 31] for i in range(TAG_LENGTH))
    return f"[{kind}:{tag}]"


def bare(kind: str) -> str:
    """What stands for a value that is not kept."""
    return f"[{kind}]"


def tokens(text: str) -> set[str]:
    """All tokens, or what looks like one, in a text."""
    return {match[0] for match in TOKEN.finditer(text)} if "[" in text else set()


def untagged(text: str) -> str:
    """The text with bare tokens: equal sentences of two people are equal again."""
    return TOKEN.sub(r"[\1]", text) if "[" in text else text


def has_token(text: str) -> bool:
    """Whether a token, or what is left of one, is in a text."""
    return "[" in text and _BEGINNING.search(text) is not None


def uncut(text: str) -> str:
    """The beginning of a longer text without the part of a token that it may end in."""
    return _CUT.sub("", text)


def revealed(text: str, values: Mapping[str, str]) -> str:
    """The text with the values of the tokens that ``values`` holds; any other token stays."""
    return TOKEN.sub(lambda match: values.get(match[0], match[0]), text) if values else text
