"""Decisions to look at: SQL over the lake, one explained, the replay in the UI, arms, references between stores."""

import json
from pathlib import Path

import pytest
from pipeline_world import cut, derive_all, in_memory
from quarter_world import checks, living, told

from memory_pipelines.admission.explain import PARTS, RULES, explain
from memory_pipelines.admission.replay import THRESHOLDS, long_at
from memory_pipelines.errors import InputError
from memory_pipelines.pipeline import audit, files
from memory_pipelines.pipeline.decisions import find_decisions, query_decisions, sample_decisions
from memory_pipelines.pipeline.replay import replay_admission
from memory_pipelines.stores.authority import AccessKind
from memory_pipelines.stores.lake import DeltaLake
from memory_pipelines.tables import DECISIONS, MEMORIES, SLICES
from memory_pipelines.wiring import Platform

AT_65 = """
SELECT scenario, arm,
       sum(CASE WHEN outcome = 'long' THEN 1 ELSE 0 END) AS long_now,
       sum(CASE WHEN rule = 'score' THEN CASE WHEN score >= 0.65 THEN 1 ELSE 0 END
                WHEN outcome = 'long' THEN 1 ELSE 0 END) AS long_at_65
FROM decisions GROUP BY scenario, arm ORDER BY arm
"""


def lived(logs: list[Path], folder: Path, **settings: object) -> Platform:
    platform = in_memory(**settings)
    platform.__dict__["lake"] = DeltaLake(str(folder))
    files.land(platform, logs)
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)
    return platform


@pytest.fixture(scope="module")
def platform(weeks: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Platform:
    """A fortnight on a Delta lake, some of the subjects in arm B."""
    return lived(weeks, tmp_path_factory.mktemp("lake"), arm_b_share=0.28)


def test_what_another_threshold_would_keep_is_a_query(platform: Platform) -> None:
    decisions = platform.lake.read(DECISIONS)
    found = query_decisions(platform, AT_65).to_pylist()
    assert {row["arm"] for row in found} == set(decisions["arm"].to_pylist()) == {"A", "B"}
    for row in found:
        own = decisions.filter([arm == row["arm"] for arm in decisions["arm"].to_pylist()])
        assert row["long_now"] == own["outcome"].to_pylist().count("long")
        assert row["long_at_65"] == int(long_at(own, 0.65).sum())


def test_parts_are_columns_of_the_query_and_no_text_is(platform: Platform) -> None:
    statement = "SELECT memory_id, parts['personalisation.distinctiveness'] AS d FROM decisions"
    assert {row["d"] for row in query_decisions(platform, statement).to_pylist()} == {0.5}, "nothing was counted yet"
    assert {"text", "summary", "value", "structured"}.isdisjoint(DECISIONS.schema.names)


@pytest.mark.parametrize("statement", ["", "DELETE FROM decisions", "SELECT nothing FROM decisions", "SELECT * FROM x"])
def test_what_is_no_query_is_refused(platform: Platform, statement: str) -> None:
    with pytest.raises(InputError):
        query_decisions(platform, statement)


def test_arm_b_keeps_from_its_own_threshold(platform: Platform, weeks: list[Path], tmp_path: Path) -> None:
    rows = {row["memory_id"]: row for row in platform.lake.read(DECISIONS).to_pylist()}
    assert {(row["arm"], row["long_from"]) for row in rows.values()} == {("A", 0.7), ("B", 0.65)}
    owners = {row["owner"]: row["arm"] for row in rows.values()}
    everybody = lived(weeks, tmp_path / "lake", arm_b_share=1.0).lake.read(DECISIONS).to_pylist()
    assert {row["arm"] for row in everybody} == {"B"}
    for row in everybody:
        if owners[row["owner"]] == "B":
            assert row == rows[row["memory_id"]], "who is in arm B stays there as its share grows"


def test_every_decision_is_told_in_plain_words(platform: Platform) -> None:
    rows = platform.lake.read(DECISIONS).to_pylist()
    kept = {row["memory_id"]: row for row in platform.lake.read(MEMORIES).to_pylist()}
    for row in rows:
        (found,) = find_decisions(platform, row["memory_id"])
        lines = explain(found.decision, found.memory, found.places)
        assert (found.memory is None) == (row["outcome"] == "discard")
        assert any(RULES[row["rule"]] in line for line in lines)
        assert all(any(PARTS[name] in line for line in lines) for name, _ in row["parts"])
        if found.memory is not None:
            assert kept[row["memory_id"]]["summary"] in lines[1]
    visible = {m.memory_id for m in platform.authority.everything_visible()}
    assert {d.decision["memory_id"] for d in sample_decisions(platform, 1000) if d.places} == visible & kept.keys()
    assert [d.decision["memory_id"] for d in sample_decisions(platform, 3, "a")] == [
        d.decision["memory_id"] for d in sample_decisions(platform, 3, "a")
    ]


@pytest.mark.parametrize("start", ["", "abc", "ABCDEF", "abcdef'", "%%%%%%"])
def test_a_memory_is_named_by_its_digits(platform: Platform, start: str) -> None:
    with pytest.raises(InputError, match="first 6 digits"):
        find_decisions(platform, start)


def test_the_replay_shows_volume_and_quality(platform: Platform) -> None:
    memory = next(m for m in platform.authority.everything_visible() if m.term == "long")
    platform.accesses.record(memory.owner.key, memory.source_turn_ids, AccessKind.PRESENTED, memory.occurred_at)
    with living(platform) as life:
        found = told(life.run("replay_job"), "admission_replay")
    assert found["decisions"] == platform.lake.read(DECISIONS).num_rows
    assert found["used_memories"] >= 1
    volume = [row.data for row in found["volume"].records]
    assert {(row["arm"], row["threshold"]) for row in volume} == {(arm, t) for arm in "AB" for t in THRESHOLDS}
    for arm in "AB":
        long = [row["long"] for row in volume if row["arm"] == arm]
        assert long == sorted(long, reverse=True)
        assert long[0] > long[-1]
    assert [row.data["answered"] for row in found["quality"].records] == ["unknown"] * len(THRESHOLDS)
    assert found["kept_by_threshold"].startswith("![kept](data:image/png;base64,")
    assert found["quality_by_threshold"].startswith("![quality](data:image/png;base64,")


def test_questions_say_what_a_threshold_loses(platform: Platform, tmp_path: Path) -> None:
    rows = platform.lake.read(SLICES).to_pylist()
    turns = {row["slice_id"]: row["source_turn_ids"][:1] for row in rows}
    decided = platform.lake.read(DECISIONS).to_pylist()
    asked = [
        {"tenant": r["tenant"], "subject": r["subject"], "gold_turn_ids": turns[r["slice_id"]]} for r in decided
    ] + [{"tenant": "default", "subject": "u:nobody", "gold_turn_ids": ["none"]}]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    found = replay_admission(platform, path)
    assert found.questions == len(decided) + 1
    answered = [q.answered for q in found.qualities]
    assert answered == sorted((a for a in answered if a is not None), reverse=True)
    assert answered[0] is not None
    assert answered[-1] is not None
    assert 0 < answered[-1] < answered[0] < 1
    path.write_text('{"subject": "u:ann"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 1 of"):
        replay_admission(platform, path)
    with pytest.raises(InputError, match="cannot be read"):
        replay_admission(platform, tmp_path / "no file")


def test_references_lead_somewhere_and_a_lost_one_is_found(weeks: list[Path]) -> None:
    platform = in_memory()
    files.land(platform, weeks)
    cut(platform, list(platform.ledger.touched_days()))
    with living(platform) as life:
        (tags,) = life.tick("touched_buckets")
        result = life.run("bucket_job", *tags.values())
    assert checks(result)["cross_store_references"].passed
    found = audit.follow_references(platform)
    assert found.lost.total() == 0
    assert min(found.references["vector"], found.references["graph"]) > 0
    visible = platform.authority.everything_visible()
    places = platform.authority.places([m.owner.key for m in visible])
    for memory in visible:
        named = places[memory.owner.key][memory.memory_id]
        assert named.keys() - {"cold"} == ({"relational", *memory.stores} if memory.tier != "cold" else {"relational"})
        assert named["relational"] == memory.entry_id
    gone = next(m for m in visible if "vector" in m.stores)
    platform.vectors.delete([gone.entry_id])
    platform.graph.drop(gone.owner, platform.authority.graphs()[gone.owner.key])
    lost = audit.follow_references(platform).lost
    assert lost["vector"] == 1
    assert lost["graph"] > 0
