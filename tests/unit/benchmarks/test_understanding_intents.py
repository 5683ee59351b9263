"""The intent benchmark on a folder of the public layout, made here."""

import json
from pathlib import Path

import pytest

from benchmarks.understanding import __main__ as every_part
from benchmarks.understanding import intents

ROOMS = ["roof", "garden", "kitchen", "cellar", "garage", "balcony", "hall", "office", "attic", "porch"]


def clinc_folder(folder: Path) -> Path:
    (folder / "clinc150").mkdir(parents=True)
    parts = {
        "train": [[f"turn on the light in the {r}", "light"] for r in ROOMS]
        + [[f"clean the {r}", "clean"] for r in ROOMS],
        "oos_train": [["what is love", "oos"], ["who wrote this", "oos"]],
        "val": [["turn on the light in the barn", "light"], ["clean the barn", "clean"]],
        "oos_val": [["why is the sea salty", "oos"]],
    }
    (folder / "clinc150" / "data_dev.json").write_text(json.dumps(parts), encoding="utf-8")
    return folder


def test_what_is_there_is_measured_and_what_is_not_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    intents.main([str(clinc_folder(tmp_path)), "--kinds", "fast"])
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if line.startswith("| clinc150, fast"))
    assert row.split("|")[2:4] == [" 3 ", " 1.000 "]
    for name in ("banking77", "smp_ecdt_zh", "cais_zh"):
        assert f"{name}: not in the folder" in shown


def test_a_label_without_training_rows_bounds_one_macro_f1_alone() -> None:
    train = [(f"turn on the light in the {r}", "light") for r in ROOMS] + [(f"clean the {r}", "clean") for r in ROOMS]
    test = [*train, ("sing me a song", "sing")]
    found = intents.measure("x", intents.Split(train, test), ())
    assert found.untaught == 1
    assert found.macro_f1 == pytest.approx(found.taught_f1 * 2 / 3, abs=1e-3)


def test_test_files_come_before_own_splits(tmp_path: Path) -> None:
    rows = [f"sentence {i},label {i % 2}" for i in range(40)]
    (tmp_path / "train.csv").write_text("\n".join(["text,category", *rows]), encoding="utf-8")
    split = intents.banking(tmp_path)
    assert split is not None
    assert (len(split.train), len(split.test)) == (32, 8)
    assert not set(split.train) & set(split.test)
    (tmp_path / "test.csv").write_text("text,category\nother,label 0\n", encoding="utf-8")
    given = intents.banking(tmp_path)
    assert given is not None
    assert (len(given.train), given.test) == (40, [("other", "label 0")])


def test_few_shots() -> None:
    rows = [(f"t{i}", f"l{i % 3}") for i in range(60)]
    split = intents.few(intents.Split(rows, rows[:5]), 10)
    assert len(split.train) == 30
    assert split.test == rows[:5]


def test_cais_and_smp_layouts(tmp_path: Path) -> None:
    (tmp_path / "ch.train").write_text("听 O\n歌 B-x\n\n天 O\n气 O\n", encoding="utf-8")
    (tmp_path / "ch.train.intent").write_text("Play\nWeather\n", encoding="utf-8")
    split = intents.cais(tmp_path)
    assert split is not None
    assert split.train == [("听歌", "Play"), ("天气", "Weather")]
    smp = [{"text": f"文{i}", "domain": "d", "intent": "X"} for i in range(10)]
    (tmp_path / "2019train.json").write_text(json.dumps(smp), encoding="utf-8")
    published = tmp_path / "globalpointer_2019"
    published.mkdir()
    (published / "dev.json").write_text(json.dumps([{"text": "文3"}]), encoding="utf-8")
    found = intents.smp(tmp_path)
    assert found is not None
    assert found.test == [("文3", "d.X")]
    assert len(found.train) == 9


def test_all_parts_are_modules_with_a_command(tmp_path: Path) -> None:
    for name in every_part.PARTS:
        assert (Path(every_part.__file__).parent / f"{name}.py").exists(), name
    with pytest.raises(SystemExit, match="is no folder"):
        every_part.main([str(tmp_path / "none")])
