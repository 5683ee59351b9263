"""One raw row: a turn, a behaviour event, or the reason why it is neither."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.landing.normalise import MAX_TEXT, Normaliser, parse_time
from memory_pipelines.landing.readers import RawRow
from memory_pipelines.model import FIRST_DAY, INSTANT, Owner, day_start, iso, stable_hash, turn_id
from memory_pipelines.tables import BEHAVIOUR, QUARANTINE, TURNS

LANDED = datetime(2024, 6, 1, tzinfo=UTC)
AT = datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)
TIME = "2024-05-17T08:12:30Z"
Row = dict[str, Any]


def normaliser(**changes: Any) -> Normaliser:
    return Normaliser("f1", "acme", 8, LANDED, **changes)


def one(row: Row | None, **raw: Any) -> tuple[str, Row]:
    return normaliser()(RawRow(3, row, raw.pop("raw", "raw"), **raw))


def talk(**fields: Any) -> Row:
    return {"occurred_at": TIME, "role": "user", "text": "你好", "user_id": "ann"} | fields


def deed(**fields: Any) -> Row:
    return {"occurred_at": TIME, "kind": "order", "user_id": "ann", "value": 12.5} | fields


def test_a_turn_of_every_column() -> None:
    row = talk(
        turn_id="t1", tenant="other", conversation_id="c1", session_id="s1", origin="web_app",
        edited_at="2024-05-17T09:00:00+00:00", vector_clock={"b": 2, "a": 1}, role="Customer",
    )  # fmt: skip
    kind, made = one(row)
    assert kind == "turn"
    assert made == {
        "tenant": "other",
        "turn_id": "t1",
        "conversation_id": "c1",
        "session_id": "s1",
        "subject": "u:ann",
        "role": "user",
        "occurred_at": AT,
        "text": "你好",
        "origin": "web_app",
        "edited_at": AT.replace(hour=9, minute=0, second=0),
        "vector_clock": '{"a":1,"b":2}',
        "content_hash": stable_hash("c1", "s1", "u:ann", "user", TIME, "你好"),
        "file_id": "f1",
        "position": 3,
        "day": "2024-05-17",
    }
    assert set(made) == set(TURNS.schema.names)


def test_a_turn_that_names_little() -> None:
    kind, made = one(talk())
    assert (kind, made["tenant"], made["session_id"], made["conversation_id"]) == ("turn", "acme", None, "u:ann")
    assert made["turn_id"] == turn_id("u:ann", AT, "user", "你好", 0)
    assert one(talk(session_id=7))[1]["conversation_id"] == "7"


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ({"user_id": 42}, "u:42"),
        ({"user_id": "ann", "device_id": "f00"}, "u:ann"),
        ({"user_id": "", "device_id": "f00"}, "d:f00"),
        ({"user_id": None}, None),
    ],
)
def test_whom_a_row_names(fields: Row, subject: str | None) -> None:
    assert one(talk(**fields))[1]["subject"] == subject


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (TIME, AT),
        ("2024-05-17 08:12:30", AT),
        ("2024-05-17T16:12:30+08:00", AT),
        ("20240517T081230Z", AT),
        (1715933550, AT),
        (1715933550.0, AT),
        (1715933550000, AT),
        ("1715933550", AT),
        ("1715933550123", AT + timedelta(milliseconds=123)),
        (AT.replace(tzinfo=None), AT),
        (AT.astimezone(timezone(timedelta(hours=8))), AT),
        (FIRST_DAY + "T00:00:00Z", day_start(FIRST_DAY)),
        ("2024-06-01T00:00:00Z", LANDED),
    ],
)
def test_times(value: object, at: datetime) -> None:
    assert one(talk(occurred_at=value))[1]["occurred_at"] == at


@pytest.mark.parametrize("name", ["occurred_at", "created_at", "timestamp", "time"])
def test_names_of_the_time(name: str) -> None:
    row = talk()
    row[name] = row.pop("occurred_at")
    assert one(row)[1]["occurred_at"] == AT


BROKEN: list[tuple[Row, str]] = [
    (talk(occurred_at=None), "no_time"),
    (talk(occurred_at=""), "no_time"),
    (talk(occurred_at="yesterday"), "bad_time"),
    (talk(occurred_at="2024-13-01"), "bad_time"),
    (talk(occurred_at=iso(day_start(FIRST_DAY) - INSTANT)), "bad_time"),
    (talk(occurred_at=0), "bad_time"),
    (talk(occurred_at=True), "bad_time"),
    (talk(occurred_at=[TIME]), "bad_time"),
    (talk(occurred_at=float("nan")), "bad_time"),
    (talk(occurred_at=float("inf")), "bad_time"),
    (talk(occurred_at=10**400), "bad_time"),
    (talk(occurred_at="0001-01-01T00:00:00+14:00"), "bad_time"),
    (talk(occurred_at="\ud800"), "bad_time"),
    (talk(occurred_at="2024-06-01T00:00:00.000001Z"), "future_time"),
    (talk(occurred_at=9_999_999_999), "future_time"),
    (talk(role=None), "no_role"),
    (talk(role="robot"), "unknown_role"),
    (talk(role=True), "bad_role"),
    (talk(text=None), "no_text"),
    (talk(text=5), "no_text"),
    (talk(text="a\x00b"), "nul_byte"),
    (talk(text="x" * (MAX_TEXT + 1)), "text_too_long"),
    (talk(text="a\ud800"), "unknown_encoding"),
    (talk(user_id=[]), "bad_user_id"),
    (talk(user_id=1.5), "bad_user_id"),
    (talk(user_id="a\x00"), "nul_byte"),
    (talk(turn_id={}), "bad_turn_id"),
    (talk(tenant=["x"]), "bad_tenant"),
    (talk(tenant="\udfff"), "unknown_encoding"),
    (talk(edited_at="soon"), "bad_time"),
    (talk(vector_clock="7"), "bad_vector_clock"),
    (talk(vector_clock={"a": -1}), "bad_vector_clock"),
    (talk(vector_clock={"a": True}), "bad_vector_clock"),
    (talk(vector_clock={"a": 1.0}), "bad_vector_clock"),
    (talk(vector_clock={"\ud800": 1}), "unknown_encoding"),
    (talk(vector_clock={"\x00": 1}), "nul_byte"),
    (deed(user_id=None), "no_subject"),
    (deed(kind=""), "no_kind"),
    (deed(kind=3.5), "bad_kind"),
    (deed(value=-0.01), "negative_amount"),
    (deed(dwell_seconds=-1), "negative_amount"),
    (deed(value="much"), "bad_value"),
    (deed(value=float("nan")), "bad_value"),
    (deed(value="1e999"), "bad_value"),
    (deed(value=10**400), "bad_value"),
    (deed(value=[1]), "bad_value"),
    (deed(bounce="maybe"), "bad_bounce"),
    (deed(bounce=[]), "bad_bounce"),
    ({}, "no_time"),
    ({"occurred_at": TIME}, "no_role"),
]


@pytest.mark.parametrize(("row", "reason"), BROKEN, ids=[f"{i}-{reason}" for i, (_, reason) in enumerate(BROKEN)])
def test_what_is_broken_goes_to_quarantine_with_its_reason(row: Row, reason: str) -> None:
    kind, made = one(row)
    assert (kind, made["reason"], made["raw"], made["position"]) == ("quarantine", reason, "raw", 3)
    assert set(made) == set(QUARANTINE.schema.names)
    assert made["day"] == (None if "time" in reason and row.get("edited_at") is None else made["day"])


def test_quarantine_knows_the_day_where_the_time_could_be_read() -> None:
    assert one(talk(role="robot", tenant="other"))[1]["day"] == "2024-05-17"
    assert one(talk(role="robot", tenant="other"))[1]["tenant"] == "other"
    assert one(talk(occurred_at=None))[1]["day"] is None


def test_a_row_that_could_not_be_parsed_keeps_its_form() -> None:
    kind, made = one(None, raw="{\ud800", error="malformed_json")
    assert (kind, made["reason"], made["raw"], made["tenant"]) == ("quarantine", "malformed_json", "{\\ud800", "acme")


def test_the_longest_text_that_is_a_message() -> None:
    assert one(talk(text="x" * MAX_TEXT))[0] == "turn"


def test_a_behaviour_event_of_every_column() -> None:
    kind, made = one(deed(event_id="e1", kind="Visit", value="3", dwell_seconds=9, bounce="TRUE", reference="SO-1"))
    owner = Owner("acme", "u:ann")
    assert kind == "behaviour"
    assert made == {
        "tenant": "acme",
        "event_id": "e1",
        "subject": "u:ann",
        "kind": "visit",
        "occurred_at": AT,
        "value": 3.0,
        "dwell_seconds": 9.0,
        "bounce": True,
        "reference": "SO-1",
        "content_hash": stable_hash("u:ann", "visit", TIME, "3.0", "9.0", "True", "SO-1"),
        "file_id": "f1",
        "position": 3,
        "day": "2024-05-17",
        "owner": owner.key,
        "bucket": owner.bucket(8),
    }
    assert set(made) == set(BEHAVIOUR.schema.names)


def test_a_behaviour_event_without_an_id_has_one_of_its_content() -> None:
    assert one(deed())[1]["event_id"] == one(deed(tenant="acme"))[1]["event_id"] != one(deed(value=13))[1]["event_id"]
    assert one(deed(value=None, bounce=0))[1]["bounce"] is False


# ---- ids of turns whose source gives none


def ids(rows: list[Row], **changes: Any) -> list[str]:
    each = normaliser(**changes)
    return [each(RawRow(i, row, ""))[1]["turn_id"] for i, row in enumerate(rows)]


def test_equal_rows_get_ordinals() -> None:
    rows = [talk(), talk(text="x"), talk(), talk()]
    first = [turn_id("u:ann", AT, "user", "你好", n) for n in range(3)]
    assert ids(rows) == [first[0], turn_id("u:ann", AT, "user", "x", 0), first[1], first[2]]


def test_an_overlapping_export_gives_the_same_ids() -> None:
    rows = [talk(text=str(i // 2)) for i in range(10)]
    assert ids(rows)[4:] == ids(rows[4:])
    assert len(set(ids(rows))) == 10


def test_rows_of_another_tenant_take_no_ordinal() -> None:
    mixed = [talk(tenant="a"), talk(tenant="b"), talk(tenant="a")]
    assert ids(mixed)[1:2] == ids(mixed[1:2])
    assert [ids(mixed)[0], ids(mixed)[2]] == ids([mixed[0], mixed[2]])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
_NAMES = sorted(
    {"occurred_at", "role", "text", "user_id", "device_id", "kind", "value", "dwell_seconds", "bounce"}
    | {"vector_clock", "edited_at", "tenant", "turn_id", "session_id", "reference", "event_id", "origin"}
)


@given(st.sampled_from([talk(), deed()]), st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=5))
def test_any_values_give_a_row_of_a_table(row: Row, changes: Row) -> None:
    import pyarrow as pa

    kind, made = one(row | changes)
    spec = {"turn": TURNS, "behaviour": BEHAVIOUR, "quarantine": QUARANTINE}[kind]
    assert pa.Table.from_pylist([made], schema=spec.schema).num_rows == 1
    if kind != "quarantine":
        assert day_start(FIRST_DAY) <= made["occurred_at"] <= LANDED


def test_ids_and_hashes_are_what_they_always_were() -> None:
    """They name turns in every store: a change of these values would orphan what is stored."""
    rows = [talk(), talk(), talk(turn_id="t1", session_id="s", text="é\n"), deed(value=3, bounce="true")]
    each = normaliser()
    made = [each(RawRow(i, row, ""))[1] for i, row in enumerate(rows)]
    assert [(row.get("turn_id") or row["event_id"], row["content_hash"]) for row in made] == [
        ("f223d242fbc82f6329f2f250f4fa72eb", "267715530937516970f5b958d563d21a"),
        ("0304e58dfc1361d1017f8862474e4736", "267715530937516970f5b958d563d21a"),
        ("t1", "627dc19d026dc826de6af66c0af9f80f"),
        ("bb118258b6047f6b245b2ae1f8dd9074", "7ab899d92c7661aeaa427dc2031d0190"),
    ]  # fmt: skip


def test_a_branch_that_was_given_up_is_a_row() -> None:
    assert one(talk(role="unchosen"))[1]["role"] == "unchosen"


def test_parse_time_cuts_no_microsecond() -> None:
    assert parse_time("2024-05-17T08:12:30.123456Z").microsecond == 123456
