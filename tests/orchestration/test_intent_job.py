"""The intent model as Dagster's job: labelled rows in, trained, judged, promoted, pinned."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from quarter_world import Life, told

from memory_pipelines.errors import InputError, SettingError
from memory_pipelines.pipeline import intents
from memory_pipelines.slices.intent.labelled import training_rows
from memory_pipelines.slices.intent.predict import OUT_OF_SCOPE
from memory_pipelines.stores.base import Replace
from memory_pipelines.tables import EXCHANGES, LABELLED

PLACES = [
    "roof",
    "garden",
    "kitchen",
    "cellar",
    "garage",
    "balcony",
    "hall",
    "office",
    "attic",
    "porch",
    "studio",
    "barn",
]


def write_labels(file: Path, wrong: bool = False) -> Path:
    """Two intents of the user's own; ``wrong``: a file that has them crossed."""
    names = ("book_inspection", "report_leak")[:: -1 if wrong else 1]
    lines = ["text,lang,intent,action"]
    lines += [f"please send an inspector for the {place},en,{names[0]},request" for place in PLACES]
    lines += [f"water is dripping in the {place},en,{names[1]},inform" for place in PLACES]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_without_rows_there_is_nothing_to_do(nobody: Life) -> None:
    shown = told(nobody.run("intent_job"), "intent_model")
    assert "too few" in shown["nothing_to_do"]
    assert nobody.platform.registry.rows(intents.KIND) == []


def test_users_own_intents_are_learnt_promoted_and_pinned(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    found = intents.import_labels(platform, write_labels(tmp_path / "house.csv"))
    assert (found.rows.num_rows, found.faults) == (24, [])
    shown = told(nobody.run("intent_job"), "intent_model")
    (row,) = platform.registry.rows(intents.KIND)
    assert (shown["promoted"], shown["model"], shown["reason"]) == (True, row.model_id, row.verdict)
    assert shown["model_set"] == f"{platform.settings.model_set}+intent-{row.model_id[:12]}"
    assert shown["accuracy"] == row.metrics["intent"]["accuracy"] >= 0.8
    assert shown["confusion"].startswith("![Confusion](data:image/png")
    assert "| book_inspection |" in shown["classes"]
    assert len(row.data_hash) == 32

    rows = [
        {"exchange_id": "1", "own_text": "water is dripping in the chapel"},
        {"exchange_id": "2", "own_text": "谢谢"},
    ]
    exchanges = pa.Table.from_pylist(rows, schema=EXCHANGES.schema)
    before = intents.intent_step(platform)(exchanges, platform.settings.model_set)
    assert "report_leak" not in before["intent"].to_pylist()
    platform.settings = replace(platform.settings, model_set=shown["model_set"])
    after = intents.intent_step(platform)(exchanges, shown["model_set"])
    assert after["intent"].to_pylist() == ["report_leak", "thanks"]
    assert set(after["model_set"].to_pylist()) == {shown["model_set"]}


def test_the_same_rows_again_make_the_same_model(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    intents.import_labels(platform, write_labels(tmp_path / "house.csv"))
    first = intents.train_intents(platform)
    again = intents.train_intents(platform)
    assert (again.model_id, again.promoted) == (first.model_id, True)
    assert len(platform.registry.rows(intents.KIND)) == 1


def test_what_is_not_better_is_kept_but_not_promoted(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    intents.import_labels(platform, write_labels(tmp_path / "house.csv"))
    first = intents.train_intents(platform)
    rows = [("zzqx wvut", "en", OUT_OF_SCOPE), ("qqwy plom", "en", OUT_OF_SCOPE)]
    more = [dict(zip(("text", "lang", "intent"), row, strict=True)) | {"source": "more"} for row in rows]
    train, held = training_rows(pa.Table.from_pylist(more, schema=LABELLED.schema))
    assert (len(train), held) == (2, []), "the hold-out stays what it was"
    platform.lake.write(LABELLED, pa.Table.from_pylist(more, schema=LABELLED.schema), [Replace("source", ("more",))])
    second = intents.train_intents(platform)
    champion = platform.registry.champion(intents.KIND)
    assert champion is not None
    assert (second.promoted, champion.model_id) == (False, first.model_id)
    assert "is not above the current model's" in second.verdict
    assert len(platform.registry.rows(intents.KIND)) == 2


def test_a_file_replaces_its_own_earlier_rows(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    intents.import_labels(platform, write_labels(tmp_path / "a.csv"))
    intents.import_labels(platform, write_labels(tmp_path / "b.csv"))
    intents.import_labels(platform, write_labels(tmp_path / "a.csv", wrong=True))
    rows = platform.lake.read(LABELLED).to_pylist()
    assert len(rows) == 48
    leak = {row["source"]: row["intent"] for row in rows if row["text"] == "water is dripping in the roof"}
    assert leak == {"a.csv": "book_inspection", "b.csv": "report_leak"}


def test_a_file_without_a_good_row_replaces_nothing(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    file = write_labels(tmp_path / "a.csv")
    intents.import_labels(platform, file)
    file.write_text("text,lang,intent,action\nplease send somebody,en,,request\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.csv has no good row, .*row 1: no intent"):
        intents.import_labels(platform, file)
    file.write_text("text,lang,intent,action\n", encoding="utf-8")
    with pytest.raises(InputError, match="no good row"):
        intents.import_labels(platform, file)
    assert platform.lake.read(LABELLED).num_rows == 24


def test_the_registry_says_what_was_judged_last(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    intents.import_labels(platform, write_labels(tmp_path / "house.csv"))
    first = intents.train_intents(platform)
    again = intents.train_intents(platform)
    (row,) = platform.registry.rows(intents.KIND)
    assert first.verdict != again.verdict == row.verdict


@pytest.mark.parametrize("name", ["base-2+intent-000000000000", "base-2+intent-", "base-2+intent-ab"])
def test_a_set_that_the_registry_does_not_know(nobody: Life, name: str) -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_MODEL_SET"):
        intents.model_of(nobody.platform, name)
