"""Step 4: entities of each exchange with canonical ids, by dictionary, rules, models and date arithmetic.

Belongs here: putting findings together and settling overlaps. Does not belong here: finding something
(``dictionary``, ``rules``, ``names``, ``dates``), nor what an entity is worth.
"""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from memory_pipelines import tables
from memory_pipelines.slices.entities.dates import find_dates
from memory_pipelines.slices.entities.dictionary import find_known, load_dictionary
from memory_pipelines.slices.entities.names import find_names
from memory_pipelines.slices.entities.rules import COMPANY, DATE, Finding, find_by_rules, normal_form
from memory_pipelines.slices.entities.said_dates import find_said_dates
from memory_pipelines.slices.entities.tagger import Tagger
from memory_pipelines.slices.entities.vetoes import is_mistaken
from memory_pipelines.slices.labels import label_table, own_texts
from memory_pipelines.slices.language import MAX_CHARS, detect, fold, normalise
from memory_pipelines.slices.resources import Named, label_files
from memory_pipelines.stores.vault import TOKEN


@dataclass(frozen=True, slots=True)
class Entity:
    """``surface`` as written; ``canonical`` is a dictionary id or ``<kind>/<normal form>``."""

    surface: str
    canonical: str
    kind: str


def extract(text: str, at: datetime, model_set: Named = "base-1", tagger: Tagger | None = None) -> tuple[Entity, ...]:
    """Entities of a text said at ``at`` (aware), in text order, each canonical id once.

    Relative dates become ISO ones (canonical ``date/2024-05-17``, ``date/2024-W20``, ``date/2024-05``)."""
    found: dict[str, Entity] = {}
    for _, entity in mentions(text, at, model_set, tagger):
        found.setdefault(entity.canonical, entity)
    return tuple(found.values())


def mentions(
    text: str, at: datetime, model_set: Named = "base-1", tagger: Tagger | None = None
) -> list[tuple[int, Entity]]:
    """``(start, entity)`` of every mention in a text said at ``at``, in text order, without overlaps.

    ``tagger``: a user's, in place of the model set's; the first revision of the rules knows none."""
    files = label_files(model_set, "entities")
    bare = _without_tokens(text[:MAX_CHARS]) if "names" in files else text
    simple = normalise(bare)
    folded = simple.lower()
    if len(folded) != len(simple):
        folded = fold(bare)
    dictionary = load_dictionary(model_set)
    dates = find_said_dates(folded, at, files["holidays"]) if "holidays" in files else find_dates(folded, at)
    findings = [Finding(DATE, d.start, d.end, "date", f"date/{d.iso}") for d in dates]
    known = list(find_known(folded, simple, dictionary))
    ruled = [*find_by_rules(simple, model_set)]
    if "names" in files:
        ruled += find_names(simple, folded, model_set, known, tagger)
    for finding in ruled:
        if normal_form(simple[finding.start : finding.end]) in dictionary.generic:
            continue
        findings.append(_joined(finding, known) if finding.rank == COMPANY else finding)
    findings += known
    if "names" in files:
        findings = [finding for finding in findings if not is_mistaken(finding, simple, folded, model_set)]
    surfaces = text[:MAX_CHARS]
    if len(surfaces) != len(simple):
        surfaces = simple
    return [
        (f.start, Entity(surfaces[f.start : f.end].strip(), f.canonical, f.kind))
        for f in _settled(findings, len(simple))
    ]


def _without_tokens(text: str) -> str:
    """The text with blanks for what stands for sensitive values: nothing is read out of a token."""
    return TOKEN.sub(lambda match: " " * len(match[0]), text) if "[" in text else text


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


def label_entities(exchanges: pa.Table, model_set: Named, tagger: Tagger | None = None) -> pa.Table:
    """EXCHANGES -> ENTITIES, one row per exchange in the same order; dates resolve against ``started_at``.

    ``tagger``: a user's, in place of the model set's."""
    texts = own_texts(exchanges)
    times = exchanges.column("started_at").to_pylist()
    rows = [extract(text, at, model_set, tagger) for text, at in zip(texts, times, strict=True)]
    entities = [[{"surface": e.surface, "canonical": e.canonical, "kind": e.kind} for e in row] for row in rows]
    columns = {"language": [detect(text) for text in texts], "entities": entities}
    return label_table(exchanges, tables.ENTITIES, model_set, columns)
