"""Trains a tagger from labelled rows: ``python -m memory_pipelines.slices.entities.tagger_training ROWS.jsonl``.

Belongs here: reading rows, fitting, and the measure. Does not belong here: tagging (``tagger``), features
(``tagger_features``). Deterministic: the same rows give the same bytes. A row is one line of JSON::

    {"text": "顺丰把小米手环送丢了", "spans": [{"start": 0, "end": 2, "kind": "carrier"}, ...]}

``text[start:end]`` is the entity; kinds are the user's own words.
"""

import argparse
import json
import re
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from memory_pipelines.errors import InputError, SettingError
from memory_pipelines.slices.entities.tagger import Part, Span, Tagger, labels, pack
from memory_pipelines.slices.entities.tagger_features import Names, features, has_han, units
from memory_pipelines.slices.language import MAX_CHARS, normalise

ITERATIONS = 100
L1, L2 = 0.1, 0.01
"""Weights of the two penalties of L-BFGS; the first makes most of a model's weights nought."""
HOLD_OUT = 10
"""One text in so many, by its hash, is held out: equal texts are never on both sides."""
LONGEST_NAME = 30

_KIND = re.compile(r"[A-Za-z][\w.-]{0,39}")


class Row(NamedTuple):
    """A text and the entities in it."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of entities; one is right if its start, end and kind are."""

    gold: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, over all entities of all texts (micro)."""
        both = self.gold + self.found
        return 2 * self.right / both if both else 0.0


def score(gold: Iterable[Iterable[Span]], found: Iterable[Iterable[Span]], kind: str | None = None) -> Score:
    """Exact matches of entities over texts in the same order; of one ``kind``, or of all. A span counts once."""
    counts = [0, 0, 0]
    for one, other in zip(gold, found, strict=True):
        true, said = ({span for span in spans if kind in (None, span.kind)} for spans in (one, other))
        counts[0] += len(true)
        counts[1] += len(said)
        counts[2] += len(true & said)
    return Score(*counts)


def train(rows: Sequence[Row], accurate: bool = False) -> bytes:
    """A tagger of the rows' kinds, for the scripts they are written in (see ``tagger.Tagger``).

    About 2 minutes of one core for 6,000 rows of 30 Chinese characters; ``accurate`` ones have a network for Chinese
    (``tagger_fit``), which takes three times as long. Raises InputError if no row names an entity, SettingError where
    a network's wheels are not installed."""
    chosen = [Row(normalise(row.text), row.spans) for row in rows]
    if not any(row.spans for row in chosen):
        raise InputError("no labelled row names an entity")
    parts = {}
    for script in ("han", "other"):
        own = [row for row in chosen if has_han(row.text) == (script == "han") and units(row.text)]
        if any(row.spans for row in own):
            parts[script] = _fit(own)
            if accurate and script == "han":
                parts[script] = replace(parts[script], network=_network(own))
    kinds = Counter(span.kind for row in chosen for span in row.spans)
    return pack(parts, {"rows": len(chosen), "kinds": dict(sorted(kinds.items()))})


def _fit(rows: Sequence[Row]) -> Part:
    import pycrfsuite

    own = [{(row.text[s.start : s.end].lower(), s.kind) for s in row.spans} for row in rows]
    counts = Counter(named for row in own for named in row)
    kinds: dict[str, list[str]] = defaultdict(list)
    for name, kind in sorted(counts):
        if 1 < len(name) <= LONGEST_NAME:
            kinds[kind].append(name)
    names = Names(kinds, counts)
    trainer = pycrfsuite.Trainer(verbose=False)
    for row, mine in zip(rows, own, strict=True):
        found = units(row.text)
        trainer.append(features(row.text, found, names, mine), labels(found, row.spans))
    trainer.set_params({"c1": L1, "c2": L2, "max_iterations": ITERATIONS, "feature.possible_transitions": True})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        trainer.train(str(file))
        return Part(file.read_bytes(), kinds)


def _network(rows: Sequence[Row]) -> bytes:
    from memory_pipelines.slices.entities.tagger_fit import fit

    texts = [row.text for row in rows]
    found = [units(text) for text in texts]
    return fit(texts, found, [labels(cut, row.spans) for cut, row in zip(found, rows, strict=True)]).bytes()


def read_rows(file: Path) -> list[Row]:
    """Labelled rows of a JSONL file. Raises InputError that names the line of the first row that is none."""
    rows = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    rows.append(_row(json.loads(line)))
                except (ValueError, TypeError, KeyError):
                    raise InputError(f"{file.name}, line {number}: no row of text and spans") from None
    return rows


def _row(source: Any) -> Row:
    text = source["text"]
    spans = tuple(Span(span["start"], span["end"], span["kind"]) for span in source["spans"])
    for start, end, kind in spans:
        if not (type(start) is type(end) is int and 0 <= start < end <= len(text) and _KIND.fullmatch(kind)):
            raise ValueError("span")
    return Row(text, tuple(span for span in spans if span.end <= MAX_CHARS))


def held_out(row: Row) -> bool:
    """Whether a row is held out, by its text alone."""
    return zlib.crc32(row.text.encode("utf-8", "replace")) % HOLD_OUT == 0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train a tagger of entities from labelled rows.")
    parser.add_argument("rows", type=Path, help="JSONL: text and spans")
    parser.add_argument("--test", type=Path, help="rows to measure on; default: one in ten of the rows, by hash")
    parser.add_argument("--output", type=Path, default=Path("entities.tagger"), help="file of the trained tagger")
    parser.add_argument("--accurate", action="store_true", help="with a network for Chinese (extra [models])")
    chosen = parser.parse_args(arguments)
    try:
        rows = read_rows(chosen.rows)
        test = read_rows(chosen.test) if chosen.test else [row for row in rows if held_out(row)]
        model = train(rows if chosen.test else [row for row in rows if not held_out(row)], chosen.accurate)
    except (InputError, SettingError, OSError) as error:
        sys.exit(str(error))
    chosen.output.write_bytes(model)
    tagger = Tagger(model)
    found = [tagger.tag(row.text) for row in test]
    gold = [row.spans for row in test]
    print(f"{chosen.output}: {len(model):,} bytes, {len(test):,} rows held out")
    for kind in (None, *sorted({span.kind for spans in gold for span in spans})):
        one = score(gold, found, kind)
        print(f"{kind or 'all':20} n {one.gold:5}  P {one.precision:.3f}  R {one.recall:.3f}  F1 {one.f1:.3f}")


if __name__ == "__main__":
    main()
