"""Step 2: intent, action and category of each exchange, by one small model with three heads, and one rule.

Belongs here: labels of texts and of exchanges, the rule. Does not belong here: the model (``model``), or what a label
leads to.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from memory_pipelines import tables
from memory_pipelines.slices.emotion import score as emotion
from memory_pipelines.slices.events import COMPLAINTS
from memory_pipelines.slices.intent.files import load_model
from memory_pipelines.slices.intent.model import HEADS, OUT_OF_SCOPE, IntentLabel, IntentModel
from memory_pipelines.slices.labels import label_table, own_texts
from memory_pipelines.slices.resources import Named

FRUSTRATED, SATISFIED = "express_frustration", "express_satisfaction"


def classify_all(texts: Sequence[str], model_set: Named, model: IntentModel | None = None) -> list[IntentLabel]:
    """Labels of each text, in order: the model's (default: the one that ships in the set), corrected by the rule."""
    labels = (model or load_model(model_set)).classify(texts)
    return [_without_glad_complaint(text, label, model_set) for text, label in zip(texts, labels, strict=True)]


def classify(text: str, model_set: Named) -> IntentLabel:
    """Labels of one text; equal to what ``label_intents`` gives it."""
    return classify_all([text], model_set)[0]


def label_intents(exchanges: pa.Table, model_set: Named, model: IntentModel | None = None) -> pa.Table:
    """EXCHANGES -> INTENTS, one row per exchange in the same order, from ``own_text`` alone."""
    rows = classify_all(own_texts(exchanges), model_set, model)
    names = [name for head in HEADS for name in (head, f"{head}_confidence")]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    return label_table(exchanges, tables.INTENTS, model_set, columns)


def _without_glad_complaint(text: str, label: IntentLabel, model_set: Named) -> IntentLabel:
    """A text full of joy is no complaint: the model takes warm words between friends, which it never saw, for one."""
    doubtful = label.intent in COMPLAINTS or label.action == FRUSTRATED
    if not doubtful or emotion.score(text, model_set).label != "joy:high":
        return label
    return replace(
        label,
        intent=OUT_OF_SCOPE if label.intent in COMPLAINTS else label.intent,
        action=SATISFIED if label.action == FRUSTRATED else label.action,
    )
