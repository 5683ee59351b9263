"""One output file after another: encodings, compression, where one file ends and the next begins.

Belongs here: suffixes, Parquet schemas, CSV lines, names of files. Does not belong here: the order
of rows (``write``), what is in them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from memory_pipelines.sample.config import DAY
from memory_pipelines.sample.rows import ARCHIVE, ASSISTANT, BEHAVIOUR, BEHAVIOUR_COLUMNS, DIALOGUES

FORMATS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")
ROW_GROUP = 20_000
CODECS = {".gz": "gzip", ".zst": "zstd"}

Split = str | int
"""``month``, ``day``, or the most rows that a file may hold."""


def compression(format: str) -> str:
    """``""``, ``.gz`` or ``.zst``; beside Parquet the truth is compressed by zstd."""
    return {"jsonl": "", "jsonl.gz": ".gz", "jsonl.zst": ".zst", "parquet": ".zst"}[format]


class TextFile:
    """Lines of UTF-8, compressed where the suffix says so. Equal lines give equal bytes."""

    def __init__(self, path: Path, head: str = "") -> None:
        import pyarrow as pa

        self.raw: BinaryIO = path.open("wb")
        codec = CODECS.get(path.suffix)
        self.out: Any = pa.CompressedOutputStream(pa.PythonFile(self.raw, "w"), codec) if codec else self.raw
        if head:
            self.out.write(head.encode())

    def write(self, lines: Sequence[str]) -> None:
        """Append lines, each of which ends in a newline."""
        self.out.write("".join(lines).encode())

    def close(self) -> None:
        self.out.close()
        self.raw.close()


class ParquetFile:
    """JSON lines as a Parquet file, ``ROW_GROUP`` rows in a row group."""

    def __init__(self, path: Path, schema: Any) -> None:
        import pyarrow.parquet as pq

        self.schema = schema
        self.out = pq.ParquetWriter(path, schema, compression="zstd")
        self.waiting: list[str] = []

    def write(self, lines: Sequence[str]) -> None:
        """Append lines, each a JSON object and a newline."""
        self.waiting += lines
        while len(self.waiting) >= ROW_GROUP:
            self._group(self.waiting[:ROW_GROUP])
            del self.waiting[:ROW_GROUP]

    def close(self) -> None:
        if self.waiting:
            self._group(self.waiting)
        self.out.close()

    def _group(self, lines: Sequence[str]) -> None:
        import pyarrow.json as pj

        data = "".join(lines).encode()
        table = pj.read_json(
            BytesIO(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="error"),
        )
        self.out.write_table(table)


@dataclass
class Series:
    """The files of one stream of one tenant, opened one after the other."""

    folder: Path
    stream: str
    format: str
    split: Split
    named: bool
    """Whether rows name their tenant."""
    label: str = ""
    rows: int = 0
    files: int = 0
    open: TextFile | ParquetFile | None = field(default=None, repr=False)

    def write(self, day: int, lines: Sequence[str]) -> None:
        """Append lines that arrived on one day; days never decrease."""
        for label, part in self._parts(day, lines):
            if label != self.label or self.open is None:
                self.close()
                self.label = label
                self.open = self._next()
            self.open.write(part)

    def close(self) -> None:
        if self.open is not None:
            self.open.close()
            self.open = None

    def _parts(self, day: int, lines: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
        if isinstance(self.split, str):
            yield _date(day)[: 7 if self.split == "month" else 10], lines
            return
        start = 0
        while start < len(lines):
            number, filled = divmod(self.rows, self.split)
            part = lines[start : start + self.split - filled]
            self.rows += len(part)
            start += len(part)
            yield f"{number + 1:05}", part

    def _next(self) -> TextFile | ParquetFile:
        self.files += 1
        if self.format == "parquet":
            return ParquetFile(self.folder / f"{self.stream}-{self.label}.parquet", _schema(self.stream, self.named))
        if self.stream != BEHAVIOUR:
            return TextFile(self.folder / f"{self.stream}-{self.label}.{self.format}")
        columns = (*BEHAVIOUR_COLUMNS, "tenant") if self.named else BEHAVIOUR_COLUMNS
        path = self.folder / f"{self.stream}-{self.label}.csv{compression(self.format)}"
        return TextFile(path, ",".join(columns) + "\n")


def csv_line(row: dict[str, Any]) -> str:
    """One CSV line; every value is made by the simulator and holds no comma, quote or newline."""
    return ",".join(["" if value is None else str(value) for value in row.values()])


def columnar(stream: str, row: dict[str, Any] | str) -> list[dict[str, Any]]:
    """A log row as rows of its Parquet table: every value of the column's type.

    What no table can hold is null there, so the row stays one to quarantine: broken JSON is kept as
    text without a time. A conversation with the assistant becomes one row a message.
    """
    if isinstance(row, str):
        return [{"text": row}]
    if stream == BEHAVIOUR:
        return [row | {"bounce": {"true": True, "false": False}.get(row["bounce"])}]
    if stream == ASSISTANT:
        common = {"conversation_id": row["id"], "session_id": row["id"], "user_id": row["user"], "origin": "assistant"}
        if "tenant" in row:
            common["tenant"] = row["tenant"]
        return [
            {**common, "role": said["role"], "occurred_at": said["created_at"], "text": said["content"]}
            for said in row["messages"]
        ]
    return [row if isinstance(row["text"], str) else row | {"text": None}]


@cache
def _schema(stream: str, named: bool) -> Any:
    import pyarrow as pa

    instant = pa.timestamp("s", tz="UTC")
    who = ["conversation_id", "session_id", "user_id"]
    said = {
        DIALOGUES: ["turn_id", *who, "device_id", "role", ("occurred_at", instant), "text", "origin"],
        ASSISTANT: [*who, "role", ("occurred_at", instant), "text", "origin"],
        ARCHIVE: ["turn_id", *who, "device_id", "role", ("timestamp", pa.int64()), "text"],
        BEHAVIOUR: ["event_id", "user_id", "device_id", "kind", ("occurred_at", instant), ("value", pa.float64())],
    }[stream]
    if stream == DIALOGUES:
        said.append(("edited_at", instant))
    if stream == BEHAVIOUR:
        said += [("dwell_seconds", pa.float64()), ("bounce", pa.bool_()), "reference"]
    if named:
        said.append("tenant")
    return pa.schema([(column, pa.string()) if isinstance(column, str) else column for column in said])


@cache
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()
