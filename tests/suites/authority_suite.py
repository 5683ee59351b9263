"""What the authority promises to readers. ``engine`` is a fixture of each module that inherits this; it is empty."""

import traceback
from datetime import timedelta

import pytest
import sqlalchemy as sa
from suites.publish_world import AT, LATER, draft, world

from memory_pipelines.errors import PermanentError
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema, statements
from memory_pipelines.stores.authority import Person, StoredMemory
from memory_pipelines.stores.batches import Batch, OwnerChange, Pointer
from memory_pipelines.stores.relational import PostgresAuthority


def change(owner: Owner, *memories: tuple[str, str, str], **others: object) -> OwnerChange:
    return OwnerChange(owner, tuple(Pointer(*memory) for memory in memories), **others)  # type: ignore[arg-type]


def row(owner: Owner, number: int, version: str = "v1", **payload: object) -> dict[str, object]:
    return {**draft(owner, number, **payload).payload, "version": version, "places": {}}  # type: ignore[arg-type]


class AuthoritySuite:
    @pytest.fixture
    def authority(self, engine: sa.Engine) -> PostgresAuthority:
        return PostgresAuthority(engine)

    @pytest.fixture
    def owner(self) -> Owner:
        return world().owners[0]

    def show(
        self, authority: PostgresAuthority, owner: Owner, *numbers: int, tier: str = "hot", **others: object
    ) -> list[str]:
        rows = [row(owner, n) for n in numbers]
        ids = [str(r["memory_id"]) for r in rows]
        batch = Batch("batch", 1, "preparing", (change(owner, *((i, "v1", tier) for i in ids), **others),))
        authority.prepare(batch, rows, AT)
        authority.commit(batch, AT)
        authority.finish(batch)
        return ids

    def test_an_unknown_person_has_epoch_0_and_nothing(self, authority: PostgresAuthority, owner: Owner) -> None:
        assert authority.person(owner) == Person(owner, 0, None, frozenset())
        assert authority.visible(owner) == []
        assert authority.owners() == []
        assert authority.counts() == {"memories": 0, "people": 0, "batches": 0}
        assert authority.redirects(owner, "slice") == []
        assert authority.people([]) == authority.pointers([]) == authority.states([]) == authority.visible_of([]) == {}

    def test_prepared_is_not_visible_and_committed_is(self, authority: PostgresAuthority, owner: Owner) -> None:
        batch = Batch(
            "b", 1, "preparing", (change(owner, ("m", "v1", "hot"), graph_version="g", slices=(("s", "t"),)),)
        )
        authority.prepare(batch, [row(owner, 1) | {"memory_id": "m"}], AT)
        assert authority.person(owner).epoch == 0
        assert authority.visible(owner) == []
        assert authority.open_batches() == [batch]
        assert authority.counts()["batches"] == 1
        authority.commit(batch, AT)
        authority.commit(batch, LATER)  # once more: nothing changes
        assert authority.person(owner) == Person(owner, 1, "g", frozenset())
        assert [m.entry_id for m in authority.visible(owner)] == ["m.v1"]
        assert authority.visible(owner)[0].admitted_at == AT
        assert [b.state for b in authority.open_batches(1)] == ["committed"]
        assert authority.open_batches(2) == []
        authority.finish(batch)
        authority.finish(batch)
        assert authority.open_batches() == []

    def test_every_column_comes_back_as_it_went(self, authority: PostgresAuthority, owner: Owner) -> None:
        payload = row(
            owner,
            1,
            words='it\'s 100 % "sure"\n\\ 顺丰 😀' + "长" * 20_000,
            predicate="likes",
            value="茶",
            structured='{"a": "茶"}',
            confidence=0.1234,
            valid_from=AT - timedelta(days=900),
            valid_to=AT + timedelta(microseconds=1),
            expires_at=LATER,
            entities=[],
            source_turn_ids=["1", "二", "3"],
        )
        batch = Batch("b", 1, "preparing", (change(owner, (str(payload["memory_id"]), "v1", "warm")),))
        authority.prepare(batch, [payload], AT)
        authority.commit(batch, AT)
        (found,) = authority.visible(owner)
        lists = {n: tuple(payload[n]) for n in ("entities", "slice_ids", "source_turn_ids", "stores")}  # type: ignore[arg-type]
        names = {n: v for n, v in payload.items() if n not in ("owner", "tenant", "subject", "places")}
        assert found == StoredMemory(owner=owner, tier="warm", admitted_at=AT, **{**names, **lists})  # type: ignore[arg-type]

    def test_visible_is_newest_first_then_by_id(self, authority: PostgresAuthority, owner: Owner) -> None:
        rows = [
            row(owner, 1) | {"memory_id": name, "occurred_at": at} for name, at in (("b", AT), ("a", AT), ("c", LATER))
        ]
        batch = Batch("b", 1, "preparing", (change(owner, *((n, "v1", "hot") for n in "abc")),))
        authority.prepare(batch, rows, AT)
        authority.commit(batch, AT)
        assert [m.memory_id for m in authority.visible(owner)] == ["c", "a", "b"]

    def test_nothing_of_another_tenant_or_subject(self, authority: PostgresAuthority, owner: Owner) -> None:
        self.show(authority, owner, 1, 2, slices=(("s", "t"),), graph_version="g")
        for other in (Owner("another tenant", owner.subject), Owner(owner.tenant, "u:another")):
            assert authority.visible(other) == []
            assert authority.person(other) == Person(other, 0, None, frozenset())
            assert authority.redirects(other, "s") == []
            assert authority.people([other.key]) == authority.current_slices([other.key]) == {}

    def test_suppressed_turns_suppress_the_memories_that_rest_on_them(
        self, authority: PostgresAuthority, engine: sa.Engine, owner: Owner
    ) -> None:
        ids = self.show(authority, owner, 1, 2, 3)
        with engine.begin() as connection:
            rows = [("turn-1", LATER), ("turn-2", LATER + timedelta(days=9)), ("no memory's", LATER)]
            statements.upsert(
                connection, schema.suppressions, [{"owner": owner.key, "turn_id": t, "until": u} for t, u in rows]
            )
            statements.upsert(connection, schema.suppressions, [{"owner": "x", "turn_id": "turn-3", "until": LATER}])
        assert authority.person(owner, AT).suppressed == {ids[0], ids[1]}
        assert authority.person(owner, LATER).suppressed == {ids[1]}
        assert authority.person(owner, LATER + timedelta(days=9)).suppressed == frozenset()
        assert authority.person(Owner("another", owner.subject), AT).suppressed == frozenset()

    def test_without_an_as_of_it_is_now(self, authority: PostgresAuthority, engine: sa.Engine, owner: Owner) -> None:
        ids = self.show(authority, owner, 1, 2)
        with engine.begin() as connection:
            past, future = AT.replace(year=2000), AT.replace(year=2900)
            rows = [{"owner": owner.key, "turn_id": "turn-1", "until": past}]
            rows.append({"owner": owner.key, "turn_id": "turn-2", "until": future})
            statements.upsert(connection, schema.suppressions, rows)
        assert authority.person(owner).suppressed == {ids[1]}

    def test_counts_routes_and_graphs(self, authority: PostgresAuthority, owner: Owner) -> None:
        hot = self.show(authority, owner, 1, 2, graph_version="g")
        self.show(authority, owner, 3, tier="cold", graph_version="g")
        other = Owner(owner.tenant, "u:other")
        self.show(authority, other, 1, tier="warm")
        assert authority.counts() == {
            "memories": 4,
            "people": 2,
            "batches": 0,
            "episodic": 4,
            "hot": 2,
            "warm": 1,
            "cold": 1,
        }
        assert authority.graphs() == {owner.key: "g"}
        assert set(authority.owners()) == {owner, other}
        assert authority.routed("vector")[owner.key] == {f"{m}.v1" for m in hot}
        assert authority.routed("nowhere") == {}
        assert authority.people([owner.key, other.key, "x"]) == {owner.key: owner, other.key: other}
        assert authority.states([owner.key, other.key, "x"]) == {owner.key: (2, "g"), other.key: (1, None)}
        stranger = Owner("rival", owner.subject)
        everybody = {one: authority.visible(one) for one in (owner, other, stranger)}
        assert authority.visible_of([owner, other, stranger]) == everybody
        assert authority.sizes([owner.key, stranger.key]) == {owner.key: len(everybody[owner])}
        assert authority.pointers([other.key])[other.key] == [
            Pointer(str(draft(other, 1).payload["memory_id"]), "v1", "warm")
        ]

    def test_a_rollback_keeps_the_versions_that_readers_see(self, authority: PostgresAuthority, owner: Owner) -> None:
        ids = self.show(authority, owner, 1, 2)
        moved = Batch("b", 1, "preparing", (change(owner, (ids[0], "v1", "warm"), (ids[1], "v2", "hot")),))
        authority.prepare(moved, [row(owner, 2, "v2")], AT)
        authority.roll_back(moved)
        assert [m.entry_id for m in authority.visible(owner)] == [f"{ids[0]}.v1", f"{ids[1]}.v1"]
        assert [m.tier for m in authority.visible(owner)] == ["hot", "hot"]
        assert authority.open_batches() == []

    def test_ten_thousand_memories_of_one_owner(self, authority: PostgresAuthority, owner: Owner) -> None:
        numbers = range(10_001)
        ids = self.show(authority, owner, *numbers, slices=tuple((f"s{n}", f"t{n}") for n in numbers))
        assert {m.memory_id for m in authority.visible(owner)} == set(ids)
        assert len(authority.current_slices([owner.key])[owner.key]) == 10_001
        hidden = Batch("h", 1, "preparing", (change(owner, hide=tuple(ids), superseded=tuple((i, "v1") for i in ids)),))
        authority.prepare(hidden, [], AT)
        authority.commit(hidden, AT)
        authority.finish(hidden)
        assert authority.visible(owner) == []
        assert authority.current_slices([owner.key]) == {}
        assert authority.counts()["memories"] == 0

    def test_more_owners_than_fit_a_statement(self, authority: PostgresAuthority, owner: Owner) -> None:
        self.show(authority, owner, 1, graph_version="g", slices=(("s", "t"),))
        keys = [f"{i:032x}" for i in range(12_000)] + [owner.key]
        assert set(authority.people(keys)) == {owner.key}
        assert set(authority.pointers(keys)) == {owner.key}
        assert set(authority.states(keys)) == {owner.key}
        assert set(authority.current_slices(keys)) == {owner.key}

    @pytest.mark.parametrize("bad", [{"summary": None, "text": "a secret 秘密"}, {"text": "a secret \ud83d 秘密"}])
    def test_a_refused_row_is_not_in_the_error(
        self, authority: PostgresAuthority, owner: Owner, bad: dict[str, object]
    ) -> None:
        with pytest.raises(PermanentError, match="refuses a statement") as error:
            authority.prepare(Batch("b", 1, "preparing"), [row(owner, 1) | bad], AT)
        assert_silent(error.value, "secret", "秘密", owner.subject, owner.tenant)
        assert authority.open_batches() == []


def assert_silent(error: BaseException, *words: str) -> None:
    """Neither the error nor what is shown with it holds any of the words."""
    shown = "".join(traceback.format_exception(error))
    assert [word for word in words if word in str(error) or word in shown] == []
