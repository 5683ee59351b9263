"""What the ledger of uses, as recall writes it, promises on every engine. ``engine`` is the inheriting module's."""

from datetime import timedelta

import pytest
import sqlalchemy as sa
from suites.publish_world import AT, DIMENSION, Stores, draft, state

from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.accesses import AccessLog
from memory_pipelines.stores.authority import AccessKind
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.stores.feedback import UseLedger
from memory_pipelines.stores.relational import PostgresAuthority

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
ANN, BOB = Owner("acme", "u:ann"), Owner("acme", "u:bob")


class FeedbackSuite:
    @pytest.fixture
    def authority(self, engine: sa.Engine) -> PostgresAuthority:
        return PostgresAuthority(engine, lambda: AT)

    @pytest.fixture
    def ledger(self, engine: sa.Engine, authority: PostgresAuthority) -> UseLedger:
        """Of two people with three memories each; the third says what the second says, and an answer is in all."""
        vectors = MemoryVectors()
        vectors.ensure(DIMENSION)
        stores = Stores(engine, authority, vectors, MemoryGraph(), MemoryHot(), MemoryCold())
        turns = (["t1", "answer"], ["t2", "answer"], ["t2", "t3", "answer"])
        states = []
        for owner in (ANN, BOB):
            name = owner.subject
            drafts = [draft(owner, n, memory_id=f"{name}{n}", source_turn_ids=t) for n, t in enumerate(turns)]
            states.append(state(owner, drafts, {"s1": ["t1"], "s2": ["t2"], "s3": ["t2", "t3"]}))
        stores.publish(0, states, AT)
        return UseLedger(engine, authority)

    def suppressions(self, engine: sa.Engine) -> dict[tuple[str, str], object]:
        table = schema.suppressions
        with engine.begin() as connection:
            return {(row.owner, row.turn_id): row.until for row in connection.execute(sa.select(table))}

    def test_a_use_is_noted_once(self, ledger: UseLedger, engine: sa.Engine) -> None:
        for _ in range(2):
            ledger.tell(ANN, ["t1", "t2", "t1"], AccessKind.ECHO, AT)
        ledger.tell(ANN, [], AccessKind.ECHO, AT)
        assert AccessLog(engine).by_owner([ANN.key]) == {ANN.key: {"t1": [(AT, "echo")], "t2": [(AT, "echo")]}}
        assert self.suppressions(engine) == {}

    def test_a_denial_hides_what_shares_an_own_turn_and_nothing_else(
        self, ledger: UseLedger, authority: PostgresAuthority, engine: sa.Engine
    ) -> None:
        ledger.tell(ANN, ["t2", "answer"], AccessKind.NEGATED, AT, AT + 30 * DAY)
        assert self.suppressions(engine) == {(ANN.key, "t2"): AT + 30 * DAY}
        assert ledger.person(ANN).suppressed == {"u:ann1", "u:ann2"}
        assert ledger.person(BOB).suppressed == frozenset()
        assert authority.person(ANN, AT + 30 * DAY).suppressed == frozenset()

    def test_turns_of_no_slice_are_hidden_as_they_are(self, ledger: UseLedger, engine: sa.Engine) -> None:
        ledger.tell(ANN, ["answer"], AccessKind.CORRECTED, AT, AT + DAY)
        assert self.suppressions(engine) == {(ANN.key, "answer"): AT + DAY}

    def test_the_longer_suppression_stands(self, ledger: UseLedger, engine: sa.Engine) -> None:
        for days in (9, 3, 12, 1):
            ledger.tell(ANN, ["t1"], AccessKind.NEGATED, AT + days * MINUTE, AT + days * DAY)
        assert self.suppressions(engine) == {(ANN.key, "t1"): AT + 12 * DAY}

    def test_what_was_presented_in_a_time(self, ledger: UseLedger) -> None:
        ledger.tell(ANN, ["t1"], AccessKind.PRESENTED, AT)
        ledger.tell(ANN, ["t2"], AccessKind.PRESENTED, AT + MINUTE)
        ledger.tell(ANN, ["t3"], AccessKind.ECHO, AT)
        ledger.tell(BOB, ["t1"], AccessKind.PRESENTED, AT)
        assert ledger.presented([ANN], AT, AT + MINUTE) == {ANN: frozenset({"t1", "t2"})}
        assert ledger.presented([ANN, BOB], AT, AT) == {ANN: frozenset({"t1"}), BOB: frozenset({"t1"})}
        assert ledger.presented([ANN], AT + 2 * MINUTE, AT + DAY) == {}

    def test_memories_by_turn_and_by_id_are_the_owners_own(self, ledger: UseLedger) -> None:
        assert {m.memory_id for m in ledger.holding(ANN, ["t2"])} == {"u:ann1", "u:ann2"}
        assert ledger.holding(ANN, ["t9"]) == ledger.holding(ANN, []) == []
        ids = ["u:ann0", "u:bob1", "nobody"]
        assert {m.memory_id for m in ledger.shown([ANN], ids)} == {"u:ann0"}
        assert {m.memory_id for m in ledger.shown([ANN, BOB], ids)} == {"u:ann0", "u:bob1"}
