"""Recall of a person over linked subjects: links on SQLite, everything else in memory."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from recall_world import ALICE, NOW, ConceptEmbedder, Down, Joined, World, make_fact, make_memory

from memory_pipelines.clock import FixedClock
from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.recall import Recall
from memory_pipelines.recall.person import MAX_NOTED, JointSnapshots, Subjects
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores import database
from memory_pipelines.stores.authority import Links
from memory_pipelines.stores.base import GraphEdge
from memory_pipelines.stores.links import IdentityLinks

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
PHONE, TABLET, BOB = Owner("acme", "d:phone"), Owner("acme", "d:tablet"), Owner("acme", "u:bob")
SF = "carrier/sf_express"

OWN = [
    make_memory("own", "用户查询快递", occurred_at=NOW - 3 * DAY, entities=(SF,)),
    make_memory("cat", "The user has a cat called Tom", occurred_at=NOW - 20 * DAY),
]
ON_PHONE = [
    make_memory("late", "用户投诉快递晚到", occurred_at=NOW - 5 * DAY, decision_impact=0.9, entities=(SF,)),
    make_memory("nuts", "用户对花生过敏", occurred_at=NOW - 50 * DAY),
]


class Watched:
    """Links that count what is noted, and may refuse to be read or written."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.noted: list[tuple[str, str]] = []
        self.readable = self.writable = True

    def linked(self, owner: Owner) -> tuple[Owner, ...]:
        if not self.readable:
            raise StoreUnavailableError("relational", "A_SETTING", "refused")
        return self.links.linked(owner)

    def seen(self, device: Owner, user: Owner, at: datetime) -> None:
        if not self.writable:
            raise StoreUnavailableError("relational", "A_SETTING", "refused")
        self.noted.append((device.subject, user.subject))
        self.links.seen(device, user, at)


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    engine = database.connect("sqlite://")
    yield engine
    engine.dispose()


@pytest.fixture
def links(engine: sa.Engine) -> IdentityLinks:
    return IdentityLinks(engine)


def reader(world: World, links: Links | None) -> Recall:
    return over(Joined(world.authority, links), world, links)


def over(authority: Joined, world: World, links: Links | None) -> Recall:
    stores = (authority, world.vectors, world.graph, world.hot, world.cold)
    return Recall(*stores, ConceptEmbedder(), FixedClock(NOW), world.budget, links=links)


def ask(recall: Recall, query: str = "快递", owner: Owner = ALICE, **options: Any) -> Any:
    return recall.recall(query, tenant=owner.tenant, subject=owner.subject, **options)


def ids(answer: Any) -> list[str]:
    return [item.memory.memory_id for item in answer.items]


def publish(world: World) -> None:
    world.publish(OWN, [GraphEdge("own", f"entity:{SF}", "mentions", 1.0)])
    world.publish(ON_PHONE, [GraphEdge("late", f"entity:{SF}", "mentions", 1.0)], owner=PHONE)


# ---- visible at once, gone at once


def test_a_login_makes_the_devices_memories_visible_to_a_running_reader(world: World, links: IdentityLinks) -> None:
    publish(world)
    recall = reader(world, links)
    assert ids(ask(recall)) == ["own"]
    assert ids(ask(recall, "过敏")) == []
    links.link(PHONE, ALICE, NOW)
    assert ids(ask(recall)) == ["own", "late"]
    assert ids(ask(recall, "过敏")) == ["nuts"]
    assert ids(ask(recall, "")) == ["late"]
    assert ask(recall).missing == ()
    links.unlink(PHONE, ALICE, NOW)
    assert ids(ask(recall)) == ["own"]
    assert ids(ask(recall, "过敏")) == ids(ask(recall, "")) == []


def test_a_device_sees_only_its_own(world: World, links: IdentityLinks) -> None:
    publish(world)
    recall = reader(world, links)
    links.link(PHONE, ALICE, NOW)
    assert ids(ask(recall, owner=PHONE)) == ["late"]
    assert ids(ask(recall, "cat", owner=PHONE)) == []


def test_a_user_without_memories_has_those_of_the_device(world: World, links: IdentityLinks) -> None:
    world.publish(ON_PHONE, owner=PHONE)
    links.link(PHONE, ALICE, NOW)
    assert ids(ask(reader(world, links))) == ["late"]


def test_two_devices(world: World, links: IdentityLinks) -> None:
    publish(world)
    world.publish([make_memory("slow", "快递太慢", occurred_at=NOW - DAY)], owner=TABLET)
    recall = reader(world, links)
    for device in (TABLET, PHONE):
        links.link(device, ALICE, NOW)
    assert ids(ask(recall)) == ["slow", "own", "late"]
    links.unlink(PHONE, ALICE, NOW)
    assert ids(ask(recall)) == ["slow", "own"]


def test_a_device_of_two_users_joins_neither(world: World, links: IdentityLinks) -> None:
    publish(world)
    recall = reader(world, links)
    links.link(PHONE, ALICE, NOW)
    assert ids(ask(recall)) == ["own", "late"]
    links.link(PHONE, BOB, NOW)
    assert ids(ask(recall)) == ["own"]
    assert ids(ask(recall, owner=BOB)) == []


def test_another_tenant_is_never_joined_whatever_the_links_say(world: World) -> None:
    class Broken:
        def linked(self, owner: Owner) -> tuple[Owner, ...]:
            return owner, Owner("rival", PHONE.subject), owner, PHONE

        def seen(self, device: Owner, user: Owner, at: datetime) -> None:
            assert device == PHONE

    publish(world)
    world.publish([make_memory("secret", "快递秘密")], owner=Owner("rival", PHONE.subject))
    assert ids(ask(reader(world, Broken()))) == ["own", "late"]


def test_rows_that_a_broken_authority_mixes_in_are_dropped(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    world.authority.rows[PHONE].append(make_memory("bob", "快递 秘密", owner=BOB))
    assert ids(ask(reader(world, links))) == ["own", "late"]


# ---- one view


def test_without_linked_devices_nothing_differs(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, BOB, NOW)
    for query in ("快递", "cat", "过敏", "", "unrelated"):
        for owner in (ALICE, PHONE):
            plain = ask(reader(world, None), query, owner, explain=True)
            assert ask(reader(world, links), query, owner, explain=True) == plain


def test_linked_subjects_are_ranked_like_one(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    one = World()
    edges = [GraphEdge(name, f"entity:{SF}", "mentions", 1.0) for name in ("own", "late")]
    one.publish([*OWN, *ON_PHONE], edges)
    for query in ("快递", "cat", "过敏", "", "Where is my parcel?"):
        joint, alone = ask(reader(world, links), query), ask(reader(one, None), query)
        assert [replace(i.memory, owner=ALICE) for i in joint.items] == [i.memory for i in alone.items]
        assert [(i.score, i.reasons, i.why) for i in joint.items] == [(i.score, i.reasons, i.why) for i in alone.items]


def test_a_ripple_crosses_from_one_subject_to_another_through_what_both_mention(
    world: World, links: IdentityLinks
) -> None:
    world.publish(
        [make_memory("ask", "用户查询退货快递", entities=(SF,))], [GraphEdge("ask", f"entity:{SF}", "mentions", 1.0)]
    )
    world.publish(
        [make_memory("cancel", "用户生气取消订单", decision_impact=0.9)],
        [GraphEdge("cancel", f"entity:{SF}", "mentions", 1.0)],
        owner=PHONE,
    )
    links.link(PHONE, ALICE, NOW)
    answer = ask(reader(world, links), "退货快递")
    assert ids(answer) == ["ask", "cancel"]
    (path,) = next(i for i in answer.items if i.memory.memory_id == "cancel").reasons.paths
    assert [(hop.source, hop.via, hop.target) for hop in path.hops] == [("ask", f"entity:{SF}", "cancel")]


def test_a_value_that_ended_in_one_subject_is_replaced_by_the_current_one_of_another(
    world: World, links: IdentityLinks
) -> None:
    old = {"valid_from": NOW - 90 * DAY, "valid_to": NOW - 20 * DAY, "decision_impact": 0.9}
    world.publish([make_fact("old", "用户住在上海", "home_city", "上海", **old)], owner=PHONE)
    world.publish([make_fact("new", "用户搬去了北京", "home_city", "北京", valid_from=NOW - 20 * DAY)])
    links.link(PHONE, ALICE, NOW)
    by_id = {item.memory.memory_id: item for item in ask(reader(world, links), "用户住在上海吗").items}
    assert by_id["old"].reasons.superseded_by == "new"
    assert by_id["new"].score > by_id["old"].score


def test_a_suppression_on_the_device_holds_for_the_user(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    recall = reader(world, links)
    assert ids(ask(recall)) == ["own", "late"]
    world.suppress("late", owner=PHONE)
    answer = ask(recall, explain=True)
    assert ids(answer) == ["own"]
    assert answer.explanation.suppressed == ("late",)
    assert "late" not in json.dumps({leg: [m for m, _ in found] for leg, found in answer.explanation.legs.items()})
    world.suppress(owner=PHONE)
    world.suppress("own")
    assert ids(ask(recall)) == ["late"]


def test_a_cold_text_comes_from_its_own_owner(world: World, links: IdentityLinks) -> None:
    world.publish(OWN)
    world.publish([make_memory("old", "用户买过钢琴", tier="cold")], owner=PHONE)
    links.link(PHONE, ALICE, NOW)
    (item,) = ask(reader(world, links), "钢琴").items
    assert item.memory.text == "archived words of old"


def test_the_explanation_names_subjects_by_key(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    answer = ask(reader(world, links), explain=True)
    assert answer.explanation.owners == (ALICE.key, PHONE.key)
    said = repr(answer.explanation) + answer.prompt() + "".join(item.why for item in answer.items)
    assert "alice" not in said
    assert "phone" not in said
    assert ask(reader(world, None), explain=True).explanation.owners == (ALICE.key,)


# ---- caches


def test_rows_of_each_owner_are_read_once_per_epoch(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    recall = reader(world, links)
    for _ in range(3):
        ask(recall)
    ask(reader(world, links))
    assert world.authority.visible_reads == 2
    world.publish([*ON_PHONE, make_memory("again", "快递又晚了", occurred_at=NOW - DAY)], owner=PHONE)
    assert ids(ask(recall)) == ["again", "own", "late"]
    assert world.authority.visible_reads == 3


def test_a_joint_snapshot_is_made_once_and_goes_with_the_link() -> None:
    own, phone = Snapshot(ALICE, OWN), Snapshot(PHONE, [replace(m, owner=PHONE) for m in ON_PHONE])
    empty = Snapshot(TABLET, ())
    joint = JointSnapshots(size=1)
    both = joint.join([own, phone])
    assert [m.memory_id for m in both.rows] == ["own", "late", "cat", "nuts"]
    assert joint.join([own, empty, phone]) is both
    assert joint.join([own, Snapshot(PHONE, phone.rows)]) is not both
    assert joint.join([own]) is own
    assert len(joint) == 0
    assert joint.join([Snapshot(ALICE, ()), phone]) is phone
    assert joint.join([empty, empty]) is empty
    joint.join([own, phone])
    joint.join([Snapshot(BOB, [replace(m, owner=BOB) for m in OWN]), phone])
    assert len(joint) == 1


def test_rows_between_two_epochs_are_not_kept(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    read, turns = world.authority.visible, list(range(3))

    def visible(owner: Owner) -> Any:
        found = read(owner)
        if owner == PHONE and turns:
            world.publish([make_memory(f"turn{turns.pop(0)}", "快递")], owner=PHONE)
        return found

    world.authority.visible = visible
    recall = reader(world, links)
    assert ids(ask(recall)) == ["own", "turn1"]  # a commit came into each of three readings: the rows of the last
    assert ids(ask(recall)) == ["own", "turn2"]


# ---- stores that do not answer


def test_links_that_cannot_be_read_join_nobody(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    watched = Watched(links)
    recall = reader(world, watched)
    assert ids(ask(recall)) == ["own", "late"]
    watched.readable = False
    answer = ask(recall)
    assert (ids(answer), answer.missing) == (["own"], ("relational",))


def test_without_the_authority_a_subject_is_alone(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    watched = Watched(links)
    assert ids(ask(reader(world, watched))) == ["own", "late"]
    world.authority = Down("relational")
    answer = ask(reader(world, watched), explain=True)
    assert (ids(answer), answer.missing) == (["own"], ("relational",))
    assert answer.explanation.owners == (ALICE.key,)
    assert watched.noted == [("d:phone", "u:alice")]


def test_a_device_whose_rows_cannot_be_read_is_left_out_unless_there_are_copies(
    world: World, links: IdentityLinks
) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    watched, read = Watched(links), world.authority.visible

    def visible(owner: Owner) -> Any:
        if owner == PHONE:
            raise StoreUnavailableError("relational", "A_SETTING", "refused")
        return read(owner)

    world.authority.visible = visible
    answer = ask(reader(world, watched), explain=True)
    assert (ids(answer), answer.missing) == (["own"], ("relational",))
    assert answer.explanation.owners == (ALICE.key,)
    assert watched.noted == []
    world.authority.visible = read
    ask(reader(world, watched))
    world.publish(ON_PHONE, owner=PHONE)
    world.authority.visible = visible
    answer = ask(reader(world, watched))
    assert (ids(answer), answer.missing) == (["own", "late"], ("relational",)), "the copy of the epoch before"
    world.suppress("late", owner=PHONE)
    assert ids(ask(reader(world, watched))) == ["own"], "the copy knows nothing of it, the authority's first answer did"


@pytest.mark.parametrize(("name", "role"), [("vectors", "vector"), ("graph", "graph"), ("hot", "hot")])
def test_other_stores_may_be_down(world: World, links: IdentityLinks, name: str, role: str) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    setattr(world, name, Down(role))
    answer = ask(reader(world, links))
    assert (ids(answer), answer.missing) == (["own", "late"], (role,))


# ---- how soon


def test_the_first_recall_after_a_login_is_noted_once(world: World, links: IdentityLinks) -> None:
    publish(world)
    watched = Watched(links)
    recall = reader(world, watched)
    links.link(PHONE, ALICE, NOW - 2 * SECOND)
    assert links.latencies(NOW) == []
    ask(recall, owner=PHONE)
    assert watched.noted == []
    for query in ("cat", "快递", ""):
        ask(recall, query, as_of=NOW - 30 * DAY)
    assert watched.noted == [("d:phone", "u:alice")]
    assert links.latencies(NOW) == [2.0]
    links.unlink(PHONE, ALICE, NOW - SECOND)
    ask(recall)
    links.link(PHONE, ALICE, NOW)
    ask(recall)
    assert len(watched.noted) == 2
    assert links.latencies(NOW) == [2.0, 0.0]


def test_a_note_that_fails_is_made_by_the_next_recall(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW - SECOND)
    watched = Watched(links)
    watched.writable = False
    recall = reader(world, watched)
    answer = ask(recall)
    assert (ids(answer), answer.missing) == (["own", "late"], ())
    watched.writable = True
    ask(recall)
    assert links.latencies(NOW) == [1.0]


def test_what_is_remembered_of_notes_is_bounded() -> None:
    class Everywhere:
        count = 0

        def linked(self, owner: Owner) -> tuple[Owner, ...]:
            return owner, PHONE

        def seen(self, device: Owner, user: Owner, at: datetime) -> None:
            Everywhere.count += 1

    subjects = Subjects(Everywhere())
    users = [Owner("acme", f"u:{i}") for i in range(MAX_NOTED + 1)]
    for user in users:
        subjects.shown(user, [PHONE], NOW)
    subjects.shown(users[-1], [PHONE], NOW)
    assert Everywhere.count == MAX_NOTED + 1
    subjects.shown(users[0], [PHONE], NOW)
    assert Everywhere.count == MAX_NOTED + 2


def test_a_recall_asks_the_authority_once(world: World, links: IdentityLinks) -> None:
    publish(world)
    links.link(PHONE, ALICE, NOW)
    authority = Joined(world.authority, links)
    recall = over(authority, world, links)
    for _ in range(3):
        assert ids(ask(recall)) == ["own", "late"]
    assert authority.heads == 3
