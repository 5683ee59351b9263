"""Step 4: entities of each exchange with canonical ids, by dictionary, rules and date arithmetic.

Belongs here: the dictionary, warehouses built on it, settling overlaps. Does not belong here: rules
for names outside of the dictionary (``entity_rules``), nor what an entity is worth.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import pyarrow as pa

from memory_pipelines import tables
from memory_pipelines.slices.dates import find_dates
from memory_pipelines.slices.entity_rules import (
    COMPANY,
    DATE,
    DICTIONARY,
    WAREHOUSE,
    Finding,
    find_by_rules,
    normal_form,
    split_bars,
)
from memory_pipelines.slices.labels import label_table, own_texts
from memory_pipelines.slices.language import MAX_CHARS, detect, fold, normalise
from memory_pipelines.slices.matching import Gazetteer
from memory_pipelines.slices.resources import label_files, read_yaml

_MODEL = r"(?:\s?(?:\d{1,3}[a-z]{0,2}|pro|max|plus|ultra|air|mini|se|fold|flip))*(?![a-z0-9])"


_NEAR = 12  # characters around an ambiguous name that decide whether it is meant


@dataclass(frozen=True, slots=True)
class Entity:
    """``surface`` as written; ``canonical`` is a dictionary id or ``<kind>/<normal form>``."""

    surface: str
    canonical: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    canonical: str
    cased: bool = False
    not_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Dictionary:
    """``names`` by folded name; a kind of ``""`` blocks its span, ``region`` only names warehouses."""

    names: Gazetteer[_Entry]
    models: re.Pattern[str]
    model_ids: dict[str, str]
    generic: frozenset[str]
    after_place: re.Pattern[str]
    before_place: re.Pattern[str]
    warehouses: dict[str, str]


@cache
def _dictionary(model_set: str) -> _Dictionary:
    files = label_files(model_set, "entities")
    cues = read_yaml(files["cues"])
    ambiguous: dict[str, str] = cues["ambiguous"]
    entries: dict[str, _Entry] = {}

    def add(kind: str, items: dict[str, Any]) -> None:
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
    for name in (*split_bars(cues["blocked"]), *split_bars(cues["generic"])):
        entries[fold(name)] = _Entry("", "")
    model_ids = {fold(name): key for key, block in products["models"].items() for name in split_bars(block)}
    longest = sorted((name.removeprefix("=") for name in model_ids), key=lambda name: (-len(name), name))
    warehouses = {fold(word): suffix for suffix, block in cues["warehouses"].items() for word in split_bars(block)}
    words = "|".join(re.escape(word) for word in sorted(warehouses, key=lambda word: (-len(word), word)))
    return _Dictionary(
        names=Gazetteer(entries),
        models=re.compile(rf"(?<![a-z0-9])({'|'.join(map(re.escape, longest))}){_MODEL}"),
        model_ids={name.removeprefix("="): key for name, key in model_ids.items()},
        generic=frozenset(fold(name) for name in split_bars(cues["generic"])),
        after_place=re.compile(rf"[市的]? ?({words})(?![a-z]|[鼠皇促])"),
        before_place=re.compile(rf"\b({words}) (?:in|at) $"),
        warehouses=warehouses,
    )


def _known(folded: str, text: str, dictionary: _Dictionary) -> Iterator[Finding]:
    for match in dictionary.models.finditer(folded):
        canonical = f"product/{dictionary.model_ids[match[1]]}"
        yield Finding(DICTIONARY, *match.span(), "product", canonical)
    for start, end, entry in dictionary.names.find(folded):
        if entry.cased and not text[start].isupper():
            continue
        near = folded[max(0, start - _NEAR) : end + _NEAR]
        if any(word in near for word in entry.not_with):
            continue
        if entry.kind in ("place", "region"):
            yield from _warehouse(folded, start, end, entry, dictionary)
        if entry.kind != "region":
            yield Finding(DICTIONARY, start, end, entry.kind, entry.canonical)


def _warehouse(folded: str, start: int, end: int, place: _Entry, dictionary: _Dictionary) -> Iterator[Finding]:
    name = place.canonical.partition("/")[2]
    after = dictionary.after_place.match(folded, end)
    if after:
        canonical = f"warehouse/{name}{dictionary.warehouses[after[1]]}"
        yield Finding(WAREHOUSE, start, after.end(), "warehouse", canonical)
        return
    before = dictionary.before_place.search(folded[max(0, start - 32) : start])
    if before:
        canonical = f"warehouse/{name}{dictionary.warehouses[before[1]]}"
        yield Finding(WAREHOUSE, start - len(before[0]), end, "warehouse", canonical)


def extract(text: str, at: datetime, model_set: str = "base-1") -> tuple[Entity, ...]:
    """Entities of a text said at ``at`` (aware), in text order, each canonical id once.

    Relative dates become ISO ones (canonical ``date/2024-05-17``, ``date/2024-W20``, ``date/2024-05``)."""
    simple = normalise(text)
    folded = simple.lower()
    if len(folded) != len(simple):
        folded = fold(text)
    dictionary = _dictionary(model_set)
    findings = [Finding(DATE, d.start, d.end, "date", f"date/{d.iso}") for d in find_dates(folded, at)]
    known = list(_known(folded, simple, dictionary))
    for finding in find_by_rules(simple, model_set):
        if normal_form(simple[finding.start : finding.end]) in dictionary.generic:
            continue
        findings.append(_joined(finding, known) if finding.rank == COMPANY else finding)
    findings += known
    surfaces = text[:MAX_CHARS]
    if len(surfaces) != len(simple):
        surfaces = simple
    found: dict[str, Entity] = {}
    for finding in _settled(findings, len(simple)):
        surface = surfaces[finding.start : finding.end].strip()
        found.setdefault(finding.canonical, Entity(surface, finding.canonical, finding.kind))
    return tuple(found.values())


def _joined(company: Finding, known: list[Finding]) -> Finding:
    """A company's full name takes the id of the dictionary's company or brand inside of it."""
    for finding in known:
        inside = company.start <= finding.start and finding.end <= company.end
        if inside and finding.kind in ("company", "brand", "carrier"):
            return company._replace(kind=finding.kind, canonical=finding.canonical)
    return company


def _settled(findings: list[Finding], size: int) -> list[Finding]:
    """Findings without overlaps: lower rank first, then the longer, then the earlier; in text order."""
    taken = bytearray(size)
    kept = []
    for finding in sorted(findings, key=lambda f: (f.rank, f.start - f.end, f.start, f.canonical)):
        if not any(taken[finding.start : finding.end]):
            taken[finding.start : finding.end] = b"\1" * (finding.end - finding.start)
            if finding.kind:
                kept.append(finding)
    return sorted(kept, key=lambda f: f.start)


def label_entities(exchanges: pa.Table, model_set: str) -> pa.Table:
    """EXCHANGES -> ENTITIES, one row per exchange in the same order; dates resolve against ``started_at``."""
    texts = own_texts(exchanges)
    times = exchanges.column("started_at").to_pylist()
    rows = [extract(text, at, model_set) for text, at in zip(texts, times, strict=True)]
    entities = [[{"surface": e.surface, "canonical": e.canonical, "kind": e.kind} for e in row] for row in rows]
    columns = {"language": [detect(text) for text in texts], "entities": entities}
    return label_table(exchanges, tables.ENTITIES, model_set, columns)
