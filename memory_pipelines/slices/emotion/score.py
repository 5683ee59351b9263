"""Step 3: emotion of each exchange, a score in [-1, 1] and a label with strength.

Belongs here: which scorer a model set means, and how a score becomes a label. Does not belong here: the lexicon's
rules (``words``), the fast score (``fast``), the trained head (``head``), or what an emotion means for impact.

Three scorers: rules 1, the lexicon alone; rules 2 without a head ("fast"), a larger lexicon blended with VADER (Hutto
& Gilbert 2014) for English; rules 2 with a head ("accurate"), a linear model over frozen sentence embeddings and the
fast score.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from memory_pipelines import tables
from memory_pipelines.slices.emotion.fast import fast
from memory_pipelines.slices.emotion.head import Head, read_head
from memory_pipelines.slices.emotion.words import FAULT, JOY, Lexicon, Reading, load_lexicon
from memory_pipelines.slices.labels import label_table, own_texts
from memory_pipelines.slices.resources import Named, label_files

NEUTRAL = "neutral"
MEDIUM, HIGH = 0.4, 0.65
FAINT = 0.1
"""The accurate scorer's scores below this are none."""

_LETTERS = re.compile(r"[^\W\d_]")
_TOKEN = re.compile(r"\[[a-z_]+(?::[0-9a-z]+)?\]")


@dataclass(frozen=True, slots=True)
class EmotionLabel:
    """``score`` in [-1, 1], 4 digits; ``label`` is ``<emotion>:<low|medium|high>`` or ``neutral``."""

    score: float
    label: str


@dataclass(frozen=True)
class Scorer:
    """A lexicon and, for the accurate scorer, a head."""

    lexicon: Lexicon
    head: Head | None = None

    def labels(self, texts: Sequence[str]) -> list[EmotionLabel]:
        """Emotion of each text, in order; a text's label does not depend on the others.

        A text without anything that the scorer takes for emotion is exactly ``(0.0, "neutral")``."""
        found = [fast(text, self.lexicon) for text in texts]
        labels = [_label(item.score, item.reading.weights) for item in found]
        if self.head is None:
            return labels
        worded = [i for i, text in enumerate(texts) if _LETTERS.search(_TOKEN.sub("", text))]
        values, kinds = self.head.apply([texts[i] for i in worded], [found[i] for i in worded])
        for i, value, weights in zip(worded, values, kinds, strict=True):
            labels[i] = _judged(value, weights, found[i].reading)
        return labels


@cache
def load_scorer(model_set: Named) -> Scorer:
    """The scorer of a model set. Raises SettingError if there is no such set, IntegrityError for a broken head."""
    files = label_files(model_set, "emotion")
    lexicon = load_lexicon(*(files[name] for name in ("lexicon", "more") if name in files))
    return Scorer(lexicon, read_head(files["head"]) if "head" in files else None)


def scores(texts: Sequence[str], model_set: Named = "base-1") -> list[EmotionLabel]:
    """Emotion of each text, in order."""
    return load_scorer(model_set).labels(texts)


def score(text: str, model_set: Named = "base-1") -> EmotionLabel:
    """Emotion of one text; equal to what ``label_emotions`` gives it."""
    return scores([text], model_set)[0]


def _judged(value: float, kinds: Mapping[str, float], reading: Reading) -> EmotionLabel:
    """A label from the head's outputs: none if the score is faint, or if no word speaks and the head says neutral."""
    silent = not reading.hits and max(kinds, key=lambda kind: kinds[kind], default="") == NEUTRAL
    if abs(value) < FAINT or silent:
        return EmotionLabel(0.0, NEUTRAL)
    return _label(value, _weights(kinds, reading, value))


def _weights(kinds: Mapping[str, float], reading: Reading, value: float) -> Mapping[str, float]:
    """The lexicon's emotions where it found any of the score's sign, else the head's."""
    return reading.weights if reading.hits and (reading.value > 0) == (value > 0) else kinds


def _label(value: float, weights: Mapping[str, float]) -> EmotionLabel:
    if not value:
        return EmotionLabel(0.0, NEUTRAL)
    right = {emotion: w for emotion, w in weights.items() if w > 0 and (emotion in _GLAD) == (value > 0)}
    strongest = max(right, key=lambda emotion: right[emotion]) if right else JOY if value > 0 else FAULT
    strength = "high" if abs(value) >= HIGH else "medium" if abs(value) >= MEDIUM else "low"
    return EmotionLabel(value, f"{strongest}:{strength}")


_GLAD = frozenset({JOY, "gratitude", "anticipation"})


def label_emotions(exchanges: pa.Table, model_set: Named, scorer: Scorer | None = None) -> pa.Table:
    """EXCHANGES -> EMOTIONS, one row per exchange in the same order, from ``own_text`` alone.

    ``scorer``: in place of the model set's."""
    rows = (scorer or load_scorer(model_set)).labels(own_texts(exchanges))
    columns = {"emotion_score": [row.score for row in rows], "emotion": [row.label for row in rows]}
    return label_table(exchanges, tables.EMOTIONS, model_set, columns)
