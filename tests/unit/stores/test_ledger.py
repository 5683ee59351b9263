"""The ledger on SQLite: the suite shared with the contract tests, and any order of runs, kills and derivations."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from suites.ledger_suite import AT, LedgerSuite, chunk

from memory_pipelines.errors import SettingError
from memory_pipelines.stores import database
from memory_pipelines.stores.ledger import Ledger, Plan

DAYS = ("2026-02-10", "2026-02-11")
OWNERS = ("a", "b")
Rows = dict[str, dict[str, int]]
"""Day → owner → what was last said; a derived owner is a function of its rows of all days."""


class TestLedger(LedgerSuite):
    pass


class Run:
    """One day job over some days, a step at a time: read, announce, write, confirm, note, look, commit."""

    def __init__(self, world: "Runs", days: tuple[str, ...]) -> None:
        self.world, self.days, self.step = world, days, 0

    def go(self) -> bool:
        """Do the next step; True after the last."""
        ledger, lake = self.world.ledger, self.world.lake
        if self.step == 0:
            self.touches = ledger.day_touches(self.days)
            self.rows = {day: dict(self.world.landed[day]) for day in self.days}
        elif self.step == 1:
            self.numbers = []
            for day in self.days:
                changed = {o for o in OWNERS if lake[-1][day].get(o) != self.rows[day].get(o)}
                if changed:
                    self.numbers += ledger.announce({day: [(o, "t", 0) for o in changed]})
        elif self.step == 2:
            lake.append({**lake[-1], **self.rows})
            self.version = len(lake) - 1
        elif self.step == 3:
            ledger.announced_written(self.numbers, "exchanges", self.version)
        elif self.step == 4:
            counts = {d: (self.touches[d], {"landed": sum(self.rows[d].values())}) for d in self.days}
            ledger.days_written(counts, self.version)
        elif self.step == 5:
            self.written = ledger.written_days(self.days)
            self.pinned = len(lake) - 1
        elif self.step == 6:
            ledger.commit_days(self.written, versions={"exchanges": self.pinned}, model_set="m", at=AT)
        self.step += 1
        return self.step == 7


class Runs(RuleBasedStateMachine):
    """Files land, day jobs overlap and are killed (and then run again), owners are derived: no change is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = database.connect("sqlite://")
        self.ledger = Ledger(self.engine)
        self.landed: Rows = {day: {} for day in DAYS}
        self.lake: list[Rows] = [{day: {} for day in DAYS}]
        self.derived: dict[str, Any] = {}
        self.runs: list[Run] = []
        self.plan: Plan | None = None
        self.view: dict[str, Any] = {}
        self.again: list[tuple[str, ...]] = []
        self.chunks = 0
        self.versions = -1

    @rule(day=st.sampled_from(DAYS), owner=st.sampled_from(OWNERS))
    def land(self, day: str, owner: str) -> None:
        self.landed[day][owner] = self.landed[day].get(owner, 0) + 1
        self.ledger.chunk_landed(chunk(self.chunks, [day]))
        self.chunks += 1

    @precondition(lambda self: len(self.runs) < 2)
    @rule(days=st.sampled_from([DAYS[:1], DAYS]))
    def start(self, days: tuple[str, ...]) -> None:
        self.runs.append(Run(self, days))

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 1), steps=st.sampled_from([1, 2, 3, 7]))
    def go_on(self, which: int, steps: int) -> None:
        run = self.runs[which % len(self.runs)]
        for _ in range(steps):
            if run.go():
                self.runs.remove(run)
                break

    @rule(days=st.sampled_from([DAYS, DAYS[:1]]))
    def whole(self, days: tuple[str, ...]) -> None:
        run = Run(self, days)
        while not run.go():
            pass

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 1))
    def kill(self, which: int) -> None:
        run = self.runs.pop(which % len(self.runs))
        self.again.append(run.days)

    @precondition(lambda self: self.plan is None)
    @rule()
    def begin(self) -> None:
        self.plan = self.ledger.begin_derivation(0)
        if self.plan is not None:
            rows = self.lake[self.plan.versions["exchanges"]]
            self.view = {o: [rows[day].get(o) for day in DAYS] for o in self.plan.owners}

    @precondition(lambda self: self.plan is not None)
    @rule(killed=st.sampled_from([False, False, True]))
    def end(self, killed: bool) -> None:
        assert self.plan is not None
        if not killed:
            self.derived |= self.view
            self.ledger.end_derivation(self.plan, {})
        self.plan = None

    @invariant()
    def versions_only_grow(self) -> None:
        manifest = self.ledger.manifest()
        if manifest is not None:
            assert manifest.versions["exchanges"] >= self.versions
            self.versions = manifest.versions["exchanges"]

    def teardown(self) -> None:
        """Everything that was begun is ended, killed runs are run again, what waits is done: then all is derived."""
        while self.runs:
            self.go_on(0, 7)
        for days in self.again:
            self.whole(days)
        self.settle()
        self.engine.dispose()

    def settle(self) -> None:
        for _ in range(3):
            if waiting := tuple(self.ledger.touched_days()):
                self.whole(waiting)
        assert self.ledger.touched_days() == {}
        if self.plan is not None:
            self.end(killed=True)
        self.begin()
        if self.plan is not None:
            self.end(killed=False)
        assert self.ledger.touched_buckets() == []
        said = {o for rows in self.landed.values() for o in rows}
        assert self.derived == {o: [self.landed[day].get(o) for day in DAYS] for o in said}


Runs.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, derandomize=True)
TestRuns = Runs.TestCase


def orders(first: int, second: int) -> Iterator[str]:
    """Every order of ``first`` steps of A and ``second`` steps of B."""
    for places in combinations(range(first + second), first):
        yield "".join("A" if place in places else "B" for place in range(first + second))


@pytest.mark.parametrize("steps", [7, 5, 4, 3, 2])
def test_two_runs_of_one_day_in_every_order(steps: int) -> None:
    """A is killed after ``steps`` of its 7 and run again at the end; rows land while they run; owners are derived
    after each commit."""
    world = Runs()
    for number, order in enumerate(orders(steps, 4)):
        if number % 50 == 49:  # what killed runs announced is kept, and slows down what follows
            world.engine.dispose()
            world = Runs()
        world.land(DAYS[0], "a")
        runs = {"A": Run(world, DAYS[:1]), "B": Run(world, DAYS[:1])}
        for i, name in enumerate(order):
            # B does its last four steps at once: else there are too many orders
            for _ in range(4 if name == "B" and runs["B"].step == 3 else 1):
                runs[name].go()
            if i == 0:
                world.land(DAYS[0], "a")
            if runs[name].step == 7:
                world.begin()
                world.end(killed=False)
        if steps < 7:
            world.whole(DAYS[:1])
        world.settle()
    world.engine.dispose()


def test_a_lake_keeps_its_number_of_buckets() -> None:
    ledger = Ledger(database.connect("sqlite://"))
    ledger.fix_buckets(8)
    ledger.fix_buckets(8)
    with pytest.raises(SettingError, match="cut into 8 buckets: set MEMORY_PIPELINES_BUCKETS"):
        ledger.fix_buckets(4)


def test_nights_only_go_on() -> None:
    ledger = Ledger(database.connect("sqlite://"))
    assert ledger.last_night() is None
    for night in (AT, AT - timedelta(days=1)):
        ledger.note_night(night)
        assert ledger.last_night() == AT.replace(microsecond=0)
    ledger.note_night(AT + timedelta(days=1))
    assert ledger.last_night() == (AT + timedelta(days=1)).replace(microsecond=0)
