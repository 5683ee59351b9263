"""The three label tables: schema, keys, order, and independence of rows from one another."""

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from memory_pipelines import tables
from memory_pipelines.errors import SettingError
from memory_pipelines.models.embeddings import local_embedder
from memory_pipelines.slices.emotion.score import label_emotions
from memory_pipelines.slices.entities.find import label_entities
from memory_pipelines.slices.intent.predict import label_intents

AT = datetime(2024, 5, 17, 8, 12, tzinfo=UTC)
TEXTS = ["顺丰太慢了，我要退款！", "", "ok", "😡😡", "明天 meet Emma at Starbucks", "好" * 100_000, "x", None]
"""Mixed languages, one sign, emoji only, 300 kB, nothing."""
SETS = ["base-1", "base-2", "accurate-2"]
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


@pytest.mark.parametrize("model_set", SETS)
@pytest.mark.parametrize(("step", "spec"), STEPS)
def test_one_row_per_exchange_in_order_with_its_keys(step: Step, spec: tables.TableSpec, model_set: str) -> None:
    source = exchanges(TEXTS)
    labels = step(source, model_set)
    assert labels.schema == spec.schema
    for name in ("tenant", "subject", "exchange_id", "day", "bucket"):
        assert labels.column(name).to_pylist() == source.column(name).to_pylist()
    assert set(labels.column("model_set").to_pylist()) == {model_set}


@pytest.mark.parametrize("model_set", SETS)
@pytest.mark.parametrize(("step", "spec"), STEPS)
def test_rows_do_not_depend_on_their_neighbours(step: Step, spec: tables.TableSpec, model_set: str) -> None:
    source = exchanges(TEXTS)
    whole = step(source, model_set).to_pylist()
    singly = [step(source.slice(i, 1), model_set).to_pylist()[0] for i in range(len(TEXTS))]
    assert singly == whole
    order = [5, 2, 7, 0, 6, 1, 4, 3]
    assert step(source.take(order), model_set).to_pylist() == [whole[i] for i in order]
    chunked = pa.concat_tables([source.slice(0, 3), source.slice(3)])
    assert step(chunked, model_set).to_pylist() == whole


@pytest.mark.parametrize("model_set", SETS)
def test_what_hardly_is_a_text_has_sober_labels(model_set: str) -> None:
    texts = ["", None, " ", "x", "好", "?", "😡😡", "👍", "12", "我的order还没arrive，sf express太慢了", "啊" * 100_000]
    source = exchanges(texts)
    emotions = dict(zip(texts, label_emotions(source, model_set)["emotion_score"].to_pylist(), strict=True))
    assert {emotions[text] for text in ("", None, " ", "x", "?", "12", "好")} == {0.0}
    assert emotions["😡😡"] < 0 < emotions["👍"]
    assert emotions["我的order还没arrive，sf express太慢了"] < 0
    intents = dict(zip(texts, label_intents(source, model_set)["intent"].to_pylist(), strict=True))
    assert {intents[text] for text in ("", None, " ")} == {"out_of_scope"}
    assert intents["我的order还没arrive，sf express太慢了"] == "logistics_complaint"
    assert (intents["好"], intents["👍"]) == ("acknowledgement", "acknowledgement")
    found = label_entities(source, model_set)["entities"].to_pylist()
    named = [[entity["canonical"] for entity in row] for row in found]
    assert named == [["carrier/sf_express"] if text and "sf" in text else [] for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "spec"), STEPS)
@pytest.mark.parametrize(("model_set", "rows"), [("base-2", 100_000), ("accurate-2", 500)])
def test_shuffled_exchanges_have_the_same_labels(step: Step, spec: tables.TableSpec, model_set: str, rows: int) -> None:
    parts = [
        "顺丰的快递太慢了",
        "where is my parcel",
        "我叫王小明",
        "I love hiking",
        "😡",
        "谢谢",
        "Emma flies to Boston",
        "好",
    ]
    texts = [f"{a} {b} {number % 997}" for a in parts for b in parts for number in range(-(-rows // 64))][:rows]
    source = exchanges(texts)
    order = list(range(rows))
    random.Random(7).shuffle(order)
    labels = step(source, model_set)
    local_embedder.cache_clear()  # vectors of other batches, not those that were kept
    assert step(source.take(order), model_set).equals(labels.take(order))


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
