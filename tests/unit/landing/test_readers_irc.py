"""IRC: lines of several loggers, and the day that they do not name."""

from datetime import date

import pytest
from reading import column, errors, read

from memory_pipelines.landing.mapping import Mapping
from memory_pipelines.landing.readers import RawRow

DAY = Mapping(date=date(2024, 5, 17))


def irc(*lines: str, mapping: Mapping = DAY, name: str = "") -> list[RawRow]:
    return read("\n".join(lines) + "\n", "irc", mapping, name)


@pytest.mark.parametrize(
    ("line", "nick", "text"),
    [
        ("[08:12] <ann> hi there", "ann", "hi there"),
        ("[08:12] <@ann> hi", "ann", "hi"),
        ("08:12 < ann> hi", "ann", "hi"),
        ("08:12:00 <ann_|> hi", "ann_|", "hi"),
        ("[08:12]  * ann waves", "ann", "waves"),
        ("2024-05-17 08:12:00\tann\thi", "ann", "hi"),
        ("2024-05-17T08:12:00 <ann> hi", "ann", "hi"),
    ],
)
def test_lines_of_people(line: str, nick: str, text: str) -> None:
    made = irc(line)
    assert column(made, "user_id", "text", "role") == [(nick, text, "user")]
    assert column(made, "occurred_at") == ["2024-05-17T08:12:00"]


@pytest.mark.parametrize(
    "line",
    ["=== ann [a@b] has joined #x", "[08:12] *** ann quit", "08:12 -!- ann [a@b] has left", "08:12:00 --> ann joined"],
)
def test_lines_of_the_server(line: str) -> None:
    assert column(irc("[08:12] <ann> hi", line), "role", "occurred_at")[1] == ("system", "2024-05-17T08:12:00")


def clock(*times: str) -> list[str]:
    return [at[5:-3] for at in column(irc(*(f"[{time}] <a> x" for time in times)), "occurred_at")]


def test_the_day_goes_on_where_the_clock_falls() -> None:
    assert clock("23:59", "00:01", "08:00") == ["05-17T23:59", "05-18T00:01", "05-18T08:00"]
    # a channel that was silent over night
    assert clock("21:00", "12:59", "01:00") == ["05-17T21:00", "05-18T12:59", "05-19T01:00"]


def test_a_clock_that_is_set_back_makes_no_day() -> None:
    assert clock("02:59", "02:00", "02:01", "01:50") == ["05-17T02:59", "05-17T02:00", "05-17T02:01", "05-17T01:50"]


def test_a_clock_of_twelve_hours() -> None:
    made = clock("11:29", "12:10", "01:05", "11:59", "12:01", "12:30", "01:00", "08:00", "02:00")
    assert made == [
        "05-17T11:29", "05-17T12:10", "05-17T13:05", "05-17T23:59", "05-18T00:01", "05-18T00:30", "05-18T01:00",
        "05-18T08:00", "05-18T14:00",
    ]  # fmt: skip
    assert clock("12:10", "01:05", "12:01")[1] == "05-17T13:05"
    assert clock("12:10", "13:00", "12:20", "01:05")[3] == "05-18T01:05", "an hour 13: the clock knows a whole day"


@pytest.mark.parametrize(
    "header",
    [
        "--- Day changed Fri May 17 2024",
        "--- Log opened Fri May 17 00:00:12 2024",
        "**** BEGIN LOGGING AT Fri May 17 00:00:00 2024",
        "Session Start: Fri May 17 00:00:00 2024",
        "# 2024-05-17",
    ],
)
def test_lines_that_name_the_day(header: str) -> None:
    made = irc("[23:00] <a> x", header, "[08:12] <a> y", mapping=Mapping(date=date(2020, 1, 1)))
    assert column(made, "occurred_at")[-1] == "2024-05-17T08:12:00"
    assert column(made, "role")[1] == "system"


@pytest.mark.parametrize(
    ("name", "channel"),
    [
        ("#ubuntu.2024-05-17.log", "#ubuntu"),
        ("logs/2024-05-17_03.raw.txt", "irc"),
        ("help_20240517.txt", "help"),
        ("#c-2-2024.05.17.weechatlog", "#c-2"),
    ],
)
def test_the_day_and_the_channel_in_the_name(name: str, channel: str) -> None:
    made = irc("[08:12] <a> y", mapping=Mapping(), name=name)
    assert column(made, "occurred_at", "conversation_id") == [("2024-05-17T08:12:00", channel)]


def test_no_day_is_no_time() -> None:
    assert column(irc("[08:12] <a> y", mapping=Mapping()), "occurred_at") == [None]
    assert column(irc("[08:12] <a> y", mapping=Mapping(), name="a.2024-13-45.log"), "occurred_at") == [None]


def test_lines_of_no_form_are_kept() -> None:
    made = irc("what", "", "[08:12] what", "[28:12] <a> x", "[08:12] <a> hi")
    assert errors(made) == ["malformed_line"] * 3 + [None]
    assert made[1].raw == "[08:12] what"
