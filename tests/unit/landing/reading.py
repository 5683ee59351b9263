"""Bytes through a reader, for the tests of this folder."""

import io
import json
from typing import Any

from memory_pipelines.landing.mapping import Mapping
from memory_pipelines.landing.readers import RawRow, detect_format, read_rows


def read(
    content: bytes | str, file_format: str | None = None, mapping: Mapping | None = None, name: str = "a.txt"
) -> list[RawRow]:
    data = content.encode() if isinstance(content, str) else content
    return list(read_rows(io.BytesIO(data), file_format or detect_format(name, data[:65536]), mapping, name=name))


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def rows(raws: list[RawRow]) -> list[Any]:
    return [raw.row for raw in raws]


def errors(raws: list[RawRow]) -> list[str | None]:
    return [raw.error for raw in raws]


def column(raws: list[RawRow], *names: str) -> list[Any]:
    """Of each row that was read one value, or a tuple of several."""
    made = [tuple(raw.row[name] for name in names) for raw in raws if raw.row is not None]
    return [values[0] for values in made] if len(names) == 1 else made


class Trickle(io.RawIOBase):
    """A stream that cannot seek and gives few bytes at a time."""

    def __init__(self, data: bytes, piece: int = 7) -> None:
        self._data, self._piece, self.asked = memoryview(data), piece, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self.asked = max(self.asked, size)
        taken = bytes(self._data[: self._piece if size < 0 else min(self._piece, size)])
        self._data = self._data[len(taken) :]
        return taken
