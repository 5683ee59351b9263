"""A pack: everything that a recall needs of one subject at one epoch, as one string of bytes.

Belongs here: the byte form, made and read. Does not belong here: which subjects have one (``pipeline.packs``), where it
lies (``source``), what is computed with it.

After ``MAGIC`` and a digest of all that follows come the length of a header in JSON, the header, and sections that it
names: arrays as they lie in memory, lists of strings as JSON, rows as lines of JSON in compressed blocks of a few.
Arrays are views of the bytes; strings are read on first use, rows one by one. No owner's name is in it, and nothing
that executes. See docs/adr/0013-packs.md.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner, iso, stable_hash
from memory_pipelines.recall.adjacency import Adjacency, Links
from memory_pipelines.recall.bm25 import Postings
from memory_pipelines.recall.columns import Columns
from memory_pipelines.recall.instants import Ints
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.stores.quantise import Quantised

MAGIC = b"mpack\x00\x00\x01"
"""The last byte is the version of the form."""
DIGEST = 16
ROWS_A_BLOCK = 16
"""Rows that are compressed together: fewer cost size, more cost time when one of them is told."""
CODEC = "zstd"

_NAMES = tuple(f.name for f in fields(StoredMemory) if f.name != "owner")
_TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at", "admitted_at", "accessed_at")
_LISTS = ("entities", "slice_ids", "source_turn_ids", "stores")
_ARRAYS = (
    "occurred",
    "since",
    "activations",
    "expires",
    "valid_from",
    "valid_to",
    "impact",
    "trust",
    "episodic",
    "fact",
    "language",
    "predicate",
)
_STRINGS = ("memory_ids", "versions", "languages", "predicates")
_POSTINGS = ("lengths", "starts", "rows", "counts")


@dataclass(frozen=True)
class Embedded:
    """Vectors of some rows, by the model that made them: its id and the hash of its weights. Of ``left_out`` more the
    vector store knows."""

    model_id: str
    digest: str
    rows: Ints
    vectors: Quantised
    left_out: int = 0


@dataclass(frozen=True)
class Pack:
    """What one subject's memories are at an epoch. ``vectors`` and ``graph`` are None where they are not in it, and the
    stores have to be asked; ``made``: by the jobs, with what there is of both; ``size`` in bytes."""

    owner: Owner
    epoch: int
    rows: Sequence[StoredMemory]
    columns: Columns
    vectors: Embedded | None
    graph: Adjacency | None
    made: bool = False
    size: int = 0


def form(model_id: str) -> str:
    """What a pack has to be made with to be read by this version, with vectors of the model."""
    return f"{model_id}/{stable_hash(MAGIC.hex(), CODEC, *_NAMES)[:8]}"


def in_order(owner: Owner, rows: Sequence[StoredMemory]) -> list[StoredMemory]:
    """The owner's rows, newest ``occurred_at`` first, then by memory id: a row's position breaks every tie.

    Rows of others are dropped: whatever a cache or an authority answers, they never pass."""
    newest = sorted((row for row in rows if row.owner == owner), key=lambda row: row.memory_id)
    return sorted(newest, key=lambda row: row.occurred_at, reverse=True)


def dump(pack: Pack) -> bytes:
    """The byte form. ``pack.rows`` are in order, ``pack.columns`` theirs."""
    made = _Writer()
    columns = pack.columns
    for name in _ARRAYS:
        made.array(name, getattr(columns, name))
    for name in _STRINGS:
        made.strings(name, getattr(columns, name))
    for name, postings in (("words", columns.words), ("claims", columns.claims)):
        made.strings(f"{name}.terms", postings.terms)
        for part in _POSTINGS:
            made.array(f"{name}.{part}", getattr(postings, part))
    made.strings("speakers", tuple(columns.speakers))
    told = [columns.speakers[name] for name in columns.speakers]
    made.array("speakers.ends", np.cumsum([len(rows) for rows in told], dtype=np.int64))
    made.array("speakers.rows", np.concatenate(told) if told else np.zeros(0, np.int64))
    _put_rows(made, pack.rows)
    header: dict[str, Any] = {"owner": pack.owner.key, "epoch": pack.epoch, "made": pack.made, "fields": _NAMES}
    header["codec"] = CODEC
    if pack.vectors is not None:
        header |= {"model": pack.vectors.model_id, "weights": pack.vectors.digest, "left_out": pack.vectors.left_out}
        made.array("vectors.rows", pack.vectors.rows)
        made.array("vectors", pack.vectors.vectors.numbers)
        made.array("vectors.scales", pack.vectors.vectors.scales)
    if pack.graph is not None:
        header |= {"graph": True}
        made.strings("entities", pack.graph.entities)
        for name, links in (("direct", pack.graph.direct), ("mentions", pack.graph.mentions)):
            for part in ("source", "target", "weight"):
                made.array(f"{name}.{part}", getattr(links, part))
    return made.whole(header)


def load(owner: Owner, raw: bytes) -> Pack:
    """A pack from :func:`dump`. Raises IntegrityError if the bytes are of another form, damaged, or somebody else's."""
    try:
        header, body = _header(raw)
        if _digest(memoryview(raw)[len(MAGIC) + DIGEST :]) != raw[len(MAGIC) : len(MAGIC) + DIGEST]:
            raise ValueError
        if header["owner"] != owner.key or tuple(header["fields"]) != _NAMES or header["codec"] != CODEC:
            raise ValueError
        return _pack(owner, header, _Reader(header["sections"], body), len(raw))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, UnicodeError):
        raise IntegrityError("a pack cannot be read") from None


def _pack(owner: Owner, header: Mapping[str, Any], held: "_Reader", size: int) -> Pack:
    told: dict[str, Any] = {name: held.array(name) for name in _ARRAYS}
    told |= {name: held.strings(name) for name in _STRINGS}
    for name in ("words", "claims"):
        parts = {part: held.array(f"{name}.{part}") for part in _POSTINGS}
        told[name] = Postings(terms=held.strings(f"{name}.terms"), **parts)
    ends = held.array("speakers.ends").tolist()
    spoken = np.split(held.wide("speakers.rows"), ends[:-1]) if ends else []
    columns = Columns(**told, speakers=dict(zip(held.strings("speakers"), spoken, strict=True)))
    vectors = graph = None
    if "model" in header:
        quantised = Quantised(held.array("vectors"), held.array("vectors.scales"))
        at = held.wide("vectors.rows")
        vectors = Embedded(header["model"], header["weights"], at, quantised, header["left_out"])
    if "graph" in header:
        links = [
            Links(held.wide(f"{name}.source"), held.wide(f"{name}.target"), held.array(f"{name}.weight"))
            for name in ("direct", "mentions")
        ]
        graph = Adjacency(held.strings("entities"), *links)
    return Pack(owner, header["epoch"], _Rows(owner, held), columns, vectors, graph, header["made"], size)


def _digest(content: bytes | memoryview) -> bytes:
    """SHA-256, cut: of the good ones the quickest where the processor knows it (12 MB: 8 ms, BLAKE2b 24)."""
    return hashlib.sha256(content).digest()[:DIGEST]


# ---- sections


class _Writer:
    """Sections, one after the other, each where an array of its kind may begin."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._sections: dict[str, tuple[int, int, str, list[int]]] = {}
        self._end = 0

    def raw(self, name: str, content: bytes, kind: str = "", shape: Sequence[int] = ()) -> None:
        self._sections[name] = (self._end, len(content), kind, list(shape))
        padded = content + bytes(-len(content) % 8)
        self._parts.append(padded)
        self._end += len(padded)

    def array(self, name: str, values: NDArray[Any]) -> None:
        """Whole numbers as narrow as they may be."""
        if values.dtype.kind in "iu" and values.ndim == 1 and len(values) and values.min() >= 0:
            widths = (np.uint8, np.uint16, np.uint32, np.int64)
            values = values.astype(next(kind for kind in widths if values.max() <= np.iinfo(kind).max))
        self.raw(name, np.ascontiguousarray(values).tobytes(), values.dtype.str, values.shape)

    def strings(self, name: str, items: Sequence[str]) -> None:
        self.raw(
            name, json.dumps(tuple(items), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        )

    def whole(self, header: Mapping[str, Any]) -> bytes:
        told = json.dumps({**header, "sections": self._sections}, separators=(",", ":")).encode()
        told += b" " * (-len(told) % 8)
        rest = b"".join([len(told).to_bytes(8, "little"), told, *self._parts])
        return MAGIC + _digest(rest) + rest


class _Reader:
    """Sections of a body by name."""

    def __init__(self, sections: Mapping[str, Sequence[Any]], body: memoryview) -> None:
        self._sections = sections
        self._body = body

    def raw(self, name: str) -> memoryview:
        start, length = self._sections[name][:2]
        return self._body[start : start + length]

    def array(self, name: str) -> NDArray[Any]:
        _, _, kind, shape = self._sections[name]
        return np.frombuffer(self.raw(name), dtype=np.dtype(kind)).reshape(shape)

    def wide(self, name: str) -> Ints:
        """Whole numbers in 64 bits, for what is used as an index."""
        return self.array(name).astype(np.int64)

    def strings(self, name: str) -> Sequence[str]:
        return _Strings(self.raw(name))


def _header(raw: bytes) -> tuple[dict[str, Any], memoryview]:
    start = len(MAGIC) + DIGEST + 8
    try:
        if raw[: len(MAGIC)] != MAGIC:
            raise ValueError
        length = int.from_bytes(raw[start - 8 : start], "little")
        header = json.loads(raw[start : start + length])
        return dict(header), memoryview(raw)[start + length :]
    except (ValueError, TypeError):
        raise IntegrityError("a pack cannot be read") from None


class _Strings(Sequence[str]):
    """A list of strings that is read when it is first used."""

    def __init__(self, raw: memoryview) -> None:
        self._raw = raw
        self._items: list[str] | None = None

    def _read(self) -> list[str]:
        if self._items is None:
            self._items = json.loads(bytes(self._raw).decode("utf-8", "surrogatepass"))
        return self._items

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._read()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


# ---- rows


def _put_rows(made: _Writer, rows: Sequence[StoredMemory]) -> None:
    codec = pa.Codec(CODEC)
    lines = [_line(row) for row in rows]
    blocks = [b"".join(lines[start : start + ROWS_A_BLOCK]) for start in range(0, len(lines), ROWS_A_BLOCK)]
    packed = [codec.compress(block, asbytes=True) for block in blocks]
    made.array("rows.lengths", np.array([len(line) for line in lines], dtype=np.int64))
    made.array("rows.ends", np.cumsum([len(block) for block in packed], dtype=np.int64))
    made.raw("rows", b"".join(packed))


def _line(row: StoredMemory) -> bytes:
    values = [getattr(row, name) for name in _NAMES]
    said = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=_encode)
    return said.encode("utf-8", "surrogatepass")  # old logs may hold surrogates


def _encode(value: object) -> str:
    if isinstance(value, datetime):
        return iso(value)
    raise TypeError(type(value).__name__)


class _Rows(Sequence[StoredMemory]):
    """Rows that are read one by one, each once."""

    def __init__(self, owner: Owner, held: _Reader) -> None:
        self._owner = owner
        self._packed = held.raw("rows")
        self._ends = held.array("rows.ends")
        lengths = held.wide("rows.lengths")
        self._begins = np.concatenate(([0], np.cumsum(lengths)))
        self._read: dict[int, StoredMemory] = {}

    def __len__(self) -> int:
        return len(self._begins) - 1

    @overload
    def __getitem__(self, index: int) -> StoredMemory: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[StoredMemory]: ...
    def __getitem__(self, index: int | slice) -> StoredMemory | Sequence[StoredMemory]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        found = self._read.get(row)
        if found is None:
            found = self._read[row] = self._made(row)
        return found

    def _made(self, row: int) -> StoredMemory:
        number = row // ROWS_A_BLOCK
        first = self._begins[number * ROWS_A_BLOCK]
        start, end = self._begins[row] - first, self._begins[row + 1] - first
        return _row(self._owner, self._block(number)[start:end])

    def _block(self, number: int) -> bytes:
        first = number * ROWS_A_BLOCK
        last = min(first + ROWS_A_BLOCK, len(self))
        start = int(self._ends[number - 1]) if number else 0
        packed = self._packed[start : int(self._ends[number])]
        size = int(self._begins[last] - self._begins[first])
        return bytes(pa.Codec(CODEC).decompress(packed, decompressed_size=size, asbytes=True))


def _row(owner: Owner, line: bytes) -> StoredMemory:
    values = dict(zip(_NAMES, json.loads(line.decode("utf-8", "surrogatepass")), strict=True))
    for name in _TIMES:
        values[name] = None if values[name] is None else datetime.fromisoformat(values[name])
    for name in _LISTS:
        values[name] = tuple(values[name])
    return StoredMemory(owner=owner, **values)
