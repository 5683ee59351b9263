"""Neighbours, sessions and speakers."""

from datetime import timedelta

import numpy as np
from recall_world import ALICE, NOW, make_fact, make_memory

from memory_pipelines.model import Owner
from memory_pipelines.recall.snapshot import Snapshot

MINUTE = timedelta(minutes=1)
BOB = Owner("acme", "u:bob")


def at(minutes: int, name: str, **changes: object) -> object:
    return make_memory(name, name, occurred_at=NOW + minutes * MINUTE, **changes)


def snapshot() -> Snapshot:
    """Three turns of one session, one an hour later, one of the next day; a fact of the first turn's time."""
    rows = [at(0, "a"), at(5, "b"), at(30, "c"), at(100, "d"), at(1440, "e")]
    return Snapshot(ALICE, [*rows, make_fact("f", "f", "likes", "x", occurred_at=NOW)])  # type: ignore[list-item]


def scored(view: Snapshot, name: str) -> np.ndarray:
    scores = np.zeros(len(view.rows))
    scores[view.by_memory[name]] = 1.0
    return scores


def by_name(view: Snapshot, scores: np.ndarray) -> dict[str, float]:
    return {row.memory_id: float(scores[i]) for i, row in enumerate(view.rows) if scores[i]}


def test_a_score_passes_to_the_turn_after_and_the_turn_before() -> None:
    view = snapshot()
    assert by_name(view, view.context.spread(scored(view, "b"), 0.5, 0.25)) == {"a": 0.25, "b": 1, "c": 0.5}
    assert by_name(view, view.context.raised(scored(view, "b"), 0.5, 0.25)) == {"a": 0.25, "b": 1, "c": 0.5}


def test_what_is_more_than_half_an_hour_away_is_neither_neighbour_nor_session() -> None:
    view = snapshot()
    assert by_name(view, view.context.spread(scored(view, "d"), 0.5, 0.25)) == {"d": 1}
    assert by_name(view, view.context.best_of_session(scored(view, "d"))) == {"d": 1}
    assert by_name(view, view.context.best_of_session(scored(view, "a"))) == dict.fromkeys("abc", 1.0)


def test_facts_and_other_subjects_are_no_neighbours() -> None:
    view = snapshot()
    assert by_name(view, view.context.spread(scored(view, "f"), 0.5, 0.5)) == {"f": 1}
    assert by_name(view, view.context.best_of_session(scored(view, "f"))) == {"f": 1}
    both = Snapshot.joined(ALICE, [Snapshot(ALICE, [at(0, "a")]), Snapshot(BOB, [at(1, "x", owner=BOB)])])  # type: ignore[list-item]
    assert by_name(both, both.context.spread(scored(both, "a"), 0.5, 0.5)) == {"a": 1}
    assert by_name(both, both.context.best_of_session(scored(both, "a"))) == {"a": 1}


def test_equal_instants_are_no_neighbours_and_one_session() -> None:
    view = Snapshot(ALICE, [at(0, "a"), at(0, "b")])  # type: ignore[list-item]
    assert by_name(view, view.context.spread(scored(view, "a"), 0.5, 0.5)) == {"a": 1}
    assert by_name(view, view.context.best_of_session(scored(view, "a"))) == {"a": 1, "b": 1}


def test_nobody_has_no_context() -> None:
    context = Snapshot(ALICE, []).context
    assert context.spread(np.zeros(0), 0.5, 0.5).shape == (0,)
    assert context.best_of_session(np.zeros(0)).shape == (0,)


def test_the_one_speaker_whom_a_question_names() -> None:
    said = ["Caroline: hi", "Caroline: more", "Tim Li: yes", "Tim Li: no", "王芳：在", "王芳：好", "Note: once"]
    view = Snapshot(ALICE, [at(i, text) for i, text in enumerate(said)])  # type: ignore[misc]

    def spoken(query: str) -> list[str]:
        rows = view.context.spoken(query)
        return [] if rows is None else sorted(view.rows[int(i)].memory_id for i in rows)

    assert spoken("What did Caroline say?") == said[:2]
    assert spoken("Is tim home?") == sorted(said[2:4])
    assert spoken("王芳说了什么") == sorted(said[4:6])
    assert spoken("What do Tim and Caroline like?") == []
    assert spoken("Optimal timing") == []
    assert spoken("Which note?") == []
