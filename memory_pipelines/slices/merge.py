"""Step 6: exchanges about one event become one event slice.

Belongs here: the slice row. Does not belong here: which exchanges belong together (``events``), or
whether a slice deserves to be remembered (``admission``).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from memory_pipelines.model import WINDOW, impact_label, slice_id, unique
from memory_pipelines.slices.events import History, Labelled, feedback_after, group_events, words_of
from memory_pipelines.slices.exchanges import merged_clock
from memory_pipelines.slices.resources import read_yaml
from memory_pipelines.tables import SLICES


def merge_slices(
    labelled: Mapping[str, list[Labelled]],
    impacts: pa.Table,
    histories: Mapping[str, History],
    *,
    as_of: datetime,
    model_set: str,
) -> pa.Table:
    """SLICES rows; a slice has the highest impact of its exchanges and keeps every source id."""
    scores = dict(zip(impacts["exchange_id"].to_pylist(), impacts["decision_impact"].to_pylist(), strict=True))
    rows: list[dict[str, Any]] = []
    for owner, items in labelled.items():
        history, words = histories.get(owner), words_of(items)
        place = {item.exchange_id: i for i, item in enumerate(items)}
        for event in group_events(items):
            first = place[event[0].exchange_id]
            before = items[first - 1].ended_at if first else None
            feedback = feedback_after(event, words, history, as_of)
            rows.append(_slice(event, scores, before, feedback, as_of, model_set))
    return pa.Table.from_pylist(rows, schema=SLICES.schema)


def _slice(
    event: Sequence[Labelled],
    scores: Mapping[str, float],
    before: datetime | None,
    feedback: str,
    as_of: datetime,
    model_set: str,
) -> dict[str, Any]:
    first = event[0]
    strongest = max(event, key=lambda x: (abs(x.row["emotion_score"]), x.row["emotion_score"], x.exchange_id))
    impact = max(scores[x.exchange_id] for x in event)
    entities = {(e["canonical"], e["surface"], e["kind"]): e for x in event for e in x.row["entities"]}
    text = "\n".join(x.row["own_text"] for x in event)
    replies = "\n".join(x.row["other_text"] for x in event if x.row["other_text"])
    return {
        **{name: first.row[name] for name in ("tenant", "subject", "session_id", "owner", "bucket")},
        "slice_id": slice_id(first.started_at.date(), first.exchange_id),
        "session_origin": first.row["origin"],
        "occurred_at": first.started_at,
        "ended_at": max(x.ended_at for x in event),
        "intent": first.intent,
        "action": first.action,
        "category": first.row["category"],
        "feedback": feedback,
        "reason": _reason(first.intent, text),
        "text": text,
        "reply_text": replies,
        "language": first.row["language"],
        "exchange_ids": [x.exchange_id for x in event],
        "own_turn_ids": unique(t for x in event for t in x.row["own_turn_ids"]),
        "source_turn_ids": unique(t for x in event for t in x.row["turn_ids"]),
        "seconds_since_last": None if before is None else max(0, int((first.started_at - before).total_seconds())),
        "emotion_score": strongest.row["emotion_score"],
        "emotion": strongest.row["emotion"],
        "entities": [entities[key] for key in sorted(entities)],
        "decision_impact": impact,
        "impact_label": impact_label(impact).value,
        "impact_final": all(x.started_at + WINDOW <= as_of for x in event),
        "vector_clock": merged_clock(x.row["vector_clock"] for x in event),
        "model_set": model_set,
    }


def _reason(intent: str, text: str) -> str | None:
    """Why, in a word: the first cue of ``data/reasons.yaml`` for the intent that the text contains."""
    lowered = text.lower()
    for reason, cues in read_yaml("reasons.yaml").get(intent, {}).items():
        if any(cue in lowered for cue in cues):
            return str(reason)
    return None
