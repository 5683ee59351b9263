"""What publishing promises, whatever stores serve it. ``stores`` is a fixture of each module that inherits this."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from suites.publish_world import AT, LATER, Faults, Killed, Stores, World, draft, embed, expected, state, world

from memory_pipelines.errors import StoreUnavailableError, TransientError
from memory_pipelines.model import Owner, Tier
from memory_pipelines.stores import publish
from memory_pipelines.stores.base import Vector, cold_key
from memory_pipelines.stores.publish import OwnerState

PREPARE = ["authority.prepare", "vectors.upsert", "graph.write", "cold.archive"]
FINISH = ["vectors.delete", "graph.drop", "cold.delete", "hot.delete", "authority.finish"]


def unavailable() -> StoreUnavailableError:
    return StoreUnavailableError("a store", "A_SETTING", "Timeout")


class PublishSuite:
    """One owner or a few, one publish after the other."""

    @pytest.fixture
    def at(self) -> World:
        return world()

    def test_what_is_published_is_what_is_read(self, stores: Stores, at: World) -> None:
        done = stores.publish(at.bucket, at.old)
        assert [stores.read(s.owner) for s in at.old] == [expected(s) for s in at.old]
        assert stores.read(at.owners[3]) == expected(OwnerState(at.owners[3]))
        stores.assert_clean(at.bucket, at.owners)
        assert vars(done) == {
            "owners": 5,
            "unchanged_owners": 0,
            "shown": 13,
            "hidden": 0,
            "vectors": 8,
            "graphs": 5,
            "archived": 4,
        }
        changed = stores.publish(at.bucket, at.new, LATER)
        assert [stores.read(s.owner) for s in at.new] == [expected(s) for s in at.new]
        stores.assert_clean(at.bucket, at.owners)
        assert vars(changed) == {
            "owners": 6,
            "unchanged_owners": 1,
            "shown": 9,
            "hidden": 3,
            "vectors": 4,
            "graphs": 2,
            "archived": 3,
        }

    def test_the_same_states_again_write_nothing(self, stores: Stores, at: World) -> None:
        stores.publish(at.bucket, at.old)
        faults = Faults()
        done = stores.publish(at.bucket, list(reversed(at.old)), LATER, faults)
        assert faults.calls == []
        assert (done.owners, done.unchanged_owners) == (5, 5)
        assert {stores.authority.person(s.owner).epoch for s in at.old} == {1}

    def test_an_unknown_owner_without_rows_is_not_published(self, stores: Stores, at: World) -> None:
        faults = Faults()
        stores.publish(at.bucket, [OwnerState(at.owners[0])], AT, faults)
        assert faults.calls == []
        assert stores.authority.people([at.owners[0].key]) == {}

    def test_an_epoch_grows_by_one_with_each_change(self, stores: Stores, at: World) -> None:
        stores.publish(at.bucket, at.old)
        stores.publish(at.bucket, at.new, LATER)
        assert [stores.authority.person(o).epoch for o in at.owners] == [2, 1, 2, 1, 2, 2]

    def test_a_move_between_warm_tiers_makes_no_vector(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        stores.publish(at.bucket, [state(owner, [draft(owner, 1), draft(owner, 2)])])
        before, faults = stores.held(owner), Faults()
        warm = state(owner, [draft(owner, 1, tier=Tier.WARM), draft(owner, 2)])
        done = stores.publish(at.bucket, [warm], LATER, faults)
        assert stores.held(owner) == before
        assert not {"vectors.upsert", "vectors.delete", "graph.write", "graph.drop", "cold.archive"} & set(faults.calls)
        assert (done.shown, done.vectors, done.graphs) == (1, 0, 0)
        assert stores.read(owner) == expected(warm)
        assert {m.admitted_at for m in stores.authority.visible(owner)} == {AT}

    def test_a_memory_that_comes_back_keeps_when_it_was_admitted(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        both, one = state(owner, [draft(owner, 1), draft(owner, 2)]), state(owner, [draft(owner, 2)])
        stores.publish(at.bucket, [both])
        stores.publish(at.bucket, [one], LATER)
        assert stores.read(owner) == expected(one)
        stores.assert_clean(at.bucket, [owner])
        stores.publish(at.bucket, [both], LATER)
        assert stores.read(owner) == expected(both)
        assert [m.admitted_at for m in stores.authority.visible(owner)] == [AT, AT]
        stores.assert_clean(at.bucket, [owner])

    def test_a_new_version_keeps_when_the_memory_was_admitted(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        stores.publish(at.bucket, [state(owner, [draft(owner, 1)])])
        stores.publish(at.bucket, [state(owner, [draft(owner, 1, "other"), draft(owner, 2)])], LATER)
        assert [m.admitted_at for m in stores.authority.visible(owner)] == [AT, LATER]

    def test_an_owner_without_rows_is_emptied(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        stores.publish(at.bucket, at.old)
        stores.publish(at.bucket, [OwnerState(owner)], LATER)
        assert stores.read(owner) == expected(OwnerState(owner))
        assert stores.held(owner) == {"versions": set(), "vectors": set(), "graphs": set(), "cold": set()}
        assert stores.authority.people([owner.key]) == {owner.key: owner}
        faults = Faults()
        stores.publish(at.bucket, [OwnerState(owner)], LATER, faults)
        assert faults.calls == []

    def test_equal_memories_of_two_tenants_stay_apart(self, stores: Stores, at: World) -> None:
        one, two = Owner(at.tenant, "u:1"), Owner(f"{at.tenant} b", "u:1")
        states = [state(o, [draft(o, 1), draft(o, 2, tier=Tier.COLD)]) for o in (one, two)]
        stores.publish(at.bucket, states)
        stores.publish(at.bucket, [OwnerState(one)], LATER)
        assert stores.read(one) == expected(OwnerState(one))
        assert stores.read(two) == expected(states[1])
        assert stores.authority.person(two).epoch == 1
        stores.assert_clean(at.bucket, [one, two])

    def test_a_cold_memory_leaves_its_text_nowhere_but_in_the_cold_store(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        stores.publish(at.bucket, [state(owner, [draft(owner, 1)])])
        stores.publish(at.bucket, [state(owner, [draft(owner, 1, tier=Tier.COLD)])], LATER)
        (row,) = stores.authority.visible(owner)
        assert row.text == ""
        assert row.summary == draft(owner, 1).payload["summary"]
        assert stores.held(owner) == {
            "versions": {row.entry_id},
            "vectors": set(),
            "graphs": set(),
            "cold": {cold_key(owner, row.entry_id)},
        }
        assert stores.read(owner).memories[row.memory_id][2] == draft(owner, 1).payload["text"]

    def test_what_the_cold_store_loses_is_not_committed(
        self, stores: Stores, at: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owner = at.owners[0]
        warm = state(owner, [draft(owner, 1)])
        stores.publish(at.bucket, [warm])
        with monkeypatch.context() as patch:
            patch.setattr(type(stores.cold), "get", lambda *_: None)
            with pytest.raises(TransientError, match="cold store"):
                stores.publish(at.bucket, [state(owner, [draft(owner, 1, tier=Tier.COLD)])], LATER)
            assert stores.read(owner) == expected(warm)
        stores.publish(at.bucket, [warm])
        stores.assert_clean(at.bucket, [owner])

    def test_a_changed_cold_memory_leaves_no_old_object(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        for words in ("one", "two"):
            shown = state(owner, [draft(owner, 1, words, tier=Tier.COLD)])
            stores.publish(at.bucket, [shown])
            assert stores.read(owner) == expected(shown)
            assert len(stores.held(owner)["cold"]) == 1
        stores.publish(at.bucket, [state(owner, [draft(owner, 1, "two")])])
        assert stores.held(owner)["cold"] == set()

    def test_hot_cold_and_hot_again(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        for tier in (Tier.HOT, Tier.COLD, Tier.HOT, Tier.COLD, Tier.WARM):
            shown = state(owner, [draft(owner, 1, tier=tier)])
            stores.publish(at.bucket, [shown])
            assert stores.read(owner) == expected(shown)
            stores.assert_clean(at.bucket, [owner])

    def test_the_hot_copies_of_a_changed_owner_are_forgotten(self, stores: Stores, at: World) -> None:
        stores.publish(at.bucket, at.old)
        for owner in at.owners:
            stores.hot.put(owner, "pack:1", b"copy", 3600)
        stores.publish(at.bucket, at.new, LATER)
        copies = [stores.hot.get(owner, "pack:1") for owner in at.owners]
        assert copies == [None, b"copy", None, None, None, None]

    def test_old_slices_lead_to_todays(self, stores: Stores, at: World) -> None:
        owner, other = at.owners[0], at.owners[1]
        stores.publish(
            at.bucket,
            [
                state(owner, [], {"a": ["1", "2", "3"], "b": ["4"], "x": ["9"]}),
                state(other, [], {"a of another": ["1", "2"]}),
            ],
        )
        assert stores.authority.redirects(owner, "a") == ["a"]
        stores.publish(at.bucket, [state(owner, [], {"a": ["1"], "c": ["2"], "d": ["3", "4"]})], LATER)
        found = {name: stores.authority.redirects(owner, name) for name in ("a", "b", "c", "d", "x", "never")}
        assert found == {"a": ["a", "c", "d"], "b": ["d"], "c": ["c"], "d": ["d"], "x": [], "never": []}
        stores.publish(at.bucket, [state(owner, [], {"e": ["1", "2", "3", "4"]})], LATER)
        assert [stores.authority.redirects(owner, name) for name in "abcde"] == [["e"]] * 5
        assert stores.authority.redirects(other, "a of another") == ["a of another"]

    def test_batches_are_whole_owners(self, stores: Stores, at: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(publish, "BATCH_MEMORIES", 3)
        faults = Faults()
        stores.publish(at.bucket, at.old, AT, faults)
        # 6 memories in one batch though 3 are the limit; 2 + 2; 1 + 2
        assert faults.calls.count("authority.commit") == 3
        assert [stores.read(s.owner) for s in at.old] == [expected(s) for s in at.old]

    @pytest.mark.parametrize("call", PREPARE)
    def test_a_store_that_fails_in_prepare_leaves_the_old_state(self, stores: Stores, at: World, call: str) -> None:
        stores.publish(at.bucket, at.old)
        with pytest.raises(StoreUnavailableError):
            stores.publish(at.bucket, at.new, LATER, Faults(refuse={call: unavailable}))
        assert [stores.read(s.owner) for s in at.old] == [expected(s) for s in at.old]
        assert stores.read(at.owners[3]) == expected(OwnerState(at.owners[3]))
        stores.publish(at.bucket, at.new, LATER)
        assert [stores.read(s.owner) for s in at.new] == [expected(s) for s in at.new]
        stores.assert_clean(at.bucket, at.owners)

    @pytest.mark.parametrize("call", FINISH)
    def test_a_store_that_fails_in_finish_leaves_the_new_state(self, stores: Stores, at: World, call: str) -> None:
        stores.publish(at.bucket, at.old)
        with pytest.raises(StoreUnavailableError):
            stores.publish(at.bucket, at.new, LATER, Faults(refuse={call: unavailable}))
        assert [stores.read(s.owner) for s in at.new] == [expected(s) for s in at.new]
        assert [b.state for b in stores.authority.open_batches(at.bucket)] == ["committed"]
        stores.publish(at.bucket, [])  # whoever holds the bucket next ends it, whatever it publishes
        stores.assert_clean(at.bucket, at.owners)

    def test_only_new_words_are_embedded(self, stores: Stores, at: World) -> None:
        owner = at.owners[0]
        asked: list[str] = []

        def counting(texts: Sequence[str]) -> list[Vector]:
            asked.extend(texts)
            return embed(texts)

        ports = stores.authority, stores.vectors, stores.graph, stores.hot, stores.cold
        publisher = publish.Publisher(*ports, counting)
        publisher.publish(at.bucket, [state(owner, [draft(owner, 1), draft(owner, 2)])], AT)
        assert len(asked) == 2
        rescored = state(owner, [draft(owner, 1, score=0.9), draft(owner, 2, "other"), draft(owner, 3)])
        publisher.publish(at.bucket, [rescored], LATER)
        assert [text.partition(":")[0] for text in asked] == ["1", "2", "2", "3"]
        assert stores.read(owner) == expected(rescored)

    def test_an_embedder_that_fails_leaves_the_old_state(self, stores: Stores, at: World) -> None:
        stores.publish(at.bucket, at.old)
        publisher = publish.Publisher(
            stores.authority, stores.vectors, stores.graph, stores.hot, stores.cold, lambda texts: embed(texts)[:-1]
        )
        with pytest.raises(ValueError, match="shorter"):
            publisher.publish(at.bucket, at.new, LATER)
        assert [stores.read(s.owner) for s in at.old] == [expected(s) for s in at.old]
        stores.publish(at.bucket, at.old)
        stores.assert_clean(at.bucket, at.owners)

    def test_after_a_rollback_another_state_can_be_published(self, stores: Stores, at: World) -> None:
        stores.publish(at.bucket, at.old)
        with pytest.raises(Killed):
            stores.publish(at.bucket, at.new, LATER, Faults(refuse={"authority.commit": Killed}))
        third = [state(o, [draft(o, 1, "third")]) for o in at.owners]
        stores.publish(at.bucket, third, LATER)
        assert [stores.read(s.owner) for s in third] == [expected(s) for s in third]
        stores.assert_clean(at.bucket, at.owners)

    def test_other_buckets_batches_are_left_alone(self, stores: Stores, at: World) -> None:
        with pytest.raises(Killed):
            stores.publish(at.bucket, at.old, AT, Faults(refuse={"authority.commit": Killed}))
        elsewhere = world()
        stores.publish(elsewhere.bucket, elsewhere.old)
        assert [b.state for b in stores.authority.open_batches(at.bucket)] == ["preparing"]
        assert stores.authority.open_batches(elsewhere.bucket) == []

    @pytest.mark.parametrize("republish", [False, True])
    def test_a_publisher_that_lost_its_bucket_harms_nothing(self, stores: Stores, at: World, republish: bool) -> None:
        """Its lock's connection broke; another rolled its batch back (and published) before it could commit."""
        stores.publish(at.bucket, at.old)

        def other() -> None:
            stores.lose(at.bucket)
            stores.publish(at.bucket, at.new if republish else [], LATER)

        with pytest.raises(TransientError, match="another publisher"):
            stores.publish(at.bucket, at.new, LATER, Faults(meanwhile={"authority.commit": other}))
        shown = at.new if republish else at.old
        assert [stores.read(s.owner) for s in shown] == [expected(s) for s in shown]
        stores.publish(at.bucket, at.new, LATER)
        stores.assert_clean(at.bucket, at.owners)


class CrashSuite:
    """Killed at every step, before and in the middle of it (after it is before the next one)."""

    BATCH = 4

    @pytest.fixture(autouse=True)
    def _small_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(publish, "BATCH_MEMORIES", self.BATCH)

    def assert_whole_batches(self, stores: Stores, at: World) -> list[bool]:
        """Per batch of the new states: is it visible? Fails unless it is so whole, or not at all."""
        before = {s.owner: s for s in at.old}
        sides = []
        for batch in publish._batches(at.new):
            old = [expected(before.get(s.owner, OwnerState(s.owner))) for s in batch]
            new, seen = [expected(s) for s in batch], [stores.read(s.owner) for s in batch]
            assert seen in (old, new)
            sides.append(seen == new)
        return sides

    @pytest.mark.parametrize("when", ["before", "torn"])
    def test_killed_at_every_step(self, stores: Stores, when: str) -> None:
        clean = world()
        stores.publish(clean.bucket, clean.old)
        faults = Faults()
        stores.publish(clean.bucket, clean.new, LATER, faults)
        assert set(PREPARE + FINISH + ["authority.commit"]) == set(faults.calls)
        seen: set[tuple[bool, ...]] = set()
        for step in range(1, len(faults.calls) + 1):
            at = world()
            stores.publish(at.bucket, at.old)
            with pytest.raises(Killed):
                stores.publish(at.bucket, at.new, LATER, Faults(step, when))
            seen.add(tuple(self.assert_whole_batches(stores, at)))
            stores.publish(at.bucket, at.new, LATER)
            assert self.assert_whole_batches(stores, at) == [True] * len(publish._batches(at.new))
            stores.assert_clean(at.bucket, at.owners)
            assert stores.dump(at.owners) == stores.dump(clean.owners)
        assert len(seen) == len(publish._batches(at.new)) + 1  # each batch for itself, in their order


class RecoverySuite(CrashSuite):
    """Killed again while the first crash is being recovered from."""

    def test_the_recovery_killed_at_every_step(self, stores: Stores) -> None:
        """Killed in prepare just before the commit, and in finish just after it: then in each step of what follows."""
        clean = world()
        stores.publish(clean.bucket, clean.old)
        stores.publish(clean.bucket, clean.new, LATER)
        for first in ({"authority.commit": Killed}, {"vectors.delete": Killed}, {"authority.finish": Killed}):
            step = 0
            while True:
                step += 1
                at = world()
                stores.publish(at.bucket, at.old)
                with pytest.raises(Killed):
                    stores.publish(at.bucket, at.new, LATER, Faults(refuse=first))
                again = Faults(step, "torn")
                try:
                    stores.publish(at.bucket, at.new, LATER, again)
                except Killed:
                    self.assert_whole_batches(stores, at)
                    stores.publish(at.bucket, at.new, LATER)
                stores.assert_clean(at.bucket, at.owners)
                assert stores.dump(at.owners) == stores.dump(clean.owners)
                if len(again.calls) < step:
                    break

    def test_killed_and_then_another_state(self, stores: Stores) -> None:
        """What is published after the crash is not what was being published: nothing of the latter remains."""
        for step in range(1, 100):
            at = world()
            stores.publish(at.bucket, at.old)
            faults = Faults(step, "after")
            try:
                stores.publish(at.bucket, at.new, LATER, faults)
                break
            except Killed:
                stores.publish(at.bucket, [replace(s, nodes=[], edges=[]) for s in at.old], LATER)
                stores.publish(at.bucket, [OwnerState(at.owners[3])], LATER)
                seen = [stores.read(s.owner).memories for s in at.old]
                assert seen == [expected(s).memories for s in at.old]
                assert stores.read(at.owners[3]).memories == {}
                stores.assert_clean(at.bucket, at.owners)
        assert len(faults.calls) < step
