"""Trains the accurate tagger's network: LAC's layers further, on labelled units, by Adam (Kingma and Ba 2015).

Belongs here: batches, slopes, descent. Does not belong here: the network (``tagger_network``), rows and files
(``tagger_training``). Random numbers have a fixed seed and sums one thread: the same rows give the same network.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.models.e5_tokens import e5_tokens
from memory_pipelines.slices.entities.lac_weights import HIDDEN
from memory_pipelines.slices.entities.lexical import character_ids
from memory_pipelines.slices.entities.tagger_chain import allowed, loss
from memory_pipelines.slices.entities.tagger_gru import Numbers, backward
from memory_pipelines.slices.entities.tagger_network import (
    REDUCED,
    Network,
    Passed,
    Unit,
    Weights,
    beginning,
    read,
    reduced,
    scored,
    states_of,
)

EPOCHS, BATCH = 5, 16
LONGEST = 300
"""Units of a text that are trained on: of the rest the random field learns."""
RATE, DROPOUT, STEEPEST = 1e-3, 0.3, 5.0
FASTER = {"output": 3.0, "bias": 3.0, "steps": 3.0, "first": 3.0, "characters": 0.5}
"""What is new learns faster than what LAC knew; a character's own vector slower."""
WARM = 100
"""Steps until the rate is full; from there it falls to nearly nothing at the last."""
FORBIDDEN = -6.0
POOL = 20
"""Batches that texts of like length are sorted into."""
SAMPLE = 3_000
"""Texts whose states give the axes."""
WORKERS = 2


@dataclass(frozen=True)
class Example:
    """Characters' ids (T), reduced states (T, REDUCED) and labels (T) of one text."""

    ids: NDArray[np.int64]
    states: NDArray[np.float32]
    truth: NDArray[np.int64]


def fit(texts: Sequence[str], found: Sequence[Sequence[Unit]], labels: Sequence[Sequence[str]]) -> Network:
    """A network of normalised texts with their units and BIO labels; some 10 minutes of one core for 10,000 rows of
    40 characters. Raises SettingError where LAC's or e5's wheel is not installed."""
    from threadpoolctl import threadpool_limits

    names = ("O", *sorted({label for row in labels for label in row} - {"O"}))
    found = [units[:LONGEST] for units in found]
    with threadpool_limits(1):
        examples, mean, axes = _examples(texts, found, labels, names)
        weights = _descended(examples, names)
    tuned = np.unique(np.concatenate([example.ids for example in examples])).astype(np.int32)
    # what is used is what is kept: half precision from here on
    return read(Network(names, weights, mean, axes, tuned).bytes())


def _examples(
    texts: Sequence[str], found: Sequence[Sequence[Unit]], labels: Sequence[Sequence[str]], names: Sequence[str]
) -> tuple[list[Example], NDArray[np.float32], NDArray[np.float32]]:
    """Examples, and the mean and main axes of their states."""
    step = -(-len(texts) // SAMPLE)
    e5_tokens()  # once, not in every worker
    with ThreadPoolExecutor(WORKERS) as pool:
        sample = np.concatenate(list(pool.map(states_of, texts[::step], found[::step])))
        mean, axes = _main_axes(sample)
        small = pool.map(lambda text, units: reduced(states_of(text, units), mean, axes), texts, found)
        number = {name: i for i, name in enumerate(names)}
        examples = [
            Example(
                character_ids(text, units), states, np.array([number[x] for x in row[: len(units)]], dtype=np.int64)
            )
            for text, units, states, row in zip(texts, found, small, labels, strict=True)
            if units
        ]
    return examples, mean, axes


def _main_axes(states: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and REDUCED principal axes, scaled so that a reduced state's numbers have half of 1 as typical size."""
    mean = states.mean(axis=0, dtype=np.float64)
    moved = states - mean
    values, vectors = np.linalg.eigh(moved.T @ moved / len(states))
    values, vectors = values[::-1][:REDUCED], vectors[:, ::-1][:, :REDUCED]
    scale = 0.5 / max(1e-6, float(np.sqrt(np.maximum(values, 0)).mean()))
    return mean.astype(np.float32), (vectors * scale).astype(np.float32)


def _descended(examples: Sequence[Example], names: Sequence[str]) -> Weights:
    generator = np.random.default_rng(0)
    weights = _beginning(names, generator)
    descent = _Adam(weights.named)
    total = EPOCHS * -(-len(examples) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        for batch in _batches(examples, generator):
            slopes, rows = _slopes(weights, batch, generator)
            step += 1
            descent.move(slopes, rows, RATE * min(1.0, step / WARM) * (1 - 0.95 * step / total))
    return weights


def _beginning(names: Sequence[str], generator: np.random.Generator) -> Weights:
    def random(*shape: int) -> Numbers:
        return (generator.standard_normal(shape) * 0.03).astype(np.float32)

    named: dict[str, Numbers] = {name: array.copy() for name, array in beginning().items()}
    named["input2"] = np.concatenate([named["input2"], random(2, 3 * HIDDEN, REDUCED)], axis=2)
    named |= {"output": random(2 * HIDDEN + REDUCED, len(names)), "bias": np.zeros(len(names), np.float32)}
    follows, begins = allowed(names)
    named["steps"] = np.where(follows, 0, FORBIDDEN).astype(np.float32)
    named["first"] = np.where(begins, 0, FORBIDDEN).astype(np.float32)
    return Weights(named)


def _batches(examples: Sequence[Example], generator: np.random.Generator) -> Iterator[list[Example]]:
    """Every example once, in a new order, beside others of like length."""
    order = generator.permutation(len(examples))
    batches = []
    for first in range(0, len(order), BATCH * POOL):
        pool = sorted(order[first : first + BATCH * POOL].tolist(), key=lambda i: len(examples[i].ids))
        batches += [pool[i : i + BATCH] for i in range(0, len(pool), BATCH)]
    for i in generator.permutation(len(batches)):
        yield [examples[k] for k in batches[i]]


def _slopes(
    weights: Weights, batch: Sequence[Example], generator: np.random.Generator
) -> tuple[dict[str, Numbers], NDArray[np.int64]]:
    """The loss's slopes by each of the weights, of ``characters`` by the rows that are named beside."""
    lengths = np.array([len(example.ids) for example in batch])
    shape = (int(lengths.max()), len(batch))
    ids, truth = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    states = np.zeros((*shape, REDUCED), dtype=np.float32)
    for k, example in enumerate(batch):
        ids[: lengths[k], k], truth[: lengths[k], k] = example.ids, example.truth
        states[: lengths[k], k] = example.states
    masks = [_mask((*shape, width), generator) for width in (HIDDEN, 2 * HIDDEN + REDUCED, 2 * HIDDEN + REDUCED)]
    scores, passed = scored(weights, ids, states, lengths, masks)
    _, by_score, by_step, by_first = loss(scores, truth, lengths, weights.named["steps"], weights.named["first"])
    slopes, by_character = _back(weights, by_score.astype(np.float32), passed)
    rows, place = np.unique(ids, return_inverse=True)
    slopes["characters"] = np.zeros((len(rows), HIDDEN), dtype=np.float32)
    np.add.at(slopes["characters"], place.reshape(-1), by_character.reshape(-1, HIDDEN))
    slopes |= {"steps": by_step.astype(np.float32), "first": by_first.astype(np.float32)}
    size = float(np.sqrt(sum(float((slope * slope).sum()) for slope in slopes.values())))
    if size > STEEPEST:
        slopes = {name: slope * np.float32(STEEPEST / size) for name, slope in slopes.items()}
    return slopes, rows


def _mask(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.float32]:
    return (generator.random(shape, dtype=np.float32) >= DROPOUT).astype(np.float32) / np.float32(1 - DROPOUT)


def _back(weights: Weights, by_score: Numbers, passed: Passed) -> tuple[dict[str, Numbers], Numbers]:
    """Slopes by layers and output, and by the characters' vectors (T, B, H)."""
    flat = by_score.reshape(-1, by_score.shape[2])
    slopes: dict[str, Numbers] = {
        "output": passed.read.reshape(len(flat), -1).T @ flat,
        "bias": flat.sum(axis=0),
    }
    by_read = by_score @ weights.named["output"].T * passed.masks[2]
    by_second, second = backward(by_read[:, :, : 2 * HIDDEN], passed.second, weights.layer(2))
    by_second = by_second * passed.masks[1]
    by_first, first = backward(by_second[:, :, : 2 * HIDDEN], passed.first, weights.layer(1))
    for number, layer in ((1, first), (2, second)):
        slopes |= {f"{part}{number}": slope for part, slope in zip(layer._fields, layer, strict=True)}
    return slopes, by_first * passed.masks[0]


class _Adam:
    """Moves weights in place. Of ``characters`` only the rows of a batch have a slope, and only they move."""

    def __init__(self, named: dict[str, Numbers]) -> None:
        self._named = named
        self._means = {name: np.zeros_like(array) for name, array in named.items()}
        self._squares = {name: np.zeros_like(array) for name, array in named.items()}
        self._step = 0

    def move(self, slopes: dict[str, Numbers], rows: NDArray[np.int64], rate: float) -> None:
        self._step += 1
        for name, slope in slopes.items():
            at = rows if name == "characters" else slice(None)
            mean = 0.9 * self._means[name][at] + np.float32(0.1) * slope
            square = 0.999 * self._squares[name][at] + np.float32(0.001) * slope * slope
            self._means[name][at], self._squares[name][at] = mean, square
            size = np.sqrt(square / (1 - 0.999**self._step)) + 1e-8
            faster = rate * FASTER.get(name, 1.0) / (1 - 0.9**self._step)
            self._named[name][at] -= (faster * mean / size).astype(np.float32)
