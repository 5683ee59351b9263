"""Labelled rows of users, of each kind: what is kept, what is told."""

import json
from pathlib import Path

import pytest

from memory_pipelines.errors import InputError
from memory_pipelines.slices.intent.fit import Row
from memory_pipelines.slices.intent.labelled import all_labels, training_rows
from memory_pipelines.slices.labelled import EMOTION, ENTITIES, INTENT, parts, read_labels


def csv(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    file = tmp_path / "labels.csv"
    file.write_bytes(text.encode(encoding))
    return file


def test_good_rows_are_kept_and_faulty_ones_told(tmp_path: Path) -> None:
    found = read_labels(
        csv(
            tmp_path,
            "text,lang,intent,action,category\n"
            "我要退款,zh,refund_request,request,task\n"
            ",zh,refund_request,request,task\n"
            "hello,en,,greet,\n"
            "hola,es,greeting,greet,\n"
            "my own thing,en,own_intent,,\n"
            "where is it,en,order_status,ask,question\n"
            "我要退款,zh,cancel_order,cancel,task\n"
            '"two\nlines",,out_of_scope,inform,\n'
            "a,b,c,d,e,f\n",
        )
    )
    assert found.rows.select(["text", "lang", "intent", "action", "category", "source"]).to_pylist() == [
        {"text": "我要退款", "lang": "zh", "intent": "refund_request", "action": "request", "category": "task",
         "source": "labels.csv"},
        {"text": "my own thing", "lang": "en", "intent": "own_intent", "action": None, "category": None,
         "source": "labels.csv"},
        {"text": "two\nlines", "lang": "en", "intent": "out_of_scope", "action": "inform", "category": "inquiry",
         "source": "labels.csv"},
    ]  # fmt: skip
    faults = dict(found.faults)
    assert set(faults) == {2, 3, 4, 6, 7, 9}
    assert (faults[2], faults[3]) == ("no text", "no intent")
    assert faults[7] == "row 1 gives the same text another label"
    assert found.rows.num_rows + len(found.faults) == 9


def test_sensitive_values_are_masked(tmp_path: Path) -> None:
    found = read_labels(csv(tmp_path, "text,lang,intent,action\n我的手机号是13812345678,zh,share_fact,inform\n"))
    assert found.rows["text"].to_pylist() == ["我的手机号是[phone]"]


def test_a_byte_order_mark_is_no_column_name(tmp_path: Path) -> None:
    assert read_labels(csv(tmp_path, "text,lang,intent,action\nhi,en,greeting,greet\n", "utf-8-sig")).rows.num_rows == 1


@pytest.mark.parametrize(
    ("text", "encoding", "message"),
    [("text,intent\n", "utf-8", "lang, action"), ("", "utf-8", "text"), ("text,退款\n", "gbk", "UTF-8")],
)
def test_a_file_that_is_no_such_csv(tmp_path: Path, text: str, encoding: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(csv(tmp_path, text, encoding))


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_labels(tmp_path / "none.csv")


def test_the_hold_out_depends_on_the_text_alone(tmp_path: Path) -> None:
    lines = "".join(f"sentence number {i},en,a,ask\nSENTENCE NUMBER {i},en,a,ask\n" for i in range(100))
    table = read_labels(csv(tmp_path, "text,lang,intent,action\n" + lines)).rows
    train, held = parts(table, INTENT)
    assert len(train) + len(held) == 200
    assert 20 <= len(held) <= 60
    groups = [{row.group for row in training_rows(part)} for part in (train, held)]
    assert not groups[0] & groups[1]
    some_train, some_held = parts(table.slice(50, 40), INTENT)
    assert {row["text"] for row in some_held} <= {row["text"] for row in held}
    assert {row["text"] for row in some_train} <= {row["text"] for row in train}
    assert parts(table, EMOTION) == ([], [])


def test_own_labels_come_after_the_shipped_ones() -> None:
    rows = [Row("x", ("own", "ask", None), "x"), Row("y", ("b", None, "fact"), "y")]
    shipped = {"intent": ("b", "a"), "action": ("ask",), "category": ("fact", "task")}
    assert all_labels(shipped, rows) == {"intent": ("b", "a", "own"), "action": ("ask",), "category": ("fact", "task")}


# ---- emotions


def test_scores_and_emotions_are_checked(tmp_path: Path) -> None:
    found = read_labels(
        csv(
            tmp_path,
            "text,score,emotion\n"
            "太好用了,0.8,joy\n"
            "我的手机号是13812345678，烦死了,-0.5,\n"
            "ok,much,\n"
            "ok,1.5,\n"
            "ok,nan,\n"
            "ok,0,sleepy\n"
            "太好用了,0.2,joy\n",
        )
    )
    assert found.kind == EMOTION
    assert found.rows.select(["kind", "text", "lang", "score", "emotion", "intent"]).to_pylist() == [
        {"kind": "emotion", "text": "太好用了", "lang": "zh", "score": 0.8, "emotion": "joy", "intent": None},
        {"kind": "emotion", "text": "我的手机号是[phone]，烦死了", "lang": "zh", "score": -0.5, "emotion": None,
         "intent": None},
    ]  # fmt: skip
    assert [number for number, _ in found.faults] == [3, 4, 5, 6, 7]


# ---- entities


def spans(tmp_path: Path, *rows: object) -> Path:
    file = tmp_path / "spans.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def span(text: str, name: str, kind: str = "carrier") -> dict[str, object]:
    start = text.index(name)
    return {"start": start, "end": start + len(name), "kind": kind}


def test_spans_move_with_the_values_that_are_masked(tmp_path: Path) -> None:
    text = "我是顺丰客户，电话13812345678，旧电话[phone:7f3k9a2c4d5e]，让中通送到"
    found = read_labels(spans(tmp_path, {"text": text, "spans": [span(text, "中通"), span(text, "顺丰")]}))
    assert (found.kind, found.faults) == (ENTITIES, [])
    (row,) = found.rows.to_pylist()
    assert row["text"] == "我是顺丰客户，电话[phone]，旧电话[phone]，让中通送到"
    assert [row["text"][s["start"] : s["end"]] for s in row["spans"]] == ["顺丰", "中通"]


def test_spans_that_are_none_are_told(tmp_path: Path) -> None:
    phone = "电话13812345678"
    found = read_labels(
        spans(
            tmp_path,
            {"text": "顺丰到了", "spans": [{"start": 0, "end": 9, "kind": "carrier"}]},
            {"text": "顺丰到了", "spans": [{"start": 0, "end": 2, "kind": "a kind"}]},
            {"text": "顺丰到了", "spans": [{"start": True, "end": 2, "kind": "carrier"}]},
            {"text": "顺丰到了"},
            {"text": phone, "spans": [span(phone, "13812345678", "phone")]},
            "no json",
            "[]",
            {"text": "没有名字", "spans": []},
        )
    )
    assert [number for number, _ in found.faults] == [1, 2, 3, 4, 5, 6, 7]
    assert found.rows["text"].to_pylist() == ["没有名字"]
    assert "sensitive value" in dict(found.faults)[5]
