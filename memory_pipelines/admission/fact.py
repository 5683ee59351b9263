"""The fact: one claim of one clause. Belongs here: its fields. Does not belong here: how it is found (``facts``)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One claim of one clause. ``predicate`` is ``family.<relation>.<name>`` when it is about a relative.

    ``value`` is canonical, ``object`` as said; ``key`` tells plans apart; ``ends`` closes the value
    (an empty ``value``: any) instead of stating it; ``strength`` in [0, 1]; ``start``, ``end`` and
    ``sentence`` are spans of the text; ``day`` is an ISO date or empty."""

    predicate: str
    value: str
    object: str
    language: str
    strength: float
    start: int
    end: int
    sentence: tuple[int, int]
    ends: bool = False
    key: str = ""
    day: str = ""

    @property
    def base(self) -> str:
        return self.predicate.rsplit(".", 1)[-1]
