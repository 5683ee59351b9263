"""WhatsApp's text: dates of every locale, messages of many lines, pictures, lines of the application."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import column, errors, read

from memory_pipelines.landing.mapping import Mapping, parse_mapping
from memory_pipelines.landing.readers import lines, whatsapp


def times(*messages: str, **mapping: str) -> list[str]:
    return column(read("\n".join(messages), "whatsapp", Mapping(**mapping)), "occurred_at")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("17/05/2024, 08:12 - Ann: hi", "2024-05-17T08:12:00"),
        ("17.05.24, 08:12 - Ann: hi", "2024-05-17T08:12:00"),
        ("17.05.24 um 08:12 - Ann: hi", "2024-05-17T08:12:00"),
        ("5/17/24, 8:12 PM - Ann: hi", "2024-05-17T20:12:00"),
        ("5/17/24, 12:12\u202fAM - Ann: hi", "2024-05-17T00:12:00"),
        ("5/17/24, 12:12\u202fp.m. - Ann: hi", "2024-05-17T12:12:00"),
        ("17/5/2024, 8:12 pm - Ann: hi", "2024-05-17T20:12:00"),
        ("2024-05-17, 08:12 - Ann: hi", "2024-05-17T08:12:00"),
        ("[17/05/2024, 08:12:30] Ann: hi", "2024-05-17T08:12:30"),
        ("[5/17/24, 8:12:30\u202fPM] Ann: hi", "2024-05-17T20:12:30"),
        ("\u200e[17.05.24, 08:12:30] Ann: hi", "2024-05-17T08:12:30"),
        ("[2024-05-17 08:12] Ann: hi", "2024-05-17T08:12:00"),
        ("2024/5/17 下午8:12 - Ann: hi", "2024-05-17T20:12:00"),
        ("2024/5/17, 上午12:12 - Ann: hi", "2024-05-17T00:12:00"),
        ("[2024/5/17 中午12:12:30] Ann：hi", "2024-05-17T12:12:30"),
        ("[2024/5/17 中午1:12:30] Ann: hi", "2024-05-17T13:12:30"),
        ("[2024/5/17 凌晨1:12:30] Ann: hi", "2024-05-17T01:12:30"),
        ("2024年5月17日 晚上8:12 - Ann: hi", "2024-05-17T20:12:00"),
        ("[2024/5/17 晚上12:12:30] Ann: hi", "2024-05-17T00:12:30"),
        ("[2024/5/17 PM8:12:30] Ann: hi", "2024-05-17T20:12:30"),
        ("24/5/17 下午8:12 - Ann: hi", "2024-05-17T20:12:00"),
    ],
)
def test_ways_to_write_a_time(line: str, at: str) -> None:
    made = read(line, name="chat.txt")
    assert column(made, "occurred_at", "user_id", "role") == [(at, "Ann", "user")]
    assert column(made, "text") == ["hi"] or line.count("：")


def test_the_order_of_dates_is_told_by_all_of_them() -> None:
    assert times("03/04/24, 10:00 - A: x", "25/04/24, 10:00 - A: x") == ["2024-04-03T10:00:00", "2024-04-25T10:00:00"]
    assert times("03/04/24, 10:00 - A: x", "03/25/24, 10:00 - A: x") == ["2024-03-04T10:00:00", "2024-03-25T10:00:00"]
    # each could be a day or a month: the order in which time does not go back
    assert times(*(f"{day}/24, 10:00 - A: x" for day in ("01/02", "12/02", "01/03")))[2] == "2024-03-01T10:00:00"
    assert times(*(f"{day}/24, 10:00 - A: x" for day in ("01/02", "01/12", "02/01")))[2] == "2024-02-01T10:00:00"
    assert times("24-01-31, 10:00 - A: x", "24-02-01, 10:00 - A: x") == ["2024-01-31T10:00:00", "2024-02-01T10:00:00"]


def test_in_doubt_the_form_tells_or_the_mapping() -> None:
    assert times("03/04/2024, 10:00 - A: x") == ["2024-04-03T10:00:00"]
    assert times("3/4/24, 10:00 - A: x") == ["2024-03-04T10:00:00"]
    assert times("3/4/24, 10:00 - A: x", date_order="dmy") == ["2024-04-03T10:00:00"]
    assert times("03.04.24, 10:00 - A: x", date_order="ymd") == ["2003-04-24T10:00:00"]
    assert times("24/3/4 上午10:00 - A: x", "24/3/14 上午10:00 - A: x")[1] == "2024-03-14T10:00:00"
    assert times("4/3/24 下午10:00 - A: x") == ["2024-04-03T22:00:00"], "there was no WhatsApp in 2004"


def test_a_date_that_does_not_exist_stays_as_written() -> None:
    assert times("17/05/24, 08:12 - A: x", "45/05/24, 08:12 - A: x")[1] == "45/05/24, 08:12"
    assert times("17/05/24, 28:12 - A: x") == ["17/05/24, 28:12"]


def test_messages_of_many_lines() -> None:
    made = read("17/05/24, 08:12 - Ann: one\n\n  two: 3\n[x] four\r\n17/05/24, 08:13 - Bo: five\n", "whatsapp")
    assert column(made, "user_id", "text") == [("Ann", "one\n\n  two: 3\n[x] four"), ("Bo", "five")]


def test_lines_before_the_first_message_are_kept() -> None:
    made = read("hello\n\n17/05/24, 08:12 - Ann: one", "whatsapp")
    assert (errors(made), made[0].raw) == (["malformed_line", None], "hello")


@pytest.mark.parametrize(
    ("said", "text", "attachment"),
    [
        ("<Media omitted>", "", None),
        ("<媒体文件已省略>", "", None),
        ("\u200eimage omitted", "", None),
        ("\u200e<attached: 00001-PHOTO.jpg>", "", "00001-PHOTO.jpg"),
        ("IMG-20240517-WA0001.jpg (file attached)\nmy new phone", "my new phone", "IMG-20240517-WA0001.jpg"),
        ("\u200e<附件：00001-PHOTO.jpg> 看", "看", "00001-PHOTO.jpg"),
    ],
)
def test_attachments(said: str, text: str, attachment: str | None) -> None:
    made = read(f"17/05/24, 08:12 - Ann: {said}", "whatsapp")
    assert column(made, "text", "attachment", "role") == [(text, attachment, "user")]


@pytest.mark.parametrize(
    "line",
    [
        "Messages and calls are end-to-end encrypted. Tap to learn more.",
        "Crew: \u200eMessages and calls are end-to-end encrypted.",
        "Ann added Bo",
        'Ann changed the subject to "Plan: B"',
        "Ann: This message was deleted",
        "Ann: \u200eMissed voice call",
        "安：此消息已删除",
    ],
)
def test_lines_of_the_application(line: str) -> None:
    assert column(read(f"17/05/24, 08:12 - {line}", "whatsapp"), "role") == ["system"]


def test_authors() -> None:
    made = read("[17/05/24, 08:12:00] ~\u202fAnn Lee: hi\n[17/05/24, 08:12:00] +1 (555) 010-0000: yo", "whatsapp")
    assert column(made, "user_id") == ["Ann Lee", "+1 (555) 010-0000"]
    mapping = parse_mapping("roles: {Shop: agent}")
    staff = read("17/05/24, 08:12 - Shop: hi\n17/05/24, 08:12 - Ann: yo", "whatsapp", mapping)
    assert column(staff, "role", "user_id") == [("agent", None), ("user", "Ann")]


@pytest.mark.parametrize(
    ("name", "chat"),
    [
        ("WhatsApp Chat with Ann.txt", "WhatsApp Chat with Ann"),
        ("x/WhatsApp Chat with Ann (2).txt", "WhatsApp Chat with Ann"),
        ("_chat.txt", "Crew"),
        ("", "Crew"),
    ],
)
def test_the_name_of_a_chat(name: str, chat: str) -> None:
    title = "[17/05/24, 08:12:00] Crew: \u200eMessages and calls are end-to-end encrypted."
    content = title + "\n[17/05/24, 08:12:00] Ann: hi"
    assert set(column(read(content, "whatsapp", name=name), "conversation_id")) == {chat}


def test_a_message_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lines, whatsapp):
        monkeypatch.setattr(module, "LINE_LIMIT", 60)
    rest = "x" * 40 + "\n"
    made = read("17/05/24, 08:12 - Ann: hi\n" + rest * 3 + "17/05/24, 08:13 - Bo: yo", "whatsapp")
    assert errors(made) == ["line_too_long", None]


_AUTHORS = st.sampled_from(["Ann", "李雷", "+44 7700 900000", "Prof. Oak"])
_LETTERS = st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"])
_WORDS = st.text(_LETTERS, max_size=20).map(lambda text: "a" + text)


@given(st.lists(st.tuples(_AUTHORS, st.lists(_WORDS, min_size=1, max_size=3)), min_size=1, max_size=6))
def test_every_message_comes_back(said: list[tuple[str, list[str]]]) -> None:
    content = "\n".join(f"17/05/2024, 08:{i:02} - {who}: " + "\n".join(text) for i, (who, text) in enumerate(said))
    made = read(content, "whatsapp")
    assert [row.row and row.row["text"] for row in made] == ["\n".join(text) for _, text in said]
    assert column(made, "author") == [who for who, _ in said]
