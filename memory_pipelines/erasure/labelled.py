"""Labelled rows that models learn from: they name nobody, but a text among them may be a person's own words.

Belongs here: finding such rows by what the person's landed turns say, and by ids. Does not belong here: masking
(``slices.labelled``), models that learned from a row: those keep weights, no text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipelines.erasure.naming import keys_named, line_keys
from memory_pipelines.erasure.places import Stores, Target, row_key
from memory_pipelines.stores.base import Lake, Replace
from memory_pipelines.tables import LABELLED, TURNS


@dataclass(frozen=True)
class LabelledTexts:
    """The table ``labelled``. A line that somebody else's landed turn says as well is nobody's own."""

    name: str = "lake.labelled"
    found_by: str = "hashes of the lines of the person's landed turns, and words that are the person's id"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        texts = stores.lake.read(LABELLED, columns=["text"])["text"].to_pylist()
        found = {target.key: len(_own(stores.lake, texts, target)) for target in targets if target.counts(None)}
        return {key: number for key, number in found.items() if number}

    def delete(self, stores: Stores, target: Target) -> None:
        texts = stores.lake.read(LABELLED, columns=["text"])["text"].to_pylist()
        gone = tuple(sorted(set(_own(stores.lake, texts, target))))
        if gone:
            stores.lake.write(LABELLED, LABELLED.schema.empty_table(), [Replace("text", gone)])


def _own(lake: Lake, texts: Sequence[str], target: Target) -> list[str]:
    """The texts that bear the person's id, or one of their lines."""
    said = {text: line_keys(text) & target.trace.lines for text in set(texts)}
    lines = {line for keys in said.values() for line in keys}
    if lines:
        lines -= _said_by_others(lake, target)
    own = {text for text, keys in said.items() if keys & lines}
    own |= {text for text in said if target.key in keys_named(text, target.owner.tenant)}
    return [text for text in texts if text in own]


def _said_by_others(lake: Lake, target: Target) -> set[str]:
    columns = ["tenant", "subject", "turn_id", "content_hash", "text"]
    keys: set[str] = set()
    for row in lake.read(TURNS, columns=columns).to_pylist():
        named = (row["tenant"], row["subject"]) == (target.owner.tenant, target.owner.subject)
        if not named and row_key(row["tenant"], row["turn_id"], row["content_hash"]) not in target.trace.rows:
            keys |= line_keys(row["text"])
    return keys
