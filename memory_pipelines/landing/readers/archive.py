"""Zip archives as services hand them out: a whole Slack export, ChatGPT's, a WhatsApp chat of an iPhone.

Belongs here: which members of an archive are read, and by which reader. Does not belong here: what is in them.
"""

import lzma
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from memory_pipelines.errors import InputError
from memory_pipelines.landing.readers.chatgpt import chatgpt_records
from memory_pipelines.landing.readers.json_documents import read_elements
from memory_pipelines.landing.readers.rows import Context, RawRow, Record, numbered, unreadable
from memory_pipelines.landing.readers.slack import DAY_FILE, day_records
from memory_pipelines.landing.readers.whatsapp import whatsapp_records

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
)
"""What reading a broken, encrypted or exotic member raises."""


def read_zip(stream: BinaryIO, context: Context) -> Iterator[RawRow]:
    """Rows of all members that are logs, in order of their paths. A member that is damaged ends in one error row,
    ``damaged_member``. Raises InputError where the archive holds no log, or is none."""
    with tempfile.TemporaryFile() as held:
        if not stream.seekable():
            shutil.copyfileobj(stream, held)
            stream = cast(BinaryIO, held)
        try:
            archive = zipfile.ZipFile(stream)
        except (*_DAMAGE, ValueError):
            raise InputError("the zip archive is damaged") from None
        with archive:
            names = sorted({name for name in archive.namelist() if not name.startswith(("__MACOSX/", "/"))})
            yield from numbered(_records(archive, names, context))


def _records(archive: zipfile.ZipFile, names: list[str], context: Context) -> Iterator[Record]:
    days = [name for name in names if DAY_FILE.search(name) and len(PurePosixPath(name).parts) > 1]
    chats = [name for name in names if PurePosixPath(name).name == "conversations.json"]
    texts = [name for name in names if name.lower().endswith(".txt")]
    if days:
        bots = _bots(archive, names, context)

        def read_day(member: BinaryIO, inside: Context) -> Iterator[Record]:
            return day_records(member, inside, PurePosixPath(inside.name).parent.name, bots)

        yield from _members(archive, days, context, read_day)
    elif chats:
        yield from _members(archive, chats, context, chatgpt_records)
    elif texts:
        yield from _members(archive, texts, context, whatsapp_records)
    else:
        raise InputError("the zip archive holds no log that a reader is for")


def _members(
    archive: zipfile.ZipFile,
    names: list[str],
    context: Context,
    read: Callable[[BinaryIO, Context], Iterator[Record]],
) -> Iterator[Record]:
    for name in names:
        # an iPhone calls every chat _chat.txt: the archive is what has its name
        known_as = context.name.removesuffix(".zip") if PurePosixPath(name).stem == "_chat" else name
        if archive.getinfo(name).header_offset < 0:  # bytes are missing before it
            yield unreadable("", "damaged_member")
            continue
        try:
            with archive.open(name) as member:
                yield from read(cast(BinaryIO, member), replace(context, name=known_as))
        except (*_DAMAGE, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # the stream failed, not the member
                raise
            yield unreadable("", "damaged_member")


def _bots(archive: zipfile.ZipFile, names: list[str], context: Context) -> frozenset[str]:
    """User ids of bots in ``users.json``."""
    if "users.json" not in names:
        return frozenset()
    try:
        with archive.open("users.json") as member:
            users = list(read_elements(cast(BinaryIO, member), context))
    except (*_DAMAGE, ValueError, OSError):
        return frozenset()
    return frozenset(str(user.get("id")) for user in users if isinstance(user, dict) and user.get("is_bot") is True)
