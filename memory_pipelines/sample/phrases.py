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
    """Ways to state, change and ask for one predicate; ``change`` is empty where it never changes."""

    tell: tuple[str, ...]
    change: tuple[str, ...]
    ask: tuple[str, ...]


@dataclass(frozen=True)
class Phrases:
    """All that persons of one language say."""

    language: str
    pools: dict[str, tuple[str, ...]]
    service: dict[str, tuple[str, ...]]
    noise: dict[str, tuple[str, ...]]
    assistant: dict[str, tuple[str, ...]]
    facts: dict[str, Fact]

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
def load(language: str) -> Phrases:
    """Phrases of ``zh``, ``zh-Hant`` (the Chinese ones in Traditional characters) or ``en``."""
    import yaml

    name = "phrases_en.yaml" if language == "en" else "phrases_zh.yaml"
    text = resources.files("memory_pipelines.sample").joinpath(name).read_text(encoding="utf-8")
    raw: dict[str, Any] = yaml.safe_load(text)
    table: dict[int, str] = {}
    if language == "zh-Hant":
        table = {ord(a): b for a, b in zip(raw["traditional"]["from"], raw["traditional"]["to"], strict=True)}

    def lines(section: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        return {key: tuple(item.translate(table) for item in items) for key, items in section.items()}

    return Phrases(
        language=language,
        pools=lines(raw["pools"]),
        service=lines(raw["service"]),
        noise=lines(raw["noise"]),
        assistant=lines(raw["assistant"]),
        facts={key: Fact(**lines(section)) for key, section in raw["facts"].items()},
    )
