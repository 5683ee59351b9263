"""Turns through the platform's own steps, without its stores: rows of dialogue in, slices and decisions out.

Belongs here: the way from a turn to a decision, as the jobs take it. Does not belong here: what is measured.
Cleaning, hiding of sensitive fields, exchanges, labels of the default model set, impacts by rule, slices, the gate.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.admission.gate import Admitted, admit
from memory_pipelines.admission.snapshot import Snapshot
from memory_pipelines.model import day_of, stable_hash
from memory_pipelines.settings import Settings
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.slices.emotion.score import label_emotions
from memory_pipelines.slices.entities.find import label_entities
from memory_pipelines.slices.events import labelled_exchanges
from memory_pipelines.slices.exchanges import cut_exchanges
from memory_pipelines.slices.impact import score_impacts
from memory_pipelines.slices.intent.predict import label_intents
from memory_pipelines.slices.merge import merge_slices
from memory_pipelines.slices.sensitive import hide_sensitive
from memory_pipelines.stores.vault import Secret, token
from memory_pipelines.tables import TURNS

BUCKETS = 8
MODEL_SET = Settings.load({}).model_set
TENANT = "default"


@dataclass(frozen=True)
class Turn:
    """One turn of a dialogue; ``user`` is whom the row names, empty for nobody."""

    turn_id: str
    conversation: str
    user: str
    role: str
    at: datetime
    text: str
    session: str | None = None
    edited_at: datetime | None = None


class Forgetful:
    """A vault that makes tokens and keeps nothing."""

    def keep(self, secrets: Collection[Secret]) -> dict[Secret, str]:
        return {s: token(s.kind, hashlib.sha256(repr(s).encode()).digest()) for s in secrets}

    def reveal(self, wanted: object) -> dict[object, dict[str, str]]:
        return {}


def turns_table(turns: Iterable[Turn]) -> pa.Table:
    """TURNS rows of one tenant, cleaned, with tokens for sensitive fields, as landing leaves them."""
    rows = [
        {
            "tenant": TENANT,
            "turn_id": turn.turn_id,
            "conversation_id": turn.conversation,
            "session_id": turn.session,
            "subject": f"u:{turn.user}" if turn.user else None,
            "role": turn.role,
            "occurred_at": turn.at,
            "text": turn.text,
            "edited_at": turn.edited_at,
            "content_hash": stable_hash(turn.turn_id, turn.text),
            "file_id": "f",
            "position": position,
            "day": day_of(turn.at),
        }
        for position, turn in enumerate(turns)
    ]
    table = pa.Table.from_pylist(rows, schema=TURNS.schema)
    return hide_sensitive(clean_turns(table).turns, Forgetful())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Labelled:
    """Exchanges and their labels of the default model set."""

    exchanges: pa.Table
    intents: pa.Table
    emotions: pa.Table
    entities: pa.Table

    def of(self, subject: str) -> "Labelled":
        """Those of one subject."""
        tables = (self.exchanges, self.intents, self.emotions, self.entities)
        return Labelled(*(table.filter(pc.equal(table["subject"], subject)) for table in tables))

    def slices(self, as_of: datetime) -> pa.Table:
        """The event slices (SLICES), as known at ``as_of``."""
        items = labelled_exchanges(self.exchanges, self.intents, self.emotions, self.entities, as_of)
        impacts = score_impacts(items, {}, as_of=as_of, model_set=MODEL_SET)
        return merge_slices(items, impacts, {}, as_of=as_of, model_set=MODEL_SET)


def labelled(turns: Iterable[Turn]) -> Labelled:
    """Cut and label all turns."""
    table = turns_table(turns)
    exchanges = cut_exchanges(table, set(table["day"].to_pylist()), BUCKETS).exchanges
    return Labelled(
        exchanges, *(step(exchanges, MODEL_SET) for step in (label_intents, label_emotions, label_entities))
    )


def admitted(slices: pa.Table, scenario: str, as_of: datetime) -> Admitted:
    """The gate's result with a neutral population snapshot."""
    return admit(slices, Snapshot(), scenario=scenario, as_of=as_of)
