"""Bytes become lines: byte order marks, encodings, and a bound on the length of a line.

Belongs here: what all formats of lines share. Does not belong here: what a line says.
"""

import codecs
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.rows import LINE_LIMIT, TRUNCATED

BLOCK = 1 << 18
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UNREADABLE = b"\xff"
"""No byte of UTF-8, nor of GB18030 at the end of a line."""


def blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes without a byte order mark; UTF-16, which must have one, as UTF-8."""
    first = stream.read(BLOCK)
    while len(first) < 3 and (more := stream.read(BLOCK)):
        first += more
    encoding = _UTF16.get(first[:2])
    if encoding is None:
        yield first.removeprefix(codecs.BOM_UTF8)
        while block := stream.read(BLOCK):
            yield block
        return
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    block = first[2:]
    while block:
        yield decoder.decode(block).encode("utf-8", "surrogatepass")
        block = stream.read(BLOCK)
    if decoder.getstate()[0]:
        yield _UNREADABLE


class _Bytes(io.RawIOBase):
    """Blocks as a stream, for what reads lines in C."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def as_stream(pieces: Iterator[bytes]) -> BinaryIO:
    """Pieces of bytes as a buffered stream."""
    return io.BufferedReader(_Bytes(pieces), BLOCK)


def split_lines(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """``(line with its end, too long)``; lines end in LF.

    One of more than ``LINE_LIMIT`` bytes is cut short, so memory is bounded by the longest line that may be."""
    reader = as_stream(blocks(stream))
    while line := reader.readline(LINE_LIMIT + 1):
        if len(line) <= LINE_LIMIT:
            yield line, False
        else:
            kept = line[:TRUNCATED]
            while line and not line.endswith(b"\n"):
                line = reader.readline(BLOCK)
            yield kept, True


def decode(line: bytes) -> str | None:
    """UTF-8, else GB18030 (a superset of GBK), else None."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def decode_anyhow(line: bytes) -> str:
    """As ``decode``; bytes that fit no encoding become lone surrogates, which ``normalise`` knows."""
    text = decode(line)
    return line.decode("utf-8", "surrogateescape") if text is None else text


def text_lines(stream: BinaryIO) -> Iterator[tuple[str, bool]]:
    """``(line without its end, too long)`` of a log; a lone CR ends no line."""
    for line, too_long in split_lines(stream):
        yield decode_anyhow(line).rstrip("\r\n"), too_long
