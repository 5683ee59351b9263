"""The labelled rows that ship: slots filled, framed as people write.

Belongs here: from the package's YAML files to rows. Does not belong here: training, or users' own rows.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memory_pipelines.slices.intent.fit import Row
from memory_pipelines.slices.language import fold
from memory_pipelines.slices.resources import data_folder, read_yaml

ONTOLOGY = "ontology.yaml"
EXAMPLES = ("intent_examples.yaml", "intent_examples_2.yaml", "intent_examples_3.yaml", "intent_examples_4.yaml")
HOLD_OUT = 5
"""Every fifth template of an intent and language is held out to evaluate."""

CUES = "cues"

_SMALL_TALK = {"greeting", "farewell", "thanks", "acknowledgement", "chit_chat"}
_ENDINGS = {"ask": ("？", "?"), "express_frustration": ("！", "!"), "complain_again": ("！", "!")}
_FRAMES = {"zh": (("你好，", ""), ("", "，谢谢")), "en": (("hi, ", ""), ("", ", thanks"))}
_OF_ORDERS = {
    "logistics_complaint", "product_complaint", "service_complaint", "payment_issue", "refund_request",
    "return_exchange", "cancel_order", "address_change", "invoice_request", "praise", "order_status",
}  # fmt: skip
"""Intents whose turns name an order as often as not: a number must not tell one from the other."""
_ORDERS = {
    "zh": (("", "，订单号{order}"), ("订单{order}，", ""), ("", "，单号{order}")),
    "en": (("", ", order {order}"), ("order {order}: ", ""), ("", ". Order {order}.")),
}


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled row; a bare cue has no action. ``row.group`` is its template: all of it is held out, or nothing."""

    row: Row
    held_out: bool


def load_examples() -> list[Example]:
    """All labelled rows of the package data."""
    sources, ontology = [read_yaml(name) for name in EXAMPLES], read_yaml(ONTOLOGY)
    slots = sources[0]["slots"]
    lines = [line for source in sources for line in _lines(source["intents"])]
    templates = {fold(line) for _, _, group, line in lines if group != CUES}
    numbers: Counter[tuple[str, str]] = Counter()
    examples = []
    for intent, language, group, line in lines:
        action, _, category = group.partition("+")
        category = category or ontology["intents"][intent]["category"]
        if group == CUES:
            if fold(line) not in templates:  # else it would tell what is held out
                examples.append(Example(Row(line, (intent, None, category), line, typical=False), held_out=False))
            continue
        numbers[intent, language] += 1
        number = numbers[intent, language]
        examples += [
            Example(Row(text, (intent, action, category), line), number % HOLD_OUT == 0)
            for text in _variants(line, intent, action, language, slots[language], number)
        ]
    return examples


def examples_hash() -> str:
    """SHA-256 of the files: what the shipped weights were made from."""
    digest = hashlib.sha256()
    for name in (ONTOLOGY, *EXAMPLES):
        digest.update(data_folder().joinpath(name).read_bytes())
    return digest.hexdigest()


def _lines(intents: dict[str, dict[str, dict[str, str]]]) -> Iterator[tuple[str, str, str, str]]:
    """``(intent, language, group, utterance)`` of every line, in file order."""
    for intent, languages in intents.items():
        for language, groups in languages.items():
            for group, block in groups.items():
                yield from ((intent, language, group, line) for line in block.split("\n") if line)


def _variants(
    template: str, intent: str, action: str, language: str, slots: dict[str, list[str]], number: int
) -> list[str]:
    if template[-1:] in "？?！!。.":
        return [_fill(template, slots, number)]
    ending = _ENDINGS.get(action, ("。", "."))[language == "en"]
    shapes = [("", ""), ("", ending)]
    if intent not in _SMALL_TALK:
        shapes.append(_FRAMES[language][number % 2])
    if intent in _OF_ORDERS and "{order}" not in template:
        shapes.append(_ORDERS[language][number % 3])
    return [_fill(before + template + after, slots, number + 5 * turn) for turn, (before, after) in enumerate(shapes)]


def _fill(template: str, slots: dict[str, Any], seed: int) -> str:
    for i, name in enumerate(slots):
        mark = "{" + name + "}"
        while mark in template:
            template = template.replace(mark, slots[name][seed % len(slots[name])], 1)
            seed += i + 1
    return template
