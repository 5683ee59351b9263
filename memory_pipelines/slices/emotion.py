"""Step 3: emotion of each exchange, a score in [-1, 1] and a label with strength, by a bilingual lexicon.

Belongs here: how words of the lexicon add up. Does not belong here: the words (``data/emotion.yaml``),
or what an emotion means for impact.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from memory_pipelines import tables
from memory_pipelines.slices.labels import label_table, own_texts
from memory_pipelines.slices.language import normalise
from memory_pipelines.slices.matching import Gazetteer
from memory_pipelines.slices.resources import label_files, read_yaml

NEUTRAL = "neutral"
ALPHA = 6.0
"""Score = x / sqrt(x^2 + ALPHA), VADER's squashing (Hutto & Gilbert 2014) for strengths 1 to 3:
one mild word gives .38, a clear one .63, a strong one .77."""
MEDIUM, HIGH = 0.4, 0.65
BOOST, DAMP, AFTER_TURN, SHOUT = 1.3, 0.6, 0.5, 1.2
DENIED_JOY = -0.8
"""A denied joy is a complaint; a denied anger is no joy, so it does not count."""
EXCLAMATION, MOST_EXCLAMATIONS = 0.1, 3

_BORDER = re.compile("[.,;:!?\n。，；：！？、…]")
_EMOJI_NOISE = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_LATIN = re.compile("[a-z']+")


@dataclass(frozen=True, slots=True)
class EmotionLabel:
    """``score`` in [-1, 1], 4 digits; ``label`` is ``<emotion>:<low|medium|high>`` or ``neutral``."""

    score: float
    label: str


@dataclass(frozen=True, slots=True)
class _Word:
    kind: str
    emotion: str = ""
    weight: float = 0.0


@dataclass(slots=True)
class _Hit:
    emotion: str
    value: float
    end: int


@cache
def _lexicon(model_set: str) -> tuple[Gazetteer[_Word], tuple[str, ...]]:
    source = read_yaml(label_files(model_set, "emotion")["lexicon"])
    words: dict[str, _Word] = {}
    for kind in ("turns", "after", "diminishers", "intensifiers", "negators"):
        words |= dict.fromkeys(_words(source[kind]), _Word(kind))
    for emotion, entry in source["emotions"].items():
        for script in ("zh", "en", "emoji"):
            for strength, block in entry[script].items():
                value = _Word("term", emotion, float(entry["sign"] * strength))
                words |= dict.fromkeys(_words({script: block}), value)
    words |= dict.fromkeys(_words(source["neutral"]), _Word("neutral"))
    return Gazetteer(words), tuple(source["emotions"])


def _words(blocks: dict[str, Any]) -> list[str]:
    """zh blocks are split at spaces, en blocks at bars, emoji blocks into characters."""
    found: list[str] = []
    for script, block in blocks.items():
        if script == "en":
            found += [word.strip() for word in str(block).split("|")]
        elif script == "zh":
            found += str(block).split()
        else:
            found += [char for char in _EMOJI_NOISE.sub("", block) if char != "\u200d"]
    return [word for word in found if word]


def score(text: str, model_set: str = "base-1") -> EmotionLabel:
    """Emotion of one text; a text without a word of the lexicon is exactly ``(0.0, "neutral")``."""
    lexicon, order = _lexicon(model_set)
    simple = normalise(text)
    if not simple.isascii():
        simple = _EMOJI_NOISE.sub("", simple)
    folded = simple.lower()
    hits = _hits(folded, simple if len(simple) == len(folded) else folded, lexicon)
    total = sum(hit.value for hit in hits)
    if not hits or abs(total) < 1e-9:
        return EmotionLabel(0.0, NEUTRAL)
    total *= 1 + EXCLAMATION * min(folded.count("!"), MOST_EXCLAMATIONS)
    total /= math.sqrt(len(hits))
    value = round(total / math.sqrt(total * total + ALPHA), 4)
    weights = dict.fromkeys(order, 0.0)
    for hit in hits:
        if (hit.value > 0) == (total > 0):
            weights[hit.emotion] += abs(hit.value)
    strongest = max(order, key=lambda emotion: weights[emotion])
    strength = "high" if abs(value) >= HIGH else "medium" if abs(value) >= MEDIUM else "low"
    return EmotionLabel(value, f"{strongest}:{strength}")


def _hits(folded: str, cased: str, lexicon: Gazetteer[_Word]) -> list[_Hit]:
    """Emotional words with negation, intensifiers and turns applied, in text order."""
    hits: list[_Hit] = []
    shouting = cased.isupper()
    negator = booster = -1  # where the last one ended
    factor = 1.0
    for start, end, word in lexicon.find(folded):
        if word.kind == "negators":
            negator = end
        elif word.kind in ("intensifiers", "diminishers"):
            if _near(folded, negator, start, 2):
                negator = end
            factor = (factor if _near(folded, booster, start, 0) else 1.0) * (
                BOOST if word.kind == "intensifiers" else DAMP
            )
            booster = end
        elif word.kind == "after":
            if hits and hits[-1].end == start:
                hits[-1].value *= BOOST
        elif word.kind == "turns":
            for hit in hits:
                hit.value *= AFTER_TURN
        elif word.kind == "term":
            value, emotion = word.weight, word.emotion
            if _near(folded, booster, start, 1):
                value *= factor
            if not shouting and end - start > 2 and cased[start:end].isupper():
                value *= SHOUT
            denied = _near(folded, negator, start, 2)
            negator = booster = -1
            if denied and value < 0:
                continue
            if denied:
                value, emotion = value * DENIED_JOY, "frustration"
            hits.append(_Hit(emotion, value, end))
    return hits


def _near(text: str, end: int, start: int, most: int) -> bool:
    """Whether at most ``most`` Chinese characters or Latin words, and no border, lie in between."""
    if end < 0 or start - end > 24:
        return False
    between = text[end:start].strip()
    if not between:
        return True
    if _BORDER.search(between):
        return False
    return len(_LATIN.sub("x", between).replace(" ", "")) <= most


def label_emotions(exchanges: pa.Table, model_set: str) -> pa.Table:
    """EXCHANGES -> EMOTIONS, one row per exchange in the same order, from ``own_text`` alone."""
    rows = [score(text, model_set) for text in own_texts(exchanges)]
    columns = {"emotion_score": [row.score for row in rows], "emotion": [row.label for row in rows]}
    return label_table(exchanges, tables.EMOTIONS, model_set, columns)
