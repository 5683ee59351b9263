"""A simulation as files.

Belongs here: the order of rows, counts, all or nothing. Does not belong here: what is in the rows,
encodings and names of files (``files``).

Records come one life after the other, files are in order of arrival: rows wait in one slot of time
each, on disk once there are many, and each slot is sorted alone. Slots are as short as the
configuration is large, and tenants come one after the other, so memory depends neither on the number
of persons nor on that of tenants. What waits on disk is as large as the largest tenant, compressed.
"""

import json
import shutil
import struct
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from memory_pipelines.errors import InputError
from memory_pipelines.sample.config import DAY, Config
from memory_pipelines.sample.files import FORMATS, Series, Split, TextFile, columnar, compression, csv_line
from memory_pipelines.sample.rows import ARCHIVE, ASSISTANT, BEHAVIOUR, DIALOGUES, EXPECTED, Record
from memory_pipelines.sample.simulator import lives

BUFFERED_ROWS = 100_000
SLOT_ROWS = 50_000
"""Roughly the rows of one slot of time."""
STREAMS = (ARCHIVE, ASSISTANT, BEHAVIOUR, DIALOGUES)
NUMBERS = {stream: number for number, stream in enumerate(STREAMS)}
FRONT = 12
"""Characters before a waiting line: its stream's digit and its time."""
SIZES = struct.Struct("<QQ")


@dataclass(frozen=True)
class Summary:
    """Where the files are and what is in them.

    ``logs`` maps tenants to the folder of their logs; ``truth`` is the folder of the truth, beside
    them. ``rows`` counts rows per stream (header lines excluded), ``turns`` dialogue rows, archived
    rows and assistant messages together, ``expected`` the rows of ``truth/expected`` per verdict.
    """

    logs: dict[str, Path]
    truth: Path
    rows: dict[str, int]
    turns: int
    expected: dict[str, int]


def write_sample(folder: Path, config: Config, format: str = "jsonl", split: Split = "month") -> Summary:
    """Write ``logs/<tenant>/<stream>-<part>.<suffix>`` and ``truth/<name>.jsonl`` into ``folder``.

    ``format`` is one of ``files.FORMATS``; behaviour is CSV beside JSON lines. ``split`` is
    ``month``, ``day``, or the most rows of a file. All or nothing: built in ``.partial`` and renamed.
    Raises InputError where ``logs`` or ``truth`` is there already (nothing is ever overwritten), and
    ValueError for a format or split that means nothing.
    """
    if format not in FORMATS:
        raise ValueError(f"a format is one of {', '.join(FORMATS)}")
    if split not in ("month", "day") and not (isinstance(split, int) and split > 0):
        raise ValueError("split by month, by day or by a number of rows above 0")
    logs, truth, partial = folder / "logs", folder / "truth", folder / ".partial"
    if logs.exists() or truth.exists():
        raise InputError("the sample's folder already holds logs or truth; choose another or remove them")
    if partial.exists():
        shutil.rmtree(partial)
    (partial / "truth").mkdir(parents=True)
    for tenant in config.tenants:
        (partial / "logs" / tenant).mkdir(parents=True)
    answers = _Truth(partial, compression(format))
    rows: Counter[str] = Counter()
    messages = 0
    for tenant, mates in groupby(lives(config), key=itemgetter(0)):
        files = _Logs(partial, tenant, config, format, split)
        for _, records in mates:
            for record in records:
                (files if record.stream in NUMBERS else answers).add(record)
        files.close()
        rows += files.rows
        messages += files.messages
    answers.close()
    # Truth first: a crash between the two leaves no logs that would pass for complete.
    (partial / "truth").rename(truth)
    (partial / "logs").rename(logs)
    shutil.rmtree(partial)
    return Summary(
        logs={tenant: logs / tenant for tenant in config.tenants},
        truth=truth,
        rows=dict(sorted((rows + answers.rows).items())),
        turns=rows[DIALOGUES] + rows[ARCHIVE] + messages,
        expected=dict(sorted(answers.expected.items())),
    )


def _encoder() -> Callable[[object], str]:
    """Compact JSON; rows hold no cycles, and looking for them takes a tenth of the time."""
    return json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class _Logs:
    """Sorts the log rows of one tenant by arrival and hands them to its files.

    A line waits with its stream's digit and its time in front, which sort it; equal times fall back
    on the text, so the order is total and does not depend on how long a slot is.
    """

    def __init__(self, root: Path, tenant: str, config: Config, format: str, split: Split) -> None:
        self.columnar = format == "parquet"
        self.rows: Counter[str] = Counter()
        self.messages = 0
        named = tenant != config.tenants[0]
        folder = root / "logs" / tenant
        self.series = {stream: Series(folder, stream, format, split, named) for stream in STREAMS}
        self.width = max(600, DAY * SLOT_ROWS // config.rows_of_a_day)
        self.spool = root / "spool"
        self.spool.mkdir(exist_ok=True)
        self.waiting: dict[int, list[str]] = defaultdict(list)
        self.count = 0
        self.encode = _encoder()

    def add(self, record: Record) -> None:
        _, stream, arrived, row = record
        if stream == ASSISTANT and isinstance(row, dict):
            self.messages += len(row["messages"])
        waiting = self.waiting[arrived // self.width]
        front = f"{NUMBERS[stream]}{arrived:011}"
        if self.columnar:
            for flat in columnar(stream, row):
                waiting.append(f"{front}{self.encode(flat)}\n")
                self.rows[stream] += 1
        else:
            line = row if isinstance(row, str) else csv_line(row) if stream == BEHAVIOUR else self.encode(row)
            waiting.append(f"{front}{line}\n")
            self.rows[stream] += 1
        self.count += 1
        if self.count >= BUFFERED_ROWS:
            self._spill()

    def close(self) -> None:
        """Write the files."""
        for slot in sorted({int(path.name) for path in self.spool.iterdir()} | set(self.waiting)):
            lines = self._spooled(slot)
            lines += self.waiting.pop(slot, [])
            lines.sort()
            for number, stream in enumerate(STREAMS):
                self._hand_over(self.series[stream], number, slot, lines)
        for series in self.series.values():
            series.close()

    def _hand_over(self, series: Series, number: int, slot: int, lines: list[str]) -> None:
        """Give one stream its lines of a slot, day by day."""
        for day in range(slot * self.width // DAY, ((slot + 1) * self.width - 1) // DAY + 1):
            begin = bisect_left(lines, f"{number}{day * DAY:011}")
            end = bisect_left(lines, f"{number}{(day + 1) * DAY:011}")
            if begin < end:
                series.write(day, [line[FRONT:] for line in lines[begin:end]])

    def _spill(self) -> None:
        """Move what waits to disk: one compressed block a slot, with its two sizes before it."""
        import pyarrow as pa

        for slot, lines in self.waiting.items():
            data = "".join(lines).encode()
            packed = pa.compress(data, codec="zstd", asbytes=True)
            with (self.spool / str(slot)).open("ab") as file:
                file.write(SIZES.pack(len(data), len(packed)))
                file.write(packed)
        self.waiting.clear()
        self.count = 0

    def _spooled(self, slot: int) -> list[str]:
        """The lines of a slot that were moved to disk, which are taken from there."""
        import pyarrow as pa

        path = self.spool / str(slot)
        lines: list[str] = []
        if path.exists():
            with path.open("rb") as file:
                while head := file.read(SIZES.size):
                    size, packed = SIZES.unpack(head)
                    data: bytes = pa.decompress(file.read(packed), size, codec="zstd", asbytes=True)
                    # Not splitlines: a text may hold other line breaks than the one that ends a line.
                    lines += [f"{line}\n" for line in data.decode()[:-1].split("\n")]
            path.unlink()
        return lines


class _Truth:
    """Appends truth rows as they come."""

    def __init__(self, root: Path, suffix: str) -> None:
        self.root = root
        self.suffix = suffix
        self.rows: Counter[str] = Counter()
        self.expected: Counter[str] = Counter()
        self.files: dict[str, TextFile] = {}
        self.waiting: dict[str, list[str]] = defaultdict(list)
        self.count = 0
        self.encode = _encoder()

    def add(self, record: Record) -> None:
        stream, row = record.stream, record.row
        if stream == EXPECTED and isinstance(row, dict):
            self.expected[row["expected"]] += 1
        self.waiting[stream].append(f"{self.encode(row)}\n")
        self.count += 1
        if self.count >= BUFFERED_ROWS:
            self._write()

    def close(self) -> None:
        self._write()
        for file in self.files.values():
            file.close()

    def _write(self) -> None:
        for stream, lines in self.waiting.items():
            if stream not in self.files:
                self.files[stream] = TextFile(self.root / f"{stream}.jsonl{self.suffix}")
            self.files[stream].write(lines)
            self.rows[stream] += len(lines)
        self.waiting.clear()
        self.count = 0
