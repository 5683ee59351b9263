"""Events and behaviour by hand, and simulated ones with the truth, for the tests of the reward model."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memory_pipelines.model import Owner, day_of, iso, stable_hash, turn_id
from memory_pipelines.reward.features import NAMES
from memory_pipelines.reward.labels import reward_events
from memory_pipelines.reward.timeline import Floats
from memory_pipelines.sample import Config, simulate
from memory_pipelines.slices.emotion.score import score
from memory_pipelines.slices.events import Labelled, histories
from memory_pipelines.slices.impact import load_weights, score_impacts
from memory_pipelines.tables import BEHAVIOUR, TIME

Row = dict[str, Any]
BASE = datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)  # a Friday
FAR = BASE + timedelta(days=365)
ANN, BOB = Owner("acme", "u:ann"), Owner("acme", "u:李雷")
EVENTS = pa.schema(
    {
        "tenant": pa.string(),
        "subject": pa.string(),
        "exchange_id": pa.string(),
        "occurred_at": TIME,
        "intent": pa.string(),
        "category": pa.string(),
        "emotion_score": pa.float64(),
        "owner": pa.string(),
        "bucket": pa.int32(),
    }
)
CATEGORIES = {
    "logistics_complaint": "fact",
    "refund_request": "task",
    "praise": "fact",
    "address_change": "task",
    "product_inquiry": "inquiry",
    "greeting": "chit_chat",
    "farewell": "chit_chat",
}


def event(
    name: str, days: float = 0.0, intent: str = "logistics_complaint", *, emotion: float = -0.5, owner: Owner = ANN
) -> Row:
    return {
        "tenant": owner.tenant,
        "subject": owner.subject,
        "exchange_id": name,
        "occurred_at": BASE + timedelta(days=days),
        "intent": intent,
        "category": CATEGORIES[intent],
        "emotion_score": emotion,
        "owner": owner.key,
        "bucket": owner.bucket(8),
    }


def deed(kind: str, days: float, *, owner: Owner = ANN, name: str | None = None, **fields: Any) -> Row:
    at = BASE + timedelta(days=days)
    content = stable_hash(owner.subject, kind, iso(at), *(str(value) for value in fields.values()))
    row: Row = {
        "tenant": owner.tenant,
        "event_id": name or content,
        "subject": owner.subject,
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
        "owner": owner.key,
        "bucket": owner.bucket(8),
    }
    return row | fields


def events_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=EVENTS)


def behaviour_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=BEHAVIOUR.schema)


def rewarded(events: Sequence[Row], deeds: Sequence[Row], as_of: datetime = FAR) -> dict[str, Row]:
    """Reward events by exchange id, with ``features`` as a mapping."""
    made = reward_events(events_table(events), behaviour_table(deeds), as_of).to_pylist()
    return {row["exchange_id"]: row | {"features": dict(zip(NAMES, row["features"], strict=True))} for row in made}


@dataclass(frozen=True)
class Simulated:
    """``effect`` of each reward event: true size of what it did to later orders; NaN where the truth lists none."""

    events: pa.Table
    behaviour: pa.Table
    as_of: datetime
    rewards: pa.Table
    effect: Floats
    rule: Floats
    rule_provisional: Floats

    @property
    def known(self) -> NDArray[np.bool_]:
        """Rows that are events of the truth with a closed window."""
        return np.asarray(self.rewards.column("window_closed")) & ~np.isnan(self.effect)


def simulated(seed: int, subjects: int) -> Simulated:
    """100 days of people: every customer-service exchange with its true intent, and the rule's score beside."""
    config = Config(seed=seed, subjects=subjects, demo=False, broken=0)
    said: dict[str, tuple[str, datetime]] = {}
    truth: list[Row] = []
    others: list[Row] = []
    deeds: list[Row] = []
    for record in simulate(config):
        row = record.row
        assert isinstance(row, dict)
        if record.stream == "dialogues" and row["role"] == "user":
            at = datetime.fromisoformat(row["occurred_at"])
            name = row.get("turn_id") or turn_id(row["conversation_id"], at, "user", row["text"], 0)
            said[name] = (row["text"], at)
        elif record.stream == "behaviour":
            deeds.append(_deed(record.tenant, row))
        elif record.stream == "truth/events":
            truth.append(row)
        elif record.stream == "truth/expected" and row["kind"] in ("product_question", "greeting", "small_talk"):
            others.append(row)
    rows: list[Row] = []
    effects: dict[tuple[str, str], float] = {}
    for row in truth:
        rows.append(_event(row, row["turn_ids"], row["kind"], said))
        effects[rows[-1]["owner"], rows[-1]["exchange_id"]] = row["effect"]
    intents = {"product_question": "product_inquiry", "greeting": "greeting", "small_talk": "farewell"}
    rows += [_event(row, [row["row_id"]], intents[row["kind"]], said) for row in others if row["row_id"] in said]
    as_of = datetime.fromtimestamp(config.end, UTC)
    events, behaviour = events_table(rows), behaviour_table(deeds)
    rewards = reward_events(events, behaviour, as_of)
    keys = list(zip(rewards["owner"].to_pylist(), rewards["exchange_id"].to_pylist(), strict=True))
    final, provisional = _rule(rows, behaviour, as_of)
    return Simulated(
        events,
        behaviour,
        as_of,
        rewards,
        np.array([effects.get(key, np.nan) for key in keys]),
        np.array([final[key] for key in keys]),
        np.array([provisional[key] for key in keys]),
    )


def _event(row: Row, turns: Sequence[str], intent: str, said: dict[str, tuple[str, datetime]]) -> Row:
    owner = Owner(row["tenant"], row["subject"])
    emotion = score("\n".join(said[turn][0] for turn in turns)).score
    return event(turns[0], intent=intent, emotion=emotion, owner=owner) | {"occurred_at": said[turns[0]][1]}


def _deed(tenant: str, row: Row) -> Row:
    owner = Owner(tenant, f"u:{row['user_id']}" if row["user_id"] else f"d:{row['device_id']}")
    at = datetime.fromisoformat(row["occurred_at"])
    fields = {name: row[name] for name in ("value", "dwell_seconds", "reference")}
    made = deed(row["kind"], 0, owner=owner, name=row["event_id"], **fields)
    bounce = None if row["bounce"] is None else row["bounce"] == "true"
    return made | {"occurred_at": at, "day": day_of(at), "bounce": bounce}


def _rule(
    rows: Sequence[Row], behaviour: pa.Table, as_of: datetime
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Final and provisional score of the rules of step 5."""
    labelled: dict[str, list[Labelled]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r["occurred_at"], r["exchange_id"])):
        at = row["occurred_at"]
        labelled[row["owner"]].append(Labelled(row["exchange_id"], at, at, row["intent"], "inform", (), row))
    scored = score_impacts(labelled, histories(behaviour, as_of), as_of=as_of, model_set="base-1").to_pylist()
    weights = load_weights()
    provisional = {
        (row["owner"], row["exchange_id"]): weights.relevance[row["intent"]]
        * weights.emotion
        * abs(row["emotion_score"])
        for row in rows
    }
    return {(row["owner"], row["exchange_id"]): row["decision_impact"] for row in scored}, provisional
