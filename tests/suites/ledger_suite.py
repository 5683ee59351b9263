"""What the ledger promises on every engine. ``engine`` is a fixture of each module that inherits this; it is empty."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from memory_pipelines.errors import PermanentError
from memory_pipelines.model import day_start, stable_hash, touched_days
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.notes import ChunkCounts, LandedChunk, Progress, Readmitted, SourceNote, Watermark

AT = datetime(2026, 3, 1, 4, 5, 6, 789, tzinfo=UTC)
DAY, NEXT = "2026-02-10", "2026-02-11"
A, B = ("tenant", "owner a", 3), ("tenant", "owner b", 3)
"""As a landed chunk names owners: (tenant, owner key, bucket)."""


def announced(*owners: tuple[str, str, int]) -> list[tuple[str, str, int]]:
    """As a day job names them: (owner key, tenant, bucket)."""
    return [(owner, tenant, bucket) for tenant, owner, bucket in owners]


def chunk(
    number: int = 0,
    days: Collection[str] = (),
    owners: Collection[tuple[str, str, int]] = (),
    turns: Collection[tuple[str, str, str]] = (),
    counts: ChunkCounts | None = None,
    file_id: str = "file",
) -> LandedChunk:
    return LandedChunk(file_id, number, counts or ChunkCounts(), frozenset(days), frozenset(owners), tuple(turns))


def counts(landed: int = 1, **others: int) -> dict[str, int]:
    return {"landed": landed, **others}


def commit(
    ledger: Ledger, touches: Mapping[str, int], landed: int = 1, versions: Mapping[str, int] | None = None
) -> int:
    ledger.days_written({day: (touch, counts(landed)) for day, touch in touches.items()})
    return ledger.commit_days(touches, versions=versions or {"exchanges": 0}, model_set="m", at=AT)


class LedgerSuite:
    @pytest.fixture
    def ledger(self, engine: sa.Engine) -> Ledger:
        return Ledger(engine)

    # ---- landing

    def test_a_file_goes_on_where_it_stopped(self, ledger: Ledger) -> None:
        assert ledger.begin_file("f", "a 日志.jsonl", 5_000_000_000) == Progress(False, 0, 0)
        ledger.chunk_landed(chunk(0, file_id="f"))
        ledger.chunk_landed(chunk(1, file_id="f"))
        assert ledger.begin_file("f", "another name", 1) == Progress(False, 2, 0)
        ledger.end_file("f")
        assert ledger.begin_file("f", "a", 1) == Progress(True, 2, 0)
        assert ledger.begin_file("g", "a", 1) == Progress(False, 0, 0)
        assert ledger.progress("f") == Progress(True, 2, 0)
        assert ledger.progress("unknown") is None

    def test_a_file_that_grew_starts_after_the_rows_of_those_before(self, ledger: Ledger) -> None:
        ledger.begin_file("one", "a", 10)
        ledger.chunk_landed(chunk(0, file_id="one", counts=ChunkCounts(7, 7)))
        ledger.end_file("one", "last of one")
        assert ledger.begin_file("two", "a", 20, continues="one") == Progress(False, 0, 0, 7, "last of one")
        ledger.chunk_landed(chunk(0, file_id="two", counts=ChunkCounts(2, 2)))
        ledger.end_file("two", "last of two")
        assert ledger.begin_file("three", "a", 30, continues="two") == Progress(False, 0, 0, 9, "last of two")
        ledger.part_file("three")
        assert ledger.progress("three") == Progress(False, 0, 0)
        assert ledger.landed() == ChunkCounts(9, 9)

    def test_notes_of_sources(self, ledger: Ledger) -> None:
        assert ledger.source_notes([]) == {}
        ledger.begin_file("f", "a", 10)
        ledger.note_source("here", SourceNote("10:1", "f"))
        ledger.source_failed("there", "5:1", ("c.csv", "c.csv is damaged"))
        ledger.source_failed("here", "10:2", ("a", "cannot read a"))
        assert [(f.source, f.file_id, f.name, f.fault) for f in ledger.faults()] == [
            ("here", "f", "a", "cannot read a"),
            ("there", None, "c.csv", "c.csv is damaged"),
        ]
        ledger.source_failed("nothing", "7:7", None)
        ledger.note_source("here", SourceNote("10:1", "f"))
        assert [f.source for f in ledger.faults()] == ["there"], "what is no log, or was read by now, is none"
        assert ledger.source_notes(["here", "there", "nowhere"]) == {
            "here": SourceNote("10:1", "f", size=10),
            "there": SourceNote("5:1", None, fault=True),
        }
        ledger.end_file("f")
        assert ledger.source_notes(["here"])["here"].complete
        ledger.note_source("here", SourceNote("11:2", "g"))
        assert ledger.source_notes(["here"]) == {"here": SourceNote("11:2", "g")}

    def test_a_watermark_comes_with_its_chunk(self, ledger: Ledger) -> None:
        assert ledger.watermark("f") is None
        mark = Watermark({"type": "int", "value": "3"}, frozenset({"a", "b"}))
        ledger.chunk_landed(chunk(0, file_id="f"), mark)
        assert ledger.watermark("f") == mark
        ledger.chunk_landed(chunk(1, file_id="f"))
        assert ledger.watermark("f") == mark

    def test_rows_that_leave_quarantine_are_counted_where_they_went(self, ledger: Ledger) -> None:
        ledger.begin_file("f", "a", 10)
        ledger.chunk_landed(chunk(0, file_id="f", counts=ChunkCounts(10, 5, 0, {}, {"no_time": 3, "no_text": 2})))
        ledger.chunk_landed(chunk(1, file_id="f", counts=ChunkCounts(4, 4)))
        assert ledger.quarantined_chunks("f") == [0]
        left = ChunkCounts(0, 1, 1, {"heartbeat": 1}, {"no_time": 3})
        out = Readmitted("f", 0, 0, frozenset({4, 6, 9}), left, frozenset({DAY}), frozenset({A}), (("t", "1", DAY),))
        for _ in range(2):  # noted again after a kill: once
            ledger.readmitted(out)
        assert ledger.readmissions("f", 0) == [{4, 6, 9}]
        assert ledger.landed() == ChunkCounts(14, 10, 1, {"heartbeat": 1}, {"no_text": 2})
        assert [f["quarantined"] for f in ledger.files()] == [{"no_text": 2}]
        assert list(ledger.touched_days()) == [DAY]
        ledger.chunk_landed(chunk(0, [], [], [("t", "1", "2026-05-20")], file_id="g"))
        assert set(touched_days([DAY, "2026-05-20"])) <= set(ledger.touched_days())

    def test_counts_are_those_of_every_chunk_once(self, ledger: Ledger) -> None:
        assert ledger.landed() == ChunkCounts()
        assert ledger.files() == []
        ledger.begin_file("f", "b.csv", 10)
        ledger.begin_file("e", "a.csv", 20)
        first = ChunkCounts(10, 5, 2, {"heartbeat": 1}, {"no_time": 2})
        for _ in range(2):
            ledger.chunk_landed(chunk(0, file_id="f", counts=first))
        ledger.chunk_landed(chunk(1, file_id="f", counts=ChunkCounts(3, 1, 0, {"heartbeat": 2}, {})))
        assert ledger.landed() == ChunkCounts(13, 6, 2, {"heartbeat": 3}, {"no_time": 2})
        assert [(f["name"], f["size"], f["complete"], f["rows"], f["quarantined"]) for f in ledger.files()] == [
            ("a.csv", 20, False, 0, {}),
            ("b.csv", 10, False, 13, {"no_time": 2}),
        ]

    def test_a_chunk_touches_its_days_and_owners(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [DAY, NEXT], [A]))
        ledger.chunk_landed(chunk(1, [NEXT], [B]))
        touched = ledger.touched_days()
        assert list(touched) == [DAY, NEXT]
        assert touched[DAY] < touched[NEXT]
        assert ledger.day_touches([NEXT, "2026-01-01"]) == {"2026-01-01": 0, NEXT: touched[NEXT]}
        assert ledger.touched_buckets() == []  # no manifest yet: nothing could be derived
        commit(ledger, touched)
        assert ledger.touched_buckets() == [3]

    def test_a_chunk_that_is_landed_again_only_touches_again(self, ledger: Ledger) -> None:
        landed = chunk(0, [DAY], [A], [("tenant", "turn 1", DAY)], ChunkCounts(1, 1))
        ledger.chunk_landed(landed)
        before = ledger.touched_days()
        ledger.chunk_landed(landed)
        assert ledger.touched_days()[DAY] > before[DAY]
        assert ledger.landed() == ChunkCounts(1, 1)
        assert ledger.versions_elsewhere([DAY], [DAY]) == {}

    def test_one_turn_id_on_two_days_touches_both(self, ledger: Ledger) -> None:
        first, second = "2026-02-10", "2026-05-20"
        ledger.chunk_landed(chunk(0, [], [], [("t", "1", first), ("t", "2", first), ("other", "1", second)]))
        assert ledger.touched_days() == {}
        ledger.chunk_landed(chunk(1, [], [], [("t", "1", second)]))
        assert set(ledger.touched_days()) == set(touched_days([first, second]))
        assert ledger.versions_elsewhere([first], [first]) == {second: {stable_hash("t", "1")}}
        assert ledger.versions_elsewhere([second, "2026-05-21"], [second, "2026-05-21"]) == {
            first: {stable_hash("t", "1")}
        }
        assert ledger.versions_elsewhere([first, second], [first, second]) == {}
        assert ledger.versions_elsewhere(["2026-02-11"], ["2026-02-11"]) == {}
        assert ledger.versions_elsewhere([first, "2026-02-11"], ["2026-02-11"]) == {
            first: {stable_hash("t", "1")},
            second: {stable_hash("t", "1")},
        }

    def test_one_turn_id_on_two_days_of_one_chunk(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [], [("t", "1", DAY), ("t", "1", "2026-05-20"), ("t", "2", DAY)]))
        assert ledger.versions_elsewhere([DAY], [DAY]) == {"2026-05-20": {stable_hash("t", "1")}}
        assert {DAY, "2026-05-20"} <= set(ledger.touched_days())

    def test_a_third_version_touches_all_days_of_the_others(self, ledger: Ledger) -> None:
        """The version that won on a day may lose to one that lands on a third."""
        for number, day in enumerate(["2026-01-10", "2026-02-10"]):
            ledger.chunk_landed(chunk(number, [], [], [("t", "1", day)]))
        commit(ledger, ledger.touched_days())
        assert ledger.touched_days() == {}
        ledger.chunk_landed(chunk(2, [], [], [("t", "1", "2026-03-10")]))
        assert {"2026-01-10", "2026-02-10", "2026-03-10"} <= set(ledger.touched_days())
        assert set(ledger.versions_elsewhere(["2026-02-10"], ["2026-02-10"])) == {"2026-01-10", "2026-03-10"}

    def test_ten_thousand_rows_in_one_chunk(self, ledger: Ledger) -> None:
        n = 10_001
        turns = [("t", str(i), DAY) for i in range(n)]
        ledger.chunk_landed(chunk(0, [DAY], [("t", f"{i:032x}", i % 4) for i in range(n)], turns))
        ledger.chunk_landed(chunk(1, [NEXT], [], [("t", str(i), NEXT) for i in range(n)]))
        assert len(ledger.versions_elsewhere([DAY], [DAY])[NEXT]) == n
        touched = ledger.touched_days()
        assert {DAY, NEXT} <= set(touched)
        commit(ledger, touched)
        assert ledger.touched_buckets() == [0, 1, 2, 3]
        plans = [ledger.begin_derivation(bucket) for bucket in range(4)]
        assert sum(len(plan.owners) for plan in plans if plan) == n
        for plan in plans:
            assert plan is not None
            ledger.end_derivation(plan, {})
        assert ledger.touched_buckets() == []

    # ---- days

    def test_a_manifest_follows_a_table_that_was_only_rewritten(self, ledger: Ledger) -> None:
        ledger.repin("exchanges", 1, 2)  # nothing is pinned yet
        ledger.chunk_landed(chunk(0, [DAY]))
        commit(ledger, ledger.touched_days())
        pinned = ledger.manifest()
        assert pinned is not None
        name, version = next(iter(pinned.versions.items()))
        ledger.repin(name, version + 1, version + 2)
        assert ledger.manifest() == pinned
        ledger.repin(name, version, version + 1)
        moved = ledger.manifest()
        assert moved is not None
        assert moved.versions == {**pinned.versions, name: version + 1}

    def test_written_is_not_cut(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [DAY]))
        touch = ledger.touched_days()[DAY]
        assert ledger.written_days([DAY]) == {}
        ledger.days_written({DAY: (touch, counts(7, exchanges=2))})
        assert ledger.written_days([DAY, NEXT]) == {DAY: touch}
        assert ledger.draft_counts() == {DAY: counts(7, exchanges=2)}
        assert ledger.day_counts() == {}
        assert ledger.touched_days() == {DAY: touch}
        ledger.commit_days({DAY: touch}, versions={"exchanges": 4}, model_set="m", at=AT)
        assert ledger.touched_days() == {}
        assert ledger.draft_counts() == {}
        assert ledger.day_counts() == {DAY: counts(7, exchanges=2)}

    def test_a_day_without_rows_can_be_committed(self, ledger: Ledger) -> None:
        ledger.days_written({DAY: (0, counts(0))})
        assert ledger.written_days([DAY]) == {DAY: 0}
        ledger.commit_days({DAY: 0}, versions={"exchanges": 0}, model_set="m", at=AT)
        assert ledger.day_counts() == {DAY: counts(0)}
        assert ledger.touched_days() == {}

    def test_a_touch_between_read_and_commit_stays(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [DAY]))
        read = ledger.day_touches([DAY])
        ledger.chunk_landed(chunk(1, [DAY]))
        ledger.days_written({DAY: (read[DAY], counts())})
        commit(ledger, ledger.written_days([DAY]))
        assert ledger.touched_days()[DAY] > read[DAY]
        commit(ledger, ledger.touched_days())
        assert ledger.touched_days() == {}

    def test_days_landed_while_an_unknown_day_is_cut_stay(self, ledger: Ledger) -> None:
        read = ledger.day_touches([DAY])
        ledger.chunk_landed(chunk(0, [DAY]))
        commit(ledger, read)
        assert list(ledger.touched_days()) == [DAY]

    def test_a_slower_run_with_older_rows_leaves_the_day_waiting(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [DAY]))
        old = ledger.day_touches([DAY])
        ledger.chunk_landed(chunk(1, [DAY]))
        new = ledger.day_touches([DAY])
        commit(ledger, new)
        assert ledger.touched_days() == {}
        commit(ledger, old)  # its rows have replaced the newer ones in the lake
        assert ledger.touched_days() == new

    def test_a_note_of_an_older_write_changes_nothing(self, ledger: Ledger) -> None:
        """Of two runs the one with older rows wrote last: the day waits, whoever notes and commits last."""
        ledger.chunk_landed(chunk(0, [DAY]))
        old = ledger.day_touches([DAY])[DAY]
        ledger.chunk_landed(chunk(1, [DAY]))
        new = ledger.day_touches([DAY])[DAY]
        ledger.days_written({DAY: (old, counts(1))}, 8)
        ledger.days_written({DAY: (new, counts(2)), NEXT: (0, counts(0))}, 7)
        assert ledger.written_days([DAY, NEXT]) == {DAY: old, NEXT: 0}
        assert ledger.draft_counts()[DAY] == counts(1)
        ledger.commit_days({DAY: new}, versions={"exchanges": 8}, model_set="m", at=AT)
        assert ledger.touched_days() == {DAY: new}
        ledger.days_written({DAY: (new, counts(2))}, 9)
        ledger.commit_days({DAY: new}, versions={"exchanges": 9}, model_set="m", at=AT)
        assert ledger.touched_days() == {}
        assert ledger.day_counts()[DAY] == counts(2)

    def test_landed_through_is_the_end_of_the_last_day_with_rows(self, ledger: Ledger) -> None:
        assert ledger.manifest() is None
        commit(ledger, {DAY: 0}, landed=0)
        manifest = ledger.manifest()
        assert manifest is not None
        assert manifest.landed_through == day_start(NEXT)  # no rows anywhere: the day itself
        commit(ledger, {"2026-02-20": 0}, landed=3)
        commit(ledger, {"2026-03-20": 0}, landed=0)
        commit(ledger, {"2026-01-20": 0}, landed=3)
        manifest = ledger.manifest()
        assert manifest is not None
        assert manifest.landed_through == datetime(2026, 2, 21, tzinfo=UTC)
        ledger.days_written({"2026-06-01": (0, counts(9))})  # written, not committed
        commit(ledger, {"2026-01-21": 0}, landed=3)
        manifest = ledger.manifest()
        assert manifest is not None
        assert manifest.landed_through == datetime(2026, 2, 21, tzinfo=UTC)

    def test_versions_of_a_manifest_only_grow(self, ledger: Ledger) -> None:
        first = commit(ledger, {DAY: 0}, versions={"exchanges": 5, "intents": 2})
        second = commit(ledger, {NEXT: 0}, versions={"exchanges": 3, "intents": 4, "emotions": 0})
        assert second > first
        manifest = ledger.manifest()
        assert manifest is not None
        assert manifest.manifest_id == second
        assert manifest.model_set == "m"
        assert manifest.versions == {"exchanges": 5, "intents": 4, "emotions": 0}

    # ---- announcements

    def waiting(self, ledger: Ledger) -> set[str]:
        plan = ledger.begin_derivation(3)
        return set(plan.owners) if plan else set()

    def derive(self, ledger: Ledger) -> None:
        plan = ledger.begin_derivation(3)
        assert plan is not None
        ledger.end_derivation(plan, {})

    def test_announced_owners_are_touched_by_the_commit(self, ledger: Ledger) -> None:
        numbers = ledger.announce({DAY: announced(A, B)})
        commit(ledger, {NEXT: 0})
        assert ledger.touched_buckets() == []  # of another day
        ledger.announced_written(numbers, "exchanges", 1)
        commit(ledger, {DAY: 0}, versions={"exchanges": 1})
        assert self.waiting(ledger) == {"owner a", "owner b"}
        self.derive(ledger)
        commit(ledger, {DAY: 0}, versions={"exchanges": 1})
        assert self.waiting(ledger) == set()

    def test_an_announcement_whose_writer_was_killed_stays(self, ledger: Ledger) -> None:
        ledger.announce({DAY: announced(A)})  # killed before or after it wrote: nobody knows
        commit(ledger, {DAY: 0}, versions={"exchanges": 9})
        assert self.waiting(ledger) == {"owner a"}
        self.derive(ledger)
        commit(ledger, {DAY: 0}, versions={"exchanges": 9})
        assert self.waiting(ledger) == {"owner a"}

    def test_another_runs_commit_does_not_consume_what_it_does_not_pin(self, ledger: Ledger) -> None:
        numbers = ledger.announce({DAY: announced(A)})
        commit(ledger, {DAY: 0}, versions={"exchanges": 4})  # another run of the day
        self.derive(ledger)
        ledger.announced_written(numbers, "exchanges", 5)
        commit(ledger, {DAY: 0}, versions={"exchanges": 4, "intents": 7})  # it had looked before the write
        self.derive(ledger)
        commit(ledger, {DAY: 0}, versions={"exchanges": 5})
        assert self.waiting(ledger) == {"owner a"}
        self.derive(ledger)
        commit(ledger, {DAY: 0}, versions={"exchanges": 5})
        assert self.waiting(ledger) == set()

    def test_two_announcements_of_one_owner_are_two(self, ledger: Ledger) -> None:
        one, two = (ledger.announce({DAY: announced(A)}) for _ in range(2))
        assert one != two
        ledger.announced_written(one, "exchanges", 1)
        commit(ledger, {DAY: 0}, versions={"exchanges": 1, "intents": 0})
        self.derive(ledger)
        ledger.announced_written(two, "intents", 1)
        commit(ledger, {DAY: 0}, versions={"exchanges": 1, "intents": 1})
        assert self.waiting(ledger) == {"owner a"}
        self.derive(ledger)
        commit(ledger, {DAY: 0}, versions={"exchanges": 1, "intents": 1})
        assert self.waiting(ledger) == set()

    # ---- buckets

    def test_no_derivation_without_a_manifest(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [A]))
        assert ledger.begin_derivation(3) is None
        assert ledger.plan(3) is None

    def test_a_plan_is_what_its_steps_read(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [A, ("tenant", "elsewhere", 4)]))
        commit(ledger, {DAY: 0}, versions={"exchanges": 2})
        plan = ledger.begin_derivation(3)
        assert plan is not None
        assert plan == ledger.plan(3)
        assert (plan.bucket, plan.as_of, plan.model_set, plan.versions) == (3, day_start(NEXT), "m", {"exchanges": 2})
        assert set(plan.owners) == {"owner a"}
        assert ledger.plan(4) is None

    def test_an_owner_touched_meanwhile_stays_waiting(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [A, B]))
        commit(ledger, {DAY: 0})
        plan = ledger.begin_derivation(3)
        assert plan is not None
        ledger.chunk_landed(chunk(1, [], [B]))
        ledger.end_derivation(plan, {})
        assert ledger.touched_buckets() == [3]
        assert self.waiting(ledger) == {"owner b"}

    def test_everything_says_whether_whole_partitions_may_be_replaced(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [A, B]))
        commit(ledger, {DAY: 0})
        plan = ledger.begin_derivation(3)
        assert plan is not None
        assert plan.everything
        ledger.end_derivation(plan, {})
        ledger.chunk_landed(chunk(1, [], [A]))
        some = ledger.begin_derivation(3)
        assert some is not None
        assert (set(some.owners), some.everything) == ({"owner a"}, False)
        every = ledger.begin_derivation(3, everything=True)
        assert every is not None
        assert (set(every.owners), every.everything) == ({"owner a", "owner b"}, True)
        ledger.end_derivation(every, {})
        assert self.waiting(ledger) == set()

    def test_an_empty_bucket(self, ledger: Ledger) -> None:
        commit(ledger, {DAY: 0})
        plan = ledger.begin_derivation(7)
        assert plan is not None
        assert plan.owners == {}
        ledger.end_derivation(plan, {})
        assert ledger.touched_buckets() == []

    def test_a_window_that_closes_makes_its_owner_wait(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [A, B]))
        commit(ledger, {DAY: 0})
        plan = ledger.begin_derivation(3)
        assert plan is not None
        closes = datetime(2026, 2, 17, 12, tzinfo=UTC)
        ledger.end_derivation(plan, {"owner a": closes.astimezone(UTC), "owner b": None})
        assert ledger.touched_buckets() == []
        commit(ledger, {"2026-02-16": 0})  # landed through the 17th, 00:00
        assert ledger.touched_buckets() == []
        commit(ledger, {"2026-02-17": 0})
        assert ledger.touched_buckets() == [3]
        plan = ledger.begin_derivation(3)
        assert plan is not None
        assert set(plan.owners) == {"owner a"}
        ledger.end_derivation(plan, {"owner a": plan.as_of + timedelta(days=1)})
        assert ledger.touched_buckets() == []

    def test_a_window_that_closes_exactly_at_the_as_of_is_closed(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [A]))
        commit(ledger, {DAY: 0})
        plan = ledger.begin_derivation(3)
        assert plan is not None
        ledger.end_derivation(plan, {"owner a": datetime(2026, 2, 12, tzinfo=UTC)})
        commit(ledger, {NEXT: 0})
        assert ledger.touched_buckets() == [3]

    def test_a_time_without_a_zone_is_refused(self, ledger: Ledger) -> None:
        ledger.chunk_landed(chunk(0, [], [A]))
        commit(ledger, {DAY: 0})
        plan = ledger.begin_derivation(3)
        assert plan is not None
        with pytest.raises(PermanentError):
            ledger.end_derivation(plan, {"owner a": datetime(2026, 1, 1)})  # noqa: DTZ001
        assert ledger.touched_buckets() == [3]
