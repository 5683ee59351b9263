"""The intent model: trained from labelled rows, judged on its own hold-out, promoted if better."""

import dagster as dg

from assets.partitions import OWNERS
from assets.reward import picture
from memory_pipelines.pipeline import intents
from resources.platform import PlatformResource


@dg.asset(group_name="labels", owners=OWNERS, kinds={"python", "postgresql"})
def intent_model(memory: PlatformResource) -> dg.MaterializeResult:
    """Intent, action and category learnt from the rows of `memory-pipelines labels import` and those that ship. It is
    promoted only if it beats the current model on held-out rows. Pin the set named in the metadata
    (MEMORY_PIPELINES_MODEL_SET) and backfill to label with it; the labels of other sets stay."""
    from memory_pipelines.slices.intent.plots import class_table, confusion

    trained = intents.train_intents(memory.platform)
    if trained.metrics is None:
        return dg.MaterializeResult(metadata={"dagster/row_count": 0, "nothing_to_do": trained.verdict})
    metrics = trained.metrics["intent"]
    heads = [dg.TableRecord({"head": head, **found.as_json()}) for head, found in trained.metrics.items()]
    most = [dg.TableRecord({"true": a, "predicted": b, "rows": n}) for a, b, n in metrics.confused]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": trained.rows,
            "model": trained.model_id,
            "model_set": trained.model_set,
            "promoted": trained.promoted,
            "reason": trained.verdict,
            "held_out_rows": metrics.n,
            "accuracy": metrics.accuracy,
            "macro_f1": metrics.macro_f1,
            "calibration_error": metrics.ece,
            "heads": dg.MetadataValue.table(heads),
            "classes": dg.MetadataValue.md(class_table(metrics)),
            "confusion": picture("Confusion", confusion(trained.truth, trained.given)),
            **({"most_confused": dg.MetadataValue.table(most)} if most else {}),
        }
    )


ASSETS = [intent_model]
