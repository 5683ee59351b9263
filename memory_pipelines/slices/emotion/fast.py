"""The fast emotion score of a text: the lexicon, and VADER beside it where the text is English.

Belongs here: how the two are blended. Does not belong here: the lexicon's rules (``words``), labels (``score``).
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from memory_pipelines.slices.emotion.words import Lexicon, Reading, read
from memory_pipelines.slices.language import detect

VADER_CHARS = 5000


@dataclass(frozen=True, slots=True)
class Fast:
    """What the fast scorer finds in one text; ``score`` is the lexicon's value, blended with VADER's in English."""

    reading: Reading
    score: float


def fast(text: str, lexicon: Lexicon) -> Fast:
    """Lexicon, and for English without mockery the mean of it and VADER's compound score; 4 digits."""
    reading = read(text, lexicon)
    value = reading.value
    if lexicon.revision > 1 and not reading.mocked and detect(reading.plain) == "en":
        value = (value + _vader(lexicon.muted).polarity_scores(reading.plain[:VADER_CHARS])["compound"]) / 2
    return Fast(reading, round(value, 4))


@cache
def _vader(muted: frozenset[str]) -> Any:
    """VADER without the words that are none of feeling in a service's mouth."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    for word in muted:
        analyzer.lexicon.pop(word, None)
    return analyzer
