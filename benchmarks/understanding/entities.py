"""How well entities are found: ``python -m benchmarks.understanding.entities DATA_FOLDER``.

Belongs here: protocols over public sets of this layout, and speed. Does not belong here: the sets, or a finder.
A set whose folder is missing is named and left out. Every figure comes with its n, the number of labelled entities:

* ``ecommerce``, ``youku``, ``conll2003``: ``train.txt``, and ``dev.txt``, ``test.txt`` or both, a unit and its BIO
  label a line;
* ``msra_zh``: the same, gzipped; ``cluener_zh``: a text and its entities as JSON a line.

Measured is the F1 of entities whose start, end and kind are exact, over all texts (``tagger_training.score``). Where a
folder has no held-out file, every tenth row of its training file is held out. *Trained*: the tagger, on the training
rows (``--rows`` at most); its features and parameters are the same for all sets; *accurate*: with its network, for
Chinese. *Model sets*: what ships, which has seen none of these sets, on those of a set's kinds that have a counterpart
among ours; guidelines differ.
"""

import argparse
import gzip
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine
from memory_pipelines.slices.entities.find import mentions
from memory_pipelines.slices.entities.tagger import Span, Tagger
from memory_pipelines.slices.entities.tagger_training import Row, Score, score, train
from memory_pipelines.slices.resources import read_yaml

KINDS = ("fast", "accurate")
AT = datetime(2024, 5, 17, tzinfo=UTC)
_NEWS = {"person": "PER", "company": "ORG", "brand": "ORG", "carrier": "ORG", "place": "LOC", "warehouse": "LOC"}
_GOODS = {"brand": "HPPX", "company": "HPPX", "carrier": "HPPX", "product": "HCCX"}


@dataclass(frozen=True)
class Corpus:
    """``gold``: the set's kinds that the model sets can find, and the name they are compared under; ``ours``: the
    same of our kinds."""

    folder: str
    joint: str
    gold: Mapping[str, str]
    ours: Mapping[str, str]


CORPORA = (
    Corpus("ecommerce", "", {"HPPX": "HPPX", "HCCX": "HCCX"}, _GOODS),
    Corpus(
        "cluener_zh",
        "",
        {"name": "PER", "company": "ORG", "organization": "ORG", "government": "ORG", "address": "LOC", "scene": "LOC"},
        _NEWS,
    ),
    Corpus("conll2003", " ", {"PER": "PER", "ORG": "ORG", "LOC": "LOC"}, _NEWS),
    Corpus("msra_zh", "", {"PER": "PER", "ORG": "ORG", "LOC": "LOC"}, _NEWS),
    Corpus("youku", "", {"PER": "PER"}, {"person": "PER"}),
)


def read(file: Path, joint: str) -> list[Row]:
    """Rows of a file: JSON lines, or a unit and its label a line with ``joint`` between units."""
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8") as lines:
        first = lines.readline()
        lines.seek(0)
        return list(_json_rows(lines) if first.startswith("{") else _column_rows(lines, joint))


def _json_rows(lines: Iterable[str]) -> Iterator[Row]:
    for line in lines:
        source = json.loads(line)
        found = [
            (e["entity_index"]["begin"], e["entity_index"]["end"], e["entity_type"]) for e in source["entity_list"]
        ]
        yield Row(source["text"], tuple(sorted(Span(*entity) for entity in found)))


def _column_rows(lines: Iterable[str], joint: str) -> Iterator[Row]:
    text, found, before = "", list[Span](), "O"
    for line in (*lines, ""):
        unit, _, label = line.rstrip("\r\n").rpartition("\t" if "\t" in line else " ")
        if not label.strip():
            if text:
                yield Row(text, tuple(found))
            text, found, before = "", [], "O"
            continue
        text += (joint if text else "") + (unit or " ")
        start = len(text) - len(unit or " ")
        if label[0] in "IME" and before[2:] == label[2:] and before != "O":
            found[-1] = found[-1]._replace(end=len(text))
        elif label != "O":
            found.append(Span(start, len(text), label[2:]))
        before = label


def parts(folder: Path, joint: str) -> tuple[list[Row], dict[str, list[Row]]]:
    """Training rows, and held-out rows by the name of their file."""
    files = sorted(file for file in folder.iterdir() if file.name.endswith((".txt", ".json", ".txt.gz")))
    training = [file for file in files if "train" in file.name or "minus" in file.name]
    rows = [row for file in training for row in read(file, joint)]
    others = {file.name: read(file, joint) for file in files if file not in training}
    if others:
        return rows, others
    return [row for i, row in enumerate(rows) if i % 10], {"every tenth row": rows[::10]}


def shipped(rows: Sequence[Row], corpus: Corpus, model_set: str) -> tuple[Score, float]:
    """The score of a model set, and its texts per CPU second."""
    gold = [[s._replace(kind=corpus.gold[s.kind]) for s in row.spans if s.kind in corpus.gold] for row in rows]
    mentions("", AT, model_set)
    begin = time.process_time()
    found = [[(start, e) for start, e in mentions(row.text, AT, model_set)] for row in rows]
    seconds = time.process_time() - begin
    spans = [
        [Span(i, i + len(e.surface), corpus.ours[e.kind]) for i, e in one if e.kind in corpus.ours] for one in found
    ]
    return score(gold, spans), len(rows) / seconds


def _trained(corpus: Corpus, training: Sequence[Row], held: Mapping[str, Sequence[Row]], kind: str) -> None:
    """Train a tagger of the kind, and print its figures, all together and by kind of entity."""
    begin, wall = time.process_time(), time.monotonic()
    tagger = Tagger(train(training, accurate=kind == "accurate"))
    cost = f"{len(training):,} rows in {time.process_time() - begin:.0f} CPU seconds ({time.monotonic() - wall:.0f} s)"
    for name, rows in held.items():
        begin = time.process_time()
        found = [tagger.tag(row.text) for row in rows]
        speed = len(rows) / (time.process_time() - begin)
        gold = [row.spans for row in rows]
        note = f"{cost}; {speed:,.0f} texts per CPU second"
        _line(corpus.folder, name, f"trained {kind}", score(gold, found), note)
        for one in sorted({span.kind for spans in gold for span in spans}):
            _line(corpus.folder, name, f"  {one}", score(gold, found, one), "")


def _line(corpus: str, part: str, finder: str, one: Score, note: str) -> None:
    print(
        f"{corpus:12} {part:24} {finder:16} n {one.gold:6}  "
        f"P {one.precision:.3f}  R {one.recall:.3f}  F1 {one.f1:.3f}  {note}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="How well entities are found, on labelled sets.")
    parser.add_argument("data", type=Path, help="folder with a folder per set")
    parser.add_argument("--only", nargs="+", default=[c.folder for c in CORPORA], help="sets to measure")
    parser.add_argument("--rows", type=int, default=12_000, help="training rows of a set at most")
    parser.add_argument("--held-out", type=int, default=4000, help="held-out rows of a file at most")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of taggers to train")
    parser.add_argument("--no-training", action="store_true", help="only what ships")
    chosen = parser.parse_args(arguments)
    print(machine.line(machine.describe()))
    for corpus in CORPORA:
        if corpus.folder not in chosen.only:
            continue
        if not (chosen.data / corpus.folder).is_dir():
            print(f"{corpus.folder}: missing, left out")
            continue
        training, held = parts(chosen.data / corpus.folder, corpus.joint)
        held = {name: rows[: chosen.held_out] for name, rows in held.items()}
        for name, rows in held.items():
            for model_set in read_yaml("model_sets.yaml"):
                one, speed = shipped(rows, corpus, model_set)
                _line(
                    corpus.folder,
                    name,
                    model_set,
                    one,
                    f"{speed:,.0f} texts per CPU second; kinds {sorted(corpus.gold)}",
                )
        if chosen.no_training or not training:
            continue
        training = training[: chosen.rows]
        for kind in chosen.kinds:
            if kind == "fast" or not corpus.joint:
                _trained(corpus, training, held, kind)


if __name__ == "__main__":
    main()
