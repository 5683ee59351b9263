"""The models of steps 2 to 4: trained from labelled rows, judged on their own hold-out, promoted if better."""

import dagster as dg

from assets.partitions import OWNERS
from assets.previews import picture
from memory_pipelines.pipeline import trained
from memory_pipelines.slices.labelled import EMOTION, ENTITIES, INTENT
from resources.platform import PlatformResource

GROUP, KINDS = "labels", {"python", "postgresql"}


@dg.asset(group_name=GROUP, owners=OWNERS, kinds=KINDS)
def intent_model(memory: PlatformResource) -> dg.MaterializeResult:
    """Intent, action and category learnt from the rows of `memory-pipelines labels import` and those that ship. It is
    promoted only if it beats the current model on held-out rows. Pin the set named in the metadata
    (MEMORY_PIPELINES_MODEL_SET) and backfill to label with it; the labels of other sets stay."""
    return _trained(memory, INTENT)


@dg.asset(group_name=GROUP, owners=OWNERS, kinds=KINDS)
def emotion_model(memory: PlatformResource) -> dg.MaterializeResult:
    """An emotion head learnt from labelled scores; promoted, pinned and used like `intent_model`."""
    return _trained(memory, EMOTION)


@dg.asset(group_name=GROUP, owners=OWNERS, kinds=KINDS)
def entity_model(memory: PlatformResource) -> dg.MaterializeResult:
    """A tagger of entities learnt from labelled spans; promoted, pinned and used like `intent_model`."""
    return _trained(memory, ENTITIES)


def _trained(memory: PlatformResource, kind: str) -> dg.MaterializeResult:
    found = trained.train(memory.platform, kind)
    learned = found.learned
    if learned is None:
        return dg.MaterializeResult(metadata={"dagster/row_count": 0, "nothing_to_do": found.verdict})
    title, png = learned.picture
    tables = {name: [dg.TableRecord(dict(row)) for row in rows] for name, rows in learned.tables.items()}
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": learned.rows,
            "model": found.model_id,
            "model_set": found.model_set,
            "promoted": found.promoted,
            "reason": found.verdict,
            "held_out_rows": found.held_out,
            **learned.figures,
            **{name: dg.MetadataValue.table(rows) for name, rows in tables.items()},
            **{name: dg.MetadataValue.md(text) for name, text in learned.texts.items()},
            "picture": picture(title, png),
        }
    )


ASSETS = [intent_model, emotion_model, entity_model]
