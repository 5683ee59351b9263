"""Labelled rows that users bring: from a CSV file to the table LABELLED and to rows that train.

Belongs here: what a row must hold. Does not belong here: training (``fit``) or the lake.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from memory_pipelines.errors import InputError
from memory_pipelines.model import stable_hash
from memory_pipelines.slices.intent.fit import Row
from memory_pipelines.slices.language import MAX_CHARS, detect, fold
from memory_pipelines.slices.resources import read_yaml
from memory_pipelines.slices.sensitive import find_sensitive, replaced
from memory_pipelines.stores.vault import bare, untagged
from memory_pipelines.tables import LABELLED

COLUMNS = ("text", "lang", "intent", "action")
LANGUAGES = ("zh", "en", "mixed")
LONGEST_LABEL = 100
HOLD_OUT = 5
"""A fifth of the texts, by their hash, judges models and trains none, ever."""


@dataclass(frozen=True)
class Labelled:
    """``rows``: LABELLED; ``faults``: (row number, what is wrong), the first row after the header being 1."""

    rows: pa.Table
    faults: list[tuple[int, str]]


def read_labels(file: Path) -> Labelled:
    """The rows of a CSV file in UTF-8 with the columns text, lang, intent, action and, if wanted, category.

    Faulty rows are told, the others are kept. Raises InputError if the file cannot be read as that."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{file.name}: columns are missing: {', '.join(missing)}")
            raw = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file.name} cannot be read as CSV in UTF-8 ({type(error).__name__})") from None
    rows, faults = [], []
    seen: dict[str, tuple[str, int]] = {}
    for number, cells in enumerate(raw, 1):
        values = {name: (cells.get(name) or "").strip() for name in (*COLUMNS, "category")}
        fault = "more cells than columns" if None in cells else _fault(values)
        earlier = seen.setdefault(fold(values["text"]), (values["intent"], number)) if not fault else None
        if earlier and earlier[0] != values["intent"]:
            fault = f"row {earlier[1]} gives the same text another intent"
        if fault:
            faults.append((number, fault))
            continue
        text = _masked(values["text"])
        lang = values["lang"] or detect(text)
        action, category = values["action"] or None, values["category"] or _category(values["intent"])
        rows.append(
            {
                "text": text, "lang": lang, "intent": values["intent"], "action": action, "category": category,
                "source": file.name,
            }
        )  # fmt: skip
    return Labelled(pa.Table.from_pylist(rows, schema=LABELLED.schema), faults)


def training_rows(table: pa.Table) -> tuple[list[Row], list[Row]]:
    """The rows of LABELLED that train, and those that are held out; texts that differ in form only stay together."""
    train: list[Row] = []
    held: list[Row] = []
    for row in sorted(table.to_pylist(), key=lambda row: (row["source"], row["text"], row["intent"])):
        group = fold(row["text"])
        part = held if int(stable_hash("held out", group)[:8], 16) % HOLD_OUT == 0 else train
        part.append(Row(row["text"], (row["intent"], row["action"], row["category"]), group))
    return train, held


def all_labels(shipped: dict[str, tuple[str, ...]], rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """The shipped labels by head, then those that only ``rows`` have, sorted."""
    found = {}
    for h, (head, names) in enumerate(shipped.items()):
        found[head] = (*names, *sorted({name for row in rows if (name := row.labels[h])} - set(names)))
    return found


def _fault(values: dict[str, str]) -> str:
    categories = read_yaml("ontology.yaml")["categories"]
    if not values["text"]:
        return "no text"
    if len(values["text"]) > MAX_CHARS:
        return f"a text of more than {MAX_CHARS} characters"
    if not values["intent"]:
        return "no intent"
    if values["lang"] and values["lang"] not in LANGUAGES:
        return f"lang must be one of {', '.join(LANGUAGES)}, or empty"
    if values["category"] and values["category"] not in categories:
        return f"category must be one of {', '.join(categories)}, or empty"
    if any(len(values[name]) > LONGEST_LABEL or "\n" in values[name] for name in ("intent", "action")):
        return f"a label must be one line of at most {LONGEST_LABEL} characters"
    return ""


def _category(intent: str) -> str | None:
    known = read_yaml("ontology.yaml")["intents"].get(intent)
    return known["category"] if known else None


def _masked(text: str) -> str:
    """Bare tokens in place of sensitive values, as in the texts that will be labelled."""
    fields = find_sensitive(text)
    return untagged(replaced(text, fields, [bare(field.kind) for field in fields]))
