"""The worth model: features to the shares of long, short and discard.

Belongs here: inference. Does not belong here: features (``features``), training (``training``), what
the gate does with it. Sums run in the order of a text's features, so a text has the same shares in any batch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

import numpy as np

from memory_pipelines.admission.worth.features import features

LABELS = ("long", "short", "discard")
UNIT = 1000
"""A weight of 1.0."""
WEIGHTS = "worth_model.npz"


@dataclass(frozen=True, slots=True)
class Worth:
    """Probabilities of the three labels, 4 digits."""

    long: float
    short: float
    discard: float


@dataclass(frozen=True)
class WorthModel:
    """``weights``: feature → weight of each label in units of 1/``UNIT``; ``bias`` likewise."""

    weights: Mapping[str, list[int]]
    bias: tuple[int, ...]

    def judge(self, text: str) -> Worth:
        """The worth of one text; a text without a known feature has the shares of the bias."""
        weights = self.weights
        long = short = discard = squares = 0.0
        for name, value in features(text).items():
            if row := weights.get(name):
                squares += value * value
                long += value * row[0]
                short += value * row[1]
                discard += value * row[2]
        length = math.sqrt(squares) or 1.0
        sums = (long, short, discard)
        scores = [(total / length + bias) / UNIT for total, bias in zip(sums, self.bias, strict=True)]
        top = max(scores)
        shares = [math.exp(score - top) for score in scores]
        total = math.fsum(shares)
        return Worth(*(round(share / total, 4) for share in shares))


@lru_cache(maxsize=1 << 14)
def worth_of_text(text: str) -> Worth:
    """What the model that ships says of a text; the commonest texts of service come again and again."""
    return worth_model().judge(text)


@cache
def worth_model() -> WorthModel:
    """The model that ships."""
    with resources.files("memory_pipelines.admission").joinpath("data", WEIGHTS).open("rb") as file:
        stored = np.load(file)
        names = stored["names"].tobytes().decode().split("\n")
        return WorthModel(dict(zip(names, stored["weights"].tolist(), strict=True)), tuple(stored["bias"].tolist()))
