"""Population figures by themselves: what is counted of an exchange, who few are, how far a new version moves."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from memory_pipelines.admission.extract import candidates
from memory_pipelines.admission.rows import SHORT_TERM, session_ends
from memory_pipelines.admission.snapshot import (
    MIN_HOLDERS,
    Snapshot,
    claim_key,
    exchange_keys,
    hashed,
    kept_counts,
    movement,
    snapshot_keys,
)
from memory_pipelines.model import Owner

Row = dict[str, Any]
Make = Callable[..., Row]

SF = {"surface": "顺丰", "canonical": "carrier/sf_express", "kind": "carrier"}
NUMBER = {"surface": "88123", "canonical": "order_number/88123", "kind": "order_number"}
DAY = {"surface": "5月24日", "canonical": "date/2024-05-24", "kind": "date"}


def test_candidates_are_looked_up_by_what_exchanges_are_counted_by(slice_row: Make) -> None:
    text = "I live in Leeds and I am allergic to peanuts"
    row = slice_row(1, text, entities=[SF, NUMBER, DAY])
    exchange = row | {"own_text": text, "started_at": row["occurred_at"]}
    counted = set(exchange_keys(exchange))
    assert counted == {
        hashed("carrier/sf_express"),
        hashed("intent=share_fact"),
        claim_key("home_city", "leeds"),
        claim_key("allergy", "peanut"),
    }
    found = candidates(Owner("acme", "u:ann"), [row])
    assert {key for candidate in found for key in snapshot_keys(candidate)} == counted


def test_what_names_nothing_has_no_keys(slice_row: Make) -> None:
    row = slice_row(1, "hm", intent="out_of_scope", entities=[NUMBER, DAY])
    (episode,) = candidates(Owner("acme", "u:ann"), [row])
    assert list(snapshot_keys(episode)) == []


def test_only_what_enough_subjects_hold_is_kept() -> None:
    few, enough = MIN_HOLDERS - 1, MIN_HOLDERS
    held = [["a", "a", "b"]] * few + [["a"]]
    assert kept_counts(held) == {"a": enough}
    assert kept_counts(iter([])) == {}


def test_movement_is_weighted_by_holders() -> None:
    old, new = Snapshot("1", 100, {"a": 50, "b": 10}), Snapshot("2", 100, {"a": 50, "b": 20})
    assert movement(old, old) == 0.0
    change = old.distinctiveness(("b",)) - new.distinctiveness(("b",))
    assert movement(old, new) == round(20 * change / 70, 4)
    assert 0 < movement(Snapshot(), new) <= 1


def lasting(slice_row: Make, number: int, hours: float, length: float = 0.5, session: str | None = "s") -> Row:
    row = slice_row(number, "text", days=hours / 24, session_id=session)
    return row | {"ended_at": slice_row(number, "text", days=(hours + length) / 24)["occurred_at"]}


def test_a_session_ends_with_its_last_slice_or_a_silence(slice_row: Make) -> None:
    rows = [
        lasting(slice_row, 1, 0),
        lasting(slice_row, 2, 1, session="other"),
        lasting(slice_row, 3, 2),
        lasting(slice_row, 4, 8),
        lasting(slice_row, 5, 20),
        lasting(slice_row, 6, 21, session=None),
    ]
    ends = session_ends(rows)
    named = {row["slice_id"]: row for row in rows}
    expected = {1: 4, 2: 2, 3: 4, 4: 4, 5: 5, 6: 6}
    assert {row["slice_id"]: ends[row["slice_id"]] for row in rows} == {
        rows[n - 1]["slice_id"]: named[rows[last - 1]["slice_id"]]["ended_at"] for n, last in expected.items()
    }
    assert SHORT_TERM.days == 9
    assert min(ends.values()) > datetime(2024, 5, 17, tzinfo=UTC)
