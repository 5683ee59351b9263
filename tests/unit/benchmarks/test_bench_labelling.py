"""The benchmark of labelling speed, on a folder of the public layout made here."""

from pathlib import Path

import pytest

from benchmarks.understanding import labelling


def folder(tmp_path: Path) -> Path:
    (tmp_path / "banking77").mkdir()
    rows = [f"please clean room number {i},label {i % 2}" for i in range(40)]
    (tmp_path / "banking77" / "train.csv").write_text("\n".join(["text,category", *rows]), encoding="utf-8")
    (tmp_path / "cais_zh").mkdir()
    for part in ("train", "valid"):
        lines = "\n\n".join(f"听 O\n第 O\n{i} O\n首 O" for i in range(30))
        (tmp_path / "cais_zh" / f"ch.{part}").write_text(lines + "\n", encoding="utf-8")
        (tmp_path / "cais_zh" / f"ch.{part}.intent").write_text("Play\n" * 30, encoding="utf-8")
    return tmp_path


def test_turns_are_distinct_and_as_many_of_each_language(tmp_path: Path) -> None:
    found = labelling.turns(folder(tmp_path))
    assert len(found) == len(set(found)) == 60
    assert [text.isascii() for text in found[:4]] == [False, True, False, True]
    assert labelling.turns(tmp_path) == found


def test_every_figure_is_told_with_its_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labelling.main([str(folder(tmp_path)), "--sets", "base-2"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| base-2")]
    assert [line.split("|")[2].strip() for line in lines] == ["20", "20"]
    assert "use-m3" in lines[1]


def test_a_folder_without_texts_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labelling.main([str(tmp_path)])
    assert "not enough" in capsys.readouterr().out
