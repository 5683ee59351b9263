"""A simulation as files.

Belongs here: encoding of rows, their order in the files, month files, counts. Does not belong
here: what is in the rows.

Records come one life after the other, files are in order of arrival: rows wait in one bucket per
file and day, on disk once there are many, and each day is sorted alone. So memory depends on the
busiest day, never on the number of persons.
"""

import json
import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from memory_pipelines.errors import InputError
from memory_pipelines.sample.config import DAY, Config
from memory_pipelines.sample.emit import ASSISTANT, BEHAVIOUR, BEHAVIOUR_COLUMNS, DIALOGUES, EXPECTED, Record
from memory_pipelines.sample.simulator import simulate

BUFFERED_ROWS = 100_000


@dataclass(frozen=True)
class Summary:
    """Where the files are and what is in them.

    ``logs`` maps tenants to the folder of their logs; ``truth`` is the folder of the truth, beside
    them. ``rows`` counts lines per stream (header lines excluded), ``turns`` dialogue lines and
    assistant messages together, ``expected`` the rows of ``truth/expected.jsonl`` per verdict.
    """

    logs: dict[str, Path]
    truth: Path
    rows: dict[str, int]
    turns: int
    expected: dict[str, int]


def write_sample(folder: Path, config: Config) -> Summary:
    """Write ``logs/<tenant>/<stream>-<YYYY-MM>.jsonl|csv`` and ``truth/<name>.jsonl`` into ``folder``.

    All or nothing: built in ``.partial`` and renamed. Raises InputError where ``logs`` or ``truth``
    is there already: nothing is ever overwritten.
    """
    logs, truth, partial = folder / "logs", folder / "truth", folder / ".partial"
    if logs.exists() or truth.exists():
        raise InputError("the sample's folder already holds logs or truth; choose another or remove them")
    if partial.exists():
        shutil.rmtree(partial)
    (partial / "truth").mkdir(parents=True)
    for tenant in config.tenants:
        (partial / "logs" / tenant).mkdir(parents=True)
    files = _Files(partial, unnamed=config.tenants[0])
    rows: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    messages = 0
    for record in simulate(config):
        rows[record.stream] += 1
        if record.stream == EXPECTED and isinstance(record.row, dict):
            expected[record.row["expected"]] += 1
        elif record.stream == ASSISTANT and isinstance(record.row, dict):
            messages += len(record.row["messages"])
        files.add(record)
    files.close()
    # Truth first: a crash between the two leaves no logs that would pass for complete.
    (partial / "truth").rename(truth)
    (partial / "logs").rename(logs)
    shutil.rmtree(partial)
    return Summary(
        logs={tenant: logs / tenant for tenant in config.tenants},
        truth=truth,
        rows=dict(sorted(rows.items())),
        turns=rows[DIALOGUES] + messages,
        expected=dict(sorted(expected.items())),
    )


class _Files:
    """Sorts log rows by arrival into month files; appends truth rows as they come.

    ``unnamed`` is the tenant that its own rows do not name.
    """

    def __init__(self, root: Path, unnamed: str) -> None:
        self.root = root
        self.unnamed = unnamed
        self.spool = root / "spool"
        self.spool.mkdir()
        self.waiting: dict[tuple[str, str, int], list[str]] = defaultdict(list)
        self.truth: dict[str, list[str]] = defaultdict(list)
        self.spooled: set[tuple[str, str, int]] = set()
        self.count = 0
        self.encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

    def add(self, record: Record) -> None:
        tenant, stream, arrived, row = record
        if stream.startswith("truth/"):
            self.truth[stream].append(self.encode(row))
        else:
            line = row if isinstance(row, str) else _csv(row) if stream == BEHAVIOUR else self.encode(row)
            # The time in front sorts the lines; equal times fall back on the text, so order is total.
            self.waiting[tenant, stream, arrived // DAY].append(f"{arrived:011}{line}\n")
        self.count += 1
        if self.count >= BUFFERED_ROWS:
            self._spill()

    def close(self) -> None:
        """Write the month files."""
        self._write_truth()
        for key in sorted(self.spooled | set(self.waiting)):
            tenant, stream, day = key
            lines = self.waiting.get(key, [])
            if key in self.spooled:
                with self._bucket(key).open(encoding="utf-8", newline="") as bucket:
                    lines = lines + list(bucket)
                self._bucket(key).unlink()
            suffix = "csv" if stream == BEHAVIOUR else "jsonl"
            path = self.root / "logs" / tenant / f"{stream}-{_month(day)}.{suffix}"
            if stream == BEHAVIOUR and not path.exists():
                columns = BEHAVIOUR_COLUMNS if tenant == self.unnamed else (*BEHAVIOUR_COLUMNS, "tenant")
                _append(path, ",".join(columns) + "\n")
            _append(path, "".join(line[11:] for line in sorted(lines)))

    def _bucket(self, key: tuple[str, str, int]) -> Path:
        tenant, stream, day = key
        return self.spool / f"{tenant}.{stream}.{day}"

    def _spill(self) -> None:
        for key, lines in self.waiting.items():
            _append(self._bucket(key), "".join(lines))
            self.spooled.add(key)
        self.waiting.clear()
        self.count = 0
        self._write_truth()

    def _write_truth(self) -> None:
        for name, lines in sorted(self.truth.items()):
            _append(self.root / f"{name}.jsonl", "".join(f"{line}\n" for line in lines))
        self.truth.clear()


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)


def _csv(row: dict[str, object]) -> str:
    """One CSV line; every value is made by the simulator and holds no comma, quote or newline."""
    return ",".join(["" if value is None else str(value) for value in row.values()])


@cache
def _month(day: int) -> str:
    return f"{datetime.fromtimestamp(day * DAY, UTC):%Y-%m}"
