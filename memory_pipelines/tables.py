"""The lake's tables: names, Arrow schemas, how they are cut, what may be in Delta statistics.

Belongs here: the shape of every table that a job writes. Does not belong here: how a table is
stored (``stores.lake``) or made. Verbatim text never enters file statistics: Delta's log would
keep its first characters after the rows are erased, so each table lists its statistics columns.
``owner`` is ``Owner(tenant, subject).key``: rows are found and replaced by it, because a predicate is
written to the log as well, and no name may be.
"""

from dataclasses import dataclass

import pyarrow as pa

TIME = pa.timestamp("us", "UTC")
STRINGS = pa.list_(pa.string())


@dataclass(frozen=True)
class TableSpec:
    """One Delta table. ``key`` identifies a canonical row; ``order`` outside of it is bookkeeping."""

    name: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    statistics: tuple[str, ...]
    key: tuple[str, ...]
    bookkeeping: tuple[str, ...] = ()
    """Columns that tell how a row arrived; they take no part in a canonical comparison."""
    sort_by: str = "owner"
    """The order of rows in a compacted file."""


def _schema(**fields: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in fields.items()])


TURNS = TableSpec(
    "turns",
    _schema(
        tenant=pa.string(),
        turn_id=pa.string(),
        conversation_id=pa.string(),
        session_id=pa.string(),
        subject=pa.string(),
        role=pa.string(),
        occurred_at=TIME,
        text=pa.string(),
        origin=pa.string(),
        edited_at=TIME,
        vector_clock=pa.string(),
        content_hash=pa.string(),
        file_id=pa.string(),
        position=pa.int64(),
        day=pa.string(),
    ),
    partition_by=("day",),
    statistics=("file_id", "occurred_at"),
    key=("tenant", "turn_id", "content_hash"),
    bookkeeping=("file_id", "position"),
    sort_by="conversation_id",
)
"""Landed turns after step 1's row cleaning. ``subject`` is whom the row names (null: nobody);
``session_id`` is null where the source has none; ``vector_clock`` is JSON or null."""

BEHAVIOUR = TableSpec(
    "behaviour",
    _schema(
        tenant=pa.string(),
        event_id=pa.string(),
        subject=pa.string(),
        kind=pa.string(),
        occurred_at=TIME,
        value=pa.float64(),
        dwell_seconds=pa.float64(),
        bounce=pa.bool_(),
        reference=pa.string(),
        content_hash=pa.string(),
        file_id=pa.string(),
        position=pa.int64(),
        day=pa.string(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=("owner", "file_id", "day", "occurred_at"),
    key=("owner", "event_id", "content_hash"),
    bookkeeping=("file_id", "position"),
)
"""What users did: ``kind`` is order, refund, visit, coupon, cancel, churn, ...; ``value`` in the log's
currency; ``reference`` an order number or the like."""

CONFLICTING_VERSION = "conflicting_version"
"""The reason of whole rows that another version of their turn won over."""

QUARANTINE = TableSpec(
    "quarantine",
    _schema(
        tenant=pa.string(),
        file_id=pa.string(),
        position=pa.int64(),
        reason=pa.string(),
        raw=pa.string(),
        day=pa.string(),
    ),
    partition_by=(),
    statistics=("file_id", "reason"),
    key=("tenant", "reason", "raw"),
    bookkeeping=("file_id", "position"),
    sort_by="file_id",
)
"""Rows that are broken, as read, with the reason; ``day`` is null where no time could be read."""

EXCHANGES = TableSpec(
    "exchanges",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        exchange_id=pa.string(),
        conversation_id=pa.string(),
        session_id=pa.string(),
        origin=pa.string(),
        started_at=TIME,
        ended_at=TIME,
        own_text=pa.string(),
        other_text=pa.string(),
        own_turn_ids=STRINGS,
        turn_ids=STRINGS,
        context_turn_id=pa.string(),
        vector_clock=pa.string(),
        text_hash=pa.string(),
        day=pa.string(),
        month=pa.string(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket", "month"),
    statistics=("owner", "day", "started_at"),
    key=("owner", "exchange_id"),
)
"""Step 1's result. ``started_at`` is the first own turn's time, ``ended_at`` the last turn's;
``own_text`` and ``other_text`` are the verbatim turns joined by newlines; ``turn_ids`` holds all."""

_LABEL_KEY = {
    "tenant": pa.string(),
    "subject": pa.string(),
    "exchange_id": pa.string(),
    "model_set": pa.string(),
    "day": pa.string(),
    "month": pa.string(),
    "owner": pa.string(),
    "bucket": pa.int32(),
}

INTENTS = TableSpec(
    "intents",
    _schema(
        **_LABEL_KEY,
        intent=pa.string(),
        intent_confidence=pa.float64(),
        action=pa.string(),
        action_confidence=pa.float64(),
        category=pa.string(),
        category_confidence=pa.float64(),
    ),
    partition_by=("bucket", "month"),
    statistics=("owner", "day", "model_set"),
    key=("owner", "exchange_id", "model_set"),
)
"""Step 2. ``category`` is chit_chat, fact, preference, task, inquiry or transient_reasoning;
``intent`` may be ``out_of_scope``; confidences in [0, 1], rounded to 4 digits."""

EMOTIONS = TableSpec(
    "emotions",
    _schema(
        **_LABEL_KEY,
        emotion_score=pa.float64(),
        emotion=pa.string(),
    ),
    partition_by=("bucket", "month"),
    statistics=("owner", "day", "model_set"),
    key=("owner", "exchange_id", "model_set"),
)
"""Step 3. ``emotion_score`` in [-1, 1]; ``emotion`` is ``<label>:<low|medium|high>`` or ``neutral``."""

ENTITY = pa.struct(
    [
        pa.field("surface", pa.string()),
        pa.field("canonical", pa.string()),
        pa.field("kind", pa.string()),
    ]
)

ENTITIES = TableSpec(
    "entities",
    _schema(
        **_LABEL_KEY,
        language=pa.string(),
        entities=pa.list_(ENTITY),
    ),
    partition_by=("bucket", "month"),
    statistics=("owner", "day", "model_set"),
    key=("owner", "exchange_id", "model_set"),
)
"""Step 4. ``canonical`` is the dictionary id of a known entity (``carrier/sf_express``), else
``<kind>/<normal form>``; ``kind`` is person, company, carrier, warehouse, place, product, brand,
order_number or date; ``language`` is zh, en or mixed."""

SLICES = TableSpec(
    "slices",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        slice_id=pa.string(),
        session_id=pa.string(),
        session_origin=pa.string(),
        occurred_at=TIME,
        ended_at=TIME,
        intent=pa.string(),
        action=pa.string(),
        category=pa.string(),
        feedback=pa.string(),
        reason=pa.string(),
        text=pa.string(),
        reply_text=pa.string(),
        language=pa.string(),
        exchange_ids=STRINGS,
        own_turn_ids=STRINGS,
        source_turn_ids=STRINGS,
        seconds_since_last=pa.int64(),
        emotion_score=pa.float64(),
        emotion=pa.string(),
        entities=pa.list_(ENTITY),
        decision_impact=pa.float64(),
        impact_label=pa.string(),
        impact_final=pa.bool_(),
        vector_clock=pa.string(),
        model_set=pa.string(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=(
        "owner",
        "occurred_at",
    ),
    key=("owner", "slice_id"),
)
"""Step 6: event slices, a pure function of all of a subject's base rows, labels and behaviour."""

IMPACTS = TableSpec(
    "impacts",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        exchange_id=pa.string(),
        occurred_at=TIME,
        decision_impact=pa.float64(),
        impact_final=pa.bool_(),
        provisional_impact=pa.float64(),
        scored_by=pa.string(),
        feedback=pa.string(),
        model_set=pa.string(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=(
        "owner",
        "occurred_at",
    ),
    key=("owner", "exchange_id"),
)
"""Step 5: decision impact in [0, 1] of each exchange, in two versions: ``provisional_impact`` knows nothing of the 7
days after, ``decision_impact`` is the same until they have closed (``impact_final``). ``scored_by`` is the id of a
reward model, or ``rules``."""

DECISIONS = TableSpec(
    "decisions",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        memory_id=pa.string(),
        slice_id=pa.string(),
        memory_type=pa.string(),
        permanence=pa.string(),
        category=pa.string(),
        mentions=pa.int64(),
        persistence=pa.float64(),
        structure=pa.float64(),
        personalisation=pa.float64(),
        parts=pa.map_(pa.string(), pa.float64()),
        weight_persistence=pa.float64(),
        weight_structure=pa.float64(),
        weight_personalisation=pa.float64(),
        score=pa.float64(),
        long_from=pa.float64(),
        short_from=pa.float64(),
        arm=pa.string(),
        rule=pa.string(),
        outcome=pa.string(),
        stores=STRINGS,
        fit=pa.string(),
        scenario=pa.string(),
        gate_data=pa.string(),
        snapshot=pa.string(),
        model_set=pa.string(),
        occurred_at=TIME,
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=(
        "owner",
        "occurred_at",
    ),
    key=("owner", "memory_id"),
)
"""Every decision of the gate with its parts, and no text. ``parts``: ``<dimension>.<part>`` → value; ``score`` is the
sum of the dimensions by the weights; ``long_from`` and ``short_from`` are the thresholds of its arm. ``outcome`` is
long, short or discard; ``rule`` names the hard rule that decided, ``promoted``, or ``score``; ``mentions`` counts the
slices that state it; ``fit`` is JSON of each store's routing score; ``scenario``, ``gate_data`` and ``snapshot`` are
versions."""

POPULATION = TableSpec(
    "population",
    _schema(
        snapshot=pa.string(),
        tenant=pa.string(),
        key=pa.string(),
        subjects=pa.int64(),
    ),
    partition_by=("snapshot",),
    statistics=("tenant",),
    key=("snapshot", "tenant", "key"),
    sort_by="key",
)
"""Population snapshots: how many subjects of a tenant share a key, hashed (``admission.snapshot``). The key ``""`` is
how many there are. A version, once written, is never changed."""

MEMORIES = TableSpec(
    "memories",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        memory_id=pa.string(),
        memory_type=pa.string(),
        permanence=pa.string(),
        term=pa.string(),
        summary=pa.string(),
        text=pa.string(),
        language=pa.string(),
        predicate=pa.string(),
        value=pa.string(),
        structured=pa.string(),
        confidence=pa.float64(),
        trust=pa.float64(),
        score=pa.float64(),
        slice_ids=STRINGS,
        own_turn_ids=STRINGS,
        source_turn_ids=STRINGS,
        entities=STRINGS,
        intent=pa.string(),
        decision_impact=pa.float64(),
        occurred_at=TIME,
        valid_from=TIME,
        valid_to=TIME,
        expires_at=TIME,
        stores=STRINGS,
        path=pa.string(),
        model_set=pa.string(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=(
        "owner",
        "occurred_at",
    ),
    key=("owner", "memory_id"),
)
"""What the gate admitted. ``term`` is long or short; ``structured`` is JSON; ``stores`` is where it is
routed; ``path`` says which extraction made it; ``entities`` are canonical ids."""

EDGES = TableSpec(
    "edges",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        source=pa.string(),
        target=pa.string(),
        kind=pa.string(),
        weight=pa.float64(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=(
        "owner",
        "kind",
    ),
    key=("owner", "source", "target", "kind"),
)
"""Step 7's edges within one subject: memory ids, ``entity:<canonical>`` for entity nodes, and ``event:<kind>:<hash>``
for events of the behaviour as causes and effects; weight in (0, 1]."""

REFLECTIONS = TableSpec(
    "reflections",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        insight_id=pa.string(),
        week=pa.string(),
        kind=pa.string(),
        text=pa.string(),
        language=pa.string(),
        memory_ids=STRINGS,
        own_turn_ids=STRINGS,
        confidence=pa.float64(),
        valid_from=TIME,
        valid_to=TIME,
        due_at=TIME,
        path=pa.string(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=("owner", "week"),
    key=("owner", "insight_id"),
)
"""Weekly insights. ``week`` is its Monday, ``YYYY-MM-DD``; ``memory_ids`` are what an insight cites and
``own_turn_ids`` the turns behind them; ``due_at`` is set for action items; ``path`` is statistics or llm."""

REWARD_EVENTS = TableSpec(
    "reward_events",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        exchange_id=pa.string(),
        occurred_at=TIME,
        intent=pa.string(),
        category=pa.string(),
        emotion_score=pa.float64(),
        features=pa.list_(pa.float64()),
        window_closed=pa.bool_(),
        expected=pa.float64(),
        observed=pa.float64(),
        label=pa.float64(),
        annotated=pa.bool_(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=("bucket",),
    statistics=("owner", "occurred_at"),
    key=("owner", "exchange_id"),
)
"""What the reward model learns from. ``features`` in the order of ``reward.features.NAMES`` (NaN: not known
yet); ``expected`` and ``observed`` orders of the 7 days after; ``label`` in [0, 1], null while the window is open,
unless a human gave it (``annotated``)."""

ANNOTATIONS = TableSpec(
    "annotations",
    _schema(
        tenant=pa.string(),
        subject=pa.string(),
        exchange_id=pa.string(),
        occurred_at=TIME,
        impact=pa.float64(),
        source=pa.string(),
        owner=pa.string(),
        bucket=pa.int32(),
    ),
    partition_by=(),
    statistics=("source",),
    key=("owner", "exchange_id", "source"),
    sort_by="owner",
)
"""What humans say the decision impact of an exchange was, in [0, 1]; ``source``: the name of the file that says so."""

SPAN = pa.struct({"start": pa.int32(), "end": pa.int32(), "kind": pa.string()})

LABELLED = TableSpec(
    "labelled",
    _schema(
        kind=pa.string(),
        text=pa.string(),
        lang=pa.string(),
        intent=pa.string(),
        action=pa.string(),
        category=pa.string(),
        score=pa.float64(),
        emotion=pa.string(),
        spans=pa.list_(SPAN),
        source=pa.string(),
    ),
    partition_by=(),
    statistics=("source",),
    key=("source", "text"),
    sort_by="source",
)
"""What a step's model learns from: an operator's rows, which name nobody (sensitive values are masked as they come
in). ``kind``: the step, ``intent`` (``intent``, ``action``, ``category``), ``emotion`` (``score`` in [-1, 1],
``emotion``) or ``entities`` (``spans`` of ``text``); a label is null where unknown; ``source`` is the file's name."""

ALL = (
    TURNS,
    BEHAVIOUR,
    QUARANTINE,
    EXCHANGES,
    INTENTS,
    EMOTIONS,
    ENTITIES,
    IMPACTS,
    SLICES,
    DECISIONS,
    MEMORIES,
    EDGES,
    REFLECTIONS,
    REWARD_EVENTS,
    ANNOTATIONS,
    LABELLED,
    POPULATION,
)
