"""The picture of one graph: what is in it, and that nobody is."""

from collections.abc import Sequence

import pyarrow as pa
from graph_world import Row, event, pair, run

from memory_pipelines.slices.graph.picture import MOST_MEMORIES, Portrait, draw, portrait
from memory_pipelines.tables import EDGES, MEMORIES

NUMBER = "order_number/SO-77"


def shown(*pairs: tuple[Row, Row], behaviour: Sequence[Row] = ()) -> Portrait:
    memories = pa.Table.from_pylist([m for m, _ in pairs], schema=MEMORIES.schema)
    found = portrait(memories, run(pairs, behaviour))
    assert found is not None
    return found


def test_nothing_to_show() -> None:
    assert portrait(MEMORIES.schema.empty_table(), EDGES.schema.empty_table()) is None


def test_it_holds_intents_kinds_and_names_that_ship_and_nothing_of_a_person() -> None:
    private = ["person/li_lei", NUMBER, "carrier/sf_express", "company/uncle_bobs_garage"]
    pairs = [
        pair("secret-a", intent="logistics_complaint", entities=private, text="verbatim"),
        pair("secret-b", days=2, intent="logistics_complaint", entities=private),
    ]
    fact, _ = pair(
        "secret-f", memory_type="semantic", stores=["graph"], slice_ids=["evt_secret-a"], predicate="allergy"
    )
    done = [event("cancel", "secret-event", days=3, reference="SO-77")]
    found = shown(*pairs, (fact, pairs[0][1]), behaviour=done)
    assert sorted(dot.label for dot in found.dots) == [
        "cancel",
        "company",
        "fact\nday 0",
        "logistics_complaint\nday 0",
        "logistics_complaint\nday 2",
        "order_number",
        "person",
        "sf_express",
    ]
    assert {kind for _, _, kind, _ in found.links} == {"mentions", "evidence", "causes", "same_topic", "similar"}
    png = draw(found)
    assert png.startswith(b"\x89PNG")
    assert draw(found) == png


def test_it_shows_the_subject_with_the_most_kinds_and_no_more_than_fits() -> None:
    dull = [pair(f"d{i:03}", days=i / 10, entities=["carrier/sf_express"], subject="u:dull") for i in range(200)]
    told = [pair("a", session="s", entities=[NUMBER], intent="logistics_complaint")]
    told.append(pair("b", days=0.1, session="s", entities=[NUMBER], intent="cancel_order"))
    found = shown(*dull, *told)
    assert {dot.label.partition("\n")[0] for dot in found.dots} == {
        "logistics_complaint",
        "cancel_order",
        "order_number",
    }
    alone = shown(*dull)
    assert sum(dot.lane == "slices" for dot in alone.dots) == MOST_MEMORIES


def test_a_graph_with_a_cause_comes_before_one_of_more_kinds() -> None:
    many = [pair(f"m{i}", days=i / 100, session="s", entities=["carrier/sf_express", f"x{i % 2}"]) for i in range(6)]
    read, _ = pair("f", memory_type="semantic", stores=["graph"], slice_ids=["evt_m0"])
    told = pair("a", subject="u:bob", intent="logistics_complaint", entities=[NUMBER])
    done = [event("cancel", "b1", days=1, reference="SO-77", subject="u:bob")]
    found = shown(*many, (read, many[0][1]), told, behaviour=done)
    assert {kind for _, _, kind, _ in found.links} == {"causes"}
    assert len({kind for _, _, kind, _ in shown(*many, (read, many[0][1])).links}) > 2
