"""What humans say of decision impacts: the events worth asking about, and the file that goes to them and comes back.

Belongs here: which events are uncertain, the CSV form. Does not belong here: the lake, or what a label leads to
(``labels``, ``fit``).
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.errors import InputError
from memory_pipelines.reward.timeline import Floats, floats

BORDERS = (0.3, 0.7)
"""Of low, medium and high."""
NEEDED = ("tenant", "subject", "exchange_id", "impact")
COLUMNS = (
    "tenant",
    "subject",
    "exchange_id",
    "occurred_at",
    "intent",
    "score",
    "expected",
    "observed",
    "text",
    "impact",
)
WORDS = {"low": 0.15, "medium": 0.5, "high": 0.85}
"""What may stand for a number: the middle of its label's range."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would compute."""


@dataclass(frozen=True, slots=True)
class Annotation:
    tenant: str
    subject: str
    exchange_id: str
    impact: float


def is_annotations(file: Path) -> bool:
    """Whether the file's head names the columns ``NEEDED``."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return set(NEEDED) <= set(next(csv.reader(lines), []))
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


def most_uncertain(rows: pa.Table, scores: Floats, number: int) -> pa.Table:
    """So many ``tables.REWARD_EVENTS`` rows with a column ``score``: closed windows that no human has judged, nearest
    to a border between labels first, of those the ones with the most orders at stake."""
    scored = rows.append_column("score", pa.array(scores))
    asked = scored.filter(pc.and_(scored["window_closed"], pc.invert(pc.fill_null(scored["annotated"], False))))
    distance = np.min([np.abs(floats(asked["score"]) - border) for border in BORDERS], axis=0)
    stake = np.nan_to_num(floats(asked["expected"]))
    order = np.lexsort((asked["exchange_id"].to_numpy(), -stake, np.round(distance, 2)))
    return asked.take(pa.array(order[:number]))


def write_questions(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A CSV with ``COLUMNS``; ``impact`` is left empty for the human. Raises InputError if the file exists."""
    try:
        with file.open("x", encoding="utf-8-sig", newline="") as lines:
            writer = csv.DictWriter(lines, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            for row in rows:
                writer.writerow({**row, "text": _plain(row["text"]), "impact": ""})
    except FileExistsError:
        raise InputError(f"{file.name} exists already: name another file") from None
    except OSError as error:
        raise InputError(f"{file.name} cannot be written ({type(error).__name__})") from None


def read_answers(file: Path) -> tuple[list[Annotation], list[tuple[int, str]]]:
    """The rows that a human has filled in, and (row number, what is wrong) of faulty ones; empty answers are neither.

    An impact is a number from 0 to 1, or low, medium or high. Raises InputError if the file cannot be read."""
    found: dict[tuple[str, str, str], Annotation] = {}
    faults: list[tuple[int, str]] = []
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            for number, cells in enumerate(csv.DictReader(lines), 1):
                answer = (cells.get("impact") or "").strip().lower()
                if not answer:
                    continue
                impact = _impact(answer)
                tenant, subject, exchange = ((cells.get(name) or "").strip() for name in NEEDED[:3])
                key = tenant, subject, exchange
                if impact is None:
                    faults.append((number, "impact must be a number from 0 to 1, or low, medium or high"))
                elif not all(key):
                    faults.append((number, "tenant, subject and exchange_id must be there"))
                elif found.setdefault(key, Annotation(*key, impact)).impact != impact:
                    faults.append((number, "an earlier row gives the same event another impact"))
    except OSError as error:
        raise InputError(f"{file.name} cannot be read: {error.strerror or type(error).__name__}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{file.name} is no CSV in UTF-8") from None
    return list(found.values()), faults


def _impact(answer: str) -> float | None:
    if answer in WORDS:
        return WORDS[answer]
    try:
        impact = float(answer)
    except ValueError:
        return None
    return round(impact, 4) if 0 <= impact <= 1 else None


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text
