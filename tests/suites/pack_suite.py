"""What the shelf of packs promises, on every engine. ``engine`` is a fixture of the inheriting module."""

import pytest
import sqlalchemy as sa
from suites.publish_world import AT

from memory_pipelines.model import Owner
from memory_pipelines.stores.batches import Batch, OwnerChange
from memory_pipelines.stores.packs import Kept, PackShelf
from memory_pipelines.stores.relational import PostgresAuthority

ALICE, BOB = Owner("acme", "u:李雷"), Owner("acme", "u:bob")
BODY = bytes(range(256)) * 5000


def commit(engine: sa.Engine, *owners: Owner) -> None:
    """A new epoch of the owners."""
    authority = PostgresAuthority(engine)
    batch = Batch("batch", 1, "preparing", tuple(OwnerChange(owner) for owner in owners))
    authority.prepare(batch, [], AT)
    authority.commit(batch, AT)
    authority.finish(batch)


class PackSuite:
    @pytest.fixture
    def packs(self, engine: sa.Engine) -> PackShelf:
        return PackShelf(engine)

    def test_a_pack_is_given_for_its_epoch_only(self, packs: PackShelf, engine: sa.Engine) -> None:
        authority = PostgresAuthority(engine)
        commit(engine, ALICE)
        assert (packs.get(ALICE, 1), packs.newest([ALICE.key]), authority.person(ALICE).packed) == (None, {}, False)
        assert packs.put([Kept(ALICE, 1, "model/1", BODY, 3)]) == {ALICE}
        assert packs.get(ALICE, 1) == BODY
        assert packs.get(ALICE, 0) is packs.get(ALICE, 2) is packs.get(BOB, 1) is None
        assert packs.get(Owner("rival", ALICE.subject), 1) is None
        assert authority.person(ALICE).packed
        commit(engine, ALICE)
        assert not authority.person(ALICE).packed
        assert packs.newest([ALICE.key, BOB.key]) == {ALICE.key: BODY}
        assert packs.totals() == {"packs": 1, "bytes": len(BODY), "left_out": 3}

    def test_what_was_overtaken_or_erased_is_not_kept(self, packs: PackShelf, engine: sa.Engine) -> None:
        commit(engine, ALICE)
        commit(engine, ALICE)
        assert packs.put([Kept(ALICE, 1, "model/1", BODY, 0), Kept(BOB, 1, "model/1", BODY, 0)]) == set()
        assert packs.newest([ALICE.key, BOB.key]) == {}
        assert packs.put([Kept(BOB, 1, "model/1", BODY, 0), Kept(ALICE, 2, "model/1", b"one", 0)]) == {ALICE}
        assert packs.put([Kept(ALICE, 2, "model/1", b"two", 0)]) == {ALICE}
        assert packs.get(ALICE, 2) == b"two"

    def test_stale_are_those_without_a_pack_of_their_epoch_and_form(self, packs: PackShelf, engine: sa.Engine) -> None:
        commit(engine, ALICE, BOB)
        both = sorted((ALICE, BOB), key=lambda owner: owner.key)
        assert packs.stale("model/1") == packs.stale("model/1", [ALICE.key, BOB.key, "nobody"]) == both
        assert packs.put([Kept(ALICE, 1, "model/1", BODY, 0)]) == {ALICE}
        assert packs.stale("model/1") == [BOB]
        assert packs.stale("model/1", [ALICE.key]) == packs.stale("model/1", []) == []
        assert packs.stale("model/2", [ALICE.key]) == [ALICE]
        commit(engine, ALICE)
        assert packs.stale("model/1", [ALICE.key]) == [ALICE]

    def test_an_empty_body_says_that_there_is_none(self, packs: PackShelf, engine: sa.Engine) -> None:
        commit(engine, ALICE)
        assert packs.put([Kept(ALICE, 1, "model/1", b"", 9)]) == {ALICE}
        assert (packs.get(ALICE, 1), packs.newest([ALICE.key])) == (None, {})
        assert not PostgresAuthority(engine).person(ALICE).packed
        assert packs.stale("model/1") == []
        assert packs.totals() == {"packs": 0, "bytes": 0, "left_out": 9}
        packs.clear()
        assert packs.stale("model/1") == [ALICE]
