"""Dense normalisation, facts, fusion, selection."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from recall_world import ALICE, NOW, ConceptEmbedder, make_fact, make_memory

from memory_pipelines.errors import PermanentError, StoreUnavailableError
from memory_pipelines.model import Owner, micros
from memory_pipelines.models.base import Unrelated
from memory_pipelines.recall import dense, facts, fusion, selection, text
from memory_pipelines.recall.legs import DEPTH, Found, Scored, ranked
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.base import Hit

DAY = timedelta(days=1)


class Hits:
    def __init__(self, hits: list[Hit]) -> None:
        self.hits = hits
        self.asked: list[tuple[int, str | None]] = []

    def search(self, owner: Any, vector: Any, limit: int, language: str | None = None) -> list[Hit]:
        self.asked.append((limit, language))
        return self.hits


UNRELATED = Unrelated(0.15, 0.11)
MODEL: Any = ConceptEmbedder()


def normalised(cosines: dict[int, float], languages: dict[int, str], unrelated: Unrelated) -> list[Found]:
    """In the order of rows."""
    rows = np.array(sorted(cosines), dtype=np.int64)
    masks = [(name, np.array([languages[row] == name for row in rows])) for name in sorted(set(languages.values()))]
    scored = dense.normalised(rows, np.array([cosines[row] for row in rows]), masks, unrelated)
    return list(map(Found, scored.rows.tolist(), scored.scores.tolist(), scored.relevance.tolist()))


def usable(snapshot: Snapshot, suppressed: frozenset[str] = frozenset()) -> Any:
    return snapshot.usable(NOW, suppressed)


def test_dense_overfetches_and_drops_what_no_visible_row_names() -> None:
    snapshot = Snapshot(ALICE, [make_memory("a", "甲"), make_memory("b", "乙"), make_memory("c", "丙")])
    store: Any = Hits([Hit("a.v2", 0.99), Hit("b.v1", 0.8), Hit("c.v1", 0.7), Hit("b.v1", 0.1)])
    hits = dense.search(store, MODEL, np.zeros(1, np.float32), snapshot, usable(snapshot, frozenset({"c"})), set())
    leg = ranked(dense.NAME, hits)
    assert store.asked == [(dense.OVERFETCH * DEPTH, None)]
    assert [snapshot.rows[f.row].memory_id for f in leg.found] == ["b"]
    mean = (0.8 + 5 * 0.15) / 6
    assert leg.found[0].relevance == pytest.approx((0.8 - mean) / (1 - mean))


def test_each_language_is_normalised_apart() -> None:
    cosines = {0: 0.7, 1: 0.6, 2: 0.6, 3: 0.6, 4: 0.45, 5: 0.05, 6: 0.05, 7: 0.05}
    languages = dict.fromkeys(range(4), "zh") | dict.fromkeys(range(4, 8), "en")
    found = {f.row: f for f in normalised(cosines, languages, UNRELATED)}
    assert max(found.values(), key=lambda f: f.score).row == 4
    assert found[5].relevance == 0


def test_one_hit_alone_is_measured_against_unrelated_texts() -> None:
    (found,) = normalised({3: 0.15}, {3: "en"}, UNRELATED)
    assert (found.score, found.relevance) == (pytest.approx(0), pytest.approx(0))


def test_what_is_near_does_not_depend_on_the_order_of_hits() -> None:
    snapshot = Snapshot(ALICE, [make_memory(f"m{i}", f"s{i}") for i in range(9)])
    hits = [Hit(f"m{i}.v1", (i * 37 % 11) / 11) for i in range(9)]
    one, other = (
        dense.search(Hits(some), MODEL, np.zeros(1), snapshot, usable(snapshot), set()) for some in (hits, hits[::-1])
    )  # type: ignore[arg-type]
    assert one.rows.tolist() == other.rows.tolist() == list(range(9))
    assert one.scores.tolist() == other.scores.tolist()


def test_a_model_whose_unrelated_texts_are_close_is_measured_by_its_own_prior() -> None:
    (chance,) = normalised({0: 0.8}, {0: "zh"}, Unrelated(0.8, 0.03))
    (near,) = normalised({0: 0.9}, {0: "zh"}, Unrelated(0.8, 0.03))
    assert chance.relevance == pytest.approx(0)
    assert near.score > 1.5
    assert near.relevance > 0.4


def test_each_language_is_asked_for_where_one_answer_cannot_hold_all() -> None:
    zh = [make_memory(f"z{i:03}", f"中文{i}") for i in range(dense.OVERFETCH * DEPTH + 10)]
    snapshot = Snapshot(ALICE, [*zh, make_memory("e", "in English")])
    store: Any = Hits([])
    dense.search(store, MODEL, np.zeros(1, np.float32), snapshot, usable(snapshot), set())
    assert sorted(store.asked) == [(dense.OVERFETCH * DEPTH, "en"), (dense.OVERFETCH * DEPTH, "zh")]
    one = Snapshot(ALICE, zh)
    store = Hits([])
    dense.search(store, MODEL, np.zeros(1, np.float32), one, usable(one), set())
    assert store.asked == [(dense.OVERFETCH * DEPTH, None)]


class Spoken:
    """A store that answers for a language only while it is asked for the other one as well."""

    def __init__(self, english: Exception | None = None) -> None:
        self.both = threading.Barrier(2, timeout=60)
        self.english = english

    def search(self, owner: Any, vector: Any, limit: int, language: str | None = None) -> list[Hit]:
        self.both.wait()
        if language == "en" and self.english is not None:
            raise self.english
        return [Hit("e.v1", 0.9) if language == "en" else Hit("z000.v1", 0.8)]


def test_languages_are_searched_at_once_and_one_without_an_answer_is_missing() -> None:
    zh = [make_memory(f"z{i:03}", f"中文{i}") for i in range(dense.OVERFETCH * DEPTH + 10)]
    snapshot = Snapshot(ALICE, [*zh, make_memory("e", "in English")])

    def found(store: Any, missing: set[str]) -> set[str]:
        hits = dense.search(store, MODEL, np.zeros(1, np.float32), snapshot, usable(snapshot), missing)
        return {snapshot.memory_ids[row] for row in hits.rows.tolist()}

    missing: set[str] = set()
    assert (found(Spoken(), missing), missing) == ({"e", "z000"}, set())
    assert found(Spoken(StoreUnavailableError("vector", "A_SETTING", "gone")), missing) == {"z000"}
    assert missing == {"vector"}
    with pytest.raises(PermanentError, match="refused"):
        found(Spoken(PermanentError("refused")), missing)


def test_many_subjects_are_searched_by_few_threads() -> None:
    devices = [Owner(ALICE.tenant, f"d:{n:02}") for n in range(40)]
    snapshots = [Snapshot(one, [replace(make_memory(f"m{one.subject}", "s"), owner=one)]) for one in devices]
    joint = Snapshot.joined(ALICE, snapshots)
    threads: set[int] = set()

    class Counted(Hits):
        def search(self, owner: Any, vector: Any, limit: int, language: str | None = None) -> list[Hit]:
            threads.add(threading.get_ident())
            return [Hit(f"m{owner.subject}.v1", 0.5)]

    store: Any = Counted([])
    hits = dense.search(store, MODEL, np.zeros(1, np.float32), joint, usable(joint), set())
    assert hits.rows.tolist() == list(range(40))
    assert len(threads) <= dense.AT_ONCE


def test_ranked_cuts_at_floor_and_depth_and_breaks_ties_by_row() -> None:
    leg = ranked("x", Scored(np.array([2, 1, 0]), np.array([1.0, 1.0, 9.0]), np.array([0.5, 0.5, 0.01])))
    assert [f.row for f in leg.found] == [1, 2]
    many = np.ones(DEPTH + 5)
    assert len(ranked("x", Scored(np.arange(DEPTH + 5), many, many)).found) == DEPTH


MOVES = [
    make_fact("sh", "用户住在上海", "home_city", "上海", valid_from=NOW - 90 * DAY, valid_to=NOW - 60 * DAY),
    make_fact("sz", "用户住在深圳", "home_city", "深圳", valid_from=NOW - 60 * DAY, valid_to=NOW - 20 * DAY),
    make_fact("bj", "用户住在北京", "home_city", "北京", valid_from=NOW - 20 * DAY),
    make_fact("job", "用户是医生", "job", "医生", valid_from=NOW - 50 * DAY),
]


def test_facts_leg_finds_current_facts_only() -> None:
    snapshot = Snapshot(ALICE, [*MOVES, make_memory("slice", "用户住在上海")])
    leg = facts.leg(text.tokens("上海 北京 home city"), snapshot, usable(snapshot), NOW)
    assert [snapshot.rows[f.row].memory_id for f in leg.found] == ["bj"]
    then = facts.leg(text.tokens("上海"), snapshot, usable(snapshot), NOW - 70 * DAY)
    assert [snapshot.rows[f.row].memory_id for f in then.found] == ["sh"]


def test_facts_leg_matches_entities_by_their_canonical_words() -> None:
    snapshot = Snapshot(
        ALICE,
        [make_fact("f", "用户常用顺丰", "courier", "顺丰", entities=("carrier/sf_express",), valid_from=NOW - DAY)],
    )
    assert len(facts.leg(text.tokens("SF Express"), snapshot, usable(snapshot), NOW).found) == 1


def row_of(snapshot: Snapshot, memory_id: str) -> int:
    return snapshot.by_memory[memory_id]


def test_the_successor_is_found_over_a_chain_and_takes_the_lead() -> None:
    snapshot = Snapshot(ALICE, MOVES)
    sh, sz, bj = (row_of(snapshot, name) for name in ("sh", "sz", "bj"))
    closed = facts.superseded({sh: 1.0, sz: 0.5}, snapshot, usable(snapshot), NOW)
    assert closed == {sh: facts.Closed((bj,), bj), sz: facts.Closed((bj,), bj)}
    scores, relevance = facts.demote({sh: 1.0, sz: 0.5}, {sh: 0.9, sz: 0.4}, closed)
    assert scores[bj] == 1.0
    assert relevance[bj] == 0.9
    assert scores[bj] > scores[sh] > scores[sz]
    assert facts.superseded({bj: 1.0}, snapshot, usable(snapshot), NOW) == {}


def test_a_liking_that_ended_is_not_replaced_by_another_one_but_stays_below() -> None:
    likes = [
        make_fact("old", "用户喜欢芒果", "likes", "芒果", valid_from=NOW - 90 * DAY, valid_to=NOW - 60 * DAY),
        make_fact("tea", "用户喜欢茶", "likes", "茶", valid_from=NOW - 80 * DAY),
        make_fact("dog", "用户喜欢狗", "likes", "狗", valid_from=NOW - 10 * DAY),
    ]
    snapshot = Snapshot(ALICE, likes)
    old, tea, dog = (row_of(snapshot, name) for name in ("old", "tea", "dog"))
    closed = facts.superseded({old: 1.0}, snapshot, usable(snapshot), NOW)
    assert closed[old].successor is None
    assert set(facts.demote({old: 1.0}, {old: 1.0}, closed)[0]) == {old}
    scores, _ = facts.demote({old: 1.0, tea: 0.2, dog: 0.1}, {old: 1.0, tea: 1.0, dog: 1.0}, closed)
    assert scores[old] < scores[dog] < scores[tea]


def test_a_suppressed_successor_does_not_return_through_its_predecessor() -> None:
    snapshot = Snapshot(ALICE, MOVES)
    closed = facts.superseded({row_of(snapshot, "sz"): 1.0}, snapshot, usable(snapshot, frozenset({"bj"})), NOW)
    assert closed[row_of(snapshot, "sz")] == facts.Closed((), None)


def test_windows_of_no_length_do_not_loop() -> None:
    rows = [
        make_fact("x", "甲", "p", "甲", valid_from=NOW - DAY, valid_to=NOW - DAY),
        make_fact("y", "乙", "p", "乙", valid_from=NOW - DAY, valid_to=NOW - DAY),
    ]
    snapshot = Snapshot(ALICE, rows)
    assert all(
        c.successor is None for c in facts.superseded({0: 1.0, 1: 1.0}, snapshot, usable(snapshot), NOW).values()
    )


def test_multipliers_are_bounded() -> None:
    times = np.array([micros(NOW - 4000 * DAY), micros(NOW)])
    assert fusion.recency(times, NOW).tolist() == [0.95, 1]
    assert fusion.trust(np.array([-3.0, 1.0])).tolist() == [pytest.approx(0.8), 1]


def chosen(scores: dict[int, float], relevance: dict[int, float], snapshot: Snapshot, **options: Any) -> Any:
    given = {"limit": 15, "budget": 1000.0, "cost": lambda row: 10.0} | options
    return selection.select(scores, relevance, given.pop("successors", {}), snapshot, **given)


def test_strong_relevance() -> None:
    assert selection.strong_relevance({0: 0.9, 1: 0.2}) == 0.25
    assert selection.strong_relevance({0: 0.3}) == 0.15
    assert selection.strong_relevance({0: 0.12}) == 0.1
    assert selection.strong_relevance({}) == 0.1


def test_selection_by_impact_relevance_budget_limit_and_repetition() -> None:
    rows = [
        make_memory("a", "first", decision_impact=0.6, occurred_at=NOW - 5 * DAY),
        make_memory("b", "second", decision_impact=0.5, occurred_at=NOW - 4 * DAY),
        make_memory("c", "third", occurred_at=NOW - 3 * DAY),
        make_memory("d", " first ", occurred_at=NOW - 2 * DAY),
    ]
    snapshot = Snapshot(ALICE, rows)
    a, b, c, d = (row_of(snapshot, name) for name in "abcd")
    scores, relevance = {a: 0.4, b: 0.1, c: 0.2, d: 0.15}, {a: 0.05, b: 0.2, c: 0.9, d: 0.9}
    told = chosen(scores, relevance, snapshot)
    assert told.chosen == (c, a)
    assert told.passed_over == ((d, "duplicate"), (b, "unrelated"))
    near_the_best = chosen(scores | {b: 0.21}, relevance, snapshot)
    assert near_the_best.chosen == (c, b, a)
    assert chosen(scores, relevance, snapshot, limit=1).chosen == (a,)
    assert chosen(scores, relevance, snapshot, limit=0).chosen == ()
    costs = {a: 30.0, c: 5.0, d: 1.0}
    tight = chosen(scores, relevance, snapshot, budget=20.0, cost=costs.__getitem__)
    assert tight.chosen == (d, c)
    assert (a, "budget") in tight.passed_over


def test_never_more_than_fifteen() -> None:
    snapshot = Snapshot(ALICE, [make_memory(f"m{i:02}", f"s{i}") for i in range(20)])
    told = chosen(dict.fromkeys(range(20), 1.0), dict.fromkeys(range(20), 1.0), snapshot, limit=99)
    assert told.chosen == tuple(range(15))


def test_a_superseded_fact_is_not_told_without_its_successor() -> None:
    snapshot = Snapshot(ALICE, MOVES)
    sz, bj = row_of(snapshot, "sz"), row_of(snapshot, "bj")
    costs = {bj: 50.0, sz: 5.0}
    told = chosen({bj: 2, sz: 1}, {bj: 1, sz: 1}, snapshot, successors={sz: bj}, budget=9.0, cost=costs.__getitem__)
    assert told.chosen == ()
    assert told.passed_over == ((bj, "budget"), (sz, "superseded"))
