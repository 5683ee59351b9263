"""The embedding benchmark on a folder of its own making."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.understanding import embeddings as bench
from memory_pipelines.models.embeddings import HashedNgrams

MODEL = HashedNgrams()


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def locomo(folder: Path) -> None:
    said = ["I adopted a grey parrot", "The oven is broken again", "My flight leaves on Sunday"]
    turns = [{"speaker": "Ann", "dia_id": f"D1:{i}", "text": text} for i, text in enumerate(said, 1)]
    qa = [
        {"question": "Which parrot was adopted?", "evidence": ["D1:01; D9:9"], "category": 1},
        {"question": "What is impossible?", "evidence": ["D1:2"], "category": 5},
        {"question": "Nothing is known?", "evidence": ["D7:7"], "category": 2},
    ]
    talk = {"speaker_a": "Ann", "speaker_b": "Bo", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    write(folder / "locomo" / "any.json", [{"sample_id": "s", "conversation": talk, "qa": qa}])


def memdaily(folder: Path) -> None:
    for name, pet in (("a", "乌龟"), ("b", "鹦鹉")):
        trajectory = {
            "tid": 0,
            "message_list": [{"mid": 7, "message": f"我养了一只{pet}"}, {"mid": 3, "message": "今天下雨了"}],
            "question_list": [
                {"question": f"谁养了{pet}？", "answer": "我", "target_step_id": [[7]]},
                {"question": "[ERRORQ]", "answer": "", "target_step_id": [3]},
            ],
        }
        write(folder / "memdaily_zh" / f"{name}.json", [trajectory])


def test_evidence_ids_are_mended_and_unanswerable_questions_dropped(tmp_path: Path) -> None:
    locomo(tmp_path)
    (pool,) = bench.locomo(tmp_path)
    assert pool.questions == [("Which parrot was adopted?", frozenset({0}))]
    assert pool.passages[0] == "Ann: I adopted a grey parrot"


def test_trajectories_are_pooled_by_message_id(tmp_path: Path) -> None:
    memdaily(tmp_path)
    (pool,) = bench.memdaily(tmp_path, 25, 10)
    assert pool.questions == [("谁养了乌龟？", frozenset({0})), ("谁养了鹦鹉？", frozenset({2}))]
    assert [len(p.passages) for p in bench.memdaily(tmp_path, 25, 1)] == [2, 2]


def test_retrieval_of_what_is_plain(tmp_path: Path) -> None:
    memdaily(tmp_path)
    figures = {f.name: f for f in bench.retrieval(bench.memdaily(tmp_path, 25, 10), MODEL)}
    assert {name.partition(", ")[0] for name in figures} == {"hit@1", "recall@10"}
    assert {(f.value, f.n) for f in figures.values()} == {(1.0, 2)}


def test_measures_by_hand() -> None:
    assert bench.recall_at([5, 1, 2], frozenset({1, 9}), 2) == 0.5
    assert (bench.hit([5], frozenset({5})), bench.hit([], frozenset({5}))) == (1.0, 0.0)
    same = [("一样", "一样", True), ("甲乙", "丙丁", False)]
    assert bench.area(same, MODEL).value == 1
    assert bench.area([(a, b, not label) for a, b, label in same], MODEL).value == 0
    assert bench.area([("一", "一", True), ("二", "二", False)], MODEL).value == pytest.approx(0.5)


def test_translations_are_paired_by_day_and_asked_both_ways(tmp_path: Path) -> None:
    zh = {"张": {"history": {"d1": [{"query": "iPhone 坏了"}, {"query": "谢谢 thanks"}], "d2": [{"query": "独自"}]}}}
    en = {"Amy": {"history": {"d1": [{"query": "iPhone broken"}, {"query": "thanks"}], "d2": []}}}
    write(tmp_path / "memorybank" / "memory_bank_cn.json", zh)
    write(tmp_path / "memorybank" / "memory_bank_en.json", en)
    pairs = bench.translations(tmp_path)
    assert pairs == [("iPhone 坏了", "iPhone broken"), ("谢谢 thanks", "thanks")]
    figures = {f.name: f for f in bench.crossing(pairs, MODEL)}
    assert figures["translation first, cosine"] == bench.Figure("translation first, cosine", 1.0, 4)


def test_the_command_says_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    locomo(tmp_path)
    file = tmp_path / "zh_question_pairs" / "x.csv.gz"
    file.parent.mkdir()
    with gzip.open(file, "wt", encoding="utf-8") as out:
        out.write("label,s1,s2\n1,怎么退款,怎么退款呢\n0,怎么退款,天气很好\n")
    bench.main([str(tmp_path), "--embedder", "hash"])
    said = capsys.readouterr().out
    assert "memorybank: not in the folder" in said
    assert "memdaily_zh, 10 trajectories a pool: not in the folder" in said
    assert "AUC, x: 1.000 (n = 2)" in said
    assert "recall@10, cosine: 1.000 (n = 1)" in said
    assert "hashed-ngrams-1, 512 numbers" in said
