"""The recall benchmark on a folder of its own making."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recall import figures, kept, sets, turns
from benchmarks.recall.__main__ import main
from benchmarks.recall.vectors import Kept
from memory_pipelines.models.embeddings import HashedNgrams

MODEL = HashedNgrams()


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def locomo(folder: Path) -> None:
    first = ["I adopted a grey parrot", "The oven is broken again"]
    second = ["My flight to Lima leaves on Sunday"]
    talk = {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_1": [{"speaker": "Ann", "dia_id": f"D1:{i}", "text": text} for i, text in enumerate(first, 1)],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [{"speaker": "Bo", "dia_id": f"D2:{i}", "text": text} for i, text in enumerate(second, 1)],
        "session_2_date_time": "1:56 pm on 9 June, 2023",
    }
    qa = [
        {"question": "Which parrot did Ann adopt?", "evidence": ["D1:01; D9:9"], "category": 1},
        {"question": "Which flight did Ann take?", "evidence": ["D2:1"], "category": 5},
        {"question": "Nothing is known?", "evidence": ["D7:7"], "category": 2},
    ]
    write(folder / "locomo" / "any.json", [{"sample_id": "s", "conversation": talk, "qa": qa}])


def longmemeval(folder: Path) -> None:
    item = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which museum did I visit?",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": ["a", "b"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 09:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "Boil the rice"}, {"role": "assistant", "content": "For ten minutes"}],
            [
                {"role": "user", "content": "I visited the railway museum", "has_answer": True},
                {"role": "assistant", "content": "Lovely"},
            ],
        ],
        "answer_session_ids": ["b"],
    }
    unmarked = [[{k: turn[k] for k in ("role", "content")} for turn in s] for s in item["haystack_sessions"]]  # type: ignore[attr-defined]
    other = item | {"question_id": "q2_abs", "haystack_sessions": unmarked}
    write(folder / "longmemeval" / "tiny.json", [item, other])


def memdaily(folder: Path) -> None:
    for name, pet in (("01_simple_items", "乌龟"), ("02_simple_items", "鹦鹉")):
        times = ["2024年04月01日 周一 08:42", "2024年04月02日 周二 07:48"]
        trajectory = {
            "tid": 0,
            "message_list": [
                {"mid": 7, "message": f"我养了一只{pet}", "time": times[0]},
                {"mid": 3, "message": "今天下雨了", "time": times[1]},
            ],
            "question_list": [
                {"question": f"谁养了{pet}？", "answer": "我", "target_step_id": [[7]]},
                {"question": "[ERRORQ]", "answer": "", "target_step_id": [3]},
            ],
        }
        write(folder / "memdaily_zh" / f"{name}.json", [trajectory])


def memorybank(folder: Path) -> None:
    said = {"cn": ("我喜欢钢琴", "好的", "我喜欢什么？"), "en": ("I like the piano", "Good", "What do I like?")}
    for name, (query, response, question) in said.items():
        history = {"2023-05-02": [{"query": query, "response": response}]}
        write(folder / "memorybank" / f"memory_bank_{name}.json", {name: {"history": history}})
        line = json.dumps({name: [question]}, ensure_ascii=False)
        (folder / "memorybank" / f"probing_questions_{name}.jsonl").write_text(line + "\n", encoding="utf-8")


def test_locomo_keeps_answerable_and_unanswerable_apart(tmp_path: Path) -> None:
    locomo(tmp_path)
    (history,) = sets.locomo(tmp_path)
    assert [(q.category, q.gold) for q in history.questions] == [
        ("multi-hop", frozenset({"s/D1:1"})),
        ("unanswerable", frozenset({"s/D2:1"})),
    ]
    assert history.turns[0].told == "Ann: I adopted a grey parrot"
    assert [turn.session for turn in history.turns] == ["s/session_1", "s/session_1", "s/session_2"]


def test_trajectories_of_a_pool_follow_each_other(tmp_path: Path) -> None:
    memdaily(tmp_path)
    (history,) = sets.memdaily(tmp_path, 25, 10)
    times = [turn.at for turn in history.turns]
    assert times == sorted(times)
    assert len({turn.session for turn in history.turns}) == 2
    assert [q.gold for q in history.questions] == [{"01_simple_items/0/7"}, {"02_simple_items/0/7"}]
    assert len(sets.memdaily(tmp_path, 25, 1)) == 2


def test_longmemeval_reads_marked_turns_else_whole_sessions(tmp_path: Path) -> None:
    longmemeval(tmp_path)
    marked, unmarked = sets.longmemeval(tmp_path)
    assert marked.questions[0].gold == {"b/0"}
    assert marked.questions[0].category == "single-session-user"
    assert marked.questions[0].at == datetime(2023, 6, 1, 10, tzinfo=UTC)
    assert unmarked.questions[0].gold == {"b/0", "b/1"}
    assert unmarked.questions[0].category == sets.UNANSWERABLE


def test_measures_by_hand() -> None:
    sessions = {"a": "1", "b": "1", "c": "2"}
    ranked = [frozenset({"x"}), frozenset({"a"}), frozenset({"c"})]
    values = figures.judge("k", ranked, frozenset({"a", "b"}), sessions).values
    assert values["R@5"] == values["R@10"] == 0.5
    assert values["all@10"] == values["hit@1"] == 0
    assert values["nDCG@10"] == pytest.approx((1 / 1.5849625) / (1 + 1 / 1.5849625))
    assert values["session R@5"] == 1
    whole = figures.judge("k", [frozenset({"a", "b"})], frozenset({"a", "b"}), sessions).values
    assert whole["R@5"] == whole["all@10"] == whole["nDCG@10"] == 1
    assert figures.judge("k", [], frozenset({"a"}), sessions).values["R@10"] == 0


def test_the_reader_finds_what_is_plain_and_no_ranking_is_empty(tmp_path: Path) -> None:
    locomo(tmp_path)
    index = turns.Index.of(sets.locomo(tmp_path)[0], MODEL)
    first = index.history.questions[0]
    assert turns.reader(index)(first)[0] == {"s/D1:1"}
    for ask in turns.plain(index).values():
        assert ask(first)[0] == {"s/D1:1"}


def test_evidence_lost_at_the_gate_stays_in_the_denominator(tmp_path: Path) -> None:
    locomo(tmp_path)
    found = kept.Kept.of(sets.locomo(tmp_path)[0], MODEL)
    share, n = kept.lost([found], sets.UNANSWERABLE)
    assert n == 1
    assert share == 1 - len(found.covered & {"s/D1:1"})
    judged = found.judged()
    assert [one.category for one in judged] == ["multi-hop", "unanswerable"]
    assert judged[0].values["R@10"] <= 1 - share


def test_kept_vectors_are_those_of_the_model_and_survive(tmp_path: Path) -> None:
    texts = ["one", "two", "three"]
    Kept(MODEL, tmp_path).encode(texts)
    again = Kept(MODEL, tmp_path)
    assert (again.encode(texts) == MODEL.encode(texts)).all()
    assert len(list(tmp_path.iterdir())) == 1


def test_the_command_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longmemeval(tmp_path)
    memorybank(tmp_path)
    main([str(tmp_path), "--embedder", "hash", "--parts", "turns", "ablations", "kept", "languages"])
    out = capsys.readouterr().out
    assert "LoCoMo, per conversation: not in the folder" in out
    assert "single-session-user (n = 1)" in out
    assert "evidence lost at the gate" in out
    assert "same history among the first 5" in out
