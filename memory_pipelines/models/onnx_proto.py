"""ONNX models written by hand: the few messages of its protobuf schema that a graph of matrices needs.

Belongs here: bytes that onnxruntime loads. Does not belong here: any model's layers. The package ``onnx``
would write the same and is ten times the size of this library. Field numbers: onnx.proto3 of IR version 8.
"""

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CONTRIB = "com.microsoft"
IR_VERSION = 8
OPSET = 17
FLOAT = 1
INT64 = 7
_TYPES = {"float32": FLOAT, "uint8": 2, "int8": 3, "int32": 6, "int64": INT64}
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7

Attribute = int | float | Sequence[int]


def _varint(number: int) -> bytes:
    """Base 128, least significant group first; a negative number as its 64-bit two's complement."""
    number &= (1 << 64) - 1
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _repeated(number: int, values: Sequence[int | str | bytes]) -> bytes:
    return b"".join(_field(number, value) for value in values)


def tensor(name: str, array: NDArray[np.generic]) -> bytes:
    """A TensorProto: a constant of the graph."""
    raw = _field(9, np.ascontiguousarray(array).tobytes())
    return _repeated(1, array.shape) + _field(2, _TYPES[array.dtype.name]) + _field(8, name) + raw


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Attribute) -> bytes:
    """A NodeProto: one operator of ``domain`` (empty: ONNX's own) between named values."""
    settings = b"".join(_field(5, _attribute(name, value)) for name, value in attributes.items())
    return _repeated(1, inputs) + _repeated(2, outputs) + _field(4, kind) + settings + _field(7, domain)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, _ATTRIBUTE_INT)
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, _ATTRIBUTE_FLOAT)
    return _field(1, name) + _repeated(8, value) + _field(20, _ATTRIBUTE_INTS)


def value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """A ValueInfoProto: an input or output; a dimension is a number, or a name for one that varies."""
    dimensions = [_field(1, d) if isinstance(d, int) else _field(2, d) for d in shape]
    described = _field(1, kind) + _field(2, _repeated(1, dimensions))
    return _field(1, name) + _field(2, _field(1, described))


def model(
    nodes: Sequence[bytes], constants: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes]
) -> bytes:
    """A ModelProto of these nodes, in an order in which every value is made before it is read."""
    graph = _repeated(1, nodes) + _field(2, "graph") + _repeated(5, constants)
    graph += _repeated(11, inputs) + _repeated(12, outputs)
    opsets = [_field(1, "") + _field(2, OPSET), _field(1, CONTRIB) + _field(2, 1)]
    return _field(1, IR_VERSION) + _field(7, graph) + _repeated(8, opsets)
