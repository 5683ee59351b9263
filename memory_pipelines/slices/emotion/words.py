"""How the words of the emotion lexicon add up: negation, strengthening, turns, questions, mockery.

Belongs here: the scan of a text against a lexicon, in both revisions of its rules. Does not belong here: the words
(``data/emotion*.yaml``), VADER, what makes a label (``score``).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from memory_pipelines.slices.language import normalise
from memory_pipelines.slices.matching import Gazetteer
from memory_pipelines.slices.resources import read_yaml

ALPHA = {1: 6.0, 2: 12.0}
"""By revision: score = x / sqrt(x^2 + ALPHA), VADER's squashing (Hutto & Gilbert 2014) for strengths 1 to 3. One mild
word gives .38, a clear one .63, a strong one .77; in revision 2, nearer to what people say, .28, .50 and .65."""
BOOST, DAMP, AFTER_TURN, SHOUT = 1.3, 0.6, 0.5, 1.2
DENIED_JOY = -0.8
"""A denied joy is a complaint; a denied anger is no joy, so it does not count."""
DENIED_FAULT = -0.5
"""Revision 2: a denied fault (没有色差, never crashes) is mild praise."""
EXCLAMATION, MOST_EXCLAMATIONS = 0.1, 3
MOCKED, MOCKERY, RHETORICAL = -0.5, -1.5, -1.0
"""Revision 2: praise in a mocking text counts against it; and what mockery and a rhetorical question count."""

FAULT, JOY, ANTICIPATION = "frustration", "joy", "anticipation"

_BORDER = re.compile("[.,;:!?\n。，；：！？、…]")
_EMOJI_NOISE = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_LATIN = re.compile("[a-z']+")
_CLAUSE_END = re.compile("[.;!?\n。；！？…]|$")
_ASKS_ZH = re.compile("[吗么嘛]$|怎么样$|如何$|好不好$")
_ASKS_EN = re.compile(
    r"^\W*(?:(?:hi|hello|hey|and|so|but|or)\W+)*(?:is|are|was|does|do|did|can|could|would|will|which|what|what's|how|where|who|when|any|has|have)\b"
)
_APART = re.compile(r"(?<=[A-Za-z]) ?n ' ?t\b| n't\b| ' (?=(?:s|t|m|d|re|ve|ll)\b)")
"""Contractions that a tokenizer took apart."""


@dataclass(frozen=True, slots=True)
class Word:
    """What an entry of the lexicon stands for; only a ``term`` has an emotion and a signed weight."""

    kind: str
    emotion: str = ""
    weight: float = 0.0


@dataclass(frozen=True)
class Lexicon:
    """``order``: the emotions, the first wins a tie. ``revision``: of the rules (1 or 2)."""

    words: Gazetteer[Word]
    order: tuple[str, ...]
    revision: int
    muted: frozenset[str]


@dataclass(slots=True)
class Hit:
    emotion: str
    value: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reading:
    """``value``: the squashed sum in (-1, 1), 0.0 without emotional words; ``weights``: by emotion, of the sum's sign.

    ``plain``: the text as it was scanned, its case kept and, in revision 2, neutral phrases replaced by ``_``.
    ``mocked``: whether it holds mockery."""

    value: float
    weights: Mapping[str, float]
    plain: str
    hits: int
    mocked: bool = False


@cache
def load_lexicon(*files: str) -> Lexicon:
    """The lexicon of these files of the package data, a later one's words before an earlier one's.

    One file is revision 1, two are revision 2."""
    sources = [read_yaml(file) for file in files]
    words: dict[str, Word] = {}
    neutral: dict[str, Word] = {}
    order: list[str] = []
    for source in sources:
        for kind in ("turns", "after", "diminishers", "intensifiers", "negators", "mockery", "rhetorical"):
            words |= dict.fromkeys(_words(source.get(kind, {})), Word(kind))
        for emotion, entry in source["emotions"].items():
            order += [emotion] if emotion not in order else []
            for script in ("zh", "en", "emoji"):
                for strength, block in entry.get(script, {}).items():
                    value = Word("term", emotion, float(entry["sign"] * strength))
                    words |= dict.fromkeys(_words({script: block}), value)
        neutral |= dict.fromkeys(_words(source["neutral"]), Word("neutral"))
    muted = frozenset(sources[-1].get("mute_vader", "").split())
    return Lexicon(Gazetteer(words | neutral), tuple(order), len(sources), muted)


def _words(blocks: Mapping[str, Any]) -> list[str]:
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


def read(text: str, lexicon: Lexicon) -> Reading:
    """Scan one text; only its first ``language.MAX_CHARS`` characters count."""
    simple = normalise(text)
    if not simple.isascii():
        simple = _EMOJI_NOISE.sub("", simple)
    if lexicon.revision > 1 and (" ' " in simple or " n't" in simple):
        simple = _APART.sub(lambda found: "n't" if "n" in found[0] else "'", simple)
    folded = simple.lower()
    cased = simple if len(simple) == len(folded) else folded
    hits, plain, mocked = _hits(folded, cased, lexicon)
    total = sum(hit.value for hit in hits)
    if not hits or abs(total) < 1e-9:
        return Reading(0.0, {}, plain, 0, mocked)
    total *= 1 + EXCLAMATION * min(folded.count("!"), MOST_EXCLAMATIONS)
    total /= math.sqrt(len(hits))
    weights = dict.fromkeys(lexicon.order, 0.0)
    for hit in hits:
        if (hit.value > 0) == (total > 0):
            weights[hit.emotion] += abs(hit.value)
    return Reading(total / math.sqrt(total * total + ALPHA[lexicon.revision]), weights, plain, len(hits), mocked)


def _hits(folded: str, cased: str, lexicon: Lexicon) -> tuple[list[Hit], str, bool]:
    """Emotional words with negation, intensifiers and turns applied; the text without neutral ones; if it mocks."""
    hits: list[Hit] = []
    shouting = cased.isupper()
    negator = booster = -1  # where the last one ended
    factor = 1.0
    mocking: list[Hit] = []
    kept: list[str] = []
    done = 0
    second = lexicon.revision > 1
    for start, end, word in lexicon.words.find(folded):
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
        elif word.kind == "neutral":
            if second:
                kept += [cased[done:start], "_"]
                done = end
        elif word.kind in ("mockery", "rhetorical"):
            mocking.append(Hit(FAULT, MOCKERY if word.kind == "mockery" else RHETORICAL, start, end))
        else:
            value, emotion = word.weight, word.emotion
            if _near(folded, booster, start, 1):
                value *= factor
            if not shouting and end - start > 2 and cased[start:end].isupper():
                value *= SHOUT
            denied = _near(folded, negator, start, 2)
            negator = booster = -1
            if denied and value < 0:
                if not second or emotion != FAULT:
                    continue
                value, emotion = value * DENIED_FAULT, JOY
            elif denied:
                value, emotion = value * DENIED_JOY, FAULT
            hits.append(Hit(emotion, value, start, end))
    if second:
        hits = _second_thoughts(hits, mocking, folded)
    return hits, "".join([*kept, cased[done:]]), bool(mocking)


def _second_thoughts(hits: list[Hit], mocking: list[Hit], folded: str) -> list[Hit]:
    """Questions about a quality have none; mockery turns praise; who cannot wait amid complaints complains."""
    kept = [hit for hit in hits if not _asked(hit, folded)]
    angry = bool(mocking) or any(hit.value < 0 for hit in kept)
    for hit in kept:
        if mocking and hit.value > 0:
            hit.value, hit.emotion = hit.value * MOCKED, FAULT
        elif angry and hit.emotion == ANTICIPATION:
            hit.value, hit.emotion = -hit.value / 2, FAULT
    return kept + mocking


def _asked(hit: Hit, folded: str) -> bool:
    """Whether the clause of a mild or clear word asks for it: 好吃吗, is it any good?"""
    if abs(hit.value) > 2:
        return False
    found = _CLAUSE_END.search(folded, hit.end)
    end = found.start() if found else len(folded)
    if end - hit.end > 60:
        return False
    before = max((folded.rfind(mark, 0, hit.start) for mark in ".;!?\n。；！？…"), default=-1)
    clause = folded[before + 1 : end].strip()
    if _ASKS_ZH.search(clause):
        return hit.value > 0 or end - hit.end <= 2
    return hit.value > 0 and folded[end : end + 1] in ("?", "？") and bool(_ASKS_EN.search(clause))


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
