"""The rules of cause and effect with their measured weights: package data in typed form.

Belongs here: reading ``data/causes.yaml``. Does not belong here: where the figures come
from (``benchmarks/graph``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from memory_pipelines.slices.resources import read_yaml


@dataclass(frozen=True, slots=True)
class Strength:
    """How long after its cause an effect follows, at least and at most, and the weight in (0, 1] of the edge."""

    after: timedelta
    within: timedelta
    weight: float


@dataclass(frozen=True, slots=True)
class Rule:
    """Any of ``causes`` may lead to any of ``effects``: classes of intents or kinds of behaviour events."""

    causes: tuple[str, ...]
    effects: tuple[str, ...]
    ties: Mapping[str, Strength]


@dataclass(frozen=True)
class CauseRules:
    """``by_effect``: the rules of each effect; ``causes``: all causes; ``kinds``: all kinds of events that count."""

    by_effect: Mapping[str, tuple[Rule, ...]]
    causes: frozenset[str]
    kinds: frozenset[str]


@cache
def cause_rules() -> CauseRules:
    data = read_yaml("causes.yaml")
    rules = [
        Rule(
            tuple(rule["causes"]),
            tuple(rule["effects"]),
            {how: _strength(of) for how, of in rule["ties"].items()},
        )
        for rule in data["rules"]
    ]
    names = {name for rule in rules for name in (*rule.causes, *rule.effects)}
    return CauseRules(
        {name: tuple(rule for rule in rules if name in rule.effects) for name in names},
        frozenset(name for rule in rules for name in rule.causes),
        frozenset(names - set(data["classes"])),
    )


def _strength(of: Mapping[str, Any]) -> Strength:
    first, last = of["days"] if isinstance(of["days"], list) else (0, of["days"])
    return Strength(timedelta(days=first), timedelta(days=last), of["weight"])


@cache
def _classes() -> Mapping[str, str]:
    return {intent: name for name, intents in read_yaml("causes.yaml")["classes"].items() for intent in intents}


def class_of(intent: str) -> str | None:
    """The class of intents that causes and effects are stated in; None for talk that is neither."""
    return _classes().get(intent)
