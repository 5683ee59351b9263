"""What a user's mapping does to a row, and what is said of one that is wrong."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from reading import column, read

from memory_pipelines.errors import InputError
from memory_pipelines.landing.mapping import NO_MAPPING, Mapping, find_mapping, load_mapping, parse_mapping
from memory_pipelines.landing.normalise import Normaliser
from memory_pipelines.landing.readers import RawRow, parse_again

TABLE = """
format: csv
files: ["orders_*.csv", "*.tsv"]
columns: {occurred_at: sent, text: message_body, user_id: customer.id, role: from}
constants: {tenant: acme, origin: web_app}
roles: {CSR: agent, client: user}
timezone: Asia/Shanghai
time_formats: "%d.%m.%Y %H:%M"
date_order: dmy
date: 2024-05-17
"""


def apply(mapping: str, /, **row: Any) -> dict[str, Any]:
    return parse_mapping(mapping).apply(row)


def test_a_mapping_of_everything() -> None:
    mapping = parse_mapping(TABLE)
    assert (mapping.format, mapping.timezone, mapping.date_order) == ("csv", "Asia/Shanghai", "dmy")
    assert (mapping.date, mapping.time_formats) == (date(2024, 5, 17), ("%d.%m.%Y %H:%M",))
    made = mapping.apply({"sent": "17.05.2024 16:12", "message_body": "hi", "customer": {"id": 7}, "from": "csr"})
    assert made["occurred_at"] == datetime(2024, 5, 17, 8, 12, tzinfo=UTC)
    assert {k: made[k] for k in ("text", "user_id", "role", "tenant", "origin")} == {
        "text": "hi", "user_id": 7, "role": "agent", "tenant": "acme", "origin": "web_app",
    }  # fmt: skip


def test_nothing_is_changed_without_one() -> None:
    row = {"text": "x", "occurred_at": "2024-05-17 08:00"}
    assert NO_MAPPING.apply(row) == row
    assert parse_mapping("") == NO_MAPPING


def test_columns() -> None:
    assert apply("columns: {text: a.b}", **{"a.b": 1, "a": {"b": 2}})["text"] == 1
    assert apply("columns: {text: a.b.c}", a={"b": 3})["text"] is None
    assert apply("columns: {text: null, kind: what}", text="note", what="order") == {
        "text": None, "kind": "order", "what": "order",
    }  # fmt: skip
    # another name of the time is another column's when the mapping names one
    assert "created_at" not in apply("columns: {occurred_at: sent}", sent=None, created_at=5)


def test_constants_are_over_the_row() -> None:
    assert apply("constants: {user_id: ann}", user_id="bo")["user_id"] == "ann"


def test_roles_are_of_what_the_source_says_or_of_authors() -> None:
    assert apply("roles: {csr: agent}", role=" CSR ")["role"] == "agent"
    assert apply("roles: {csr: agent}", role="user")["role"] == "user"
    shop = {"role": "user", "author": "Shop", "user_id": "Shop"}
    assert apply("roles: {shop: agent}", **shop) == shop | {"role": "agent", "user_id": None}
    assert apply("roles: {shop: agent}", **shop | {"role": "system"})["role"] == "system"
    assert apply("roles: {9: agent}", role=9)["role"] == "agent"


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("2024-05-17 16:12:30", datetime(2024, 5, 17, 8, 12, 30, tzinfo=UTC)),
        ("2024-05-17T16:12:30+09:00", "2024-05-17T16:12:30+09:00"),
        (datetime.fromisoformat("2024-05-17T16:00"), datetime(2024, 5, 17, 8, tzinfo=UTC)),
        ("soon", "soon"),
        (1715933550, 1715933550),
        ("0001-01-01T00:00:00", "0001-01-01T00:00:00"),
        (None, None),
    ],
)
def test_a_zone_is_for_times_without_one(value: Any, made: Any) -> None:
    found = apply("timezone: Asia/Shanghai", occurred_at=value, edited_at=value)
    expected = datetime.fromisoformat(made) if isinstance(made, str) and "+" in made else made
    assert found == {"occurred_at": expected, "edited_at": expected}


def test_summer_time() -> None:
    times = [apply("timezone: Europe/Berlin", time=f"2024-{day} 12:00")["time"] for day in ("01-17", "07-17")]
    assert [time.hour for time in times] == [11, 10]


def test_a_table_of_ones_own_becomes_turns_and_behaviour() -> None:
    mapping = parse_mapping(
        "{columns: {occurred_at: sent, text: body, user_id: uid}, roles: {k: user}, timezone: Asia/Shanghai}"
    )
    normalise = Normaliser("f", "acme", 8, datetime(2024, 6, 1, tzinfo=UTC))
    table = "sent,body,uid,role,kind,value\n2024-05-17 16:12,hi,7,K,,\n2024-05-17 16:12,,7,,order,-1\n"
    raws = read(table, "csv", mapping)
    (kind, turn), (_, broken) = map(normalise, raws)
    assert (kind, turn["text"], turn["subject"], turn["role"]) == ("turn", "hi", "u:7", "user")
    assert turn["occurred_at"] == datetime(2024, 5, 17, 8, 12, tzinfo=UTC)
    assert broken["reason"] == "negative_amount"
    # what is kept is what was read, so that a better mapping finds it
    better = parse_mapping("{columns: {occurred_at: sent, user_id: uid}, constants: {value: 1}}")
    again = parse_again(broken["raw"], broken["reason"], "csv", better, position=2)
    assert normalise(again)[1]["value"] == 1.0
    assert parse_again(broken["raw"], broken["reason"], "csv") == RawRow(
        0, {"sent": "2024-05-17 16:12", "body": None, "uid": "7", "role": None, "kind": "order", "value": "-1"},
        broken["raw"],
    )  # fmt: skip


def test_a_source_without_users_takes_one() -> None:
    made = read('{"type":"human","content":"hi"}', "langchain", parse_mapping("constants: {user_id: ann}"))
    assert column(made, "user_id") == ["ann"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("colums: {}", "m.yaml: unknown key colums; known: columns, "),
        ("columns: {body: text}", "m.yaml: columns: unknown field body; known: bounce, "),
        ("columns: {text: 5}", "m.yaml: columns.text is the name of a column, or null"),
        ("columns: [text]", "m.yaml: columns is a list of name: value"),
        ("constants: {userid: x}", "m.yaml: constants: unknown field userid"),
        ("constants: {user_id: [x]}", "m.yaml: constants.user_id is a single value"),
        ("roles: {csr: staff}", "m.yaml: roles.csr is one of user, agent, system"),
        ("timezone: Mars/Base", "m.yaml: timezone is the name of a zone"),
        ("timezone: ../etc", "m.yaml: timezone is the name of a zone"),
        ("timezone: 8", "m.yaml: timezone is the name of a zone"),
        ("date_order: ydm", "m.yaml: date_order is one of dmy, mdy, ymd"),
        ("date: someday", "m.yaml: date is a day"),
        ("format: xml", "m.yaml: format is one of jsonl, json, "),
        ("files: 7", "m.yaml: files is a text or a list of texts"),
        ("just text", "m.yaml: expected keys"),
        ("a: [", r"m.yaml is no YAML \(line 1\)"),
    ],
)
def test_a_wrong_mapping_is_one_clear_error(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=fault):
        load_mapping(path)


def test_a_mapping_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read gone\.yaml"):
        load_mapping(tmp_path / "gone.yaml")
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"a\.yaml is not UTF-8"):
        load_mapping(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("# " + "x" * (1 << 20))
    with pytest.raises(InputError, match=r"b\.yaml is too large"):
        load_mapping(tmp_path / "b.yaml")


def test_files_and_mark() -> None:
    mapping = parse_mapping(TABLE)
    assert [mapping.covers(name) for name in ("orders_1.csv", "a.tsv", "a.csv")] == [True, True, False]
    assert NO_MAPPING.covers("anything")
    assert mapping.mark == parse_mapping(TABLE).mark != NO_MAPPING.mark
    mapping.apply({})
    assert mapping.mark == parse_mapping(TABLE).mark == Mapping(**{**vars(parse_mapping(TABLE))}).mark


def test_the_nearest_mapping_counts(tmp_path: Path) -> None:
    deep = tmp_path / "logs" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "mapping.yaml").write_text("")
    assert find_mapping(deep / "x.csv", tmp_path / "logs") is None
    assert find_mapping(deep / "x.csv", tmp_path) == (tmp_path / "mapping.yaml").resolve()
    (tmp_path / "logs" / "a" / "mapping.yaml").write_text("")
    assert find_mapping(deep / "x.csv", tmp_path) == (tmp_path / "logs" / "a" / "mapping.yaml").resolve()
    assert find_mapping(Path("/elsewhere/x.csv"), tmp_path) is None
