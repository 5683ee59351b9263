"""Labelled rows that users bring: from a file to the table LABELLED, and which of them are held out.

Belongs here: what a row of each kind must hold, and masking. Does not belong here: training (``intent.fit``,
``emotion.training``, ``entities.tagger_training``) or the lake. The kind of a file follows from its form::

    text,lang,intent,action[,category]     CSV: intents
    text,score[,emotion][,lang]            CSV: emotions, scores from -1 to 1
    {"text": ..., "spans": [{"start": 0, "end": 2, "kind": "carrier"}]}     JSON lines: entities
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.errors import InputError
from memory_pipelines.model import stable_hash
from memory_pipelines.slices.emotion.score import NEUTRAL
from memory_pipelines.slices.emotion.training import LEXICON
from memory_pipelines.slices.emotion.words import load_lexicon
from memory_pipelines.slices.language import MAX_CHARS, detect, fold
from memory_pipelines.slices.resources import read_yaml
from memory_pipelines.slices.sensitive import Sensitive, find_sensitive, replaced
from memory_pipelines.stores.vault import TOKEN, bare
from memory_pipelines.tables import LABELLED

INTENT, EMOTION, ENTITIES = "intent", "emotion", "entities"
KINDS = (INTENT, EMOTION, ENTITIES)
LANGUAGES = ("zh", "en", "mixed")
LONGEST_LABEL = 100
HOLD_OUT = 5
"""A fifth of the texts, by their hash, judges models and trains none, ever."""

_KIND_OF_ENTITY = re.compile(r"[A-Za-z][\w.-]{0,39}")

Cells = Mapping[str, Any]


class _FaultyRowError(Exception):
    """What is wrong with one row."""


@dataclass(frozen=True)
class Labelled:
    """``rows``: LABELLED of one ``kind``; ``faults``: (row number, what is wrong), the first row being 1."""

    kind: str
    rows: pa.Table
    faults: list[tuple[int, str]]


def read_labels(file: Path) -> Labelled:
    """The rows of a file in UTF-8; see the head of this module. Sensitive values become bare tokens.

    Faulty rows are told, the others are kept. Raises InputError if the file cannot be read as any of these."""
    kind, raw = _json_lines(file) if file.suffix == ".jsonl" else _csv(file)
    rows, faults = [], []
    seen: dict[str, tuple[object, int]] = {}
    for number, cells in enumerate(raw, 1):
        try:
            row = _row(kind, cells)
            said, earlier = seen.setdefault(fold(row["text"]), (_label(row), number))
            if said != _label(row):
                raise _FaultyRowError(f"row {earlier} gives the same text another label")
        except _FaultyRowError as fault:
            faults.append((number, str(fault)))
        else:
            rows.append(row | {"kind": kind, "source": file.name})
    return Labelled(kind, pa.Table.from_pylist(rows, schema=LABELLED.schema), faults)


def parts(table: pa.Table, kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of one kind that train, and those that are held out; texts that differ in form only stay together."""
    found = table.filter(pc.field("kind") == kind).to_pylist()
    train: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    for row in sorted(found, key=lambda row: (row["source"], row["text"], str(_label(row)))):
        part = held if int(stable_hash("held out", fold(row["text"]))[:8], 16) % HOLD_OUT == 0 else train
        part.append(row)
    return train, held


def _label(row: Cells) -> object:
    spans = row.get("spans")
    return row.get("intent"), row.get("score"), None if spans is None else [tuple(s.values()) for s in spans]


# ---- files


def _csv(file: Path) -> tuple[str, list[Cells]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            columns = set(reader.fieldnames or ())
            kind = EMOTION if "score" in columns else INTENT
            missing = [name for name in _NEEDED[kind] if name not in columns]
            if missing:
                raise InputError(f"{file.name}: columns are missing: {', '.join(missing)}")
            return kind, list(reader)
    except OSError as error:
        raise InputError(f"{file.name} cannot be read: {error.strerror or type(error).__name__}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{file.name} is no CSV in UTF-8") from None


_NEEDED = {INTENT: ("text", "lang", "intent", "action"), EMOTION: ("text", "score")}


def _json_lines(file: Path) -> tuple[str, list[Cells]]:
    def row(line: str) -> Cells:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {"broken": True}

    try:
        with file.open(encoding="utf-8-sig") as lines:
            return ENTITIES, [row(line) for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file.name} cannot be read as JSON lines in UTF-8 ({type(error).__name__})") from None


# ---- rows


def _row(kind: str, cells: Cells) -> dict[str, Any]:
    if None in cells:
        raise _FaultyRowError("more cells than columns")
    text = cells.get("text")
    if not isinstance(text, str) or not text.strip():
        raise _FaultyRowError("no text")
    if len(text) > MAX_CHARS:
        raise _FaultyRowError(f"a text of more than {MAX_CHARS} characters")
    language = _cell(cells, "lang")
    if language and language not in LANGUAGES:
        raise _FaultyRowError(f"lang must be one of {', '.join(LANGUAGES)}, or empty")
    masked, labels = _PARSE[kind](text if kind == ENTITIES else text.strip(), cells)
    return {"text": masked, "lang": language or detect(masked), **labels}


def _cell(cells: Cells, name: str) -> str:
    value = cells.get(name) or ""
    return value.strip() if isinstance(value, str) else str(value)


def _intent(text: str, cells: Cells) -> tuple[str, dict[str, Any]]:
    ontology = read_yaml("ontology.yaml")
    intent, action, category = (_cell(cells, name) for name in ("intent", "action", "category"))
    if not intent:
        raise _FaultyRowError("no intent")
    if category and category not in ontology["categories"]:
        raise _FaultyRowError(f"category must be one of {', '.join(ontology['categories'])}, or empty")
    if any(len(name) > LONGEST_LABEL or "\n" in name for name in (intent, action)):
        raise _FaultyRowError(f"a label must be one line of at most {LONGEST_LABEL} characters")
    known = ontology["intents"].get(intent)
    category = category or (known["category"] if known else "")
    return _masked(text), {"intent": intent, "action": action or None, "category": category or None}


def _emotion(text: str, cells: Cells) -> tuple[str, dict[str, Any]]:
    emotions = (NEUTRAL, *load_lexicon(*LEXICON).order)
    emotion = _cell(cells, "emotion")
    try:
        score = float(_cell(cells, "score"))
    except ValueError:
        raise _FaultyRowError("score is no number") from None
    if not -1 <= score <= 1:
        raise _FaultyRowError("score must be from -1 to 1")
    if emotion and emotion not in emotions:
        raise _FaultyRowError(f"emotion must be one of {', '.join(emotions)}, or empty")
    return _masked(text), {"score": score, "emotion": emotion or None}


def _entities(text: str, cells: Cells) -> tuple[str, dict[str, Any]]:
    """A span over a masked value is a fault: no kind of entity is read from a token."""
    spans = cells.get("spans")
    if not isinstance(spans, list) or not all(_is_span(span, text) for span in spans):
        raise _FaultyRowError("spans must be a list of start, end and kind, within the text")
    fields = _fields(text)
    moved = []
    for start, end, kind in sorted((span["start"], span["end"], span["kind"]) for span in spans):
        if any(field.start < end and start < field.end for field in fields):
            raise _FaultyRowError("a span lies on a phone number, an address or another sensitive value")
        shift = sum(len(bare(field.kind)) - (field.end - field.start) for field in fields if field.end <= start)
        moved.append({"start": start + shift, "end": end + shift, "kind": kind})
    return _masked(text), {"spans": moved}


def _is_span(span: Any, text: str) -> bool:
    if not isinstance(span, dict):
        return False
    start, end, kind = (span.get(name) for name in ("start", "end", "kind"))
    inside = type(start) is int and type(end) is int and 0 <= start < end <= len(text)
    return inside and isinstance(kind, str) and _KIND_OF_ENTITY.fullmatch(kind) is not None


_PARSE: dict[str, Callable[[str, Cells], tuple[str, dict[str, Any]]]] = {
    INTENT: _intent,
    EMOTION: _emotion,
    ENTITIES: _entities,
}


# ---- sensitive values


def _masked(text: str) -> str:
    """Bare tokens in place of sensitive values, as in the texts that will be labelled."""
    fields = _fields(text)
    return replaced(text, fields, [bare(field.kind) for field in fields])


def _fields(text: str) -> list[Sensitive]:
    return sorted([*find_sensitive(text), *_tokens(text)], key=lambda field: field.start)


def _tokens(text: str) -> Iterator[Sensitive]:
    for match in TOKEN.finditer(text) if "[" in text else ():
        yield Sensitive(match[1], *match.span(), match[0])
