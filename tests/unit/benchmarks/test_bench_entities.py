"""The entity benchmark reads labelled sets as they are laid out; a set that is missing is named."""

import gzip
from pathlib import Path

import pytest

from benchmarks.understanding.entities import main, parts, read
from memory_pipelines.slices.entities.tagger import Span
from memory_pipelines.slices.entities.tagger_training import Row

COLUMNS = "青 B-HPPX\n禾 I-HPPX\n杯 B-HCCX\n\u3000 O\n盖 I-HCCX\n\n无 O\n\n"


def test_units_and_labels_a_line(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    file.write_text(COLUMNS, encoding="utf-8")
    rows = [
        Row("青禾杯\u3000盖", (Span(0, 2, "HPPX"), Span(2, 3, "HCCX"), Span(4, 5, "HCCX"))),
        Row("无", ()),
    ]
    assert read(file, "") == rows
    zipped = tmp_path / "minus.txt.gz"
    zipped.write_bytes(gzip.compress(COLUMNS.replace(" ", "\t").encode()))
    assert read(zipped, "") == rows


def test_words_are_joined_and_adjacent_entities_stay_apart(tmp_path: Path) -> None:
    file = tmp_path / "dev.txt"
    file.write_text("Ada B-PER\nFinch I-PER\nBen B-PER\nof O\nOak I-LOC\n", encoding="utf-8")
    assert read(file, " ") == [
        Row("Ada Finch Ben of Oak", (Span(0, 9, "PER"), Span(10, 13, "PER"), Span(17, 20, "LOC")))
    ]


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    entity = '{"entity_type": "name", "entity": "张三", "entity_index": {"begin": 0, "end": 2}}'
    file.write_text('{"text": "张三来了", "entity_list": [' + entity + "]}\n", encoding="utf-8")
    assert read(file, "") == [Row("张三来了", (Span(0, 2, "name"),))]


def test_every_tenth_row_is_held_out_where_no_file_is(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("".join(f"{c} O\n\n" for c in "一二三四五六七八九十百千"), encoding="utf-8")
    training, held = parts(tmp_path, "")
    assert [row.text for row in held["every tenth row"]] == ["一", "百"]
    assert len(training) == 10
    (tmp_path / "test.txt").write_text("万 O\n", encoding="utf-8")
    training, held = parts(tmp_path, "")
    assert (len(training), list(held)) == (12, ["test.txt"])


def test_missing_sets_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ecommerce").mkdir()
    (tmp_path / "ecommerce" / "train.txt").write_text("青 B-HPPX\n禾 I-HPPX\n坏 O\n\n" * 20, encoding="utf-8")
    main([str(tmp_path), "--kinds", "fast"])
    said = capsys.readouterr().out
    assert "conll2003: missing, left out" in said
    assert "trained fast" in said
