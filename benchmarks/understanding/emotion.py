"""How near the emotion scorers come to human ratings: ``python -m benchmarks.understanding.emotion DATA_FOLDER``.

Belongs here: readers of public sets of this layout, protocols, speed. Does not belong here: the sets, or a scorer.
A set whose files are missing is named and left out. Every figure comes with its n:

* ``dimabsa2026/*_dev_*.jsonl``: mean valence of a sentence's aspects, (V - 5) / 4; its own train part is
  ``*_train_*.jsonl`` of the same language and domain;
* ``vader_gold/*_GroundTruth.txt``: mean rating / 4, read split at tabs; every fifth row is tested, the others train;
* ``chinese_nlp_corpus/*.csv``, ``*.csv.gz``: columns ``label`` (1 or 0) and ``review``; of a sample every fifth row is
  tested, the others train. Rows of the category 酒店 of a shopping set are left out: they are the hotel set's.

Scorers: *fast* (lexicon and VADER), *shipped* (the head that comes with the package, which saw none of these sets) and
*trained* (the same kind of head, trained on the set's own train part). Pearson's r and the mean absolute error are of
the score, cut to [-1, 1]; sign accuracy is the share of rows rated other than 0 whose score has the rating's sign, a
score of 0 counting as wrong.
"""

import argparse
import csv
import gzip
import io
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from memory_pipelines.slices.emotion.head import read_head
from memory_pipelines.slices.emotion.score import Scorer
from memory_pipelines.slices.emotion.training import HEAD, LEXICON, Rows, train
from memory_pipelines.slices.emotion.words import load_lexicon

SAMPLE = 5000
"""Rows of a review set, train and test together."""
TESTED = 5
FOLDERS = ("dimabsa2026", "vader_gold", "chinese_nlp_corpus")

Scored = list[tuple[str, float]]


@dataclass(frozen=True)
class Set:
    """``train`` is empty where a set has no train part."""

    name: str
    train: Scored
    test: Scored


@dataclass(frozen=True)
class Figures:
    """``pearson`` is NaN where scores or ratings do not vary; ``sign``: see the module; ``speed``: texts per second."""

    n: int
    pearson: float
    error: float
    sign: float
    speed: float


def valences(file: Path) -> Scored:
    """Sentences with the mean valence of their aspects; a sentence without aspects is left out."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rated = row.get("Quadruplet") or row.get("Triplet") or row.get("Aspect_VA") or []
        values = [float(item["VA"].partition("#")[0]) for item in rated]
        if values:
            found.append((row["Text"], (float(np.mean(values)) - 5) / 4))
    return found


def dimabsa(folder: Path) -> list[Set]:
    """One set per language and domain that has a dev (or test) file."""
    sets = []
    for part in ("dev", "test"):
        for file in sorted((folder / "dimabsa2026").glob(f"*_{part}_*.jsonl")):
            stem = file.name.partition(f"_{part}_")[0]
            own = [row for t in sorted(file.parent.glob(f"{stem}_train_*.jsonl")) for row in valences(t)]
            if test := valences(file):
                sets.append(Set(f"dimabsa {stem} {part}", own, test))
    return sets


def ratings(folder: Path, limit: int) -> list[Set]:
    """VADER's rated sentences, one set per file."""
    sets = []
    for file in sorted((folder / "vader_gold").glob("*_GroundTruth.txt")):
        lines = (line.split("\t", 2) for line in file.read_text(encoding="utf-8-sig").split("\n"))
        rows = [(cells[2], float(cells[1]) / 4) for cells in lines if len(cells) == 3]
        sets.append(split(f"vader {file.name.partition('_')[0]}", rows, limit))
    return sets


def reviews(folder: Path, limit: int) -> list[Set]:
    """Reviews with a polarity, one set per file."""
    sets = []
    for file in sorted((folder / "chinese_nlp_corpus").glob("*.csv*")):
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        rows = [
            (row["review"], 1.0 if row["label"] == "1" else -1.0)
            for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
            if row["review"] and row.get("cat") != "酒店"
        ]
        sets.append(split(file.name.partition(".")[0], rows, limit))
    return sets


def split(name: str, rows: Scored, limit: int) -> Set:
    """Every fifth of at most ``limit`` rows, drawn and shuffled with seed 0, is tested."""
    drawn = random.Random(0).sample(rows, min(limit, len(rows)))
    test = drawn[::TESTED]
    return Set(name, [row for i, row in enumerate(drawn) if i % TESTED], test)


def judge(test: Scored, score: Callable[[Sequence[str]], Sequence[float]]) -> Figures:
    """Figures of one scorer on one set; the clock runs over ``score`` alone."""
    start = time.perf_counter()
    found = np.array(score([text for text, _ in test]))
    spent = time.perf_counter() - start
    truth = np.array([value for _, value in test])
    rated = truth != 0
    sign = float((np.sign(found[rated]) == np.sign(truth[rated])).mean()) if rated.any() else float("nan")
    return Figures(len(test), pearson(found, truth), float(np.abs(found - truth).mean()), sign, len(test) / spent)


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Pearson's correlation; NaN if one of the two does not vary."""
    if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def of_labels(scorer: Scorer) -> Callable[[Sequence[str]], list[float]]:
    """The scores of a scorer's labels, as the pipeline stores them."""
    return lambda texts: [label.score for label in scorer.labels(texts)]


def measure(sets: Sequence[Set], embedder: str) -> None:
    """Prints a line per set and scorer.

    Models are loaded before the clock runs. Vectors are cached, so the speed of a head trained here is left out."""
    if not sets:
        return
    lexicon = load_lexicon(*LEXICON)
    scorers = {"fast": Scorer(lexicon), "shipped": Scorer(lexicon, read_head(HEAD))}
    for scorer in scorers.values():
        scorer.labels(["warm", "暖"])
    for one in sets:
        for name, scorer in scorers.items():
            say(one.name, name, judge(one.test, of_labels(scorer)))
        if one.train:
            start = time.perf_counter()
            head = train(Rows([text for text, _ in one.train], [value for _, value in one.train]), embedder)
            spent = time.perf_counter() - start
            figures = judge(one.test, of_labels(Scorer(lexicon, head)))
            say(one.name, f"trained on {len(one.train)}", figures, f"; {spent:.0f} s to train")


def say(name: str, scorer: str, figures: Figures, more: str = "") -> None:
    speed = f", {figures.speed:.0f} texts/s" if not more else ""
    print(
        f"{name:32} {scorer:16} n = {figures.n}, r = {figures.pearson:.3f}, MAE = {figures.error:.3f}, "
        f"sign = {figures.sign:.3f}{speed}{more}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="e5+use", help="of the heads trained here: use, e5 or e5+use")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="rows of a set without a test part of its own")
    parser.add_argument("--only", default="", help="sets whose name holds this")
    chosen = parser.parse_args(arguments)
    print(machine.line(machine.describe()))
    sets = [*dimabsa(chosen.data), *ratings(chosen.data, chosen.sample), *reviews(chosen.data, chosen.sample)]
    for folder in FOLDERS:
        if not (chosen.data / folder).is_dir():
            print(f"{folder}: not in the folder")
    measure([one for one in sets if chosen.only in one.name], chosen.embedder)


if __name__ == "__main__":
    main()
