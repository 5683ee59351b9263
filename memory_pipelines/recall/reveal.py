"""Tokens of sensitive fields in an answer become their values again, each by the vault of its memory's own subject.

Belongs here: the very last step before an answer is given. Does not belong here: any cache: what is revealed is
never kept.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.recall.answer import Item
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.vault import Vault, revealed, tokens


def revealed_items(items: Sequence[Item], vault: Vault | None, missing: set[str]) -> tuple[Item, ...]:
    """The items with the values of their tokens; the vault is asked once, and only if there is a token.

    A token that another subject's text brought along stays one, and all do where the vault does not answer."""
    if vault is None:
        return tuple(items)
    wanted: dict[Owner, set[str]] = {}
    for item in items:
        found = set().union(*(tokens(text) for text in _texts(item.memory)))
        if found:
            wanted.setdefault(item.memory.owner, set()).update(found)
    if not wanted:
        return tuple(items)
    try:
        values = vault.reveal(wanted)
    except StoreUnavailableError:
        missing.add("relational")
        return tuple(items)
    return tuple(replace(item, memory=_revealed(item.memory, values.get(item.memory.owner, {}))) for item in items)


def _texts(memory: StoredMemory) -> tuple[str, ...]:
    return (memory.summary, memory.text, memory.value, memory.structured)


def _revealed(memory: StoredMemory, values: Mapping[str, str]) -> StoredMemory:
    if not values:
        return memory
    in_json = {token: json.dumps(value, ensure_ascii=False)[1:-1] for token, value in values.items()}
    return replace(
        memory,
        summary=revealed(memory.summary, values),
        text=revealed(memory.text, values),
        value=revealed(memory.value, values),
        structured=revealed(memory.structured, in_json),
    )
