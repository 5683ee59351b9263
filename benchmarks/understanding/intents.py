"""How well intents are learnt and told: ``python -m benchmarks.understanding.intents DATA_FOLDER``.

Belongs here: protocols over public sets of this layout. Does not belong here: the sets, or a model. A set that is not
in the folder is named and left out. Both kinds of model are trained and judged on each:

* ``banking77``: ``train.csv``; tested on ``test.csv``, else on a fifth of each class (seed 0), and trained on the rest;
* ``clinc150``: the parts ``train`` and ``oos_train``; tested on ``test`` and ``oos_test`` of ``data_full.json``, else
  on ``val`` and ``oos_val`` of what is there;
* ``smp_ecdt_zh``: domain.intent of ``2019train.json``; tested on ``2019test.json`` or ``2019dev.json``, else on the
  sentences of the published dev and test parts (``globalpointer_2019``), and trained on the rest;
* ``cais_zh``: ``ch.train``; tested on ``ch.test``, else on ``ch.valid``.

Accuracy, macro-F1 and calibration error are those of the likeliest label (a closed test); the columns of the open test
let the threshold call an unsure text out of scope. *F1 taught*: the macro-F1 over the labels that have a training
row; a label without any counts 0 in the other. ``10-shot``: the same, trained on 10 rows a class (seed 0).
"""

import argparse
import csv
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from memory_pipelines.slices.intent.fit import Row, fit_model, labels_of
from memory_pipelines.slices.intent.metrics import head_metrics, scope_metrics
from memory_pipelines.slices.intent.model import OUT_OF_SCOPE, IntentModel

KINDS: dict[str, tuple[str, ...]] = {"fast": (), "accurate": ("e5", "use")}
FALLBACK = {"intent": OUT_OF_SCOPE, "action": "inform", "category": "chit_chat"}
SHOTS = 10

Pairs = list[tuple[str, str]]
"""Texts with their labels."""


@dataclass(frozen=True)
class Split:
    train: Pairs
    test: Pairs


@dataclass(frozen=True)
class Figures:
    """``taught_f1``: macro-F1 over the labels with a training row, ``untaught``: how many of the test have none.

    ``seconds`` of training, embeddings included; ``rate``: texts labelled a second, one process."""

    name: str
    n: int
    accuracy: float
    macro_f1: float
    taught_f1: float
    untaught: int
    ece: float
    scope: dict[str, float]
    seconds: float
    rate: float


def banking(folder: Path) -> Split | None:
    if not (folder / "train.csv").exists():
        return None
    train = _csv(folder / "train.csv")
    return Split(train, _csv(folder / "test.csv")) if (folder / "test.csv").exists() else a_fifth(train)


def _csv(file: Path) -> Pairs:
    with file.open(encoding="utf-8", newline="") as lines:
        return [(row["text"], row["category"]) for row in csv.DictReader(lines)]


def clinc(folder: Path) -> Split | None:
    files = [f for name in ("data_full.json", "data_dev.json", "data_test.json") if (f := folder / name).exists()]
    if not files:
        return None
    parts: dict[str, Any] = {}
    for file in files:
        parts = json.loads(file.read_text(encoding="utf-8")) | parts
    test = "test" if "test" in parts else "val"
    return Split(*(_scoped(parts, name) for name in ("train", test)))


def _scoped(parts: dict[str, Any], name: str) -> Pairs:
    found = [*parts[name], *parts.get(f"oos_{name}", [])]
    return [(text, OUT_OF_SCOPE if label == "oos" else label) for text, label in found]


def smp(folder: Path) -> Split | None:
    if not (folder / "2019train.json").exists():
        return None
    rows = _smp_rows(folder / "2019train.json")
    for name in ("2019test.json", "2019dev.json"):
        if (folder / name).exists():
            return Split(rows, _smp_rows(folder / name))
    published = [folder / "globalpointer_2019" / f"{part}.json" for part in ("dev", "test")]
    held = {row["text"] for file in published if file.exists() for row in json.loads(file.read_text(encoding="utf-8"))}
    split = Split([row for row in rows if row[0] not in held], [row for row in rows if row[0] in held])
    return split if split.test else a_fifth(rows)


def _smp_rows(file: Path) -> Pairs:
    found = json.loads(file.read_text(encoding="utf-8"))
    return [(row["text"], f"{row['domain']}.{row['intent']}") for row in found]


def cais(folder: Path) -> Split | None:
    if not (folder / "ch.train").exists():
        return None
    test = next((part for part in ("ch.test", "ch.valid") if (folder / part).exists()), None)
    train = _cais_rows(folder / "ch.train")
    return Split(train, _cais_rows(folder / test)) if test else a_fifth(train)


def _cais_rows(file: Path) -> Pairs:
    """Characters with slots, one a line and sentences apart; intents in a second file, one a line."""
    blocks = [block for block in file.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    texts = ["".join(line.split(" ")[0] for line in block.strip().split("\n")) for block in blocks]
    labels = file.with_name(f"{file.name}.intent").read_text(encoding="utf-8").split()
    return list(zip(texts, labels, strict=True))


SETS: dict[str, Callable[[Path], Split | None]] = {
    "banking77": banking,
    "clinc150": clinc,
    "smp_ecdt_zh": smp,
    "cais_zh": cais,
}


def a_fifth(rows: Pairs) -> Split:
    """A fifth of each class for the test, by seed 0; a class of one row trains."""
    generator = np.random.default_rng(0)
    held: set[int] = set()
    for label in sorted({label for _, label in rows}):
        of_class = [i for i, row in enumerate(rows) if row[1] == label]
        held |= set(generator.permutation(of_class)[: len(of_class) // 5].tolist())
    return Split([row for i, row in enumerate(rows) if i not in held], [rows[i] for i in sorted(held)])


def few(split: Split, shots: int) -> Split:
    """``shots`` training rows of each class, by seed 0."""
    generator = np.random.default_rng(0)
    chosen: list[int] = []
    for label in sorted({label for _, label in split.train}):
        of_class = [i for i, row in enumerate(split.train) if row[1] == label]
        chosen += generator.permutation(of_class)[:shots].tolist()
    return Split([split.train[i] for i in chosen], split.test)


def measure(name: str, split: Split, embedders: Sequence[str]) -> Figures:
    """Train on one half of the split, judge on the other."""
    began = time.perf_counter()
    model = train(split.train, embedders)
    seconds = time.perf_counter() - began
    texts, truth = [text for text, _ in split.test], [label for _, label in split.test]
    began = time.perf_counter()
    nearest = model.nearest(texts)
    rate = len(texts) / (time.perf_counter() - began)
    inside = [i for i, label in enumerate(truth) if label != OUT_OF_SCOPE]
    closed = head_metrics([truth[i] for i in inside], [nearest[i] for i in inside], "intent")
    outside = len(inside) < len(truth)
    scope = scope_metrics(truth, model.classify(texts)) if outside else {}
    taught = [f1 for label, (_, _, f1, _) in closed.classes.items() if label in model.labels["intent"]]
    return Figures(
        name=name,
        n=len(texts),
        accuracy=closed.accuracy,
        macro_f1=closed.macro_f1,
        taught_f1=float(np.mean(taught)),
        untaught=len(closed.classes) - len(taught),
        ece=closed.ece,
        scope=scope,
        seconds=seconds,
        rate=rate,
    )


def train(pairs: Pairs, embedders: Sequence[str]) -> IntentModel:
    rows = [Row(text, (label, None, None), text) for text, label in pairs]
    return fit_model(rows, labels_of(rows), FALLBACK, embedders)


HEADER = """\
| set, model | n | accuracy | macro-F1 | F1 taught | untaught | ECE | in scope | OOS recall | joint | train s | rate |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |"""


def line(figures: Figures) -> str:
    """One row of the table."""
    f = figures
    scope = " | ".join(f"{value:.3f}" for value in f.scope.values()) if f.scope else "– | – | –"
    return (
        f"| {f.name} | {f.n} | {f.accuracy:.3f} | {f.macro_f1:.3f} | {f.taught_f1:.3f} | {f.untaught} "
        f"| {f.ece:.3f} | {scope} "
        f"| {f.seconds:.0f} | {f.rate:.0f} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    chosen = parser.parse_args(arguments)
    print(machine.line(machine.describe()))
    print(HEADER)
    missing = []
    for name in chosen.sets:
        split = SETS[name](chosen.data / name)
        if split is None:
            missing.append(name)
            continue
        runs = {name: split} | ({f"{name}, {SHOTS}-shot": few(split, SHOTS)} if name == "banking77" else {})
        for title, part in runs.items():
            for kind in chosen.kinds:
                print(line(measure(f"{title}, {kind}", part, KINDS[kind])), flush=True)
    for name in missing:
        print(f"{name}: not in the folder")


if __name__ == "__main__":
    main()
