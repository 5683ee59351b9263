"""The hand-written phrases, per language, and how one is chosen.

Belongs here: loading the YAML beside this module and picking from it. Does not belong here: who
says what when.
"""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


def pick(rng: Random, items: tuple[T, ...]) -> T:
    """One of ``items``; a single draw, so that the stream of random numbers is easy to follow."""
    return items[int(rng.random() * len(items))]


@dataclass(frozen=True)
class Fact:
    """Ways to state, change, correct and ask for one predicate.

    ``change`` is empty where it never changes, ``correct`` where only the small phrase book speaks.
    """

    tell: tuple[str, ...]
    change: tuple[str, ...]
    ask: tuple[str, ...]
    correct: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phrases:
    """All that persons of one language say."""

    language: str
    pools: dict[str, tuple[str, ...]]
    service: dict[str, tuple[str, ...]]
    noise: dict[str, tuple[str, ...]]
    assistant: dict[str, tuple[str, ...]]
    facts: dict[str, Fact]
    personal: dict[str, tuple[str, ...]]
    """Sentences with a number or password; empty in the small phrase book, as ``group`` is."""
    group: dict[str, tuple[str, ...]]

    def date(self, month: int, day: int) -> str:
        """A date as people of this language write it."""
        return f"{MONTHS[month - 1]} {day}" if self.language == "en" else f"{month}月{day}日"

    def slots(self, rng: Random) -> dict[str, object]:
        """Fresh values of the slots that an order's story needs, drawn from the pools."""
        names = ("carrier", "warehouse", "product", "reply_name")
        return {name: pick(rng, self.pools[name]) for name in names} | {"days": 3 + int(rng.random() * 9)}


MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@cache
def load(language: str, rich: bool = False) -> Phrases:
    """Phrases of ``zh``, ``zh-Hant`` (the Chinese ones in Traditional characters) or ``en``.

    ``rich`` adds the wide phrase book. The small one is kept as it is: the sample is made from it.
    """
    script = "en" if language == "en" else "zh"
    books = [_book(f"phrases_{script}.yaml")]
    if rich:
        books.append(_book(f"phrases_more_{script}.yaml"))
    table: dict[int, str] = {}
    if language == "zh-Hant":
        for book in books:
            pairs = book["traditional"]
            table |= {ord(a): b for a, b in zip(pairs["from"], pairs["to"], strict=True)}

    def lines(sections: list[dict[str, list[str]]]) -> dict[str, tuple[str, ...]]:
        joined: dict[str, tuple[str, ...]] = {}
        for section in sections:
            for key, items in section.items():
                joined[key] = joined.get(key, ()) + tuple(item.translate(table) for item in items)
        return joined

    return Phrases(
        language=language,
        pools=lines([book["pools"] for book in books]),
        service=lines([book["service"] for book in books]),
        noise=lines([book["noise"] for book in books]),
        assistant=lines([book["assistant"] for book in books]),
        facts={key: Fact(**lines([book["facts"][key] for book in books])) for key in books[0]["facts"]},
        personal=lines([book.get("personal", {}) for book in books]),
        group=lines([book.get("group", {}) for book in books]),
    )


def _book(name: str) -> dict[str, Any]:
    import yaml

    text = resources.files("memory_pipelines.sample").joinpath(name).read_text(encoding="utf-8")
    book: dict[str, Any] = yaml.safe_load(text)
    return book
