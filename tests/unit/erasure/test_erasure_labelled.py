"""Labelled rows: whose words they are, by lines of landed turns and by ids."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from suites.erasure_world import ANN, BOB, COMMON, TWIN, World, fill, in_memory

from memory_pipelines import erasure
from memory_pipelines.erasure.labelled import LabelledTexts
from memory_pipelines.erasure.places import Target
from memory_pipelines.model import Owner
from memory_pipelines.stores.base import Replace
from memory_pipelines.tables import LABELLED

ROWS = [
    ("her line", "I HAVE A SECRETONE PEANUT ALLERGY"),
    ("her line among others", "somebody wrote:\n第二行 SECRETTWO 😀\nand that was all"),
    ("her id", "user ann-7f3 wants SECRETLY more"),
    ("part of her line", "peanut allergy"),
    ("everybody's line", COMMON),
    ("Bob's line", "good morning, my order 12 please"),
    ("nobody's", "water is dripping in the chapel"),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = fill(in_memory(), tmp_path)
    rows = [
        dict.fromkeys(LABELLED.schema.names) | {"text": text, "intent": why, "source": "l.csv"} for why, text in ROWS
    ]
    world.lake.write(LABELLED, pa.Table.from_pylist(rows, schema=LABELLED.schema), [Replace("source", ("l.csv",))])
    return world


def whose(world: World) -> set[str]:
    return {row["intent"] for row in world.rows(LABELLED)}


def test_what_is_a_persons_goes_with_the_person(world: World) -> None:
    certificate = world.erase(ANN)
    assert certificate.body["places"]["lake.labelled"] == {"before": 3, "after": 0}
    assert whose(world) == {"part of her line", "everybody's line", "Bob's line", "nobody's"}
    world.erase(BOB)
    assert whose(world) == {"part of her line", "nobody's"}


def test_somebody_else_leaves_it_as_it_is(world: World) -> None:
    before = whose(world)
    world.erase(Owner("acme", "u:nobody-9a1"))
    assert whose(world) == before


def test_an_id_without_a_tenant_is_anybodys_of_that_name(world: World) -> None:
    assert erasure.dry_run(world.stores, TWIN).counts["lake.labelled"] == 1


def test_rows_without_a_time_are_not_of_before(world: World) -> None:
    target = Target(ANN, until=datetime(2030, 1, 1, tzinfo=UTC))
    assert LabelledTexts().count(world.stores, [target]) == {}
