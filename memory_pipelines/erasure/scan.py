"""The residue scan: what is left of a person in what is stored, byte for byte as far as it can be read.

Belongs here: reading every kept file of the lake decoded (also files that no version refers to), its logs as
they are, and every row of PostgreSQL. Does not belong here: stores that are asked by owner (``online``).
"""

import io
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from memory_pipelines.erasure.landed import broken_row_names
from memory_pipelines.erasure.naming import SHORTEST_LINE, keys_named, keys_of_name
from memory_pipelines.erasure.places import Stores, Target, row_key, turn_key
from memory_pipelines.errors import PermanentError
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import Lake
from memory_pipelines.stores.statements import translated
from memory_pipelines.tables import ALL, QUARANTINE, TURNS, TableSpec

FREE_TEXT = ("text", "own_text", "other_text", "reply_text", "summary", "value", "structured", "raw")
TURN_IDS = ("turn_id", "turn_ids", "own_turn_ids", "source_turn_ids", "context_turn_id")
BY_DESIGN = ("erasures", "tombstones")
"""Tables that keep the owner's key."""
LOG = "_delta_log/"

Row = Mapping[Any, Any]


@dataclass(frozen=True)
class Evidence:
    """What is looked for: the target's ids, and ``lines`` of the person's texts. Never stored."""

    target: Target
    lines: frozenset[str] = field(repr=False)


def gather(lake: Lake, target: Target, version: int | None = None) -> Evidence:
    """The evidence from the landed turns of a version (None: the newest). Without it, ids and hashes remain."""
    columns = ["turn_id", "subject", "content_hash", "text"]
    where: list[tuple[str, str, object]] = [("tenant", "=", target.owner.tenant), ("day", "in", target.trace.days)]
    try:
        rows = lake.read(TURNS, columns=columns, where=where, version=version).to_pylist()
    except PermanentError:  # purged already
        rows = []
    texts = (row["text"] for row in rows if _is_turn_of(row, target))
    return Evidence(target, frozenset(line for text in texts for line in _lines(text)))


def residues(stores: Stores, evidence: Evidence) -> dict[str, int]:
    """Place → rows, log files and lines of text that are still the person's; only places that have any.

    A line that somebody else's landed turn or broken row says as well is not evidence.
    """
    hits: dict[str, int] = {}
    lines: dict[str, set[str]] = {}
    for spec in ALL:
        place = f"lake.{spec.name}"
        for path, content in stores.lake.stored(spec):
            if LOG in path:
                _add(hits, f"{place} log", _in_log(path, content, evidence))
            else:
                table = _decoded(content)
                _add(hits, place, sum(1 for _ in _rows_of(spec, table, evidence.target)))
                lines.setdefault(place, set()).update(_lines_in(table, evidence.lines))
    with translated(), stores.engine.begin() as connection:
        for table_ in schema.metadata.sorted_tables:
            if table_.name not in BY_DESIGN:
                place = f"postgres.{table_.name}"
                columns = [c for c in table_.columns if not isinstance(c.type, sa.LargeBinary)]  # bytes are no text
                for row in connection.execution_options(yield_per=1000).execute(sa.select(*columns)).mappings():
                    _add(hits, place, _names(table_, row, evidence.target))
                    text = (line for name in FREE_TEXT if name in row for line in _lines(row[name]))
                    lines.setdefault(place, set()).update(evidence.lines.intersection(text))
    found = set().union(*lines.values())
    own = found - _said_by_others(stores.lake, found)
    for place, some in lines.items():
        _add(hits, place, len(some & own))
    return hits


def _add(hits: dict[str, int], place: str, number: int) -> None:
    if number:
        hits[place] = hits.get(place, 0) + number


def _lines(value: object) -> Iterator[str]:
    """The lines of a text that are long enough; a column of a text's name may also hold a number."""
    for line in value.split("\n") if isinstance(value, str) else ():
        if len(line.strip()) >= SHORTEST_LINE:
            yield line.strip()


def _is_turn_of(row: Row, target: Target) -> bool:
    key = row_key(target.owner.tenant, row["turn_id"], row["content_hash"])
    return row["subject"] == target.owner.subject or key in target.trace.rows


# ---- the lake


def _decoded(content: bytes) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.ParquetFile(io.BytesIO(content)).read()


def _rows_of(spec: TableSpec, table: pa.Table, target: Target) -> Iterator[Row]:
    """Rows of a file that are the target's, by owner, name, turn ids or what a broken row says; a table without
    subjects (labelled texts, counts over a population) has none, its lines are looked at."""
    if spec is not QUARANTINE and "subject" not in table.column_names:
        return
    names = ("tenant", "owner", "subject", "reason", "raw", "content_hash", *TURN_IDS)
    columns = [name for name in names if name in table.column_names]
    for row in table.select(columns).to_pylist():
        if spec is QUARANTINE:
            row["keys"] = keys_named(row["raw"], row["tenant"])
            if broken_row_names(row, target):
                yield row
        elif row.get("owner") == target.key or (row["tenant"] == target.owner.tenant and _cites(spec, row, target)):
            yield row


def _cites(spec: TableSpec, row: Row, target: Target) -> bool:
    if row["subject"] == target.owner.subject or (spec is TURNS and _is_turn_of(row, target)):
        return True
    return any(turn_key(row["tenant"], turn) in target.trace.turns for turn in _turn_ids(row))


def _turn_ids(row: Row) -> Iterator[str]:
    for name in TURN_IDS:
        value = row.get(name)
        yield from value if isinstance(value, list) else [] if value is None else [value]


def _lines_in(table: pa.Table, wanted: Collection[str]) -> set[str]:
    columns = (table[name].to_pylist() for name in FREE_TEXT if name in table.column_names)
    return {line for column in columns for text in column for line in _lines(text)}.intersection(wanted)


def _in_log(path: str, content: bytes, evidence: Evidence) -> bool:
    """Whether a log file names the person or quotes a line, plain or escaped once or twice (statistics are JSON
    in JSON)."""
    checkpoint = path.endswith(".parquet")
    text = "\n".join(_strings(_decoded(content).to_pylist())) if checkpoint else content.decode("utf-8", "replace")
    subject = re.escape(evidence.target.owner.subject)
    if evidence.target.key in text or re.search(rf"(?<![\w:-]){subject}(?![\w-])", text):
        return True
    return any(form in text for line in evidence.lines for form in {line, _escaped(line), _escaped(_escaped(line))})


def _escaped(line: str) -> str:
    return json.dumps(line, ensure_ascii=False)[1:-1]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _said_by_others(lake: Lake, lines: set[str]) -> set[str]:
    """The lines that landed turns or broken rows, all of others by now, contain."""
    said: set[str] = set()
    if lines:
        for spec, column in ((TURNS, "text"), (QUARANTINE, "raw")):
            texts = "\n".join(text for text in lake.read(spec, columns=[column])[column].to_pylist() if text)
            said |= {line for line in lines if line in texts}
    return said


# ---- PostgreSQL


def _names(table: sa.Table, row: Row, target: Target) -> bool:
    """Whether a row names the target, by key, subject or turn."""
    if row.get("owner") == target.key or row.get("turn") in target.trace.turns:
        return True
    if table is schema.files:
        return target.key in keys_of_name(row["name"], target.owner.tenant)
    if row.get("tenant", target.owner.tenant) != target.owner.tenant:
        return False
    if any(turn_key(target.owner.tenant, turn) in target.trace.turns for turn in _turn_ids(row)):
        return True
    if table is schema.batches:
        return any((c["tenant"], c["subject"]) == (target.owner.tenant, target.owner.subject) for c in row["plan"])
    return not {target.key, target.owner.subject}.isdisjoint(_strings(dict(row)))
