"""From judged candidates to the rows that are kept of them: every decision, and every memory.

Belongs here: the columns of ``tables.DECISIONS`` and ``tables.MEMORIES``, when a short-term memory ends. Does not
belong here: the judgement (``gate``), the words of a summary (``summary``).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.admission.dimensions import consequence
from memory_pipelines.admission.extract import Candidate, Row
from memory_pipelines.admission.judged import DISCARD, SHORT, Judged
from memory_pipelines.admission.ontology import FAMILY, Profile
from memory_pipelines.admission.routing import Routing, route
from memory_pipelines.admission.summary import episode_summary, fact_summary
from memory_pipelines.admission.version import gate_data
from memory_pipelines.model import Permanence, canonical_json, unique

SHORT_TERM = timedelta(days=9)
"""How long after its session a short-term memory is kept."""
SILENCE = timedelta(hours=6)
"""So long a pause ends a session, also where the source goes on with the same session id for years."""


CHUNK = 2_000
"""Rows that are kept as Python's objects: the collector walks over all of those again and again."""


class Columns:
    """Rows of one table, kept by column."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._rows: list[Row] = []
        self._chunks: list[pa.Table] = [schema.empty_table()]

    def add(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) == CHUNK:
            self._pack()

    def table(self) -> pa.Table:
        self._pack()
        return pa.concat_tables(self._chunks)

    def _pack(self) -> None:
        self._chunks.append(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []


def session_ends(rows: Sequence[Row]) -> dict[str, datetime]:
    """Slice id → when the session it lies in ended. ``rows``: slices of one owner in time order."""
    ends: dict[str, datetime] = {}
    following: dict[str | None, tuple[datetime, datetime]] = {}
    for row in reversed(rows):
        end: datetime = row["ended_at"] or row["occurred_at"]
        if row["session_id"] in following:
            start, last = following[row["session_id"]]
            if start - end <= SILENCE:
                end = max(end, last)
        ends[row["slice_id"]] = end
        following[row["session_id"]] = (row["occurred_at"], end)
    return ends


def _trust(candidate: Candidate) -> float:
    """How far to believe it: what people say of themselves .8, of relatives .7; + .05 per repetition to .95;
    an episode is a record of what was said, .85."""
    if candidate.claim is None:
        return 0.85
    base = 0.7 if candidate.predicate.startswith(FAMILY) else 0.8
    return round(min(0.95, base + 0.05 * (len(candidate.rows) - 1)), 4)


def _confidence(candidate: Candidate) -> float:
    """That the reading is right. Facts: 1 − Π (1 − strength) over slices, .99 at most; episodes by their labels."""
    row = candidate.row
    if candidate.claim is None:
        return round(0.6 + 0.15 * (row["intent"] not in (None, "out_of_scope")) + 0.15 * bool(candidate.entities), 4)
    wrong = 1.0
    for strength in sorted({m.row["slice_id"]: m.fact.strength for m in candidate.claim.mentions}.values()):
        wrong *= 1 - strength
    return round(min(0.99, 1 - wrong), 4)


def _structured(candidate: Candidate) -> dict[str, Any]:
    row = candidate.row
    if candidate.claim is None:
        named = {
            "category": candidate.category,
            "intent": row["intent"],
            "action": row["action"],
            "reason": row["reason"],
        }
        told = {"feedback": row["feedback"], "emotion": row["emotion"], "mentions": len(candidate.rows)}
        steps = {"steps": list(candidate.reading.steps)} if candidate.reading.steps else {}
        return {k: v for k, v in (named | told | steps).items() if v not in (None, "", "none")}
    fact = candidate.claim.fact
    parts = fact.predicate.split(".")
    evidence = [
        {"slice_id": m.row["slice_id"], "start": m.fact.start, "end": m.fact.end} for m in candidate.claim.mentions
    ]
    triple = {
        "subject": parts[1] if len(parts) > 1 else "self",
        "predicate": fact.base,
        "object": fact.object,
        "value": fact.value,
        "category": candidate.category,
        "evidence": evidence,
    }
    return triple | ({"date": fact.day} if fact.day else {})


def routing_of(judged: Judged, profile: Profile) -> Routing:
    """Where a candidate belongs, by what would be stored of it."""
    candidate, row, claim = judged.candidate, judged.candidate.row, judged.candidate.claim
    followed = 0.0 if claim else consequence(row["feedback"])
    text = fact_summary(claim.fact, profile, None) if claim else row["text"] or ""
    return route(candidate.kind, candidate.category, judged.structure, len(candidate.entities), followed, text)


def decision_row(judged: Judged, permanence: Permanence, routing: Routing, profile: Profile, snapshot: str) -> Row:
    """A row of ``tables.DECISIONS``; ``snapshot`` is the version of the population snapshot that it was judged by."""
    candidate, row = judged.candidate, judged.candidate.row
    return {
        "tenant": candidate.owner.tenant,
        "subject": candidate.owner.subject,
        "memory_id": candidate.memory_id,
        "slice_id": row["slice_id"],
        "memory_type": candidate.kind.value,
        "permanence": permanence.value,
        "category": candidate.category,
        "mentions": len(candidate.rows),
        "persistence": judged.persistence,
        "structure": judged.structure,
        "personalisation": judged.personalisation,
        "parts": list(judged.parts.items()),
        "weight_persistence": profile.weights[0],
        "weight_structure": profile.weights[1],
        "weight_personalisation": profile.weights[2],
        "score": judged.score,
        "long_from": judged.long_from,
        "short_from": profile.short,
        "arm": judged.arm,
        "rule": judged.rule,
        "outcome": judged.outcome,
        "stores": list(routing.stores) if judged.outcome != DISCARD else [],
        "fit": canonical_json(routing.fit),
        "scenario": profile.label,
        "gate_data": gate_data(),
        "snapshot": snapshot,
        "model_set": row["model_set"],
        "occurred_at": row["occurred_at"],
        "owner": row["owner"],
        "bucket": row["bucket"],
    }


def memory_row(
    judged: Judged, permanence: Permanence, routing: Routing, profile: Profile, ends: Mapping[str, datetime]
) -> Row:
    """A row of ``tables.MEMORIES``; ``ends``: slice id → end of its session (``session_ends``)."""
    candidate, row, claim = judged.candidate, judged.candidate.row, judged.candidate.claim
    impacts = [r["decision_impact"] for r in candidate.rows if r["decision_impact"] is not None]
    text: str = row["text"] or ""
    if claim:
        start, end = claim.fact.sentence
        text = text[start:end].strip()
        summary = fact_summary(claim.fact, profile, claim.valid_to)
    else:
        summary = episode_summary(row, profile, candidate.language)
    last = max(ends[r["slice_id"]] for r in candidate.rows)
    return {
        "tenant": candidate.owner.tenant,
        "subject": candidate.owner.subject,
        "memory_id": candidate.memory_id,
        "memory_type": candidate.kind.value,
        "permanence": permanence.value,
        "term": judged.outcome,
        "summary": summary,
        "text": text,
        "language": candidate.language,
        "predicate": candidate.predicate,
        "value": candidate.value,
        "structured": canonical_json(_structured(candidate)),
        "confidence": _confidence(candidate),
        "trust": _trust(candidate),
        "score": judged.score,
        "slice_ids": [r["slice_id"] for r in candidate.rows],
        "own_turn_ids": unique(turn for r in candidate.rows for turn in r["own_turn_ids"]),
        "source_turn_ids": unique(turn for r in candidate.rows for turn in r["source_turn_ids"] or []),
        "entities": list(candidate.entities),
        "intent": row["intent"],
        "decision_impact": max(impacts) if impacts else None,
        "occurred_at": row["occurred_at"],
        "valid_from": claim.valid_from if claim else None,
        "valid_to": claim.valid_to if claim else None,
        "expires_at": last + SHORT_TERM if judged.outcome == SHORT else None,
        "stores": list(routing.stores),
        "path": "rules" if claim else "rules+small_model",
        "model_set": row["model_set"],
        "owner": row["owner"],
        "bucket": row["bucket"],
    }
