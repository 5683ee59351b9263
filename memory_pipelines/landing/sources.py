"""Where bytes come from: files on disk and objects in S3, plain or compressed, one by one or by folder and glob.

Belongs here: finding sources, their identity, and opening them as a stream that memory does not grow with. Does
not belong here: formats (``readers``), SQL tables (``sql``).
"""

import fnmatch
import glob
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from memory_pipelines.errors import InputError, StoreUnavailableError
from memory_pipelines.landing.mapping import FILE_NAME as MAPPING
from memory_pipelines.landing.readers import HEAD, SUFFIXES
from memory_pipelines.model import stable_hash
from memory_pipelines.settings import Settings
from memory_pipelines.shown import shown

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
GROWING = frozenset({".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".log"})
"""Suffixes of files that are written on at their end."""
PIECE = 1 << 14
"""Bytes of a compressed stream that are read at a time: what a damaged archive loses before its fault at most."""
BLOCK = 1 << 20
S3 = "s3://"

S3Files = Callable[[], Any]
"""Opens the object store, a ``pyarrow.fs.FileSystem``, when a source needs it."""


class NoSourceError(InputError):
    """Nothing is wrong with an address, and no log is there."""


@dataclass(frozen=True)
class Digest:
    """``file_id`` is the hash of the whole content, ``size`` its bytes; ``begins``: the hash of the first so many
    bytes that were asked for, None where they do not end a line."""

    file_id: str
    size: int
    begins: str | None = None


@dataclass(frozen=True)
class Source:
    """One file or object. ``name`` is shown and holds no secret; ``address`` tells it from every other one.

    ``folder``: where its column mapping may lie, up to ``root``. ``size``: only so many bytes are read, so that
    what comes later waits for its turn. ``asked``: it was named itself, not found in a folder.
    """

    filesystem: Any
    path: str
    name: str
    address: str
    folder: Path | None = None
    root: Path | None = None
    size: int | None = None
    asked: bool = True

    @property
    def key(self) -> str:
        """What the ledger knows the address by."""
        return stable_hash("source", self.address)

    @property
    def compression(self) -> str | None:
        return COMPRESSIONS.get(PurePosixPath(self.path).suffix.lower())

    @property
    def file_name(self) -> str:
        """The name without folders and compression suffix."""
        name = PurePosixPath(self.path).name
        return name if self.compression is None else name.rpartition(".")[0]

    @property
    def seekable(self) -> bool:
        return self.compression is None

    @property
    def grows(self) -> bool:
        """Whether what is added to it leaves the rows before as they are."""
        return self.compression is None and PurePosixPath(self.path).suffix.lower() in GROWING

    @property
    def inner_name(self) -> str:
        """``name`` without the compression suffix."""
        return self.name if self.compression is None else self.name.rpartition(".")[0]

    def first(self, size: int) -> "Source":
        """The same source as if it ended after ``size`` bytes."""
        return replace(self, size=size)

    def state(self) -> str:
        """A text that changes whenever the content may have changed. Raises InputError if it is not there."""
        from pyarrow import fs

        with _reading(self.name):
            info = self.filesystem.get_file_info(_stored(self.path))
        if info.type not in (fs.FileType.File, fs.FileType.Directory):  # a pipe would never end
            raise InputError(f"cannot read {self.name}: no such file")
        return f"{info.size}:{info.mtime_ns}"

    def digest(self, begin: int = 0) -> Digest:
        """The identity of the content, as stored. ``begin``: also that of its first so many bytes."""
        whole, size, begins = hashlib.blake2b(digest_size=16), 0, None
        with _reading(self.name), self.stored() as stream:
            while block := stream.read(BLOCK):
                if size < begin <= size + len(block):
                    until = begin - size
                    whole.update(block[:until])
                    begins = whole.hexdigest() if block[until - 1 : until] == b"\n" else None
                    whole.update(block[until:])
                else:
                    whole.update(block)
                size += len(block)
        return Digest(whole.hexdigest(), size, begins)

    def stored(self) -> io.BufferedReader:
        """The bytes as they are stored. Raises OSError."""
        return io.BufferedReader(Bytes(self.filesystem.open_input_file(_stored(self.path)), self.size), BLOCK)

    def open(self) -> io.BufferedReader:
        """The decompressed bytes; ``raw.error`` keeps what stopped the reading of them. Raises OSError, also from
        ``read`` where an archive is damaged or cut off."""
        import pyarrow as pa

        if self.compression is None:
            return self.stored()
        archive = pa.CompressedInputStream(self.filesystem.open_input_file(_stored(self.path)), self.compression)
        return io.BufferedReader(Bytes(archive), PIECE)

    def head(self) -> bytes:
        """The first 64 KiB, decompressed; fewer where the archive breaks off. Raises InputError."""
        with _reading(self.name), self.open() as stream:
            head = bytearray()
            try:
                while len(head) < HEAD and (piece := stream.read(PIECE)):
                    head += piece
            except OSError:
                if not head:
                    raise
            return bytes(head[:HEAD])


class Bytes(io.RawIOBase):
    """A stream of pyarrow's, or its first ``size`` bytes; ``error`` is what a read of it failed with."""

    def __init__(self, stream: Any, size: int | None = None) -> None:
        self._stream, self._size = stream, size
        self.error: OSError | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._size is None and bool(self._stream.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._stream.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any, /) -> int:
        wanted = len(buffer) if self._size is None else min(len(buffer), self._size)
        try:
            piece = self._stream.read(wanted)
        except OSError as error:
            self.error = error
            raise
        buffer[: len(piece)] = piece
        if self._size is not None:
            self._size -= len(piece)
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _stored(path: str) -> str | bytes:
    """A path as pyarrow takes it. What is no UTF-8 in it are lone surrogates in Python, and bytes on the disk."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unreadable(name, error) from None


def unreadable(name: str, error: OSError) -> Exception:
    """What a fault of the operating system or the object store says of a source, without its path."""
    text = str(error)
    if "AWS Error NETWORK_CONNECTION" in text or "curlCode" in text:
        return StoreUnavailableError("object store", "MEMORY_PIPELINES_S3_URL", "no connection")
    if "AWS Error" in text:
        return InputError(f"cannot read {name}: the object store refuses access or knows no such object")
    if "Truncated" in text:
        return InputError(f"{name} is cut off: its archive ends too early")
    if error.errno is not None:
        return InputError(f"cannot read {name}: {os.strerror(error.errno)}")
    compression = COMPRESSIONS.get(PurePosixPath(name).suffix.lower())
    return InputError(f"cannot read {name}: it is damaged" + (f", or no {compression} archive" if compression else ""))


# ---- finding


def local_source(path: Path, root: Path | None = None) -> Source:
    """One file; its name is relative to ``root``, the folder that was asked for."""
    from pyarrow import fs

    where = path.absolute()
    name = path.name if root in (None, path) else path.relative_to(root or path).as_posix()
    top = (root or path.parent).absolute()
    return Source(
        fs.LocalFileSystem(), str(where), shown(name), where.as_uri(), where.parent, top, asked=root is None
    )  # fmt: skip


def log_files(folder: Path) -> list[Path]:
    """The log files below a folder, in order of their paths: those that some reader is for.

    Hidden ones are none, nor is what lies in a folder ``truth`` beside a folder ``logs``, where the simulator keeps
    the answers to its logs."""
    return _look_through(folder).files


def passed_over(places: Iterable[str | Path]) -> list[str]:
    """Names of what lies in the folders among ``places`` and is no log file: no reader is for its suffix, or it is no
    file. Hidden ones, mappings and the simulator's answers are not listed."""
    folders = [Path(os.path.expanduser(str(place))) for place in places if not str(place).startswith(S3)]
    return [
        shown(path.relative_to(folder).as_posix())
        for folder in folders
        if os.path.isdir(folder)
        for path in _look_through(folder).others
    ]


@dataclass(frozen=True)
class _Contents:
    """Of a folder: log files, folders that cannot be listed, and what else lies there; each in order of paths."""

    files: list[Path]
    closed: list[Path]
    others: list[Path]


def _look_through(folder: Path) -> _Contents:
    """What lies below a folder. Links to folders are not followed."""
    files, closed, others = list[Path](), list[Path](), list[Path]()

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):  # gone meanwhile
            closed.append(Path(error.filename))

    for place, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in names if not name.startswith(".") and name != MAPPING):
            if not _is_truth(path, folder):
                (files if _is_log(path.name) and os.path.isfile(path) else others).append(path)
    return _Contents(sorted(files), sorted(closed), sorted(others))


def _is_log(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return (PurePosixPath(path.stem) if path.suffix in COMPRESSIONS else path).suffix in SUFFIXES


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_truth(path: Path, folder: Path) -> bool:
    below = path.relative_to(folder).parts[:-1]
    return any(part == "truth" and folder.joinpath(*below[:i], "logs").is_dir() for i, part in enumerate(below))


def find(places: Iterable[str | Path], s3: S3Files) -> list[Source]:
    """The sources that files, folders, globs and ``s3://`` addresses name, each once. Raises InputError where a glob
    or an address names none; of an explicit file only its opening does."""
    found: dict[str, Source] = {}
    for place in places:
        text = str(place)
        sources = _objects(text, s3()) if text.startswith(S3) else _local(text)
        found.update((source.address, source) for source in sources if source.address not in found)
    return list(found.values())


def _local(text: str) -> list[Source]:
    if not text:  # a variable that was not set, and not the current folder
        raise InputError("an empty path names no file")
    path = Path(os.path.expanduser(text))
    if os.path.isdir(path):  # unlike those of Path these raise nothing, whatever the path is
        return _below(path)
    if os.path.lexists(path) or not glob.has_magic(text):
        return [local_source(path)]
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    if not matches:
        raise InputError("no file matches the pattern")
    files = [path for path in matches if os.path.isfile(path) and _is_log(path.name)]
    folders = [path for path in matches if os.path.isdir(path)] if "**" not in text else []
    return [local_source(file) for file in files] + [source for folder in folders for source in _below(folder)]


def _below(folder: Path) -> list[Source]:
    """The log files of a folder. A folder that cannot be listed is a source that cannot be read: nobody shall think
    that there is nothing in it."""
    found = _look_through(folder)
    return [local_source(file, folder) for file in found.files] + [
        replace(local_source(place, folder), asked=True) for place in found.closed
    ]


def _objects(address: str, files: Any) -> list[Source]:
    """Objects of one key, below a prefix that ends like a folder, or that match a pattern."""
    from pyarrow import fs

    path = address.removeprefix(S3).rstrip("/")
    fixed = path
    if glob.has_magic(path):
        fixed = path[: min(path.find(sign) for sign in "*?[" if sign in path)].rpartition("/")[0]
    if not fixed.partition("/")[0]:
        raise InputError("an object store's address is s3://bucket/prefix")
    with _reading(address):
        info = files.get_file_info(fixed)
        if info.type == fs.FileType.File:
            return [Source(files, fixed, PurePosixPath(fixed).name, address)]
        found = files.get_file_info(fs.FileSelector(fixed, recursive=True, allow_not_found=True))
    keys = sorted(entry.path for entry in found if entry.type == fs.FileType.File)
    if fixed != path:
        keys = [key for key in keys if fnmatch.fnmatchcase(key, path)]
    named = [(key, PurePosixPath(key).relative_to(fixed)) for key in keys]
    sources = [_object(files, key, str(name)) for key, name in named if _is_log(key) and not _is_hidden(name)]
    if not sources:
        raise NoSourceError(f"no log file at {address}")
    return sources


def _object(files: Any, key: str, name: str) -> Source:
    return Source(files, key, shown(name), S3 + key, asked=False)


def s3_files(settings: Settings) -> Any:
    """The object store where ``s3://`` sources lie: of the settings, else AWS itself. Without keys: the standard
    chain of AWS (environment, profile, the machine's own role)."""
    from pyarrow import fs

    options: dict[str, Any] = {"region": settings.s3_region}
    if settings.s3_access_key:
        options |= {"access_key": settings.s3_access_key, "secret_key": settings.s3_secret_key}
    if settings.s3_url:
        scheme, _, endpoint = settings.s3_url.rpartition("://")
        options |= {"endpoint_override": endpoint.rstrip("/"), "scheme": scheme or "https"}
    if settings.ca_file:
        options["tls_ca_file_path"] = settings.ca_file
    return fs.S3FileSystem(**options)
