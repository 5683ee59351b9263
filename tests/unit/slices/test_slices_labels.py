"""The three label tables: schema, keys, order, and independence of rows from one another."""

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from memory_pipelines import tables
from memory_pipelines.errors import SettingError
from memory_pipelines.slices.emotion.score import label_emotions
from memory_pipelines.slices.entities.find import label_entities
from memory_pipelines.slices.intent.predict import label_intents

AT = datetime(2024, 5, 17, 8, 12, tzinfo=UTC)
TEXTS = ["顺丰太慢了，我要退款！", "", "ok", "😡", "明天 meet Emma at Starbucks", "好" * 100_000, "x", None]
STEPS = [(label_intents, tables.INTENTS), (label_emotions, tables.EMOTIONS), (label_entities, tables.ENTITIES)]
Step = Callable[[pa.Table, str], pa.Table]


def exchanges(texts: list[str | None]) -> pa.Table:
    rows = [
        {
            "tenant": "t",
            "subject": f"u:{i % 3}",
            "exchange_id": f"e{i}",
            "own_text": text,
            "other_text": "我叫李雷，非常生气",
            "started_at": AT,
            "day": "2024-05-17",
            "bucket": i % 8,
        }
        for i, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=tables.EXCHANGES.schema)


@pytest.mark.parametrize(("step", "spec"), STEPS)
def test_one_row_per_exchange_in_order_with_its_keys(step: Step, spec: tables.TableSpec) -> None:
    source = exchanges(TEXTS)
    labels = step(source, "base-1")
    assert labels.schema == spec.schema
    for name in ("tenant", "subject", "exchange_id", "day", "bucket"):
        assert labels.column(name).to_pylist() == source.column(name).to_pylist()
    assert set(labels.column("model_set").to_pylist()) == {"base-1"}


@pytest.mark.parametrize(("step", "spec"), STEPS)
def test_rows_do_not_depend_on_their_neighbours(step: Step, spec: tables.TableSpec) -> None:
    source = exchanges(TEXTS)
    whole = step(source, "base-1").to_pylist()
    singly = [step(source.slice(i, 1), "base-1").to_pylist()[0] for i in range(len(TEXTS))]
    assert singly == whole
    order = [5, 2, 7, 0, 6, 1, 4, 3]
    assert step(source.take(order), "base-1").to_pylist() == [whole[i] for i in order]
    chunked = pa.concat_tables([source.slice(0, 3), source.slice(3)])
    assert step(chunked, "base-1").to_pylist() == whole


@pytest.mark.parametrize(("step", "spec"), STEPS)
def test_no_exchanges_no_labels(step: Step, spec: tables.TableSpec) -> None:
    labels = step(exchanges([]), "base-1")
    assert labels.num_rows == 0
    assert labels.schema == spec.schema


@pytest.mark.parametrize(("step", "spec"), STEPS)
def test_an_unknown_model_set_is_refused(step: Step, spec: tables.TableSpec) -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_MODEL_SET"):
        step(exchanges(["好的"]), "no-such-set")


def test_values_come_from_the_own_text_alone() -> None:
    source = exchanges(["顺丰太慢了，我要退款！", "ok"])
    first, second = label_intents(source, "base-1").to_pylist()
    assert (first["intent"], second["intent"]) == ("refund_request", "acknowledgement")
    emotions = label_emotions(source, "base-1").to_pylist()
    assert emotions[0]["emotion"].startswith("frustration:")
    assert (emotions[1]["emotion"], emotions[1]["emotion_score"]) == ("neutral", 0.0)
    entities = label_entities(source, "base-1").to_pylist()
    assert entities[0]["entities"] == [{"surface": "顺丰", "canonical": "carrier/sf_express", "kind": "carrier"}]
    assert [row["entities"] for row in entities[1:]] == [[]]
    assert [row["language"] for row in entities] == ["zh", "en"]
