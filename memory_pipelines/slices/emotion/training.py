"""Trains the emotion head from texts with scores: ``python -m memory_pipelines.slices.emotion.training``.

Belongs here: rows, ridge regression, choice of the penalty, quantisation. Does not belong here: inference
(``head``), the kernel machine that other rows than the package's are learnt by (``kernel``). Deterministic: no random
numbers. What ships is trained on ``data/emotion_examples.yaml`` alone.
"""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import SettingError
from memory_pipelines.models.embeddings import E5, E5_AND_USE, USE, local_embedder
from memory_pipelines.slices.emotion import kernel
from memory_pipelines.slices.emotion.fast import fast
from memory_pipelines.slices.emotion.head import LEXICAL, ONE, Floats, Head, lexical, readable, shared_embedder
from memory_pipelines.slices.emotion.score import NEUTRAL
from memory_pipelines.slices.emotion.words import load_lexicon
from memory_pipelines.slices.intent.features import BUCKETS, Features, extract
from memory_pipelines.slices.intent.vectors import encoded
from memory_pipelines.slices.resources import data_folder, read_yaml

EXAMPLES, HEAD = "emotion_examples.yaml", "emotion_head.npz"
LEXICON = ("emotion.yaml", "emotion_more.yaml")
FOLDS = 5
PENALTIES = (2.0, 4.0, 8.0, 16.0)
PRIOR, FAMILIAR_PRIOR = 0.3, 0.4
"""Part of the fast score that no training takes away: what the lexicon knows and few rows do not show."""
NGRAM_SCALE = 2.0


@dataclass(frozen=True)
class Rows:
    """Texts with scores in [-1, 1]; ``emotions`` names each text's emotion, or is empty.

    ``familiar``: they were written by who wrote the lexicon, which looks better on them than it is. How far to trust
    it is not learnt from such rows; and praise and blame weigh the same, as nobody counted how often they come."""

    texts: Sequence[str]
    scores: Sequence[float]
    emotions: Sequence[str] = ()
    familiar: bool = False


def own_rows() -> Rows:
    """The examples of the package data."""
    rows = [
        (line.partition(" ")[2], float(line.partition(" ")[0]), emotion)
        for emotion, languages in read_yaml(EXAMPLES).items()
        for block in languages.values()
        for line in block.split("\n")
    ]
    texts, scores, emotions = zip(*rows, strict=True)
    return Rows(texts, scores, emotions, familiar=True)


def read_rows(file: Path) -> Rows:
    """Rows of a CSV with the columns ``text``, ``score`` and, if there is one, ``emotion``. Raises SettingError."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        found = list(csv.DictReader(lines))
    try:
        scores = [float(row["score"]) for row in found]
        texts = [row["text"] for row in found]
    except (KeyError, ValueError, TypeError):
        raise SettingError("labelled emotions need the columns text and score, and scores are numbers") from None
    if len(found) < 2 * FOLDS or not all(-1 <= value <= 1 for value in scores):
        raise SettingError(f"labelled emotions: at least {2 * FOLDS} rows, scores from -1 to 1")
    emotions = [row["emotion"] for row in found] if "emotion" in found[0] else []
    known = {NEUTRAL, *load_lexicon(*LEXICON).order}
    if not known.issuperset(emotions):
        raise SettingError(f"labelled emotions: an emotion is one of {', '.join(sorted(known))}")
    return Rows(texts, scores, emotions)


def train(rows: Rows, embedder: str = E5_AND_USE) -> Head:
    """The head of these rows; ``embedder`` is a local model's name. About 10 ms a row, most of it the embedding.

    The package's few rows are learnt by ridge regression, any others by a kernel machine."""
    lexicon = load_lexicon(*LEXICON)
    some = [readable(text) for text in rows.texts]
    model = shared_embedder(embedder)
    values = lexical([fast(text, lexicon) for text in rows.texts])
    if rows.familiar:
        return fit(model.encode(some), values, extract(some), rows, (embedder, model.model_id))
    names = (E5, USE) if embedder == E5_AND_USE else (embedder,)
    embedded = [(name, local_embedder(name).model_id, encoded(name, some)) for name in names]
    return _similar(embedded, values, extract(some), rows, (embedder, model.model_id))


def fit(vectors: NDArray[np.float32], values: Floats, features: Features, rows: Rows, model: tuple[str, str]) -> Head:
    """Ridge regression of the score, less the prior, and of an indicator of each emotion, of familiar rows.

    ``vectors``, ``values`` and ``features`` of the rows' texts; ``model``: the embedder's name and id. Lexical
    features are not learnt from: the prior is what they are worth."""
    from scipy import sparse

    kinds, indicators = _indicators(rows)
    scores = np.array(rows.scores)
    target = (1 - FAMILIAR_PRIOR) * scores
    weights_of_rows = _balanced(scores)
    centre = vectors.mean(axis=0, dtype=np.float64)
    moved = vectors - centre
    spread = float(np.sqrt((moved**2).sum(axis=1).mean())) or 1.0
    grams, rarity = _ngrams(features)
    # without the columns of zeros another round-off: a released head would not come out to the byte
    dense = np.hstack([moved / spread, np.zeros_like(values)])
    joint = sparse.hstack([sparse.csr_matrix(dense), grams]).tocsr()
    penalty = _penalty(joint, target, weights_of_rows)
    weights, bias = _ridge(joint, target, weights_of_rows, penalty)
    kind_weights, kind_bias = _ridge(sparse.csr_matrix(dense), indicators, np.ones(len(scores)), penalty)
    width = vectors.shape[1]
    of_vectors = np.column_stack([weights[:width], kind_weights[:width]]) / spread
    return Head(
        embedder=model[0],
        model_id=model[1],
        kinds=kinds,
        vectors=_whole(of_vectors),
        lexical=np.zeros((LEXICAL, 1 + len(kinds)), dtype=np.int64),
        ngrams=_whole(weights[width + LEXICAL :, 0] * rarity),
        bias=_whole(np.concatenate([bias, kind_bias]) - centre @ of_vectors),
        prior=FAMILIAR_PRIOR,
    )


def _similar(
    embedded: Sequence[tuple[str, str, NDArray[np.float32]]],
    values: Floats,
    features: Features,
    rows: Rows,
    model: tuple[str, str],
) -> Head:
    """The head as a kernel machine: the score, less the prior, and an indicator of each emotion."""
    kinds, indicators = _indicators(rows)
    grams, rarity = _ngrams(features)
    target = np.array(rows.scores) - PRIOR * values.mean(axis=1)
    found = kernel.fit(embedded, values, grams, np.column_stack([target, indicators]))
    return Head(
        embedder=model[0],
        model_id=model[1],
        kinds=kinds,
        vectors=np.zeros((0, 1 + len(kinds)), dtype=np.int64),
        lexical=_whole(found.lexical),
        ngrams=_whole(found.ngrams * rarity),
        bias=np.zeros(1 + len(kinds), dtype=np.int64),
        prior=PRIOR,
        kernel=found.landmarks,
    )


def _indicators(rows: Rows) -> tuple[tuple[str, ...], Floats]:
    """The emotions that occur, sorted, and which of them each row has (rows, emotions)."""
    kinds = tuple(sorted(set(rows.emotions)))
    found = np.zeros((len(rows.texts), len(kinds)))
    for i, emotion in enumerate(rows.emotions):
        found[i, kinds.index(emotion)] = 1
    return kinds, found


def _whole(weights: Floats) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.rint(weights * ONE).astype(np.int64)
    return found


def _ngrams(features: Features) -> tuple[Any, Floats]:
    """Counts of buckets over the root of a text's features, times the bucket's rarity; and the rarities."""
    from scipy import sparse

    ends = np.concatenate([[0], np.cumsum(features.counts)])
    shape = (len(features.counts), BUCKETS)
    counts: Any = sparse.csr_matrix((np.ones(len(features.buckets)), features.buckets, ends), shape=shape)
    counts.sum_duplicates()
    seen = np.bincount(counts.indices, minlength=BUCKETS)
    rarity = NGRAM_SCALE * np.log((1 + shape[0]) / (1 + seen)) / np.log(1 + shape[0])
    rarity[seen < 2] = 0  # one row teaches nothing about an n-gram
    scale = sparse.diags(1 / np.sqrt(np.maximum(features.counts, 1)))
    return scale @ counts @ sparse.diags(rarity), rarity


def _balanced(scores: Floats) -> Floats:
    """Weights of rows, 1 on average, with which praise and blame add up to nothing."""
    glad, sad = float(scores[scores > 0].sum()), -float(scores[scores < 0].sum())
    if not glad or not sad:
        return np.ones(len(scores))
    weights = np.where(scores > 0, sad / glad, 1.0)
    found: Floats = weights / weights.mean()
    return found


def _ridge(features: Any, targets: Floats, weights: Floats, penalty: float) -> tuple[Floats, Floats]:
    """Weights (features, targets) and biases."""
    from sklearn.linear_model import Ridge

    wide = targets.reshape(len(targets), -1)
    if not wide.shape[1]:
        return np.zeros((features.shape[1], 0)), np.zeros(0)
    model = Ridge(penalty, solver="sparse_cg", tol=1e-5).fit(features, wide, sample_weight=weights)
    return np.atleast_2d(model.coef_).T.reshape(-1, wide.shape[1]), np.atleast_1d(model.intercept_)


def _penalty(features: Any, target: Floats, weights_of_rows: Floats) -> float:
    """The penalty whose predictions of held-out folds (every FOLDS-th row) are nearest, by mean square."""
    fold = np.arange(len(target)) % FOLDS
    errors = []
    for penalty in PENALTIES:
        wrong = 0.0
        for held in range(FOLDS):
            kept = fold != held
            weights, bias = _ridge(features[kept], target[kept], weights_of_rows[kept], penalty)
            wrong += float((((features[~kept] @ weights + bias)[:, 0] - target[~kept]) ** 2).sum())
        errors.append(wrong)
    return PENALTIES[int(np.argmin(errors))]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the emotion head from the package's rows, or from a CSV.")
    parser.add_argument("--rows", type=Path, help="CSV with the columns text, score and, if known, emotion")
    parser.add_argument("--output", type=Path, default=Path(str(data_folder())) / HEAD, help="the head's file")
    chosen = parser.parse_args(arguments)
    rows = read_rows(chosen.rows) if chosen.rows else own_rows()
    content = train(rows).bytes()
    chosen.output.write_bytes(content)
    print(f"{len(rows.texts)} rows, {len(content)} bytes")


if __name__ == "__main__":
    main()
