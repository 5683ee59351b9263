"""Bad rows, whatever the format they come in: quarantined with a reason, and the rows beside them landed."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import read

from memory_pipelines.landing.normalise import MAX_TEXT, Normaliser

LANDED = datetime(2024, 6, 1, tzinfo=UTC)
GOOD, FUTURE = 1715933550, 1893456000
Said = list[tuple[str, int]]
"""Texts and their times, in epoch seconds."""


def _jsonl(said: Said) -> bytes:
    rows = ({"role": "user", "user_id": "ann", "text": text, "occurred_at": at} for text, at in said)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _csv(said: Said) -> bytes:
    return ("role,user_id,occurred_at,text\n" + "".join(f'user,ann,{at},"{text}"\n' for text, at in said)).encode()


def _parquet(said: Said) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"role": ["user"] * len(said), "text": [t for t, _ in said], "time": [a for _, a in said]}), sink
    )
    return sink.getvalue()


def _document(make: Callable[[str, int], dict[str, Any]]) -> Callable[[Said], bytes]:
    return lambda said: json.dumps([make(text, at) for text, at in said]).encode()


def _clock(at: int, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


WRITERS: dict[str, Callable[[Said], bytes]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "openai_messages": _document(lambda t, at: {"messages": [{"role": "user", "content": t, "created_at": at}]}),
    "chatgpt": _document(
        lambda t, at: {
            "mapping": {"a": {"message": {"author": {"role": "user"}, "create_time": at, "content": {"parts": [t]}}}},
            "current_node": "a",
        }
    ),
    "langchain": _document(lambda t, at: {"type": "human", "content": t, "created_at": at}),
    "slack": _document(lambda t, at: {"type": "message", "user": "U1", "text": t, "ts": f"{at}.000100"}),
    "intercom": _document(
        lambda t, at: {"part_type": "comment", "body": t, "author": {"type": "user", "id": "u"}, "created_at": at}
    ),
    "zendesk": _document(lambda t, at: {"requester_id": 7, "description": t, "created_at": at}),
    "whatsapp": lambda said: "".join(f"{_clock(at, '%Y-%m-%d, %H:%M')} - Ann: {t}\n" for t, at in said).encode(),
    "irc": lambda said: "".join(f"{_clock(at, '%Y-%m-%d %H:%M:%S')} <ann> {t}\n" for t, at in said).encode(),
}


def outcome(file_format: str, content: bytes) -> list[str]:
    """Of each row its kind, or the reason why it is none."""
    normalise = Normaliser("f", "acme", 8, LANDED)
    made = [normalise(raw) for raw in read(content, file_format)]
    return [row["reason"] if kind == "quarantine" else kind for kind, row in made]


@pytest.mark.parametrize("file_format", sorted(WRITERS))
@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("a\x00b", GOOD, "nul_byte"),
        ("x" * (MAX_TEXT + 1), GOOD, "text_too_long"),
        ("hi", FUTURE, "future_time"),
        ("hi", 978307200, "bad_time"),
    ],
    ids=["nul", "megabyte", "future", "before"],
)
def test_a_bad_row_stands_alone(file_format: str, text: str, at: int, reason: str) -> None:
    content = WRITERS[file_format]([("one", GOOD), (text, at), ("two", GOOD + 60)])
    assert outcome(file_format, content) == ["turn", reason, "turn"]


@pytest.mark.parametrize("file_format", sorted(WRITERS.keys() - {"parquet"}))
def test_a_byte_of_no_encoding_stands_alone(file_format: str) -> None:
    content = WRITERS[file_format]([("one", GOOD), ("快递?", GOOD), ("two", GOOD + 60)])
    content = content.replace("快递?".encode(), b"\xe5\xff\xff").replace(rb"\u5feb\u9012?", b"\xe5\xff\xff")
    assert outcome(file_format, content) == ["turn", "unknown_encoding", "turn"]


@pytest.mark.parametrize(
    ("file_format", "content", "expected"),
    [
        ("openai_messages", {"messages": [{"role": ["user"], "content": "x", "created_at": GOOD}]}, "bad_role"),
        ("openai_messages", {"messages": [{"role": "user", "content": 5, "created_at": "soon"}]}, "bad_time"),
        ("chatgpt", {"mapping": {"a": {"message": {"author": 5, "create_time": GOOD}}}}, "no_role"),
        ("langchain", {"messages": [{"type": 5, "content": "x", "created_at": GOOD}]}, "no_role"),
        ("intercom", {"part_type": "comment", "body": "x", "author": 5, "created_at": GOOD}, "no_role"),
        ("zendesk", {"requester_id": {}, "description": "x", "created_at": GOOD}, "bad_user_id"),
        ("slack", {"type": "message", "user": ["U"], "text": "x", "ts": f"{GOOD}.000100"}, "bad_user_id"),
    ],
)
def test_a_wrong_type_is_a_reason(file_format: str, content: Any, expected: str) -> None:
    assert outcome(file_format, json.dumps(content).encode()) == [expected]
