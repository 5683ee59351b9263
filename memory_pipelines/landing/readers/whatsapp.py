"""WhatsApp's text export, in the ways in which telephones of several languages write it.

Belongs here: where a message begins, who wrote it, when. Does not belong here: the zone of its clock
(``mapping``). Each author is a user. Whether 03/04/24 is in March or in April is told by the first ``HEAD``
messages, per separator: the order under which their dates exist and go back least; still in doubt, the one that
the form suggests; ``date_order`` of the mapping is over all of it. Lines of the application itself (encryption,
members, calls, deleted messages) have the role ``system``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, BinaryIO

from memory_pipelines.landing.readers.lines import text_lines
from memory_pipelines.landing.readers.rows import (
    LINE_LIMIT,
    TRUNCATED,
    Context,
    RawRow,
    Record,
    beginning,
    numbered,
    unreadable,
)

HEAD = 1000
"""So many messages tell the order of dates."""
FIRST_YEAR = 2009

_MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
_BLANK = "[ \u00a0\u202f\u2009]"
_HALF = "上午|下午|凌晨|清晨|早上|中午|傍晚|晚上|午前|午後|오전|오후|[AaPp]\\.?[ \u00a0\u202f]?[Mm](?![A-Za-z])\\.?"
_BEGIN = re.compile(
    rf"[{_MARKS}]*(?P<open>\[)?(?P<a>\d{{1,4}})(?P<sep>[./\-年])(?P<b>\d{{1,2}})[./\-月](?P<c>\d{{1,4}})日?"
    rf"[,，]?{_BLANK}*(?:um |at |à |alle |a las )?(?:(?P<before>{_HALF}){_BLANK}*)?"
    rf"(?P<hour>\d{{1,2}})[:.](?P<minute>\d\d)(?:[:.](?P<second>\d\d))?(?:(?:{_BLANK}*|_)(?P<after>{_HALF}))?"
    rf"(?:(?(open)\]|(?!)){_BLANK}*|{_BLANK}+[-–]{_BLANK}*)(?P<rest>.*)",
    re.S | re.A,
)
_AUTHOR = re.compile(
    rf"[{_MARKS}]*(?:~{_BLANK}*)?(?P<author>[^:：\"“”\n]{{1,100}}?)(?:：{_BLANK}?|:(?:{_BLANK}|$))(?P<text>.*)", re.S
)
_APPLICATION = re.compile(
    r"end-to-end encrypt|端到端加密|端对端加密|^This message was deleted\.?$|^You deleted this message\.?$|"
    r"^此[消訊]息已[被]?[删刪]除|^[您你]已?[删刪]除了?此[消訊]息|^Diese Nachricht wurde gelöscht|"
    r"^(?:Missed )?(?:voice|video) call$",
    re.I,
)
_MEDIA = re.compile(
    rf"[{_MARKS}]*(?:<(?:attached|附件|anexado|adjunto|Anhang)[:：] ?(?P<named>[^<>]+)>|"
    r"(?P<file>[^\n<>]{1,200}?\.\w{2,5}) \((?:file attached|文件附件|附件|Datei angehängt|archivo adjunto)\)|"
    r"<(?:Media omitted|Medien ausgeschlossen|Multimedia omitido|Médias omis|媒体文件已省略|已忽略多?媒体文?件?|"
    r"[^<>]{0,20}(?:omitted|省略)[^<>]{0,20})>|"
    r"(?:image|video|audio|sticker|GIF|document|Contact card) omitted|"
    r"(?:[图圖][像片]|[视影視][频片頻]|[音语語][频訊頻]|[贴貼][图圖])已[忽省]略)",
    re.I,
)
_AFTERNOON = frozenset({"下午", "傍晚", "晚上", "午後", "오후"})


@dataclass
class _Message:
    """A line with a time, and the lines that go on from it."""

    begin: re.Match[str]
    lines: list[str]
    too_long: bool = False

    @property
    def raw(self) -> str:
        return "\n".join(self.lines)


def begins(line: str) -> bool:
    """Whether a line is the first of a message."""
    return _BEGIN.match(line) is not None


def read_whatsapp(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Each message. Lines before the first one are no message: they are yielded as ``malformed_line``."""
    return numbered(whatsapp_records(stream, context))


def whatsapp_records(stream: BinaryIO, context: Context) -> Iterator[Record]:
    """The messages, without positions."""
    pieces = _pieces(stream)
    head = beginning(pieces, HEAD, lambda piece: len(piece.raw))
    messages = [piece for piece in head if isinstance(piece, _Message)]
    orders = _orders([message.begin for message in messages])
    chat = _chat(context.name, messages)
    for piece in chain(head, pieces):
        if isinstance(piece, RawRow):
            yield piece
        elif piece.too_long:
            yield unreadable(piece.raw[:TRUNCATED], "line_too_long")
        else:
            yield _row(piece, chat, context.mapping.date_order or orders.get(piece.begin["sep"], "dmy"))


def _pieces(stream: BinaryIO) -> Iterator[_Message | RawRow]:
    message: _Message | None = None
    size = 0
    for line, too_long in text_lines(stream):
        begin = _BEGIN.match(line)
        if begin is not None:
            if message is not None:
                yield message
            message, size = _Message(begin, [line], too_long), len(line)
        elif message is None:
            if line.strip():
                yield unreadable(line, "line_too_long" if too_long else "malformed_line")
        else:
            size += len(line) + 1
            message.too_long = message.too_long or too_long or size > LINE_LIMIT
            if not message.too_long or len(message.lines) == 1:
                message.lines.append(line[: LINE_LIMIT + 1])
    if message is not None:
        yield message


def _row(message: _Message, chat: str, order: str) -> dict[str, Any]:
    at = _at(message.begin, order)
    said = _AUTHOR.match(message.begin["rest"])
    row: dict[str, Any] = {"conversation_id": chat, "occurred_at": at, "origin": "whatsapp"}
    if said is None:
        return row | {"role": "system", "text": "\n".join([message.begin["rest"], *message.lines[1:]])}
    author = said["author"].strip()
    first = said["text"]
    row |= {"author": author, "user_id": author, "role": "user"}
    media = _MEDIA.match(first)
    if media is not None:  # what remains is the caption; a picture alone says nothing, and step 1 counts it as empty
        row["attachment"] = media["named"] or media["file"]
        first = first[media.end() :].strip()
    elif first.startswith("\u200e") or _APPLICATION.search(first):
        row |= {"role": "system", "user_id": None}
    row["text"] = "\n".join([first, *message.lines[1:]]).strip("\n")
    return row


def _at(begin: re.Match[str], order: str) -> str:
    """Local time as RFC 3339 without a zone; what is no date stays as it is written, and is no time later."""
    written = begin.string[begin.start("a") : begin.start("rest")].strip("] -–")
    day = _date(begin, order)
    hour, half = int(begin["hour"]), begin["before"] or begin["after"]
    if half is not None:
        hour = _hour(hour, half)
    try:
        return datetime(*day, hour, int(begin["minute"]), int(begin["second"] or 0)).isoformat()  # noqa: DTZ001
    except (TypeError, ValueError):
        return written


def _hour(hour: int, half: str) -> int:
    """Of 24: 12 AM is 0, 12 PM is 12; 中午1点 is 13, 晚上12点 is 0."""
    if half == "中午":
        return hour if hour >= 11 else hour + 12
    if half == "晚上" and hour == 12:
        return 0
    if half in _AFTERNOON or half[0] in "pP":
        return hour if hour >= 12 else hour + 12
    return 0 if hour == 12 else hour


def _date(begin: re.Match[str], order: str) -> tuple[int, int, int]:
    a, b, c = int(begin["a"]), int(begin["b"]), int(begin["c"])
    if len(begin["a"]) == 4 or begin["sep"] == "年":
        return _year(a), b, c
    if order == "ymd" and len(begin["c"]) <= 2:
        return _year(a), b, c
    return (_year(c), a, b) if order == "mdy" else (_year(c), b, a)


def _year(number: int) -> int:
    return number + 2000 if number < 100 else number


def _orders(begins: list[re.Match[str]]) -> dict[str, str]:
    """The order of dates per separator."""
    by_separator: dict[str, list[re.Match[str]]] = {}
    for begin in begins:
        by_separator.setdefault(begin["sep"], []).append(begin)
    return {separator: _order(found) for separator, found in by_separator.items()}


def _order(begins: list[re.Match[str]]) -> str:
    short = all(len(b["a"]) <= 2 and len(b["c"]) <= 2 for b in begins)
    american = begins[0]["sep"] == "/" and any(len(b["a"]) == 1 or len(b["b"]) == 1 for b in begins) and short
    candidates = ["mdy", "dmy"] if american else ["dmy", "mdy"]
    if short and any((b["before"] or b["after"] or "a")[0] > "\u2e80" for b in begins):
        candidates.insert(0, "ymd")  # telephones that say 下午
    elif short and begins[0]["sep"] == "-":
        candidates.append("ymd")
    return min(candidates, key=lambda order: _faults(begins, order))  # the first of equals


def _faults(begins: list[re.Match[str]], order: str) -> tuple[int, int]:
    """Dates that do not exist, or are of years before WhatsApp did; and steps back in time."""
    missing = back = 0
    last: datetime | None = None
    for begin in begins:
        try:
            at = datetime(*_date(begin, order))  # noqa: DTZ001
        except ValueError:
            missing += 1
            continue
        missing += at.year < FIRST_YEAR
        back += last is not None and at < last
        last = at
    return missing, back


def _chat(name: str, messages: list[_Message]) -> str:
    """A name for the chat: the file's, without what marks a second copy; of an iPhone's ``_chat`` the title inside."""
    stem = re.split(r"[/\\]", name)[-1].removesuffix(".txt")
    stem = re.sub(r"(?: ?\(\d+\)| - copy)$", "", stem, flags=re.I).strip()
    if stem in ("", "_chat") and messages:
        said = _AUTHOR.match(messages[0].begin["rest"])
        if said is not None and _APPLICATION.search(said["text"]):
            return said["author"].strip()
    return stem or "whatsapp"
