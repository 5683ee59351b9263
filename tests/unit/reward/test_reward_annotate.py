"""The annotation loop: which events are asked about, the file there and back, and what a human's label weighs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from reward_world import ANN, BASE, FAR, Row, behaviour_table, deed, event, events_table, simulated

from memory_pipelines.errors import InputError
from memory_pipelines.reward.annotate import (
    Annotation,
    is_annotations,
    most_uncertain,
    read_answers,
    write_questions,
)
from memory_pipelines.reward.fit import feature_rows, fit
from memory_pipelines.reward.labels import reward_events
from memory_pipelines.tables import REWARD_EVENTS

QUESTION: Row = {
    "tenant": "acme", "subject": "u:李雷", "exchange_id": "e1", "occurred_at": BASE, "intent": "praise", "score": 0.3,
    "expected": 1.5, "observed": 0.0, "text": "还不错",
}  # fmt: skip


def answered(file: Path, *rows: tuple[str, str, str, str]) -> Path:
    lines = ["tenant,subject,exchange_id,impact", *(",".join(row) for row in rows)]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def rows(*values: tuple[str, bool, bool | None, float]) -> pa.Table:
    made = [
        dict.fromkeys(REWARD_EVENTS.schema.names)
        | {"exchange_id": name, "window_closed": closed, "annotated": annotated, "expected": expected}
        for name, closed, annotated, expected in values
    ]
    return pa.Table.from_pylist(made, REWARD_EVENTS.schema)


def test_the_nearest_to_a_border_are_asked_about_first_then_those_with_most_at_stake() -> None:
    table = rows(
        ("far", True, False, 9), ("near", True, False, 1), ("open", False, False, 9), ("done", True, True, 9),
        ("old", True, None, 2), ("high", True, False, 3),
    )  # fmt: skip
    asked = most_uncertain(table, np.array([0.5, 0.29, 0.3, 0.3, 0.31, 0.71]), 3)
    assert asked["exchange_id"].to_pylist() == ["high", "old", "near"]
    assert asked["score"].to_pylist() == [0.71, 0.31, 0.29]


def test_a_file_goes_out_and_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "ask.csv"
    write_questions(file, [QUESTION, QUESTION | {"exchange_id": "e2", "text": "=1+1"}])
    assert is_annotations(file)
    assert read_answers(file) == ([], []), "what nobody has answered is no answer"
    text = file.read_text(encoding="utf-8-sig")
    assert "还不错" in text
    assert ",'=1+1," in text, "no formula for a spreadsheet"
    file.write_text(text.replace("还不错,", "还不错,High "), encoding="utf-8-sig")
    assert read_answers(file) == ([Annotation("acme", "u:李雷", "e1", 0.85)], [])
    with pytest.raises(InputError, match="exists already"):
        write_questions(file, [])
    with pytest.raises(InputError, match="cannot be written"):
        write_questions(tmp_path / "nowhere" / "ask.csv", [])


def test_faulty_answers_are_told_and_the_others_kept(tmp_path: Path) -> None:
    file = answered(
        tmp_path / "a.csv",
        ("acme", "u:1", "e1", "0.9"), ("acme", "u:1", "e2", "1.5"), ("acme", "", "e3", "low"),
        ("acme", "u:1", "e1", "low"), ("acme", "u:1", "e4", "very"),
        ("acme", "u:1", "e1", "0.9"), ("acme", "u:1", "e5", "nan"),
    )  # fmt: skip
    found, faults = read_answers(file)
    assert found == [Annotation("acme", "u:1", "e1", 0.9)]
    assert [number for number, _ in faults] == [2, 3, 4, 5, 7]
    assert not is_annotations(answered(tmp_path / "b.csv").with_name("c.csv"))
    (tmp_path / "d.csv").write_bytes(b"\xff\xfe\x00")
    assert not is_annotations(tmp_path / "d.csv")
    with pytest.raises(InputError, match="no CSV in UTF-8"):
        read_answers(tmp_path / "d.csv")


def test_a_human_decides_the_label_once_the_window_has_closed() -> None:
    events, deeds = events_table([event("a"), event("b", 1)]), behaviour_table([deed("order", -1)])
    human = {(ANN.key, "a"): 0.25}
    made = {row["exchange_id"]: row for row in reward_events(events, deeds, FAR, human).to_pylist()}
    assert (made["a"]["label"], made["a"]["annotated"]) == (0.25, True)
    assert (made["b"]["label"], made["b"]["annotated"]) == (1.0, False)
    (first,) = reward_events(events, deeds, BASE.replace(hour=23), human).to_pylist()
    assert (first["label"], first["annotated"]) == (None, False)


def test_a_model_learns_what_humans_say_against_what_was_seen() -> None:
    people = simulated(seed=301, subjects=60)
    keys = zip(*(people.rewards[name].to_pylist() for name in ("owner", "exchange_id", "intent")), strict=True)
    human = {(owner, name): 0.9 for owner, name, intent in keys if intent == "praise"}
    told = reward_events(people.events, people.behaviour, people.as_of, human)
    praise = np.array(people.rewards["intent"].to_pylist()) == "praise"
    features = feature_rows(people.rewards)[praise]
    assert fit(told).predict(features).mean() > 0.5 > 0.2 > fit(people.rewards).predict(features).mean()
