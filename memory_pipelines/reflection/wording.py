"""Sentences of the statistical reflection, by template, in Chinese or English.

Belongs here: the package data ``sentences.yaml`` and how names in it are shown. Does not belong here: deciding
what is worth a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

import yaml

from memory_pipelines.reflection.schema import clean

MAX_VALUE = 120


@cache
def lexicon() -> Mapping[str, Any]:
    """The parsed ``data/sentences.yaml``; callers must not change it."""
    text = resources.files("memory_pipelines.reflection").joinpath("data", "sentences.yaml").read_text("utf-8")
    loaded: Mapping[str, Any] = yaml.safe_load(text)
    return loaded


@dataclass(frozen=True)
class Wording:
    """Says things in one ``language`` (zh or en). ``names``: canonical entity id → the name to show."""

    language: str
    names: Mapping[str, str]

    def say(self, sentence: str, **values: object) -> str:
        template: str = lexicon()["sentences"][sentence][self.language]
        shown = {k: clean(v, MAX_VALUE) if isinstance(v, str) else v for k, v in values.items()}
        return template.format(**shown)

    def intent(self, intent: str) -> str:
        return self._named("intents", intent)

    def entity(self, canonical: str) -> str:
        """``carrier/sf_express`` without a name of its own: "sf express"."""
        return self.names.get(canonical) or canonical.partition("/")[2].replace("_", " ") or canonical

    def predicate(self, name: str) -> str:
        """The name of a predicate; ``family.<relation>.<base>`` with whose it is."""
        parts = name.split(".")
        base = self._named("predicates", parts[-1])
        if len(parts) < 3:
            return base
        if self.language == "zh":
            return f"{lexicon()['relations'].get(parts[1], parts[1])}的{base}"
        return f"{parts[1]}'s {base}"

    def what(self, intent: str) -> str:
        """What somebody does at a time: raise one intent, or anything (``""``)."""
        template: str = lexicon()["what"]["intent" if intent else "all"][self.language]
        return template.format(intent=self.intent(intent))

    def trend(self, name: str) -> str:
        shown: str = lexicon()["trends"][name][self.language]
        return shown

    def weekday(self, number: int) -> str:
        shown: str = lexicon()["weekdays"][self.language][number]
        return shown

    def day(self, day: date) -> str:
        if self.language == "zh":
            return day.isoformat()
        return f"{day.day} {lexicon()['months'][day.month - 1]} {day.year}"

    def _named(self, kind: str, name: str) -> str:
        entry = lexicon()[kind].get(name)
        shown: str = entry[self.language] if entry else name.replace("_", " ")
        return shown
