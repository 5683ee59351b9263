"""No table may be forgotten: each is a place, or is said to hold nothing."""

import pytest

from memory_pipelines.erasure.registry import LAKE, NOTHING, NOTHING_IN_LAKE, PLACES, QUOTES, RELATIONAL
from memory_pipelines.erasure.scan import FREE_TEXT
from memory_pipelines.stores import schema
from memory_pipelines.tables import ALL


@pytest.mark.parametrize("name", [spec.name for spec in ALL])
def test_every_lake_table_is_a_place_or_holds_nothing(name: str) -> None:
    assert [place.name for place in LAKE].count(f"lake.{name}") + (name in NOTHING_IN_LAKE) == 1


@pytest.mark.parametrize("name", sorted(schema.metadata.tables))
def test_every_relational_table_is_a_place_or_holds_nothing(name: str) -> None:
    assert [place.table.name for place in RELATIONAL].count(name) + (name in NOTHING) == 1


def test_nothing_else_is_said_to_hold_nothing() -> None:
    assert set(NOTHING) <= set(schema.metadata.tables)
    assert all(NOTHING.values())


def test_tables_that_name_an_owner_are_places() -> None:
    named = {t.name for t in schema.metadata.sorted_tables if {"owner", "subject", "turn_id", "turn"} & set(t.c.keys())}
    assert named - {"erasures", "tombstones"} <= {place.table.name for place in RELATIONAL}


def test_names_are_distinct_and_places_say_how_they_are_searched() -> None:
    names = [place.name for place in PLACES]
    assert len(set(names)) == len(names)
    assert all(place.found_by for place in PLACES)


def test_lists_of_turn_ids_of_others_are_redacted() -> None:
    """A table with turns beside the owner's own ones quotes others."""
    quoting = {f"lake.{s.name} of others" for s in ALL if {"turn_ids", "source_turn_ids"} & set(s.schema.names)}
    assert quoting == {q.name for q in QUOTES if q.name.startswith("lake.") and q.name.endswith(" of others")}
    tables = {f"postgres.{t.name} of others" for t in schema.metadata.sorted_tables if "source_turn_ids" in t.c}
    assert tables == {quote.name for quote in QUOTES if quote.name.startswith("postgres.")}


def test_texts_that_the_scan_reads_exist() -> None:
    columns = {name for spec in ALL for name in spec.schema.names}
    assert set(FREE_TEXT) <= columns


def test_landed_turns_go_after_all_that_is_found_through_them() -> None:
    names = [place.name for place in PLACES]
    assert names.index("lake.exchanges of others") < names.index("lake.slices of others") < names.index("lake.turns")
    assert names.index("lake.quarantine") < names.index("lake.turns")
    ledger = ["postgres.turn_days", "postgres.turn_conflicts", "postgres.files"]
    assert all(names.index(name) > names.index("postgres.memory_versions") for name in ledger)
