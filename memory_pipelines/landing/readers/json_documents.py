"""JSON documents of any size, one element at a time.

Belongs here: cutting a document into its elements, and going on behind a broken one. Does not belong here: what
an element means. A document is an array; or an object that wraps one (``{"conversations": [...]}``); or objects
one after the other, one a line or not. Memory is bounded by the largest element, never by the file.
"""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.json_lines import read_json_lines
from memory_pipelines.landing.readers.lines import as_stream, blocks
from memory_pipelines.landing.readers.rows import TRUNCATED, Context, RawRow, numbered, unreadable

ELEMENT_LIMIT = 64 << 20
"""Longest element in characters: a conversation of years is one."""
HEAD = 1 << 16
"""So much of a document is looked at to tell which form it has."""

_SPACE = re.compile(r"[\s,]*")
_LEADING = re.compile(r"\s*((?:,\s*)?[^\s,])")
_TOKEN = re.compile(r'\\.|\\$|["{}\[\],]', re.S)
_FIRST_ELEMENT = re.compile(r"\n[ \t]*\{")
_ESCAPED = re.compile("[\udc80-\udcff]")
_DECODER = json.JSONDecoder()


def read_elements(stream: BinaryIO, context: Context, wrappers: tuple[str, ...] = ()) -> Iterator[Any]:
    """The elements of a document: parsed values, or a ``RawRow`` (without a position) where one is broken.

    ``wrappers``: keys of a top-level object under which the elements may be. Other keys of it are passed over.
    """
    text = _Text(_decoded(stream))
    text.more(HEAD)
    form = _form(text.buffer, wrappers)
    if form.lines:
        for row in read_json_lines(as_stream(text.rest()), context):
            yield row if row.row is None else row.row
        return
    text.drop(form.start)
    for value in _split(text, form.array, _pattern(wrappers) if form.wrapped else None):
        yield from _unwrapped(value, wrappers)


def _unwrapped(value: Any, wrappers: tuple[str, ...]) -> list[Any]:
    """The elements of an object that wraps them; anything else is one itself."""
    found = [value[key] for key in wrappers if isinstance(value.get(key), list)] if isinstance(value, dict) else []
    return [element for elements in found for element in elements] if found else [value]


def _pattern(wrappers: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r'"(?:{})"\s*:\s*\['.format("|".join(wrappers)))


def read_json(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Rows of somebody's own table in JSON: each element is an object."""
    return numbered(
        element if isinstance(element, dict | RawRow) else unreadable(_short(json.dumps(element)), "not_an_object")
        for element in read_elements(stream, context)
    )


@dataclass(frozen=True)
class _Form:
    start: int
    array: bool
    lines: bool = False
    wrapped: bool = False


def _form(head: str, wrappers: tuple[str, ...]) -> _Form:
    start = len(head) - len(head.lstrip())
    if head.startswith("[", start):
        return _Form(start + 1, array=True)
    if wrappers and (found := _pattern(wrappers).search(head)):
        return _Form(found.end(), array=True, wrapped=True)
    line = head[start:].split("\n", 1)[0]
    if len(line) < len(head) - start:  # several lines: is each an object, or do they make one?
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            follows = re.search(r"\n\{", head[start:])
            return _Form(start, array=False, lines=follows is not None and not _opens(line))
    return _Form(start, array=False, lines=len(line) < len(head) - start or "\n" not in head)


def _opens(line: str) -> bool:
    """Whether a line can be no more than the beginning of an object written over several lines."""
    return len(line) < 200 and line.rstrip().endswith(("{", "[", ","))


class _Text:
    """A window on decoded text that moves forward only."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self.buffer = ""
        self.ended = False

    def more(self, characters: int) -> None:
        """Read on until the buffer holds so many characters, or the end is reached."""
        parts = [self.buffer]
        size = len(self.buffer)
        while size < characters and not self.ended:
            piece = next(self._pieces, None)
            if piece is None:
                self.ended = True
            else:
                parts.append(piece)
                size += len(piece)
        self.buffer = "".join(parts)

    def drop(self, characters: int) -> None:
        self.buffer = self.buffer[characters:]

    def rest(self) -> Iterator[bytes]:
        """All that is left, as bytes again."""
        yield self.buffer.encode("utf-8", "surrogateescape")
        for piece in self._pieces:
            yield piece.encode("utf-8", "surrogateescape")


def _decoded(stream: BinaryIO) -> Iterator[str]:
    """Text of a document: UTF-8, or GB18030 if its beginning is that. Bytes that do not fit become lone surrogates,
    which ``normalise`` knows."""
    pieces = blocks(stream)
    first = next(pieces)
    while len(first) < HEAD and (more := next(pieces, None)) is not None:
        first += more
    decoder = codecs.getincrementaldecoder(_encoding(first[:HEAD]))("surrogateescape")
    yield decoder.decode(first)
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _encoding(head: bytes) -> str:
    """One bad byte in a UTF-8 document makes it no other encoding: most that is not ASCII must misfit."""
    misfits = len(_ESCAPED.findall(codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head)))
    if not misfits or misfits * 2 < sum(byte > 0x7F for byte in head):
        return "utf-8"
    otherwise = len(_ESCAPED.findall(codecs.getincrementaldecoder("gb18030")("surrogateescape").decode(head)))
    return "gb18030" if otherwise < misfits else "utf-8"


def _split(text: _Text, array: bool, wrapper: re.Pattern[str] | None) -> Iterator[Any]:
    """Elements from the window on; ``array``: up to a closing bracket, which must come; ``wrapper``: how another
    array of elements begins behind it (the next page, say)."""
    newline = _FIRST_ELEMENT.match(text.buffer)
    marker = newline.group() if newline else None
    at = 0
    while True:
        at = _SPACE.match(text.buffer, at).end()  # type: ignore[union-attr]
        if at == len(text.buffer):
            if not text.ended:
                text.drop(at)
                at = 0
                text.more(HEAD)
                continue
            if array:
                yield unreadable("", "cut_off")
            return
        if array and text.buffer[at] == "]":
            text.drop(at + 1)
            at = 0
            if not _closes(text, wrapped=wrapper is not None):
                yield unreadable("]", "malformed_json")  # a stray bracket: elements follow
            elif wrapper is None or not _goes_on(text, wrapper):
                return
            continue
        try:
            value, behind = _DECODER.raw_decode(text.buffer, at)
        except (ValueError, RecursionError):
            pass
        else:
            if behind < len(text.buffer) or text.ended:  # else a number or so may go on
                yield value
                at = behind
                continue
        at, end = _end(text, at)
        follows = -1 if marker is None else text.buffer.find(marker, at + 1, end)
        if end is None and follows < 0:
            yield from _too_long(text)
            at = 0
            continue
        if end is not None:
            try:
                value = _DECODER.decode(text.buffer[at:end])
            except (ValueError, RecursionError):
                pass
            else:
                yield value
                at = end
                continue
        behind = follows if follows > 0 or end is None else end
        yield unreadable(text.buffer[at:behind], "malformed_json")
        at = behind


def _end(text: _Text, at: int) -> tuple[int, int | None]:
    """Where the element at ``at`` begins and ends, reading on as needed, which moves it; None: beyond the limit."""
    depth = _Depth()
    end = depth.feed(text.buffer, at)
    if end is None and not text.ended:
        text.drop(at)
        at = 0
    while end is None and not text.ended:
        fed = len(text.buffer)
        if fed > ELEMENT_LIMIT:
            return 0, None
        text.more(2 * fed + HEAD)
        end = depth.feed(text.buffer, fed)
    return at, len(text.buffer) if end is None else max(end, at + 1)


def _too_long(text: _Text) -> Iterator[RawRow]:
    """Pass over the element at the start of the window, through to its end."""
    kept = text.buffer[:TRUNCATED]
    depth = _Depth()
    while (end := depth.feed(text.buffer, 0)) is None and not text.ended:
        text.drop(len(text.buffer))
        text.more(HEAD)
    text.drop(len(text.buffer) if end is None else end)
    yield unreadable(kept, "record_too_long")


class _Depth:
    """Finds the end of an element by its brackets; text may come in pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def feed(self, text: str, at: int) -> int | None:
        """The index behind the element in ``text``, of which all before ``at`` was fed; None: it goes on."""
        if self._escaped and at < len(text):
            at += 1
            self._escaped = False
        for match in _TOKEN.finditer(text, at):
            token = match.group()
            if token == "\\":
                self._escaped = True
            elif token == '"':
                self._quoted = not self._quoted
            elif self._quoted or token[0] == "\\":
                continue
            elif token in "{[":
                self._depth += 1
            elif token == ",":
                if self._depth == 0:
                    return match.start()
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return match.start() if self._depth < 0 and token == "]" else match.end()
        return None


def _goes_on(text: _Text, wrapper: re.Pattern[str]) -> bool:
    """Move the window to the next array of elements; False at the end. What lies between is passed over."""
    while True:
        found = wrapper.search(text.buffer)
        if found is not None:
            text.drop(found.end())
            return True
        if text.ended:
            return False
        text.drop(max(len(text.buffer) - 256, 0))
        text.more(len(text.buffer) + HEAD)


def _closes(text: _Text, *, wrapped: bool) -> bool:
    """Whether what follows a closing bracket may stand behind an array: nothing; or, in an object, its next key or
    its end."""
    while (follows := _LEADING.match(text.buffer)) is None and not text.ended:
        text.more(len(text.buffer) + HEAD)
    if follows is None:
        return not text.buffer.strip(" \t\r\n,")
    return wrapped and (follows[1] == "}" or (follows[1].startswith(",") and follows[1].endswith('"')))


def _short(text: str) -> str:
    return text[:TRUNCATED]
