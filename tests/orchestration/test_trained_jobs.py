"""Models of labelled rows as Dagster's jobs: rows in, trained, judged, promoted, pinned; for steps 2 to 4 alike."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pipeline_world import in_memory
from quarter_world import LANDED, Life, told

from memory_pipelines.errors import InputError, IntegrityError, SettingError
from memory_pipelines.models.sets import parted
from memory_pipelines.pipeline.daily import Step
from memory_pipelines.pipeline.model_sets import emotion_step, entity_step, intent_step
from memory_pipelines.pipeline.trained import import_labels, train
from memory_pipelines.slices.intent.model import OUT_OF_SCOPE
from memory_pipelines.slices.labelled import EMOTION, ENTITIES, INTENT, parts
from memory_pipelines.stores.base import Replace
from memory_pipelines.tables import EXCHANGES, LABELLED
from memory_pipelines.wiring import Platform

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
    assert nobody.platform.registry.rows(INTENT) == []


def test_users_own_intents_are_learnt_promoted_and_pinned(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    found = import_labels(platform, write_labels(tmp_path / "house.csv"))
    assert (found.rows.num_rows, found.faults) == (24, [])
    shown = told(nobody.run("intent_job"), "intent_model")
    (row,) = platform.registry.rows(INTENT)
    assert (shown["promoted"], shown["model"], shown["reason"]) == (True, row.model_id, row.verdict)
    assert shown["model_set"] == f"{platform.settings.model_set}+intent-{row.model_id[:12]}"
    assert shown["accuracy"] == row.metrics["intent"]["accuracy"] >= 0.8
    assert shown["picture"].startswith("![Confusion](data:image/png")
    assert "| book_inspection |" in shown["classes"]
    assert len(row.data_hash) == 32

    rows = [
        {"exchange_id": "1", "own_text": "water is dripping in the chapel"},
        {"exchange_id": "2", "own_text": "谢谢"},
    ]
    exchanges = pa.Table.from_pylist(rows, schema=EXCHANGES.schema)
    before = intent_step(platform)(exchanges, platform.settings.model_set)
    assert "report_leak" not in before["intent"].to_pylist()
    platform.settings = replace(platform.settings, model_set=shown["model_set"])
    after = intent_step(platform)(exchanges, shown["model_set"])
    assert after["intent"].to_pylist() == ["report_leak", "thanks"]
    assert set(after["model_set"].to_pylist()) == {shown["model_set"]}


def test_the_same_rows_again_make_the_same_model(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    import_labels(platform, write_labels(tmp_path / "house.csv"))
    first = train(platform, INTENT)
    again = train(platform, INTENT)
    assert (again.model_id, again.promoted) == (first.model_id, True)
    assert len(platform.registry.rows(INTENT)) == 1


def test_what_is_not_better_is_kept_but_not_promoted(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    import_labels(platform, write_labels(tmp_path / "house.csv"))
    first = train(platform, INTENT)
    rows = [("zzqx wvut", "en", OUT_OF_SCOPE), ("qqwy plom", "en", OUT_OF_SCOPE)]
    more = [
        dict(zip(("text", "lang", "intent"), row, strict=True)) | {"source": "more", "kind": INTENT} for row in rows
    ]
    trains, held = parts(pa.Table.from_pylist(more, schema=LABELLED.schema), INTENT)
    assert (len(trains), held) == (2, []), "the hold-out stays what it was"
    platform.lake.write(LABELLED, pa.Table.from_pylist(more, schema=LABELLED.schema), [Replace("source", ("more",))])
    second = train(platform, INTENT)
    champion = platform.registry.champion(INTENT)
    assert champion is not None
    assert (second.promoted, champion.model_id) == (False, first.model_id)
    assert "is not above the current model's" in second.verdict
    assert len(platform.registry.rows(INTENT)) == 2


def test_a_file_replaces_its_own_earlier_rows(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    import_labels(platform, write_labels(tmp_path / "a.csv"))
    import_labels(platform, write_labels(tmp_path / "b.csv"))
    import_labels(platform, write_labels(tmp_path / "a.csv", wrong=True))
    rows = platform.lake.read(LABELLED).to_pylist()
    assert len(rows) == 48
    leak = {row["source"]: row["intent"] for row in rows if row["text"] == "water is dripping in the roof"}
    assert leak == {"a.csv": "book_inspection", "b.csv": "report_leak"}


def test_a_file_without_a_good_row_replaces_nothing(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    file = write_labels(tmp_path / "a.csv")
    import_labels(platform, file)
    file.write_text("text,lang,intent,action\nplease send somebody,en,,request\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.csv has no good row, .*row 1: no intent"):
        import_labels(platform, file)
    file.write_text("text,lang,intent,action\n", encoding="utf-8")
    with pytest.raises(InputError, match="no good row"):
        import_labels(platform, file)
    assert platform.lake.read(LABELLED).num_rows == 24


def test_the_registry_says_what_was_judged_last(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    import_labels(platform, write_labels(tmp_path / "house.csv"))
    first = train(platform, INTENT)
    again = train(platform, INTENT)
    (row,) = platform.registry.rows(INTENT)
    assert first.verdict != again.verdict == row.verdict


@pytest.mark.parametrize("step", [intent_step, emotion_step, entity_step])
def test_a_trained_model_that_the_registry_does_not_know(nobody: Life, step: Callable[[Platform], Step]) -> None:
    kind = {intent_step: INTENT, emotion_step: EMOTION, entity_step: ENTITIES}[step]
    nobody.platform.settings = replace(nobody.platform.settings, model_set=f"base-2+{kind}-000000000000")
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_MODEL_SET"):
        step(nobody.platform)


# ---- emotions and entities


GLAD, SAD = ("glorp", "zindly"), ("wubble", "snarkish")
"""Words of a company's own, which no lexicon knows."""


def write_scores(file: Path) -> Path:
    lines = ["text,score,emotion"]
    for place in PLACES:
        lines += [f"the {place} is so {word},0.8,joy" for word in GLAD]
        lines += [f"the {place} is so {word},-0.8,anger" for word in SAD]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def write_spans(file: Path) -> Path:
    """A kind of the user's own behind a phone number, which is masked."""
    rows = []
    for number, place in enumerate(PLACES):
        text = f"call 13812345678, unit QX-{number}{number} in the {place} hums"
        start = text.index("QX")
        rows.append(
            {"text": text, "spans": [{"start": start, "end": start + len(f"QX-{number}{number}"), "kind": "unit"}]}
        )
        rows.append({"text": f"the {place} has no device {number} at all", "spans": []})
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return file


def texts_of(*texts: str) -> pa.Table:
    rows = [{"exchange_id": str(n), "own_text": text, "started_at": LANDED} for n, text in enumerate(texts)]
    return pa.Table.from_pylist(rows, schema=EXCHANGES.schema)


def test_own_emotions_are_learnt_promoted_and_pinned(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    assert "too few" in told(nobody.run("emotion_job"), "emotion_model")["nothing_to_do"]
    assert import_labels(platform, write_scores(tmp_path / "feelings.csv")).kind == EMOTION
    shown = told(nobody.run("emotion_job"), "emotion_model")
    (row,) = platform.registry.rows(EMOTION)
    assert (shown["promoted"], shown["model"], shown["reason"]) == (True, row.model_id, row.verdict)
    assert shown["pearson"] == row.metrics["pearson"] > 0.8
    assert shown["picture"].startswith("![Scores](data:image/png")
    assert parted(shown["model_set"]) == (platform.settings.model_set, {EMOTION: row.model_id[:12]})

    said = texts_of("the chapel is so glorp", "the chapel is so snarkish")
    assert emotion_step(platform)(said, "")["emotion_score"].to_pylist() == [0.0, 0.0]
    platform.settings = replace(platform.settings, model_set=shown["model_set"])
    after = emotion_step(platform)(said, "")
    glad, sad = after["emotion_score"].to_pylist()
    assert glad > 0.3 > -0.3 > sad
    assert set(after["model_set"].to_pylist()) == {shown["model_set"]}


def test_own_entities_are_learnt_promoted_and_pinned(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    found = import_labels(platform, write_spans(tmp_path / "units.jsonl"))
    assert (found.kind, found.rows.num_rows, found.faults) == (ENTITIES, 24, [])
    shown = told(nobody.run("entity_job"), "entity_model")
    (row,) = platform.registry.rows(ENTITIES)
    assert (shown["promoted"], shown["model"]) == (True, row.model_id)
    assert shown["f1"] == row.metrics["f1"] > 0.8
    assert shown["picture"].startswith("![F1 by kind](data:image/png")

    said = texts_of("call [phone], unit QX-77 in the chapel hums")
    platform.settings = replace(platform.settings, model_set=shown["model_set"])
    (entities,) = entity_step(platform)(said, "")["entities"].to_pylist()
    assert [(e["surface"], e["kind"]) for e in entities] == [("QX-77", "unit")]


def test_a_set_may_have_trained_models_of_several_steps(nobody: Life, tmp_path: Path) -> None:
    platform = nobody.platform
    import_labels(platform, write_scores(tmp_path / "feelings.csv"))
    import_labels(platform, write_labels(tmp_path / "house.csv"))
    platform.settings = replace(platform.settings, model_set=train(platform, EMOTION).model_set)
    both = train(platform, INTENT).model_set
    assert set(parted(both)[1]) == {INTENT, EMOTION}
    platform.settings = replace(platform.settings, model_set=both)
    said = texts_of("the chapel is so glorp", "water is dripping in the chapel")
    assert intent_step(platform)(said, "")["intent"].to_pylist()[1] == "report_leak"
    assert emotion_step(platform)(said, "")["emotion_score"].to_pylist()[0] > 0.3


def test_a_tagger_needs_a_set_that_knows_one(nobody: Life, tmp_path: Path) -> None:
    nobody.platform.settings = replace(nobody.platform.settings, model_set="base-1")
    import_labels(nobody.platform, write_spans(tmp_path / "units.jsonl"))
    with pytest.raises(SettingError, match="base-1 knows no tagger"):
        train(nobody.platform, ENTITIES)


# ---- what a name stands for


def test_a_set_that_changed_under_its_name_labels_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "names.yaml").write_text("product: {widget: Widget}", encoding="utf-8")
    own = "mine: {extends: base-2, entities: {files: {dictionary: names.yaml}}}"
    (tmp_path / "model_sets.yaml").write_text(own, encoding="utf-8")
    platform = in_memory(home=str(tmp_path), model_set="mine")
    said = texts_of("where is my Widget")
    first = entity_step(platform)(said, "mine")
    assert first["entities"].to_pylist()[0][0]["canonical"] == "product/widget"
    assert entity_step(platform)(said, "mine") == first
    (tmp_path / "names.yaml").write_text("product: {gadget: Widget}", encoding="utf-8")
    for step in (intent_step, emotion_step, entity_step):
        with pytest.raises(IntegrityError, match=r"model set mine has changed .*\(entities\)"):
            step(platform)
    (tmp_path / "model_sets.yaml").write_text(own.replace("mine", "mine-2"), encoding="utf-8")
    platform.settings = replace(platform.settings, model_set="mine-2")
    second = entity_step(platform)(said, "mine-2")
    assert second["entities"].to_pylist()[0][0]["canonical"] == "product/gadget"


def test_two_homes_have_sets_of_their_own(tmp_path: Path) -> None:
    said = texts_of("where is my Widget")
    for name in ("one", "two"):
        home = tmp_path / name
        home.mkdir()
        (home / "names.yaml").write_text(f"product: {{{name}: Widget}}", encoding="utf-8")
        own = "mine: {extends: base-2, entities: {files: {dictionary: names.yaml}}}"
        (home / "model_sets.yaml").write_text(own, encoding="utf-8")
        platform = in_memory(home=str(home), model_set="mine")
        assert entity_step(platform)(said, "mine")["entities"].to_pylist()[0][0]["canonical"] == f"product/{name}"
