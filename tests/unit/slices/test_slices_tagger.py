"""The trainable tagger: its measure, its labels, and that it learns from rows written here."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.errors import InputError
from memory_pipelines.slices.entities.tagger import Span, Tagger, labels, spans
from memory_pipelines.slices.entities.tagger_features import Names, features, units
from memory_pipelines.slices.entities.tagger_training import Row, Score, main, read_rows, score, train

BRANDS = ("青禾", "蓝鲸", "山雀", "云杉", "石榴", "白桦", "海葵", "松塔")
GOODS = ("保温杯", "电饭锅", "台灯", "雨伞", "毛毯", "书架")
PEOPLE = ("Ada Finch", "Ben Marlow", "Cora Swift", "Dan Holt", "Eve Lark")
CITIES = ("Northport", "Elmstead", "Graywater", "Oakhaven")
FRAMES_ZH = ("{b}{g}坏了", "我买的{b}{g}还没到", "想退掉{b}的{g}", "{g}是{b}的吗", "请问{b}{g}多少钱")
FRAMES_EN = ("{p} moved to {c} last year", "please ask {p} about it", "{p} lives in {c} now", "I saw {p} there")


def row(frame: str, **names: tuple[str, str]) -> Row:
    text, found = frame, []
    for key, (kind, name) in names.items():
        mark = "{" + key + "}"
        if mark in text:
            at = text.index(mark)
            text = text.replace(mark, name, 1)
            found = [
                s._replace(start=s.start + len(name) - 3, end=s.end + len(name) - 3) if s.start > at else s
                for s in found
            ]
            found.append(Span(at, at + len(name), kind))
    return Row(text, tuple(sorted(found)))


def rows() -> list[Row]:
    zh = [row(f, b=("brand", b), g=("product", g)) for f in FRAMES_ZH for b in BRANDS for g in GOODS]
    en = [row(f, p=("person", p), c=("city", c)) for f in FRAMES_EN for p in PEOPLE for c in CITIES]
    return zh + en


@pytest.fixture(scope="module")
def model() -> bytes:
    return train(rows())


def test_the_measure_counts_exact_entities_once() -> None:
    gold = [[Span(0, 2, "a"), Span(3, 5, "b")], []]
    found = [[Span(0, 2, "a"), Span(0, 2, "a"), Span(3, 4, "b"), Span(3, 5, "a")], [Span(0, 1, "a")]]
    assert score(gold, found) == Score(gold=2, found=4, right=1)
    assert score(gold, found, "a") == Score(gold=1, found=3, right=1)
    assert score(gold, found).precision == 0.25
    assert score(gold, found).recall == 0.5
    assert score(gold, found).f1 == pytest.approx(2 * 0.25 * 0.5 / 0.75)
    assert score([], []).f1 == Score(0, 0, 0).precision == Score(0, 0, 0).recall == 0
    with pytest.raises(ValueError, match="zip"):
        score(gold, [[]])


def test_a_shifted_or_renamed_entity_is_wrong_twice() -> None:
    assert score([[Span(1, 3, "a")]], [[Span(0, 3, "a")]]) == Score(1, 1, 0)
    assert score([[Span(1, 3, "a")]], [[Span(1, 3, "b")]]) == Score(1, 1, 0)


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "a", "b-c"])), max_size=8))
def test_labels_give_their_spans_back(pieces: list[tuple[int, str]]) -> None:
    found, at = [], 0
    for length, kind in pieces:
        if kind:
            found.append(Span(at, at + length, kind))
        at += length
    cut = [(i, i + 1) for i in range(at)]
    assert spans(labels(cut, found), cut) == found


def test_a_continuation_of_nothing_begins_a_span() -> None:
    cut = [(0, 1), (1, 2), (2, 3)]
    assert spans(["I-a", "I-b", "O"], cut) == [Span(0, 1, "a"), Span(1, 2, "b")]


def test_of_overlapping_spans_the_longer_counts() -> None:
    cut = [(i, i + 1) for i in range(4)]
    assert labels(cut, [Span(0, 2, "a"), Span(1, 4, "b")]) == ["O", "B-b", "I-b", "I-b"]


def test_it_learns_what_it_was_shown(model: bytes) -> None:
    tagger = Tagger(model)
    found = [tagger.tag(one.text) for one in rows()]
    assert score([one.spans for one in rows()], found).f1 > 0.98
    assert tagger.tag("我买的星芒电饭锅还没到") == [Span(3, 5, "brand"), Span(5, 8, "product")]
    assert tagger.tag("Finn Reed lives in Westbrook now") == [Span(0, 9, "person"), Span(19, 28, "city")]


def test_spans_do_not_depend_on_the_texts_around(model: bytes) -> None:
    odd = ["", "a", "。", "😀😀", "青", "ＡＢＣ青禾台燈", "顺丰 delivered 台灯 to Northport"]
    texts = [one.text for one in rows()][::7] + odd
    alone = {text: Tagger(model).tag(text) for text in texts}
    tagger = Tagger(model)
    assert all(tagger.tag(text) == alone[text] for text in random.Random(1).sample(texts * 2, 2 * len(texts)))


def test_equal_rows_give_equal_bytes(model: bytes) -> None:
    assert train(rows()) == model


def test_a_huge_text_is_read_to_its_cap(model: bytes) -> None:
    found = Tagger(model).tag("青禾保温杯坏了，" + "很慢" * 50_000)
    assert found[:2] == [Span(0, 2, "brand"), Span(2, 5, "product")]


def test_traditional_and_full_width_text_is_read_as_simplified(model: bytes) -> None:
    assert Tagger(model).tag("想退掉藍鯨的台燈") == [Span(3, 5, "brand"), Span(6, 8, "product")]


def test_what_only_the_row_tells_is_no_feature_while_training() -> None:
    names = Names({"brand": ["青禾"]}, {("青禾", "brand"): 1})
    cut = units("青禾杯")
    assert not any("brand" in mark for mark in features("青禾杯", cut, names, {("青禾", "brand")})[0])
    assert "NBbrand" in features("青禾杯", cut, names)[0]


def test_without_rows_of_a_script_it_has_no_spans() -> None:
    tagger = Tagger(train([one for one in rows() if one.text.isascii()]))
    assert tagger.tag("青禾保温杯坏了") == []
    assert tagger.card["kinds"].keys() == {"person", "city"}


def test_no_entities_and_no_model() -> None:
    with pytest.raises(InputError):
        train([Row("nothing here", ())])
    with pytest.raises(InputError):
        Tagger(b"no model")


def write(file: Path, some: list[Row]) -> None:
    lines = [json.dumps({"text": r.text, "spans": [s._asdict() for s in r.spans]}, ensure_ascii=False) for r in some]
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")


def test_the_command_trains_and_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "rows.jsonl", rows())
    main([str(tmp_path / "rows.jsonl"), "--output", str(tmp_path / "own.tagger")])
    assert "all" in capsys.readouterr().out
    assert Tagger((tmp_path / "own.tagger").read_bytes()).tag("青禾台灯坏了")[0].kind == "brand"


@pytest.mark.parametrize(
    "line",
    ['{"text": "ab"}', '{"text": "ab", "spans": [{"start": 1, "end": 5, "kind": "a"}]}', "nothing", "[1]",
     '{"text": "ab", "spans": [{"start": 0, "end": 1, "kind": "a b"}]}'],
)  # fmt: skip
def test_a_row_of_another_form_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "ok", "spans": []}\n' + line, encoding="utf-8")
    with pytest.raises(InputError, match="line 2"):
        read_rows(file)
    with pytest.raises(SystemExit):
        main([str(file)])
