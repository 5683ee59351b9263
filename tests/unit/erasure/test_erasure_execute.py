"""Forgetting one person: all of theirs is gone, all else is as it was."""

import pyarrow as pa
import pytest
import sqlalchemy as sa
from suites.erasure_world import (
    ANN,
    BOB,
    DAY,
    ERASED_AT,
    PEOPLE,
    PLANTED,
    SECRET,
    TWIN,
    World,
    cut,
    is_anns,
    of_others,
    states,
)

from memory_pipelines import erasure
from memory_pipelines.erasure.execute import hide
from memory_pipelines.erasure.places import Target
from memory_pipelines.erasure.registry import PLACES
from memory_pipelines.erasure.tombstones import all_tombstones, kept_tombstones
from memory_pipelines.errors import InputError, PermanentError
from memory_pipelines.model import Owner, Tier, stable_hash
from memory_pipelines.recall.source import Source
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.ledger import Ledger
from memory_pipelines.stores.links import IdentityLinks
from memory_pipelines.stores.statements import upsert
from memory_pipelines.tables import EXCHANGES, MEMORIES, REWARD_EVENTS, SLICES, TURNS


def test_a_dry_run_counts_what_was_planted_and_changes_nothing(world: World) -> None:
    before = world.everything()
    plan = erasure.dry_run(world.stores, ANN)
    assert plan.counts == PLANTED
    assert plan.total == sum(PLANTED.values())
    assert plan.owner == ANN.key
    assert plan.touched_owners == (BOB.key,)
    assert set(plan.touched_days) > {"2024-05-17", "2024-05-18", "2024-05-19", "2024-05-20"}
    assert plan.models == ("m1",)
    assert world.everything() == before


def test_nothing_of_the_person_is_left_and_others_are_as_they_were(world: World) -> None:
    before = of_others(world)
    certificate = world.erase(ANN)
    assert {name: n["before"] for name, n in certificate.body["places"].items()} == PLANTED
    assert {n["after"] for n in certificate.body["places"].values()} == {0}
    assert (certificate.survivors, certificate.body["residues"]) == (0, 0)
    assert of_others(world) == before
    left = {name for name, rows in world.everything().items() if any(map(is_anns, rows))}
    assert left == {"postgres.erasures", "postgres.tombstones"}
    (request,) = world.table(schema.erasures)
    assert (request["subject"], request["progress"], request["state"]) == (None, {}, "erased")
    assert "SECRET" not in repr(request)
    assert "ann-7f3" not in repr(request)
    assert [world.hot.held(owner) for owner in PEOPLE] == [0, 0, 2]  # Bob's copies quoted her turns
    assert [row["owner"] for row in world.table(schema.packs)] == [TWIN.key]
    stone = f"tombstones/{ANN.key}.json"  # for a restore of an older backup
    assert {key.split("/")[1] for key in world.cold.keys("") - {stone}} == {BOB.key, TWIN.key}
    assert kept_tombstones(world.cold) == {ANN.key: all_tombstones(world.engine)[ANN.key]}


def test_the_dialogue_of_two_loses_the_words_of_one(world: World) -> None:
    epoch = world.published.authority.person(BOB).epoch
    world.erase(ANN)
    first, second = sorted(
        (r for r in world.rows(EXCHANGES) if r["owner"] == BOB.key and r["session_id"] == "duo"),
        key=lambda r: r["started_at"],
    )
    assert (first["own_text"], first["other_text"]) == ("shall we meet for lunch?", "a table for two is reserved")
    assert first["turn_ids"] == ["b-6", "g-1"]
    assert (second["own_text"], second["other_text"], second["turn_ids"]) == ("fine, see you there", "", ["b-7"])
    slices = {r["exchange_ids"][0]: r for r in world.rows(SLICES)}
    assert slices[first["exchange_id"]]["reply_text"] == "a table for two is reserved"
    assert slices[first["exchange_id"]]["source_turn_ids"] == ["b-6", "g-1"]
    memories = {r["memory_id"]: r["source_turn_ids"] for r in world.rows(MEMORIES)}
    assert memories[stable_hash("memory", second["exchange_id"])] == ["b-7"]
    visible = {m.memory_id: m.source_turn_ids for m in world.published.authority.visible(BOB)}
    assert visible[stable_hash("memory", first["exchange_id"])] == ("b-6", "g-1")
    assert world.published.authority.person(BOB).epoch == epoch + 1


def test_what_the_dialogue_changed_is_made_anew(world: World) -> None:
    ledger = Ledger(world.engine)
    assert "2024-05-18" not in ledger.touched_days()
    world.erase(ANN)
    assert {"2024-05-17", "2024-05-18", "2024-05-19"} <= set(ledger.touched_days())
    owners = {row["owner"]: row["touched"] > row["derived"] for row in world.table(schema.owners)}
    assert owners[BOB.key]
    before = {r["exchange_id"]: (r["own_text"], r["other_text"]) for r in world.rows(EXCHANGES)}
    cut(world)
    after = {r["exchange_id"]: (r["own_text"], r["other_text"]) for r in world.rows(EXCHANGES)}
    assert after == before
    assert not any(map(is_anns, world.rows(EXCHANGES)))


def test_no_job_goes_on_with_what_was_purged(world: World) -> None:
    world.erase(ANN)
    manifest = Ledger(world.engine).manifest()
    assert manifest is not None
    assert manifest.versions["exchanges"] == world.lake.version(EXCHANGES)
    assert world.lake.read(EXCHANGES, version=manifest.versions["exchanges"]).num_rows
    assert world.table(schema.plans) == []
    (batch,) = world.table(schema.batches)
    assert [change["subject"] for change in batch["plan"]] == [BOB.subject]


def test_what_was_said_on_her_device_joins_nobody_else(world: World) -> None:
    before = [row for row in world.table(schema.identity_links) if not is_anns(row)]
    device = Owner("acme", "d:alone")
    links = IdentityLinks(world.engine)
    links.link(device, ANN, ERASED_AT)
    world.erase(ANN)
    after = world.table(schema.identity_links)
    assert [row for row in after if row in before] == before
    assert len(after) == len(before) + 2
    links.link(device, BOB, ERASED_AT)
    assert links.linked(BOB) == (BOB,)
    assert links.shared(device)
    world.erase(device)
    assert [row for row in world.table(schema.identity_links) if row["device_owner"] == device.key] == []


def test_what_linked_devices_are_derived_from_is_forgotten_too(world: World) -> None:
    """A device's impacts count what its user did: it is derived anew, and its training rows go at once."""
    device, wrong = Owner("acme", "d:alone"), Owner("acme", "d:wrong")
    links = IdentityLinks(world.engine)
    for one in (device, wrong):
        links.link(one, ANN, ERASED_AT)
        row = {"tenant": one.tenant, "subject": one.subject, "owner": one.key, "bucket": one.bucket(8)}
        row |= {"exchange_id": one.subject, "occurred_at": DAY}
        full = pa.Table.from_pylist([dict.fromkeys(REWARD_EVENTS.schema.names) | row], schema=REWARD_EVENTS.schema)
        world.lake.write(REWARD_EVENTS, full, [Replace("owner", (one.key,))])
        with world.engine.begin() as connection:
            owner = {"owner": one.key, "tenant": one.tenant, "bucket": row["bucket"], "touched": 1, "derived": 1}
            upsert(connection, schema.owners, [owner])
    links.unlink(wrong, ANN, ERASED_AT)
    plan = erasure.dry_run(world.stores, ANN)
    assert plan.counts["lake.reward_events of linked subjects"] == 2
    assert {device.key, wrong.key} <= set(plan.touched_owners)
    world.erase(ANN)
    assert {device.key, wrong.key}.isdisjoint(row["owner"] for row in world.rows(REWARD_EVENTS))
    waiting = {row["owner"] for row in world.table(schema.owners) if row["touched"] > row["derived"]}
    assert {device.key, wrong.key} <= waiting
    assert {device.key, wrong.key, ANN.key}.isdisjoint(links.others_of())


def test_the_same_name_in_another_tenant_is_somebody_else(world: World) -> None:
    world.erase(TWIN)
    rows = [row for rows in world.everything().values() for row in rows if row.get("tenant") == "globex"]
    assert [row for row in rows if row.get("subject")] == []
    # her files' names could be either's, and every derivation under way was given up
    assert erasure.dry_run(world.stores, ANN).counts == PLANTED | {
        "postgres.files": 0, "postgres.source_faults": 0, "postgres.plans": 0,
    }  # fmt: skip


def test_erasing_twice_changes_nothing(world: World) -> None:
    first = world.erase(ANN)
    before = world.everything()
    request = first.body["request_id"]
    again = erasure.execute(world.stores, request, ERASED_AT, SECRET)
    assert again == first
    assert world.everything() == before


def test_somebody_unknown_gets_a_certificate_of_zeros(world: World) -> None:
    before = of_others(world)
    certificate = world.erase(Owner("acme", "u:nobody-knows"))
    assert {(n["before"], n["after"]) for n in certificate.body["places"].values()} == {(0, 0)}
    assert certificate.body["made_anew"] == {"days": 0, "owners": 0}
    assert certificate.body["models"] == []
    assert of_others(world) == before
    assert erasure.dry_run(world.stores, ANN).counts == PLANTED | {"postgres.plans": 0}


def test_the_first_certificate_counts_what_readers_saw(world: World) -> None:
    gone = world.erase(ANN)
    certificates = erasure.load(world.engine, gone.body["request_id"]).certificates
    assert set(certificates) == {"unreachable", "physically_gone"}
    hidden = certificates["unreachable"]
    assert hidden.body["places"]["visible memories"] == {"before": 5, "after": 0}
    assert hidden.body["places"]["hot"] == {"before": 2, "after": 0}
    assert hidden.survivors == 0
    assert all(erasure.verify(certificate, SECRET) for certificate in certificates.values())
    assert not erasure.verify(gone, b"another secret")


def test_a_request_waits_for_its_approval(world: World) -> None:
    request = erasure.request(world.engine, ANN, "desk", ERASED_AT)
    assert erasure.request(world.engine, ANN, "someone else", ERASED_AT) == request
    before = world.everything()
    with pytest.raises(PermanentError, match="not approved"):
        erasure.execute(world.stores, request, ERASED_AT, SECRET)
    with pytest.raises(PermanentError, match="somebody else"):
        erasure.approve(world.engine, request, "desk", ERASED_AT)
    assert world.everything() == before
    for _ in range(2):
        erasure.approve(world.engine, request, "officer", ERASED_AT)
    found = erasure.load(world.engine, request)
    assert (found.state, found.approved_by, found.owner) == ("approved", "officer", ANN)
    assert [r.request_id for r in erasure.requests(world.engine, "approved")] == [request]
    with pytest.raises(InputError):
        erasure.approve(world.engine, "unknown", "officer", ERASED_AT)
    with pytest.raises(InputError):
        erasure.execute(world.stores, "unknown", ERASED_AT, SECRET)


def test_a_second_request_after_the_first_is_another(world: World) -> None:
    first = world.erase(ANN).body["request_id"]
    second = erasure.request(world.engine, ANN, "desk", ERASED_AT)
    assert second != first
    assert len(erasure.requests(world.engine)) == 2


def test_recall_reaches_nothing_at_once_and_no_old_copy_ever(world: World) -> None:
    source = Source(world.published.authority, world.hot, world.cold)
    missing: set[str] = set()
    assert len(source.find(ANN, ERASED_AT, missing).snapshot) == 5
    later = Source(world.published.authority, world.hot, world.cold)  # a process that is not asked meanwhile
    assert len(later.find(ANN, ERASED_AT, missing).snapshot) == 5
    old = states(world)[0]
    request = erasure.request(world.engine, ANN, "desk", ERASED_AT)
    erasure.approve(world.engine, request, "officer", ERASED_AT)
    hide(world.stores, ANN, request, ERASED_AT)
    assert len(source.find(ANN, ERASED_AT, missing).snapshot) == 0
    world.erase(ANN)
    # the person comes back with one memory: its epoch must not be one that a copy was made for
    new = type(old)(old.owner, [d for d in old.memories if d.tier == Tier.HOT][:1], slices=())
    world.published.publish(0, [new], ERASED_AT)
    assert world.published.authority.person(ANN).epoch == 2
    assert len(later.find(ANN, ERASED_AT, missing).snapshot) == 1
    assert missing == set()


def test_a_publisher_that_was_under_way_is_hidden_again(world: World) -> None:
    """The first transaction waits for nobody; what is published after it is found under the lock."""
    request = erasure.request(world.engine, ANN, "desk", ERASED_AT)
    erasure.approve(world.engine, request, "officer", ERASED_AT)
    world.published.publish(0, [type(s)(s.owner) for s in states(world) if s.owner == ANN], ERASED_AT)
    hide(world.stores, ANN, request, ERASED_AT)
    world.published.publish(0, [s for s in states(world) if s.owner == ANN], ERASED_AT)
    assert world.published.authority.visible(ANN)
    certificate = erasure.execute(world.stores, request, ERASED_AT, SECRET)
    assert certificate.survivors == 0
    assert world.published.authority.visible(ANN) == []
    (stone,) = world.table(schema.tombstones)
    assert stone["epoch"] == 3


def test_accounts_know_what_was_erased(world: World) -> None:
    assert erasure.erased_rows(world.engine) == {"turns": 0, "behaviour": 0, "quarantine": 0}
    landed = Ledger(world.engine).landed()
    world.erase(ANN)
    gone = erasure.erased_rows(world.engine)
    assert gone == {"turns": 12, "behaviour": 2, "quarantine": 6}
    assert world.lake.read(TURNS).num_rows == landed.turns - gone["turns"]
    assert Ledger(world.engine).landed() == landed


def test_a_certificate_names_nobody(world: World) -> None:
    text = repr(world.erase(ANN).as_dict())
    assert "acme" not in text
    assert "ann-7f3" not in text
    assert "SECRET" not in text
    assert "officer" not in text


def test_every_place_is_empty_for_a_stranger(world: World) -> None:
    target = Target(Owner("acme", "u:stranger"))
    assert [place.count(world.stores, [target]) for place in PLACES] == [{}] * len(PLACES)
    with world.engine.begin() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(schema.tombstones)).scalar_one() == 0
