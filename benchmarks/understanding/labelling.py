"""How fast steps 2 to 4 label turns: ``python -m benchmarks.understanding.labelling DATA_FOLDER``.

Belongs here: the protocol of this speed. Does not belong here: how well the steps label (the other parts).

Turns are the distinct texts of the intent sets that are in the folder (``intents``), as many Chinese as English ones,
drawn and shuffled with seed 0; each is an exchange of its own. Timed is one call of each of the three steps, tables
in and out, in this process; *with embeddings*: and the vectors that publishing wants of them, by the embedder of the
settings. Every figure has texts of its own, for an embedder remembers the last ones; models are loaded before.
"""

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from benchmarks import machine
from benchmarks.understanding.intents import SETS
from memory_pipelines.models.base import Embedder
from memory_pipelines.models.embeddings import load_embedder
from memory_pipelines.settings import Settings
from memory_pipelines.slices.emotion.score import label_emotions
from memory_pipelines.slices.entities.find import label_entities
from memory_pipelines.slices.intent.predict import label_intents
from memory_pipelines.slices.language import detect
from memory_pipelines.tables import EXCHANGES

MODEL_SETS = ("base-2", "accurate-2")
TURNS = 500
WARM = 20
AT = datetime(2024, 5, 17, tzinfo=UTC)


@dataclass(frozen=True)
class Figures:
    """``wall`` and ``processor`` seconds of ``n`` turns; the processor's are of all threads of this process."""

    n: int
    wall: float
    processor: float


def turns(folder: Path) -> list[str]:
    """Distinct texts of the sets in the folder, Chinese and English in turn; none if a language is missing."""
    found: dict[str, set[str]] = {"zh": set(), "en": set()}
    for name, read in SETS.items():
        split = read(folder / name)
        for text, _ in (*split.train, *split.test) if split else ():
            if (language := detect(text)) in found:
                found[language].add(text)
    drawn = [random.Random(0).sample(sorted(texts), len(texts)) for texts in found.values()]
    return [text for pair in zip(*drawn, strict=False) for text in pair]


def exchanges(texts: Sequence[str]) -> pa.Table:
    """EXCHANGES of one turn each."""
    columns = {
        "own_text": list(texts),
        "exchange_id": [f"x{i}" for i in range(len(texts))],
        "started_at": [AT] * len(texts),
    }
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(texts), field.type)
        for field in EXCHANGES.schema
    ]
    return pa.table(arrays, names=EXCHANGES.schema.names)


def measure(texts: Sequence[str], model_set: str, embedder: Embedder | None) -> Figures:
    """Label the texts, and embed them if there is an embedder."""
    table = exchanges(texts)
    wall, processor = time.perf_counter(), time.process_time()
    for step in (label_intents, label_emotions, label_entities):
        step(table, model_set)
    if embedder is not None:
        embedder.encode(texts)
    return Figures(len(texts), time.perf_counter() - wall, time.process_time() - processor)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--turns", type=int, default=TURNS, help="of each figure, at most")
    parser.add_argument("--sets", nargs="*", default=list(MODEL_SETS), help="model sets")
    chosen = parser.parse_args(arguments)
    print(machine.line(machine.describe()))
    texts = turns(chosen.data)
    runs = [(model_set, with_vectors) for model_set in chosen.sets for with_vectors in (False, True)]
    size = min(chosen.turns, (len(texts) - WARM) // max(1, len(runs)))
    if size < 1:
        print(f"{', '.join(SETS)}: not enough Chinese and English texts in the folder")
        return
    embedder = load_embedder(Settings())
    print("| steps 2 to 4 | turns | turns/s | turns per processor second |\n| --- | --: | --: | --: |")
    for i, (model_set, with_vectors) in enumerate(runs):
        used = embedder if with_vectors else None
        measure(texts[:WARM], model_set, used)
        first = WARM + i * size
        f = measure(texts[first : first + size], model_set, used)
        name = f"{model_set}, with embeddings ({embedder.model_id})" if with_vectors else f"{model_set}, labels alone"
        print(f"| {name} | {f.n} | {f.n / f.wall:,.0f} | {f.n / f.processor:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
