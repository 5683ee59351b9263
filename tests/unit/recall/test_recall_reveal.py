"""Tokens of sensitive fields in answers: whose are revealed to whom, and where they stay."""

import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from recall_world import ALICE, NOW, ConceptEmbedder, Down, Joined, World, make_fact, make_memory

from memory_pipelines.clock import FixedClock
from memory_pipelines.model import Owner
from memory_pipelines.recall import Recall
from memory_pipelines.recall import pack as packed
from memory_pipelines.recall.source import PERSON, hot_name
from memory_pipelines.stores.fakes import MemoryVault
from memory_pipelines.stores.vault import Secret

BOB, DEVICE, NAMESAKE = Owner("acme", "u:bob"), Owner("acme", "d:tablet"), Owner("rival", ALICE.subject)
PHONE, PASSWORD = "13812345678", 'qu"ote\\d'


class CountedVault(MemoryVault):
    asked = 0

    def reveal(self, wanted: Mapping[Owner, Collection[str]]) -> dict[Owner, dict[str, str]]:
        self.asked += 1
        return super().reveal(wanted)


class OneDevice:
    """Alice's device."""

    def linked(self, owner: Owner) -> tuple[Owner, ...]:
        return (ALICE, DEVICE) if owner == ALICE else (owner,)

    def seen(self, device: Owner, user: Owner, at: object) -> None:
        """Nothing to note."""


@pytest.fixture
def vault() -> CountedVault:
    return CountedVault()


def ask(world: World, vault: Any, owner: Owner = ALICE, links: Any = None) -> Any:
    recall = Recall(
        *(Joined(world.authority, links), world.vectors, world.graph, world.hot, world.cold),
        *(ConceptEmbedder(), FixedClock(NOW), 1500),
        links=links,
        vault=vault,
    )
    return recall.recall("快递 parcel", tenant=owner.tenant, subject=owner.subject)


def kept(vault: MemoryVault, owner: Owner, value: str = PHONE, kind: str = "phone") -> str:
    return vault.keep([Secret(owner, kind, value)])[Secret(owner, kind, value)]


def test_the_person_gets_their_values_back(world: World, vault: CountedVault) -> None:
    phone, password = kept(vault, ALICE), kept(vault, ALICE, PASSWORD, "password")
    structured = json.dumps({"value": password})
    fact = make_fact("f", f"快递电话{phone}", "phone", password, text=f"快递打{phone}", structured=structured)
    world.publish([fact])
    answer = ask(world, vault)
    [memory] = [item.memory for item in answer.items]
    assert (memory.summary, memory.text, memory.value) == (f"快递电话{PHONE}", f"快递打{PHONE}", PASSWORD)
    assert json.loads(memory.structured) == {"value": PASSWORD}
    assert PHONE in answer.prompt()
    assert vault.asked == 1


def test_nobody_else_does(world: World, vault: CountedVault) -> None:
    """Typed by somebody else, or asked for under another name or tenant, a token is a token."""
    phone = kept(vault, ALICE)
    for owner in (BOB, NAMESAKE):
        world.publish([make_memory("m", f"快递 {phone}")], owner=owner)
        [item] = ask(world, vault, owner).items
        assert item.memory.summary == f"快递 {phone}"


def test_a_linked_devices_values_are_the_persons_each_by_its_own_subject(world: World, vault: CountedVault) -> None:
    hers, tablets = kept(vault, ALICE), kept(vault, DEVICE, "13987654321")
    world.publish([make_memory("a", f"快递 {hers} {tablets}")])
    world.publish([make_memory("d", f"快递 parcel {tablets} {hers}")], owner=DEVICE)
    shown = {item.memory.memory_id: item.memory.summary for item in ask(world, vault, links=OneDevice()).items}
    assert shown == {"a": f"快递 {PHONE} {tablets}", "d": f"快递 parcel 13987654321 {hers}"}
    assert vault.asked == 1


def test_the_caches_never_hold_a_value(world: World, vault: CountedVault) -> None:
    phone = kept(vault, ALICE)
    world.publish([make_memory("m", f"快递 {phone}")])
    ask(world, vault)
    pack = packed.load(ALICE, world.hot.get(ALICE, hot_name(1)) or b"")
    said = repr([*pack.rows, *pack.columns.words.terms, *pack.columns.claims.terms])
    assert PHONE not in said
    assert phone in said
    assert PHONE.encode() not in (world.hot.get(ALICE, PERSON) or b"")
    [item] = ask(world, None).items
    assert item.memory.summary == f"快递 {phone}"


def test_without_a_token_the_vault_is_not_asked(world: World) -> None:
    world.publish([make_memory("m", "快递 [phone] [x]")])
    answer = ask(world, Down("relational"))
    assert answer.missing == ()
    assert len(answer.items) == 1


def test_a_vault_that_is_down_leaves_the_token(world: World, vault: CountedVault) -> None:
    phone = kept(vault, ALICE)
    world.publish([make_memory("m", f"快递 {phone}")])
    answer = ask(world, Down("relational"))
    assert answer.items[0].memory.summary == f"快递 {phone}"
    assert answer.missing == ("relational",)
