"""The emotion benchmark reads each layout, splits apart, and computes its figures."""

import gzip
import json
import math
from pathlib import Path

import pytest

from benchmarks.understanding import emotion
from memory_pipelines.slices.emotion.score import Scorer
from memory_pipelines.slices.emotion.training import LEXICON
from memory_pipelines.slices.emotion.words import load_lexicon


def rated(text: str, *valences: float) -> str:
    return json.dumps({"ID": "1", "Text": text, "Aspect_VA": [{"Aspect": "x", "VA": f"{v}#5.00"} for v in valences]})


def folder_of(tmp_path: Path) -> Path:
    for name in emotion.FOLDERS:
        (tmp_path / name).mkdir()
    dim = tmp_path / "dimabsa2026"
    dim.joinpath("eng_x_dev_task1.jsonl").write_text("\n".join([rated("so good", 7, 9), rated("none")]))
    trained = rated("bad", 1).replace("Aspect_VA", "Quadruplet")
    dim.joinpath("eng_x_train_alltasks.jsonl").write_text(trained)
    lines = [f'{i}\t{i % 9 - 4}\tsaid "so' for i in range(10)]
    tmp_path.joinpath("vader_gold", "tweets_GroundTruth.txt").write_text("\n".join(lines))
    corpus = tmp_path / "chinese_nlp_corpus"
    corpus.joinpath("waimai.csv").write_text("label,review\n1,好吃\n0,难吃\n1,\n", encoding="utf-8-sig")
    with gzip.open(corpus / "shop.csv.gz", "wt", encoding="utf-8") as file:
        file.write("cat,label,review\n书籍,1,好看\n酒店,0,差\n")
    return tmp_path


def test_dimabsa_is_the_mean_valence_with_its_own_train_part(tmp_path: Path) -> None:
    (found,) = emotion.dimabsa(folder_of(tmp_path))
    assert (found.name, found.test, found.train) == ("dimabsa eng_x dev", [("so good", 0.75)], [("bad", -1.0)])


def test_ratings_are_divided_by_four_and_quotes_are_text(tmp_path: Path) -> None:
    (found,) = emotion.ratings(folder_of(tmp_path), 10)
    assert (len(found.test), len(found.train)) == (2, 8)
    assert {value for _, value in found.test + found.train} <= {i / 4 for i in range(-4, 5)}
    assert found.test[0][0] == 'said "so'


def test_reviews_leave_out_hotels_of_a_shop_and_empty_ones(tmp_path: Path) -> None:
    shop, waimai = emotion.reviews(folder_of(tmp_path), 10)
    assert (shop.name, shop.test, shop.train) == ("shop", [("好看", 1.0)], [])
    assert sorted(waimai.test + waimai.train) == [("好吃", 1.0), ("难吃", -1.0)]


def test_parts_are_apart_and_the_sample_is_fixed() -> None:
    rows = [(str(i), 0.0) for i in range(100)]
    found = emotion.split("x", rows, 50)
    assert (len(found.train), len(found.test)) == (40, 10)
    assert not set(found.train) & set(found.test)
    assert emotion.split("x", rows, 50) == found


def test_figures() -> None:
    test = [("a", 0.5), ("b", -0.5), ("c", 0.0), ("d", 1.0)]
    found = emotion.judge(test, lambda texts: [0.5, -0.25, 0.9, 0.0])
    assert (found.n, found.error, found.sign) == (4, pytest.approx((0.25 + 0.9 + 1) / 4), pytest.approx(2 / 3))
    assert found.pearson == pytest.approx(0.0879, abs=1e-4)


def test_correlation_of_what_does_not_vary_is_none() -> None:
    assert math.isnan(emotion.judge([("a", 1.0), ("b", 1.0)], lambda texts: [0.1, 0.2]).pearson)


def test_the_fast_scorer_is_judged_by_its_labels() -> None:
    found = emotion.judge([("太好吃了", 0.8), ("难吃", -0.6)], emotion.of_labels(Scorer(load_lexicon(*LEXICON))))
    assert (found.sign, found.n) == (1.0, 2)
    assert found.error < 0.3


def test_missing_folders_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    emotion.main([str(tmp_path), "--only", "nothing"])
    said = capsys.readouterr().out
    assert all(f"{name}: not in the folder" in said for name in emotion.FOLDERS)
