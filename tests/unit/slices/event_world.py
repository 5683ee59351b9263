"""Labelled exchanges and behaviour for the tests of steps 5 and 6."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines.model import Owner, day_of, iso, month_of, stable_hash
from memory_pipelines.slices.events import History, Labelled, histories, labelled_exchanges
from memory_pipelines.tables import BEHAVIOUR, EMOTIONS, ENTITIES, EXCHANGES, INTENTS, TableSpec

Row = dict[str, Any]
BASE = datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)
OWNER = Owner("acme", "u:ann")
FAR = BASE + timedelta(days=365)


def after(hours: float = 0.0, days: float = 0.0) -> datetime:
    return BASE + timedelta(days=days, hours=hours)


def entity(surface: str, canonical: str | None = None, kind: str = "carrier") -> Row:
    return {"surface": surface, "canonical": canonical or f"{kind}/{surface}", "kind": kind}


def talk(
    name: str,
    hours: float = 0.0,
    intent: str = "logistics_complaint",
    action: str = "express_frustration",
    *,
    days: float = 0.0,
    entities: Iterable[Row] = (),
    emotion: float = 0.0,
    label: str = "neutral",
    text: str | None = None,
    minutes: float = 5.0,
    owner: Owner = OWNER,
    **fields: Any,
) -> Row:
    """An exchange with all of its labels in one dict."""
    at = after(hours, days)
    row: Row = {
        "tenant": owner.tenant,
        "subject": owner.subject,
        "exchange_id": name,
        "conversation_id": "c1",
        "session_id": "s1",
        "origin": "web_app",
        "started_at": at,
        "ended_at": at + timedelta(minutes=minutes),
        "own_text": name if text is None else text,
        "other_text": f"re {name}",
        "own_turn_ids": [f"{name}/1"],
        "turn_ids": [f"{name}/1", f"{name}/2"],
        "context_turn_id": None,
        "vector_clock": None,
        "text_hash": stable_hash(name),
        "day": day_of(at),
        "month": month_of(day_of(at)),
        "owner": owner.key,
        "bucket": owner.bucket(8),
        "model_set": "base-1",
        "intent": intent,
        "intent_confidence": 0.9,
        "action": action,
        "action_confidence": 0.9,
        "category": "task",
        "category_confidence": 0.9,
        "emotion_score": emotion,
        "emotion": label,
        "language": "zh",
        "entities": list(entities),
    }
    return row | fields


def deed(kind: str, hours: float = 0.0, *, days: float = 0.0, event: str | None = None, **fields: Any) -> Row:
    at = after(hours, days)
    content = stable_hash(OWNER.subject, kind, iso(at))
    row: Row = {
        "tenant": OWNER.tenant,
        "event_id": event or content,
        "subject": OWNER.subject,
        "kind": kind,
        "occurred_at": at,
        "value": None,
        "dwell_seconds": None,
        "bounce": None,
        "reference": None,
        "content_hash": content,
        "file_id": "f1",
        "position": 0,
        "day": day_of(at),
        "owner": OWNER.key,
        "bucket": OWNER.bucket(8),
    }
    return row | fields


def rows_of(spec: TableSpec, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{n: row[n] for n in spec.schema.names} for row in rows], schema=spec.schema)


def labelled(rows: Sequence[Row], as_of: datetime = FAR) -> dict[str, list[Labelled]]:
    tables = (rows_of(spec, rows) for spec in (EXCHANGES, INTENTS, EMOTIONS, ENTITIES))
    return labelled_exchanges(*tables, as_of=as_of)


def behaviour(rows: Sequence[Row], as_of: datetime = FAR) -> dict[str, History]:
    return histories(rows_of(BEHAVIOUR, rows), as_of)
