"""Slack: people, bots, threads, mark-up; a day file alone and a whole export."""

import io
import json
import zipfile
from typing import Any

import pytest
from reading import Trickle, column, dump, errors, read

from memory_pipelines.errors import InputError
from memory_pipelines.landing.readers import detect_format, read_rows


def said(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "ts": f"17159335{number}0.000{number}00", **fields}


DAY = [
    said(5, user="U1", text="hi <@U2>, see <https://a.b|the page> &amp; <#C1|general>"),
    said(6, user="U2", text="yes", thread_ts="1715933550.000500"),
    said(7, subtype="bot_message", bot_id="B1", text="deployed"),
    said(8, subtype="channel_join", user="U3", text="<@U3> has joined"),
    said(9, user="U1", text="fixed", edited={"user": "U1", "ts": "1715933600.000000"}),
]


def export(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def test_a_day_file_alone() -> None:
    made = read(dump(DAY), name="general/2024-05-17.json")
    assert column(made, "role", "user_id") == [
        ("user", "U1"), ("user", "U2"), ("agent", None), ("system", None), ("user", "U1"),
    ]  # fmt: skip
    assert column(made, "text")[0] == "hi @U2, see the page (https://a.b) & #general"
    assert column(made, "conversation_id")[:2] == ["general", "general:1715933550.000500"]
    assert column(made, "occurred_at", "edited_at")[4] == (
        "2024-05-17T08:13:10.000900+00:00", "2024-05-17T08:13:20+00:00",
    )  # fmt: skip
    assert len(set(column(made, "turn_id"))) == 5


def test_a_whole_export() -> None:
    users = [{"id": "U2", "is_bot": True}, {"id": "U1", "is_bot": False}]
    days = {"general/2024-05-17.json": dump(DAY), "random/2024-05-18.json": dump(DAY[:1])}
    data = export(**days, **{"users.json": dump(users), "channels.json": b"[]", "general/canvas.json": b"{}"})
    assert detect_format("export.zip", data) == "zip"
    made = read(data, "zip", name="export.zip")
    assert column(made, "role") == ["user", "agent", "agent", "system", "user", "user"]
    assert column(made, "conversation_id")[-1] == "random"
    assert [raw.position for raw in made] == list(range(6))
    alone = read(dump(DAY), "slack", name="general/2024-05-17.json")
    assert column(made, "turn_id", "text")[:5] == column(alone, "turn_id", "text")
    assert list(read_rows(Trickle(data, 100), "zip")) == read(data, "zip", name="")  # type: ignore[arg-type]


def test_other_archives() -> None:
    chat = b"17/05/24, 08:12 - Ann: hi"
    made = read(export(**{"_chat.txt": chat, "photo.jpg": b"x"}), "zip", name="WhatsApp Chat - Ann.zip")
    assert column(made, "conversation_id", "text") == [("WhatsApp Chat - Ann", "hi")]
    node = {"message": {"id": "m", "author": {"role": "user"}, "content": {"parts": ["hi"]}}, "parent": None}
    trees = dump([{"mapping": {"a": node}, "current_node": "a"}])
    assert column(read(export(**{"chat.html": b"", "conversations.json": trees}), "zip"), "text") == ["hi"]
    for data in (b"PK", export(**{"photo.jpg": b"x"})):
        with pytest.raises(InputError, match="no readable zip file"):
            read(data, "zip")


def test_a_damaged_member_ends_in_an_error() -> None:
    data = bytearray(export(**{"a/2024-05-17.json": dump(DAY * 50), "b/2024-05-17.json": dump(DAY)}))
    for i in range(60, 120):
        data[i] ^= 0x55
    made = read(bytes(data), "zip")
    assert "damaged_member" in errors(made)
    assert column(made, "conversation_id").count("b") == 4


def test_an_answer_of_the_api_and_what_is_no_message() -> None:
    made = read(json.dumps({"ok": True, "messages": [*DAY[:2], 5], "has_more": False}), name="a.json")
    assert errors(made) == [None, None, "not_an_object"]
    assert column(read(dump([{"type": "message", "ts": 5, "text": None}]), "slack"), "text", "occurred_at") == [("", 5)]
