"""Public sets as logs: every message once, roles and ids right, times in order. The texts here are invented."""

from datetime import UTC, datetime
from typing import Any

from benchmarks import conversions
from benchmarks.public_accounts import MEMDAILY, log_sets
from memory_pipelines.landing.mapping import parse_mapping

LOCOMO: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I planted a fig tree."},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice!", "blip_caption": "a tree"},
        ],
        "session_2_date_time": "12:05 am on 9 May, 2023",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "Hello again"}],
    },
    "qa": [
        {"question": "What did Ada plant?", "evidence": ["D1:1; D2:01"], "category": 4},
        {"question": "What did Ada say to Bo?", "evidence": ["D:1:2"], "category": 1},
        {"question": "What did Bo plant?", "evidence": ["D1:1"], "category": 5},
        {"question": "Who is Bo?", "evidence": ["D9:9", "D"], "category": 1},
    ],
}


def test_locomo_makes_both_speakers_subjects_with_session_times() -> None:
    rows = list(conversions.locomo_rows(LOCOMO))
    assert [row["turn_id"] for row in rows] == ["conv-1/D1:1", "conv-1/D1:2", "conv-1/D2:1"]
    assert [(row["user_id"], row["role"]) for row in rows] == [("Ada", "user"), ("Bo", "user"), ("Bo", "user")]
    assert [row["occurred_at"] for row in rows] == [
        "2023-05-08T13:56:00+00:00",
        "2023-05-08T13:56:30+00:00",
        "2023-05-09T00:05:00+00:00",
    ]
    assert rows[1]["text"] == "Nice!"


def test_locomo_questions_keep_evidence_that_exists() -> None:
    assert conversions.locomo_questions(LOCOMO) == [
        conversions.Question("u:Ada", "What did Ada plant?", ("conv-1/D1:1", "conv-1/D2:1")),
        conversions.Question("", "What did Ada say to Bo?", ("conv-1/D1:2",)),
    ]


def test_crosswoz_speaks_openai_messages_a_minute_apart() -> None:
    messages = [{"role": "usr", "content": "你好"}, {"role": "sys", "content": "您好"}]
    dialogues = {"7": {"sys-usr": [1, 20], "messages": messages}, "3": {"sys-usr": [1, 21], "messages": messages}}
    first, second = conversions.crosswoz_rows(dialogues)
    assert (first["id"], first["user"], second["user"]) == ("3", "annotator-21", "annotator-20")
    assert [m["role"] for m in first["messages"]] == ["user", "assistant"]
    assert [m["created_at"][11:16] for m in second["messages"]] == ["10:00", "10:01"]


def test_jddc_alternates_and_answers_are_the_agents() -> None:
    rows = list(conversions.jddc_rows([("在吗,您好,,怎么退,\n", "可以的,稍等,\n"), ("好,\n", "再见,\n")]))
    assert [row["role"] for row in rows] == ["user", "agent", "user", "agent", "agent", "user", "agent"]
    assert [row["user_id"] for row in rows] == ["jddc-0"] * 5 + ["jddc-1"] * 2
    times = [datetime.fromisoformat(row["occurred_at"]) for row in rows]
    assert times == sorted(times)


def test_tau_bench_splits_messages_and_names_the_customer() -> None:
    text = "user: Hi,\nwhere: is it?\nassistant: None\ntool: ada_lee_12\nassistant: On its way."
    (row,) = conversions.tau_bench_rows([("retail-0", text)])
    assert row["user"] == "ada_lee_12"
    assert [(m["role"], m["content"]) for m in row["messages"]] == [
        ("user", "Hi,\nwhere: is it?"),
        ("assistant", None),
        ("tool", "ada_lee_12"),
        ("assistant", "On its way."),
    ]
    (unnamed,) = conversions.tau_bench_rows([("retail-1", "user: Hi")])
    assert unnamed["user"] == "retail-1"


def test_memdaily_keeps_its_fields_and_the_mapping_reads_its_times() -> None:
    message = {"mid": 3, "message": "我明天去西安", "time": "2024年04月02日 周二 07:48", "place": "x"}
    (row,) = conversions.memdaily_rows("set", [{"tid": 7, "message_list": [message]}])
    read = parse_mapping(MEMDAILY).apply(row)
    assert read["occurred_at"] == datetime(2024, 4, 1, 23, 48, tzinfo=UTC)
    assert (read["turn_id"], read["user_id"], read["role"], read["text"]) == (
        "set/7/3",
        "set/7",
        "user",
        "我明天去西安",
    )


def test_memorybank_has_a_question_and_an_answer_a_minute() -> None:
    said = [{"query": "hi", "response": "hello"}, {"query": "tea?", "response": "yes"}]
    rows = list(conversions.memorybank_rows({"Ada": {"history": {"2023-04-27": said}}}))
    assert [(row["role"], row["text"]) for row in rows][1:3] == [("assistant", "hello"), ("user", "tea?")]
    assert [row["occurred_at"][:16] for row in rows][::3] == ["2023-04-27T09:00", "2023-04-27T09:03"]


def test_sgd_and_abcd_name_the_customer() -> None:
    turns = [{"speaker": "USER", "utterance": "a table"}, {"speaker": "SYSTEM", "utterance": "for how many?"}]
    (dialogue,) = conversions.sgd_rows([{"dialogue_id": "1_0", "turns": turns}])
    assert dialogue["user"] == "1_0"
    assert [message["role"] for message in dialogue["messages"]] == ["user", "assistant"]
    said = [["customer", "hi"], ["agent", "hello"], ["action", "looked it up"]]
    (dialogue,) = conversions.abcd_rows(
        [{"convo_id": 5, "scenario": {"personal": {"customer_name": "ada lee"}}, "original": said}]
    )
    assert (dialogue["id"], dialogue["user"]) == ("5", "ada lee")
    assert [message["role"] for message in dialogue["messages"]] == ["user", "assistant", "tool"]


def test_the_rating_of_a_dialogue_in_uss_is_no_turn() -> None:
    text = "USER\tfind it\tINFORM\t3,3\nSYSTEM\there\tOFFER\t\nUSER\tOVERALL\t\t4,3,5\n\nUSER\tbye\t\t3\n\n"
    first, second, rating, other = conversions.uss_rows(text)
    assert [(row["user_id"], row["role"]) for row in (first, second, other)] == [
        ("uss-0", "user"), ("uss-0", "assistant"), ("uss-1", "user"),
    ]  # fmt: skip
    assert (rating["kind"], rating["value"], rating["reference"]) == ("rating", 4.0, "uss-0")
    assert "text" not in rating


def test_every_mapping_of_the_accounts_is_one() -> None:
    for log_set in log_sets(100):
        parse_mapping(log_set.mapping)
        assert bool(log_set.where) != bool(log_set.convert)
