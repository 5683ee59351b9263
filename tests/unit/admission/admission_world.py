"""Event slices for the admission tests: one builder, sensible defaults, everything overridable."""

from datetime import UTC, datetime, timedelta
from typing import Any

from memory_pipelines.tables import SLICES

BASE = datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)

Row = dict[str, Any]


def make_slice(
    number: int, text: str, *, days: float = 0.0, subject: str = "u:ann", tenant: str = "acme", **fields: Any
) -> Row:
    at = BASE + timedelta(days=days)
    name = f"{tenant}/{subject}/{number}"
    row: Row = {field.name: None for field in SLICES.schema}
    row |= {
        "tenant": tenant,
        "subject": subject,
        "slice_id": f"evt_{name}",
        "session_id": f"s{number}",
        "occurred_at": at,
        "ended_at": at + timedelta(minutes=10),
        "intent": "share_fact",
        "action": "inform",
        "category": "fact",
        "feedback": "none",
        "text": text,
        "reply_text": "",
        "language": "zh" if any("\u3400" <= c <= "\u9fff" for c in text) else "en",
        "exchange_ids": [f"x/{name}"],
        "own_turn_ids": [f"{name}/own"],
        "source_turn_ids": [f"{name}/own", f"{name}/reply"],
        "emotion_score": 0.0,
        "emotion": "neutral",
        "entities": [],
        "decision_impact": 0.2,
        "impact_label": "low",
        "impact_final": True,
        "model_set": "base-1",
        "bucket": 3,
    }
    return row | fields
