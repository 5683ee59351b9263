"""Names with canonical ids: the dictionary of a model set, a user's own names, and where they stand in a text.

Belongs here: dictionary matches, warehouses built on them, abbreviations that the words around decide. Does not
belong here: names that no dictionary lists (``rules``, ``english_names``, ``chinese_names``), nor how
overlaps are settled (``find``).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from memory_pipelines.errors import SettingError
from memory_pipelines.slices.entities.rules import DICTIONARY, WAREHOUSE, Finding, split_bars
from memory_pipelines.slices.language import fold
from memory_pipelines.slices.matching import Gazetteer
from memory_pipelines.slices.resources import Named, label_files, read_yaml

KINDS = ("person", "company", "carrier", "warehouse", "place", "product", "brand")
"""Kinds that a dictionary may list."""

_MODEL = r"(?:\s?(?:\d{1,3}[a-z]{0,2}|pro|max|plus|ultra|air|mini|se|fold|flip))*(?![a-z0-9])"
_NEAR = 12  # characters around an ambiguous name that decide whether it is meant
_SAID = 120  # characters around an abbreviation that are searched for what it is about
_USER_ID = re.compile(r"[^\s/]{1,80}")


@dataclass(frozen=True, slots=True)
class _Reading:
    """One meaning of an abbreviation: taken if ``fits`` finds something, in the text or right before the name."""

    kind: str
    canonical: str
    fits: re.Pattern[str]
    before: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    canonical: str
    cased: bool = False
    not_with: tuple[str, ...] = ()
    readings: tuple[_Reading, ...] = ()


@dataclass(frozen=True)
class Dictionary:
    """``names`` by folded name; a kind of ``""`` blocks its span, ``region`` only names warehouses."""

    names: Gazetteer[_Entry]
    models: re.Pattern[str]
    model_ids: dict[str, str]
    generic: frozenset[str]
    after_place: re.Pattern[str]
    before_place: re.Pattern[str]
    warehouses: dict[str, str]


@cache
def load_dictionary(model_set: Named) -> Dictionary:
    """The dictionary of a model set. Raises SettingError if its user's part is not of the documented form."""
    files = label_files(model_set, "entities")
    cues = read_yaml(files["cues"])
    more = read_yaml(files["names"]) if "names" in files else {}
    own = _checked(read_yaml(files["dictionary"])) if "dictionary" in files else {}
    ambiguous: dict[str, str] = cues["ambiguous"]
    entries: dict[str, _Entry] = {}

    def add(kind: str, items: Mapping[str, Any]) -> None:
        for key, block in items.items():
            for name in split_bars(block):
                plain = name.removeprefix("=")
                unless = tuple(ambiguous.get(plain, "").split())
                entries[fold(plain)] = _Entry(kind, f"{kind}/{key}", name != plain, unless)

    for kind, items in read_yaml(files["organisations"]).items():
        add(kind, items)
    products = read_yaml(files["products"])
    add("product", products["kinds"])
    places = read_yaml(files["places"])
    add("place", places["place"])
    add("region", places["regions"])
    for kind in KINDS:
        add(kind, more.get(kind, {}))
    generic = (*split_bars(cues["generic"]), *split_bars(own.get("generic", "")))
    for name in (*split_bars(cues["blocked"]), *split_bars(more.get("blocked", "")), *generic):
        entries[fold(name)] = _Entry("", "")
    for name, readings in more.get("readings", {}).items():
        plain = name.removeprefix("=")
        entries[fold(plain)] = _Entry("", "", name != plain, readings=tuple(map(_reading, readings)))
    for kind in KINDS:  # last: the user's word counts
        add(kind, own.get(kind, {}))
    model_ids = {fold(name): key for key, block in products["models"].items() for name in split_bars(block)}
    longest = sorted((name.removeprefix("=") for name in model_ids), key=lambda name: (-len(name), name))
    warehouses = {fold(word): suffix for suffix, block in cues["warehouses"].items() for word in split_bars(block)}
    words = "|".join(re.escape(word) for word in sorted(warehouses, key=lambda word: (-len(word), word)))
    return Dictionary(
        names=Gazetteer(entries),
        models=re.compile(rf"(?<![a-z0-9])({'|'.join(map(re.escape, longest))}){_MODEL}"),
        model_ids={name.removeprefix("="): key for name, key in model_ids.items()},
        generic=frozenset(fold(name) for name in generic),
        after_place=re.compile(rf"[市的]? ?({words})(?![a-z]|[鼠皇促])"),
        before_place=re.compile(rf"\b({words}) (?:in|at) $"),
        warehouses=warehouses,
    )


def _checked(own: Any) -> dict[str, Any]:
    """A user's dictionary: ``kind: {id: First name|alias|=Alias}`` and ``generic: word|word``."""
    if not isinstance(own, dict) or not set(own) <= {*KINDS, "generic"}:
        raise SettingError(f"a dictionary of names has the keys {', '.join(KINDS)} and generic, nothing else")
    for kind in set(own) - {"generic"}:
        block = own[kind]
        named = isinstance(block, dict) and all(
            isinstance(key, str) and _USER_ID.fullmatch(key) and isinstance(names, str) and split_bars(names)
            for key, names in block.items()
        )
        if not named:
            raise SettingError(f"a dictionary of names: {kind} must map ids to names that are joined by bars")
    return own


def _reading(source: Mapping[str, str]) -> _Reading:
    before = "after" in source
    words = [re.escape(fold(word)) for word in split_bars(source["after" if before else "with"])]
    pattern = "|".join(rf"\b{word}" if word.isascii() else word for word in words)
    fits = re.compile(f"(?:{pattern}) ?(?:the )?$" if before else f"(?:{pattern})")
    return _Reading(source["kind"], f"{source['kind']}/{source['id']}", fits, before)


def find_known(folded: str, text: str, dictionary: Dictionary) -> Iterator[Finding]:
    """Names of the dictionary in a text and its folded form, in no order; they may overlap."""
    for match in dictionary.models.finditer(folded):
        canonical = f"product/{dictionary.model_ids[match[1]]}"
        yield Finding(DICTIONARY, *match.span(), "product", canonical)
    for start, end, entry in dictionary.names.find(folded):
        if entry.cased and not text[start].isupper():
            continue
        near = folded[max(0, start - _NEAR) : end + _NEAR]
        if any(word in near for word in entry.not_with):
            continue
        if entry.readings:
            yield from _read(folded, text, start, end, entry)
            continue
        if entry.kind in ("place", "region"):
            yield from find_warehouse(folded, start, end, entry.canonical.partition("/")[2], dictionary)
        if entry.kind != "region":
            yield Finding(DICTIONARY, start, end, entry.kind, entry.canonical)


def _read(folded: str, text: str, start: int, end: int, entry: _Entry) -> Iterator[Finding]:
    if not text[start:end].isupper():
        return
    for reading in entry.readings:
        around = folded[max(0, start - 32) : start] if reading.before else folded[max(0, start - _SAID) : end + _SAID]
        if reading.fits.search(around):
            yield Finding(DICTIONARY, start, end, reading.kind, reading.canonical)
            return
    yield Finding(DICTIONARY, start, end, "", "")


def find_warehouse(folded: str, start: int, end: int, name: str, dictionary: Dictionary) -> Iterator[Finding]:
    """The warehouse that is named after the place ``name`` at ``folded[start:end]``, if one is."""
    after = dictionary.after_place.match(folded, end)
    if after:
        canonical = f"warehouse/{name}{dictionary.warehouses[after[1]]}"
        yield Finding(WAREHOUSE, start, after.end(), "warehouse", canonical)
        return
    before = dictionary.before_place.search(folded[max(0, start - 32) : start])
    if before:
        canonical = f"warehouse/{name}{dictionary.warehouses[before[1]]}"
        yield Finding(WAREHOUSE, start - len(before[0]), end, "warehouse", canonical)
